import ScriptedKernel
import Testing

@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Requests that go out without a credential to find out what is wanted, those behind them, and those for whom there is no room.
@Suite struct KeeperScoutTests {
    private let gate = NumberedGate()

    private func scene(
        _ yaml: String = Plans.gate(), loops: Int = 1, store: MemoryStore? = nil, slots: Int = 256
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, loops: loops, store: store, slots: slots)
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        return scene
    }

    /// The connections on which the upstream has a request that it has not answered.
    private func answer(_ scene: KeeperScene, _ text: String) throws {
        try #require(scene.loops[0].kernel.connections.last { !$0.isClosed }).send(text)
        scene.settle()
    }

    // MARK: - Behind a scout

    @Test func whatNeedsNoTokenIsFoundOutOnce() throws {
        let scene = try scene()
        scene.upstream = { _ in nil }
        let callers = (0..<4).map { _ in scene.call(Wire.get("/w/open/x")) }
        #expect(scene.upstreamCalls.count == 1 && callers.allSatisfy { $0.status == nil })
        scene.upstream = { _ in Wire.ok("open") }
        try answer(scene, Wire.ok("open"))
        #expect(callers.map(\.status) == [200, 200, 200, 200])
        #expect(scene.upstreamCalls.count == 4 && scene.upstreamCalls.allSatisfy { $0.authorization == nil })
        #expect(scene.issuerCalls.isEmpty)
    }

    /// Only so many wait; the loops count theirs alone.
    @Test func whoIsTooManyBehindAScoutComesAgain() throws {
        let scene = try scene(Plans.gate() + "limits: {waiters: 1}\n", loops: 4)
        scene.upstream = { _ in nil }
        let callers = (0..<4).map { scene.call(Wire.get("/w/x"), loop: $0) }
        #expect(callers.map(\.status) == [nil, nil, 503, 503])
        #expect(callers[3].receivedText.contains("Retry-After: 1\r\n"))
        #expect(scene.upstreamCalls.count == 1)
    }

    // MARK: - Held back

    /// Another realm of the same user is not even looked at: nothing could be had for it.
    @Test func aRefusedPasswordSendsNoScout() throws {
        let scene = try scene(Plans.gate(identity: "token_scope: url"))
        gate.refusesPassword = true
        #expect(scene.status("/w/x") == 503)
        let seen = (scene.upstreamCalls.count, scene.issuerCalls.count)
        for path in ["/w/x", "/w/other"] {
            let caller = scene.call(Wire.get(path))
            #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        }
        #expect(seen == (scene.upstreamCalls.count, scene.issuerCalls.count))
    }

    // MARK: - No room

    @Test func whoWaitsBehindAScoutWithoutASlotComesAgain() throws {
        let yaml = Plans.gate(names: ["w", "v"])
        let scene = try scene(yaml, slots: 1)
        #expect(scene.status("/v/x") == 200)
        let granted = scene.issuerCalls.count
        scene.upstream = { _ in nil }
        let callers = (0..<3).map { _ in scene.call(Wire.get("/w/x")) }
        let scout = try #require(scene.upstreamCalls.last)
        try answer(scene, try #require(gate.guarded()(scout)))
        #expect(callers.map(\.status) == [503, 503, 503])
        #expect(callers.allSatisfy { $0.receivedText.contains("Retry-After: 1\r\n") })
        #expect(scene.upstreamCalls.count { $0.path == "/w/x" } == 1 && scene.issuerCalls.count == granted)
    }

    /// As for end users: a URL for which the hot cache has no slot.
    @Test func aURLWithoutASlotIsRefused() throws {
        let yaml = Plans.gate(identity: "token_scope: url") + "limits: {subjects: 100, new_subjects_per_second: 1000}\n"
        let scene = try scene(yaml, slots: 3)
        let found = (0..<5).map { scene.status("/w/\($0)") }
        #expect(found == [200, 200, 503, 503, 503])
        #expect(scene.callers.last?.receivedText.contains("problems/too-many-subjects") == true)
        #expect(scene.status("/w/1") == 200)
    }

    @Test func aUserWithoutASlotIsRefused() throws {
        let yaml =
            Plans.client(
                identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")
            + "limits: {subjects: 100, new_subjects_per_second: 1000}\n"
        let scene = try scene(yaml, slots: 3)
        scene.issuer = NumberedIssuer().answer
        scene.upstream = { _ in Wire.ok() }
        let found = (0..<4).map { scene.call(Wire.get("/", "X-User: u\($0)\r\n")).status }
        #expect(found == [200, 200, 503, 503] && scene.issuerCalls.count == 2)
        #expect(scene.callers.last?.receivedText.contains("problems/too-many-subjects") == true)
        #expect(scene.call(Wire.get("/", "X-User: u1\r\n")).status == 200)
    }

    // MARK: - The store is to be asked

    enum Kind: CaseIterable { case client, realm, url, user }

    private func plan(_ kind: Kind) -> String {
        switch kind {
        case .client: Plans.client()
        case .realm: Plans.gate()
        case .url: Plans.gate(identity: "token_scope: url")
        case .user:
            Plans.client(
                identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")
        }
    }

    private func gateway(_ kind: Kind, _ store: MemoryStore) throws -> KeeperScene {
        let scene = try scene(plan(kind), store: store)
        guard kind != .realm, kind != .url else { return scene }
        scene.issuer = NumberedIssuer().answer
        scene.upstream = { _ in Wire.ok() }
        return scene
    }

    private func ask(_ scene: KeeperScene) -> Peer { scene.call(Wire.get("/w/x", "X-User: ann\r\n")) }

    /// The store may have the token, and has more to do than it takes: nothing is granted for that, and callers come again.
    @Test(arguments: Kind.allCases) func aStoreThatTakesNoQuestionIsNoReasonForAGrant(_ kind: Kind) throws {
        let store = MemoryStore()
        #expect(ask(try gateway(kind, store)).status == 200)
        store.disk = .failing
        let next = try gateway(kind, store)
        next.settle()
        store.disk = .crowded
        let caller = ask(next)
        #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: 1\r\n"))
        #expect(next.issuerCalls.isEmpty)
        store.disk = .good
        #expect(ask(next).status == 200 && next.issuerCalls.isEmpty)
    }

    /// During an upgrade the rows of the store are the next process's to serve.
    @Test(arguments: Kind.allCases) func duringAnUpgradeTheStoreIsNotAsked(_ kind: Kind) throws {
        let store = MemoryStore()
        #expect(ask(try gateway(kind, store)).status == 200)
        store.disk = .failing
        let next = try gateway(kind, store)
        next.settle()
        store.disk = .good
        next.inKeeper { $0.stopGranting {} }
        let caller = ask(next)
        #expect(caller.status == 503 && caller.receivedText.contains("problems/upgrading"))
        #expect(next.issuerCalls.isEmpty)
        next.inKeeper { $0.grantAgain([], .serving) }
        #expect(ask(next).status == 200 && next.issuerCalls.isEmpty)
    }
}
