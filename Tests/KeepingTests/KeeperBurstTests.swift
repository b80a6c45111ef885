import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// Many at once, and upstreams that never have enough.
@Suite struct KeeperBurstTests {
    @Test func aThousandRequestsInFlightWithARevokedTokenAreOneGrant() throws {
        let scene = try KeeperScene(Plans.client(), loops: 2)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        #expect(scene.status() == 200)
        // Every request is upstream, with t1, before the first answer comes.
        scene.upstream = { _ in nil }
        let callers = (0..<1000).map { scene.call(Wire.get("/\($0)"), loop: $0 % 2, settles: $0 % 50 == 49) }
        #expect(scene.upstreamCalls.count { $0.authorization == "Bearer t1" } == 1001)
        scene.upstream = { $0.authorization == "Bearer t1" ? Wire.challenge : Wire.ok("new") }
        for loop in scene.loops {
            for peer in loop.kernel.connections where !peer.isClosed { peer.send(Wire.challenge) }
        }
        scene.settle()
        #expect(callers.count { $0.status == 200 } == 1000)
        #expect(callers.count { $0.receivedText.contains("401") } == 0)
        #expect(issuer.granted == 2)
    }

    /// From the front, the end and between, while the token is on its way; who stays is served, with one grant.
    @Test func waitersHangUp() throws {
        let scene = try KeeperScene(Plans.client())
        scene.issuer = { _ in nil }
        let callers = (0..<600).map { scene.call(Wire.get("/\($0)"), settles: $0 % 50 == 49) }
        let desk = try #require(scene.loops[0].data.desk)
        #expect(desk.waiters == 600)
        for (number, caller) in callers.enumerated() where number < 50 || number % 3 == 0 || number >= 550 {
            caller.reset()
        }
        scene.settle()
        let staying = callers.filter { !$0.isClosed }
        #expect(desk.waiters == staying.count && staying.count == 333)
        let issuer = try #require(scene.issuers.first { !$0.isClosed })
        issuer.send(Wire.bearer("t1", expiresIn: "3600"))
        scene.settle()
        #expect(staying.count { $0.status == 200 } == staying.count && desk.waiters == 0)
        #expect(scene.issuerCalls.count == 1)
    }

    /// A request that cannot be sent again gets the refusal itself; whoever comes behind it, on whatever loop, waits for the next token.
    @Test(arguments: [0, 1]) func aTokenThatWasRefusedIsServedNoMore(loop: Int) throws {
        let scene = try KeeperScene(Plans.client(route: "on_rejected: {replay: never}"), loops: 2)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        for loop in 0..<2 { #expect(scene.call(loop: loop).status == 200) }
        scene.issuer = { _ in nil }
        scene.upstream = { $0.authorization == "Bearer t1" ? Wire.challenge : Wire.ok("new") }
        #expect(scene.call(Wire.post("x")).status == 401)
        let seen = scene.upstreamCalls.count
        let next = scene.call(Wire.post("x"), loop: loop)
        #expect(scene.upstreamCalls.count == seen && scene.issuerCalls.count == 2)
        let call = try #require(scene.issuerCalls.last)
        try #require(scene.issuers.last).send(try #require(issuer.answer(call)))
        scene.settle()
        #expect(next.status == 200 && scene.upstreamCalls.last?.authorization == "Bearer t2")
    }

    @Test func anUpstreamThatAlwaysRefusesCostsFewGrantsAndHarmsNoOtherRoute() throws {
        let text = """
            identities:
              bad: {oauth2: {token_url: "http://127.0.0.1:9100/bad", client_id: b, client_secret: env:S}}
              good: {oauth2: {token_url: "http://127.0.0.1:9100/good", client_id: g, client_secret: env:S}}
            routes:
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: bad, match: {path: "/bad/"}, name: bad}
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: good, match: {path: "/good/"}, name: good}

            """
        let scene = try KeeperScene(text)
        let issuer = NumberedIssuer()
        issuer.expiresIn = "3600"
        scene.issuer = issuer.answer
        scene.upstream = { $0.path.hasPrefix("/bad/") ? Wire.challenge : Wire.ok("in") }
        for _ in 0..<300 {
            #expect(scene.status("/bad/x") == 502)
            #expect(scene.status("/good/x") == 200)
            scene.pass(seconds: 1, step: 1)
        }
        // One when the window has closed, which is open for 1, 2, 4, … 30 s.
        #expect(scene.issuerCalls.count { $0.path == "/bad" } <= 16)
        #expect(scene.issuerCalls.count { $0.path == "/good" } == 1)
        // A request is two upstream calls at most.
        #expect(scene.upstreamCalls.count { $0.path == "/bad/x" } <= 600)
    }

    /// However its requests are made, and whatever the paths.
    @Test(arguments: [1, 10, 1000])
    func anUpstreamThatAlwaysRefusesCostsTwentyGrantsIn150Requests(_ paths: Int) throws {
        let scene = try KeeperScene(Plans.client())
        let issuer = NumberedIssuer()
        issuer.expiresIn = "3600"
        scene.issuer = issuer.answer
        scene.upstream = { _ in Wire.challenge }
        for number in 0..<150 {
            #expect(scene.status("/\(number % paths)") == 502)
            scene.pass(seconds: 0.1, step: 0.1)
        }
        #expect(issuer.granted <= 20, "\(issuer.granted)")
    }

    /// The token that was granted for a refused one is revoked too before it is used: who had it twice is told so, nobody else.
    @Test func aTokenThatIsRevokedTwiceIsNoOutage() throws {
        let scene = try KeeperScene(Plans.client())
        let issuer = NumberedIssuer()
        issuer.expiresIn = "3600"
        scene.issuer = issuer.answer
        #expect(scene.status() == 200)
        for round in 0..<5 {
            let revoked = ["Bearer t\(issuer.granted)", "Bearer t\(issuer.granted + 1)"]
            scene.upstream = { revoked.contains($0.authorization ?? "") ? Wire.challenge : Wire.ok("in") }
            #expect(scene.status("/unlucky/\(round)") == 502)
            for number in 0..<20 { #expect(scene.status("/\(number)") == 200) }
            #expect(scene.status("/unlucky/\(round)") == 200)
            scene.pass(seconds: 60, step: 10)
        }
    }

    @Test func aRevokedTokenIsReplacedBesideAPathThatAlwaysRefuses() throws {
        let scene = try KeeperScene(Plans.client())
        let issuer = NumberedIssuer()
        issuer.expiresIn = "3600"
        scene.issuer = issuer.answer
        var revoked = ""
        scene.upstream = {
            $0.path == "/forbidden" || $0.authorization == revoked ? Wire.challenge : Wire.ok("in")
        }
        for second in 0..<100 {
            #expect(scene.status("/forbidden") == 502)
            if second % 10 == 9 { revoked = "Bearer t\(issuer.granted)" }
            #expect(scene.status("/open") == 200)
            scene.pass(seconds: 1, step: 1)
        }
        #expect(issuer.granted <= 30)
    }

    @Test func wrongPathsDoNotCutOffTheRightOnes() throws {
        let scene = try KeeperScene(Plans.client())
        let issuer = NumberedIssuer()
        issuer.expiresIn = "3600"
        scene.issuer = issuer.answer
        scene.upstream = { $0.path == "/forbidden" ? Wire.challenge : Wire.ok("in") }
        for _ in 0..<50 {
            #expect(scene.status("/forbidden") == 502)
            #expect(scene.status("/open") == 200)
        }
        #expect(scene.issuerCalls.count <= 3)
    }
}

/// Passwords: one attempt, whatever happens around it.
@Suite struct KeeperLockOutTests {
    private func refusing(_ scene: KeeperScene) -> NumberedGate {
        let gate = NumberedGate()
        gate.refusesPassword = true
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        return gate
    }

    @Test func restartsDoNotBurnASecondAttempt() throws {
        let store = MemoryStore()
        for round in 0..<5 {
            let scene = try KeeperScene(Plans.gate(), store: store)
            _ = refusing(scene)
            #expect(scene.status("/w/x") == 503)
            #expect(scene.issuerCalls.count == (round == 0 ? 1 : 0))
        }
    }

    @Test func aCrashWhileThePasswordIsOnItsWayCountsAsSpent() throws {
        let store = MemoryStore()
        let first = try KeeperScene(Plans.gate(), store: store)
        let gate = refusing(first)
        gate.hangs = ["register"]
        _ = first.call(Wire.get("/w/x"))
        #expect(first.issuerCalls.count == 1)
        // Dead before an answer; the mark was on disk before the password left.
        let second = try KeeperScene(Plans.gate(), store: store)
        _ = refusing(second)
        #expect(second.status("/w/x") == 503 && second.issuerCalls.isEmpty)
    }

    @Test func aMarkThatTheDiskHoldsUpHoldsThePasswordBack() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.gate(), store: store)
        let gate = refusing(scene)
        gate.refusesPassword = false
        store.disk = .hung
        let caller = scene.call(Wire.get("/w/x"))
        #expect(scene.issuerCalls.isEmpty)
        store.thaw()
        scene.settle()
        #expect(scene.issuerCalls.count == 3 && caller.status == 200)
    }

    @Test func aSecondProcessMakesNoPasswordStep() throws {
        let scene = try KeeperScene(Plans.gate(), state: .locked("another process owns it"))
        let gate = refusing(scene)
        gate.refusesPassword = false
        #expect(scene.status("/w/x") == 503 && scene.issuerCalls.isEmpty)
    }

    @Test func identitiesOfOneUserShareTheAttempt() throws {
        let scene = try KeeperScene(Plans.gate(names: ["a", "b"]))
        _ = refusing(scene)
        #expect(scene.status("/a/x") == 503 && scene.status("/b/x") == 503)
        #expect(scene.issuerCalls.count == 1)
    }

    @Test func aNewPasswordIsTriedOnceAndAResetGivesOneMore() throws {
        let scene = try KeeperScene(Plans.gate(), store: MemoryStore(), secrets: Secrets(["P": "old"]))
        let gate = refusing(scene)
        #expect(scene.status("/w/x") == 503 && scene.status("/w/x") == 503 && scene.issuerCalls.count == 1)
        scene.secrets["P"] = "new"
        scene.pass(seconds: 2)
        _ = scene.status("/w/x")
        _ = scene.status("/w/x")
        #expect(scene.issuerCalls.count == 2 && scene.issuerCalls[1].body.contains("\"new\""))
        #expect(scene.inKeeper { $0.reset(identity: "w") })
        _ = scene.status("/w/x")
        _ = scene.status("/w/x")
        #expect(scene.issuerCalls.count == 3)
        gate.refusesPassword = false
        scene.secrets["P"] = "right"
        scene.pass(seconds: 2)
        #expect(scene.status("/w/x") == 200)
    }

    @Test func marksThatCannotBeReadHoldThePasswordBack() throws {
        let scene = try KeeperScene(Plans.gate(), store: MemoryStore(), marksUnreadable: true)
        let gate = refusing(scene)
        gate.refusesPassword = false
        #expect(scene.status("/w/x") == 503 && scene.issuerCalls.isEmpty)
        #expect(scene.inKeeper { $0.reset(identity: "w") })
        #expect(scene.status("/w/x") == 200)
    }
}
