import Octets
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Reports of two data loops that cross: the second was sent before its loop could know what came of the first.
@Suite struct KeeperCrossingTests {
    private let gate = NumberedGate()

    private func scene(_ identity: String = "", store: MemoryStore? = nil, limits: String = "") throws -> KeeperScene {
        let scene = try KeeperScene(Plans.gate(identity: identity) + limits, loops: 2, store: store)
        scene.issuer = gate.answer
        scene.upstream = { _ in nil }
        scene.settle()
        return scene
    }

    /// Turns one data loop alone: what it reports waits in the keeper's mailbox.
    private func turn(_ scene: KeeperScene, loop: Int) { for _ in 0..<6 { scene.loops[loop].data.loop.turnOnce() } }

    /// The first loop's scout is out; its answer is reported, and behind it the request of the second loop for `path`.
    private func cross(_ scene: KeeperScene, _ path: String, answer: (Request) -> String?) throws -> [Peer] {
        let first = scene.call(Wire.get(path), loop: 0)
        let scout = try #require(scene.upstreamCalls.last)
        #expect(scout.authorization == nil)
        try #require(scene.loops[0].kernel.connections.last).send(try #require(answer(scout)))
        turn(scene, loop: 0)
        let second = scene.call(Wire.get(path), loop: 1, settles: false)
        turn(scene, loop: 1)
        return [first, second]
    }

    private func bare(_ scene: KeeperScene) -> Int { scene.upstreamCalls.count { $0.authorization == nil } }

    // MARK: - Behind a scout's answer

    @Test(arguments: ["", "token_scope: url"]) func aPathThatJustTurnedOutToBeOpenIsNotFoundOutAgain(
        _ identity: String
    ) throws {
        let scene = try scene(identity)
        let callers = try cross(scene, "/w/open/x") { _ in Wire.ok("open") }
        scene.upstream = { _ in Wire.ok("open") }
        scene.settle()
        #expect(callers.map(\.status) == [200, 200] && scene.issuerCalls.isEmpty && bare(scene) == 2)
        let entries = scene.inKeeper { $0.routes[0].table.realms.count }
        #expect(entries == 0)
    }

    @Test(arguments: ["", "token_scope: url"], [false, true])
    func aRequestBehindTheChallengeOfItsTokenJoinsTheGrant(_ identity: String, hasStore: Bool) throws {
        let scene = try scene(identity, store: hasStore ? MemoryStore() : nil)
        let callers = try cross(scene, "/w/x", answer: gate.guarded())
        scene.upstream = gate.guarded()
        scene.settle()
        #expect(callers.map(\.status) == [200, 200])
        #expect(gate.tokens == 1 && bare(scene) == 1, "nobody is sent out to find out what is known")
    }

    /// The store has more to do than it takes: who has a challenge has it answered, and the other comes again.
    @Test func aRequestBehindAChallengeWaitsForNoStoreThatTakesNothing() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        store.disk = .crowded
        let callers = try cross(scene, "/w/x", answer: gate.guarded())
        scene.upstream = gate.guarded()
        scene.settle()
        #expect(callers.map(\.status) == [200, 503] && gate.tokens == 1)
        #expect(callers[1].receivedText.contains("Retry-After: 1\r\n"))
    }

    /// A request for the same URL waits for the same row, and gives the key up because it knows of no challenge.
    @Test func aChallengeOutlivesARequestThatGaveItsKeyUp() throws {
        let store = MemoryStore()
        let scene = try scene("token_scope: url", store: store)
        let first = scene.call(Wire.get("/w/5"), loop: 0)
        #expect(scene.upstreamCalls.count == 1)
        store.disk = .hung
        let second = scene.call(Wire.get("/w/5"), loop: 1)
        try #require(scene.loops[0].kernel.connections.last).send(try #require(gate.guarded()(scene.upstreamCalls[0])))
        scene.settle()
        #expect(first.status == nil && second.status == nil && gate.tokens == 0)
        scene.upstream = gate.guarded()
        store.thaw()
        scene.settle()
        #expect(first.status == 200 && second.status == 200 && gate.tokens == 1 && bare(scene) == 1)
    }

    /// Requests stand behind a scout whose token the store has: the first challenge serves them all from there.
    @Test func aTokenOfTheStoreServesThoseBehindTheScout() throws {
        let store = MemoryStore()
        let before = try scene(store: store)
        before.upstream = gate.guarded()
        #expect(before.status("/w/x") == 200 && gate.tokens == 1)
        for row in store.rows(RowKind.learned) { store.commit([.delete(kind: row.kind, key: row.key)]) { _ in } }
        let scene = try scene(store: store)
        let callers = (0..<4).map { scene.call(Wire.get("/w/x"), loop: $0 % 2) }
        #expect(scene.upstreamCalls.count == 1)
        scene.upstream = gate.guarded()
        try #require(scene.loops[0].kernel.connections.last).send(try #require(gate.guarded()(scene.upstreamCalls[0])))
        scene.settle()
        #expect(callers.map(\.status) == [200, 200, 200, 200] && gate.tokens == 1 && scene.issuerCalls.isEmpty)
    }

    /// The loop has seen that a token is due, and the token is gone when the keeper hears of it.
    @Test func aRenewalOfATokenThatIsGoneAsksNobody() throws {
        let scene = try KeeperScene(Plans.client())
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        #expect(scene.status() == 200)
        scene.pass(seconds: 82)
        let caller = scene.call(settles: false)
        turn(scene, loop: 0)
        scene.keeper.assumeIsolated { keeper in for token in keeper.tokens.shared.values { keeper.forget(token) } }
        scene.settle()
        #expect(caller.status == 200 && issuer.granted == 1)
    }

    // MARK: - Held back

    /// A second route of the identity has not met its upstream yet: it does not ask there either.
    @Test func aRefusedPasswordSendsNoScoutOfAnotherRoute() throws {
        let scene = try KeeperScene(Plans.gate(paths: ["p"]), loops: 1)
        gate.refusesPassword = true
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded())
        #expect(scene.status("/w/x") == 503)
        let seen = (scene.upstreamCalls.count, scene.issuerCalls.count)
        let caller = scene.call(Wire.get("/p/x"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(seen == (scene.upstreamCalls.count, scene.issuerCalls.count))
    }

    /// Secrets are read again for a request that would meet a refusal; its token is gone when they have been.
    @Test func aTokenThatGoesWhileSecretsAreReadAnswersItsRequest() throws {
        let blocking = ScriptedWork()
        let scene = try KeeperScene(Plans.client(), blocking: blocking)
        scene.issuer = { _ in Wire.json(#"{"error":"invalid_client"}"#, status: 401) }
        #expect(scene.status() == 503 && scene.issuerCalls.count == 1)
        scene.pass(seconds: 3)
        blocking.thread = .stuck
        let caller = scene.call()
        #expect(caller.status == nil)
        scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
        scene.inKeeper { $0.catalogue.alarm?.action() }
        blocking.goOn()
        scene.settle()
        #expect(caller.status.map { $0 >= 500 } == true && scene.issuerCalls.count == 1)
    }

    // MARK: - End users

    private static func users(_ limits: String) -> String {
        Plans.client(identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")
            + "limits: {\(limits)}\n"
    }

    private func both(_ scene: KeeperScene, _ fields: String) -> [Peer] {
        let callers = (0..<2).map { scene.call(Wire.get("/", fields), loop: $0, settles: false) }
        scene.settle()
        return callers
    }

    @Test func aCallersTokenThatComesOnTwoLoopsAtOnceIsExchangedOnce() throws {
        let plan = Plans.client(identity: "grant: token_exchange", route: "callers: local, subject: from_caller_token")
        let scene = try KeeperScene(plan, loops: 2)
        scene.issuer = { _ in Wire.bearer("made") }
        let end = scene.keeperKernel.wallMilliseconds() / 1000 + 600
        let own = [#"{"alg":"RS256"}"#, #"{"exp":\#(end)}"#, "signature"].map { Base64.encodeURL(Array($0.utf8)) }
            .joined(separator: ".")
        let callers = both(scene, "Authorization: Bearer \(own)\r\n")
        #expect(callers.map(\.status) == [200, 200] && scene.issuerCalls.count == 1)
        #expect(scene.issuerCalls[0].member("subject_token") == own)
        // A refusal by the upstream is answered with what its own request has brought.
        scene.upstream = { _ in
            scene.upstream = { _ in Wire.ok("in") }
            return Wire.challenge
        }
        #expect(scene.call(Wire.get("/", "Authorization: Bearer \(own)\r\n")).status == 200)
        #expect(scene.issuerCalls.count == 2 && scene.issuerCalls[1].member("subject_token") == own)
    }

    /// Both wait for the same row, of which there is none, and new users come at a pace.
    @Test func aNewUserWhoIsTurnedAwayIsSoForEachOfHisRequests() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(
            Self.users("subjects: 10, new_subjects_per_second: 1"), loops: 2, store: store)
        scene.issuer = NumberedIssuer().answer
        #expect(scene.call(Wire.get("/", "X-User: ann\r\n")).status == 200)
        store.disk = .hung
        let callers = both(scene, "X-User: bob\r\n")
        #expect(callers.map(\.status) == [nil, nil])
        store.thaw()
        scene.settle()
        #expect(callers.map(\.status) == [503, 503] && scene.issuerCalls.count == 1)
        #expect(callers.allSatisfy { $0.receivedText.contains("problems/too-many-subjects") })
        #expect(scene.inKeeper { $0.users.subjects.refused } == 1 && scene.inKeeper { $0.tokens.count } == 2)
        scene.pass(seconds: 1)
        #expect(both(scene, "X-User: bob\r\n").map(\.status) == [200, 200])
    }

    @Test func aStoreThatTakesNoQuestionLeavesNothingOfANewUserBehind() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(
            Self.users("subjects: 10, new_subjects_per_second: 10"), loops: 2, store: store)
        scene.issuer = NumberedIssuer().answer
        scene.settle()
        store.disk = .crowded
        #expect(both(scene, "X-User: ann\r\n").map(\.status) == [503, 503] && scene.issuerCalls.isEmpty)
        #expect(scene.inKeeper { $0.tokens.count } == 1, "the one that stands for all users")
    }

    /// No issuer can be told of a user by what is no text.
    @Test func aNameThatIsNoTextIsNobodys() throws {
        let scene = try KeeperScene(Self.users("subjects: 10, new_subjects_per_second: 10"))
        scene.issuer = NumberedIssuer().answer
        let caller = scene.call("", settles: false)
        caller.send(Array("GET / HTTP/1.1\r\nHost: a\r\nX-User: a".utf8) + [0xFF, 0xFE] + Array("\r\n\r\n".utf8))
        scene.settle()
        let status = try #require(caller.status)
        #expect((400..<500).contains(status) && scene.issuerCalls.isEmpty && scene.upstreamCalls.isEmpty)
    }
}
