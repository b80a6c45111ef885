import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Steps of a session that nobody waits for any more: they spend nothing, and what they bring takes nobody's place.
@Suite struct KeeperTurnTests {
    private static let password = Plans.client(identity: "grant: password, username: u, password: env:P")

    /// Two identities of one user take turns; the second is given up while the first one's login is under way.
    @Test func aGrantThatIsGivenUpBeforeItsTurnLogsNobodyIn() throws {
        let scene = try KeeperScene(Plans.gate("acquire_timeout: 2s", names: ["a", "b"]))
        let gate = NumberedGate()
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded())
        gate.hangs = ["register"]
        let first = scene.call(Wire.get("/a/x"))
        scene.pass(seconds: 1)
        let second = scene.call(Wire.get("/b/x"))
        #expect(scene.issuerCalls.count == 1)
        // Three times as long as a caller waits, from the second's beginning on.
        scene.pass(seconds: 4.8)
        #expect(first.status == 504 && second.status == 504)
        let epochs = scene.inKeeper { keeper in keeper.identities.map(\.epoch) }
        _ = scene.inKeeper { $0.purge(.identity("b")) }
        #expect(scene.inKeeper { keeper in keeper.identities.map(\.epoch) } == [epochs[0], epochs[1] + 1])
        gate.hangs = []
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.idaas("CLIENTREGHANDLE", "h0"))
        scene.settle()
        #expect(scene.issuerCalls.allSatisfy { !$0.body.contains("c-b") && !$0.path.contains("c-b") })
        #expect(scene.status("/a/x") == 200)
    }

    /// A password's session that comes after a purge is of before it: the grant that was asked for since makes its own.
    @Test func aSessionThatComesAfterAPurgeIsDropped() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Self.password, store: store)
        scene.issuer = { _ in nil }
        let caller = scene.call()
        #expect(scene.issuerCalls.count == 1)
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        #expect(scene.issuerCalls.count == 1 && caller.status == nil, "the password is under way still")
        scene.issuer = { _ in Wire.bearer("t2", #","refresh_token":"r2""#) }
        try #require(scene.issuers.last { !$0.isClosed }).send(
            Wire.json(#"{"access_token":"t1","token_type":"Bearer","expires_in":100,"refresh_token":"r1"}"#))
        scene.settle()
        #expect(caller.status == 200 && scene.upstreamCalls.last?.authorization == "Bearer t2")
        let kept = scene.inKeeper { keeper in
            keeper.sessions.of(keeper.identities[0].digest).compactMap(\.material.refreshToken)
        }
        #expect(kept == [Secret("r2")] && store.rows(RowKind.session).count == 1)
    }

    /// Both grants are told that their login is over; one new login is enough for both.
    @Test func aLoginThatIsOverIsMadeOnceForAllWhoAreTold() throws {
        let scene = try KeeperScene(Plans.gate(paths: ["two"]))
        let gate = NumberedGate()
        scene.issuer = gate.answer
        let (one, two) = (gate.guarded("ONE"), gate.guarded("TWO"))
        scene.upstream = { $0.path.hasPrefix("/two/") ? two($0) : one($0) }
        #expect(scene.status("/w/x") == 200 && scene.status("/two/x") == 200 && gate.users == 1)
        scene.pass(seconds: 3600, step: 600)
        // The server has forgotten the first login.
        scene.issuer = { request in
            guard request.path.hasSuffix("/access"), request.body.contains("u1") else { return gate.answer(request) }
            return Wire.json("{}", status: 401)
        }
        let callers = ["/w/x", "/two/x"].map { scene.call(Wire.get($0), settles: false) }
        scene.settle()
        #expect(callers.map(\.status) == [200, 200] && gate.users == 2 && gate.tokens == 4)
    }

    // MARK: - First refresh tokens that several identities name

    private let secrets = Secrets(["R": "r0", "Q": "q0"])
    private let issuer = RotatingIssuer()

    private func twins(_ second: String) -> String {
        RotatingIssuer.plan(["", "extra: {x: y}"], routes: [(0, "a"), (1, "b")])
            .replacing("token: {}", with: "token: {persist: false}", maxReplacements: 1)
            .replacing("refresh_token: env:R, extra", with: "refresh_token: env:\(second), extra")
    }

    /// The first identity keeps nothing on disk, and the second has to find there that the token is spent.
    @Test(arguments: [true, false]) func aTokenThatIsSpentInMemoryIsMarkedForWhoNamesItToo(_ isRead: Bool) throws {
        let store = MemoryStore()
        let scene = try KeeperScene(twins("R"), store: store, secrets: secrets)
        scene.issuer = issuer.answer
        scene.settle()
        if isRead { scene.inKeeper { $0.secretsMayHaveChanged() } }
        #expect(scene.status("/a/") == 200 && issuer.uses == 1)
        #expect(store.rows(RowKind.family).count == 1 && store.rows(RowKind.session).isEmpty)
        let next = try KeeperScene(twins("R"), store: store, secrets: secrets)
        next.issuer = issuer.answer
        #expect(next.status("/b/") == 200 && issuer.uses == 2 && issuer.reuses == 0)
    }

    @Test func aTokenThatNobodyElseNamesLeavesNoMark() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(twins("Q"), store: store, secrets: secrets)
        scene.issuer = issuer.answer
        #expect(scene.status("/a/") == 200)
        #expect(store.rows(RowKind.family).isEmpty && store.rows(RowKind.session).isEmpty)
    }

    /// A login of a second issuer has been left in the store: no doubt of it holds this one's first token back.
    @Test func aLoginOfAnotherIssuerIsNoReasonForDoubt() throws {
        let store = MemoryStore()
        let password = Plans.client(identity: "grant: password, username: u, password: env:P")
        let before = try KeeperScene(password.replacing(":9100", with: ":9200"), store: store)
        before.issuer = { _ in Wire.bearer("t", #","refresh_token":"other""#) }
        #expect(before.status() == 200 && store.rows(RowKind.session).count == 1)
        let scene = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        scene.issuer = issuer.answer
        scene.settle()
        #expect(store.rows(RowKind.session).isEmpty, "a password makes it anew")
        let isReset = scene.inKeeper { $0.reset(identity: "i0") }
        #expect(isReset && scene.status("/a/") == 200 && issuer.uses == 1 && issuer.reuses == 0)
    }
}
