import Glibc
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Reactor
@testable import Scenes
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

    /// Identities of one issuer, each with a route.
    private func many(_ count: Int, network: String = "", token: String = "") throws -> KeeperScene {
        var text = "identities:\n"
        var routes = "routes:\n"
        for number in 0..<count {
            text += "  i\(number): {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c\(number), "
            text += "client_secret: env:S}, token: {\(token)}, network: {\(network)}}\n"
            routes += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: i\(number), "
            routes += "match: {path: \"/\(number)/\"}, name: r\(number)}\n"
        }
        return try KeeperScene(text + routes)
    }

    @Test(arguments: [("", 64), ("connections: 4", 4)])
    func moreGrantsThanAnIssuerIsToTakeAtOnceWait(_ network: String, limit: Int) throws {
        let scene = try many(150, network: network)
        scene.issuer = { _ in nil }
        let callers = (0..<150).map { scene.call(Wire.get("/\($0)/"), settles: $0 % 50 == 49) }
        #expect(scene.issuerCalls.count == limit)
        #expect(callers.allSatisfy { $0.status == nil })
        weak let waiting = scene.inKeeper { $0.issuers.waiting.last }
        #expect(waiting != nil)
        // Those that hold a place are answered one by one, and each answer lets in the next.
        scene.issuer = NumberedIssuer().answer
        let first = scene.issuers.filter { !$0.isClosed }
        for peer in first { peer.send(Wire.bearer("first")) }
        scene.settle()
        #expect(callers.map(\.status) == Array(repeating: 200, count: 150))
        #expect(scene.issuerCalls.count == 150)
        #expect(scene.inKeeper { $0.issuers.isIdle })
        #expect(waiting == nil, "who waited is kept")
    }

    @Test func whoeverWaitsForATurnWaitsNoLongerThanForAToken() throws {
        let scene = try many(10, network: "connections: 2, timeout: 60s", token: "acquire_timeout: 3s")
        scene.issuer = { _ in nil }
        let callers = (0..<10).map { scene.call(Wire.get("/\($0)/")) }
        scene.pass(seconds: 2.5)
        #expect(callers.allSatisfy { $0.status == nil } && scene.issuerCalls.count == 2)
        weak let waiting = scene.inKeeper { $0.issuers.waiting.last }
        #expect(waiting != nil)
        scene.pass(seconds: 1.5)
        #expect(callers.allSatisfy { [503, 504].contains($0.status) }, "\(callers.map(\.status))")
        #expect(scene.inKeeper { $0.issuers.waiting.isEmpty })
        #expect(waiting == nil, "who waited is kept")
        #expect(scene.issuerCalls.count == 2, "who has given up calls nobody")
    }

    /// Each pause takes a place among those whose timers the loop knows, and gives it back.
    @Test func aPauseLeavesNothingBehind() throws {
        let scene = try KeeperScene(Plans.client())
        scene.settle()
        let before = scene.keeperLoop.owners
        for _ in 0..<20 {
            scene.inKeeper { keeper in _ = keeper.start { await $0.pause(1_000_000) } }
            scene.pass(seconds: 0.01)
        }
        #expect(scene.keeperLoop.owners == before)
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
        _ = read(scene.keeperLoop.jobs.wakeup.descriptor, &written, 8)
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
