import Glibc
import ScriptedKernel
import Testing

@testable import Gateway
@testable import Reactor
@testable import Tokens

/// Grants as the keeper runs them: who waits for what, and where it runs.
@Suite struct KeeperFlightTests {
    @Test func aColdTokenIsFetchedOnceForAll() throws {
        let scene = try KeeperScene(Plans.client(), loops: 2)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        let callers = (0..<40).map { scene.call(Wire.get("/\($0)"), loop: $0 % 2, settles: false) }
        scene.settle()
        #expect(callers.map(\.status) == Array(repeating: 200, count: 40))
        #expect(scene.issuerCalls.map(\.path) == ["/token"])
        #expect(Set(scene.upstreamCalls.map(\.authorization)) == ["Bearer t1"])
    }

    @Test func handshakesStayOnTheKeepersLoop() throws {
        let scene = try KeeperScene(Plans.gate())
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        #expect(scene.status("/w/a") == 200)
        #expect(scene.issuerCalls.map(\.path) == ["/s/register", "/s/authenticate", "/s/access"])
        // Each job that another thread hands to the loop writes to its eventfd, which nobody has emptied here.
        var written: UInt64 = 0
        _ = read(scene.keeperLoop.jobs.descriptor, &written, 8)
        #expect(written == 0)
    }

    @Test func twoIdentitiesOfOneUserLogInOneAfterTheOther() throws {
        let scene = try KeeperScene(Plans.gate(names: ["a", "b"]))
        let gate = NumberedGate()
        gate.hangs = ["register"]
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        let first = scene.call(Wire.get("/a/x"))
        let second = scene.call(Wire.get("/b/x"))
        #expect(scene.issuerCalls.map(\.path) == ["/s/register"])
        gate.hangs = []
        scene.issuers[0].send(Wire.idaas("CLIENTREGHANDLE", "h0"))
        scene.settle()
        #expect(first.status == 200 && second.status == 200)
        #expect(
            scene.issuerCalls.map(\.path) == [
                "/s/register", "/s/authenticate", "/s/access", "/s/register", "/s/authenticate", "/s/access",
            ])
    }

    @Test func oneLoginServesEveryRealmOfAnIdentity() throws {
        let scene = try KeeperScene(Plans.gate(paths: ["two"]))
        let gate = NumberedGate()
        gate.hangs = ["authenticate"]
        scene.issuer = gate.answer
        let (one, two) = (gate.guarded("ONE"), gate.guarded("TWO"))
        scene.upstream = { $0.path.hasPrefix("/two/") ? two($0) : one($0) }
        let first = scene.call(Wire.get("/w/x"))
        let second = scene.call(Wire.get("/two/x"))
        #expect(scene.issuerCalls.map(\.path) == ["/s/register", "/s/authenticate"])
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.idaas("USERTOKEN", "u0"))
        scene.settle()
        #expect(first.status == 200 && second.status == 200)
        #expect(gate.users == 0 && gate.tokens == 2)
    }

    @Test func aFlightThatIsGivenUpLeavesTheLoginToThoseWhoWait() throws {
        let scene = try KeeperScene(Plans.gate("acquire_timeout: 2s", paths: ["two"]))
        let gate = NumberedGate()
        gate.hangs = ["authenticate"]
        scene.issuer = gate.answer
        let (one, two) = (gate.guarded("ONE"), gate.guarded("TWO"))
        scene.upstream = { $0.path.hasPrefix("/two/") ? two($0) : one($0) }
        let first = scene.call(Wire.get("/w/x"))
        scene.pass(seconds: 1)
        let second = scene.call(Wire.get("/two/x"))
        scene.pass(seconds: 1.5)
        #expect(first.status == 504 && second.status == nil)
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.idaas("USERTOKEN", "u0"))
        scene.settle()
        #expect(second.status == 200)
        // The first one's grant went on without it.
        #expect(gate.tokens == 2 && scene.status("/w/x") == 200)
    }

    @Test func aLoginThatFailsFailsForAllThatWaitForIt() throws {
        let scene = try KeeperScene(Plans.gate(names: ["a"]))
        let gate = NumberedGate()
        gate.fails = Wire.unavailable
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        #expect(scene.status("/a/x") == 503)
        #expect(scene.issuerCalls.map(\.path) == ["/s/register"])
        gate.fails = nil
        scene.pass(seconds: 40)
        #expect(scene.status("/a/x") == 200)
    }
}
