import ScriptedKernel
import Synchronization
import Testing

@testable import Fleet
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// The one try of a `basic` password in a fleet, by what the shared server says: no password leaves that another gateway may be trying, or
/// has had refused.
@Suite struct KeeperTrialTests {
    private static let plan = """
        identities: {b: {basic: {username: u, password: env:P}, token: {acquire_timeout: 2s}}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: b}

        """

    private let server = MemoryServer()
    private let secrets = Secrets(["P": "one"])

    private func scene(fleet: Bool = true) throws -> KeeperScene {
        let scene = try KeeperScene(
            Self.plan, store: MemoryStore(), secrets: secrets, fleet: fleet ? server : nil)
        scene.settle()
        return scene
    }

    private func answer(_ claim: SharedClaim?) { server.state.withLock { $0.claim = claim } }
    private func spent(_ count: UInt32?) { server.state.withLock { $0.spent = count } }

    private func ends(_ caller: Peer, in scene: KeeperScene, seconds: Int = 10) {
        for _ in 0..<4 * seconds where caller.status == nil { scene.pass(seconds: 0.25) }
    }

    @Test(arguments: [MemoryServer.Call.claim, .spent]) func withoutTheServerNoPasswordIsTried(
        _ call: MemoryServer.Call
    ) throws {
        let scene = try scene()
        server.fault = call
        let caller = scene.call()
        ends(caller, in: scene)
        #expect(caller.status == 503 && scene.upstreamCalls.isEmpty)
        let told = scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" }
        #expect(told == "not without the shared store: no answer", "\(told)")
        #expect(scene.inKeeper { $0.fleet.withheld } == 1)
        server.fault = nil
        #expect(scene.status() == 200 && server.leases.isEmpty)
    }

    /// The refusal has come between the reading of the password and its try.
    @Test func whatAnotherGatewayHasHadRefusedIsNotTried() throws {
        let scene = try scene()
        spent(1)
        let caller = scene.call()
        ends(caller, in: scene)
        #expect(caller.status == 503 && caller.receivedText.contains("problems/credential-quarantined"))
        #expect(scene.upstreamCalls.isEmpty && server.leases.isEmpty)
        spent(0)
        #expect(scene.status() == 503 && scene.upstreamCalls.isEmpty, "its mark is kept here too")
        _ = scene.inKeeper { $0.reset(identity: "b") }
        #expect(scene.status() == 200)
    }

    /// Who knows of a refusal has not brought it back yet.
    @Test(arguments: [true, false]) func aServerThatHasJustComeUpIsGivenTime(_ isInTime: Bool) throws {
        let scene = try scene()
        spent(nil)
        let caller = scene.call()
        scene.pass(seconds: 1)
        #expect(caller.status == nil && scene.upstreamCalls.isEmpty)
        if isInTime { spent(0) }
        ends(caller, in: scene)
        #expect(caller.status == (isInTime ? 200 : 504))
        #expect(scene.upstreamCalls.count == (isInTime ? 1 : 0) && server.leases.isEmpty)
    }

    @Test(arguments: [true, false]) func whileAnotherGatewayTriesItIsWaitedFor(_ isInTime: Bool) throws {
        let scene = try scene()
        answer(.busy)
        let caller = scene.call()
        scene.pass(seconds: 1)
        #expect(caller.status == nil && scene.upstreamCalls.isEmpty)
        if isInTime { answer(nil) }
        ends(caller, in: scene)
        #expect(caller.status == (isInTime ? 200 : 504) && scene.upstreamCalls.count == (isInTime ? 1 : 0))
    }

    @Test func duringAnUpgradeNobodyWaitsForATry() throws {
        let scene = try scene()
        answer(.busy)
        let caller = scene.call()
        scene.inKeeper { $0.stopGranting {} }
        scene.pass(seconds: 1)
        #expect(caller.status == 503 && scene.upstreamCalls.isEmpty)
        let late = scene.call()
        #expect(late.status == 503 && late.receivedText.contains("problems/upgrading"))
        answer(nil)
        scene.inKeeper { $0.grantAgain([], .serving) }
        #expect(scene.status() == 200)
    }

    /// The turn that came for nobody goes to the next gateway.
    @Test func whoHasLeftTriesNothing() throws {
        let scene = try scene()
        answer(.busy)
        let caller = scene.call()
        scene.pass(seconds: 0.5)
        caller.reset()
        scene.settle()
        answer(nil)
        scene.pass(seconds: 5)
        #expect(scene.upstreamCalls.isEmpty && server.leases.isEmpty)
        #expect(scene.status() == 200 && scene.upstreamCalls.count == 1)
    }

    /// The password is another one by the time its turn comes: the new one is tried, once.
    @Test func thePasswordMayChangeWhileItsTurnIsWaitedFor() throws {
        let scene = try scene()
        answer(.busy)
        let caller = scene.call()
        scene.pass(seconds: 0.5)
        secrets["P"] = "two"
        scene.inKeeper { $0.secretsMayHaveChanged() }
        answer(nil)
        ends(caller, in: scene)
        #expect(caller.status == 200)
        // Base64 of u:two.
        #expect(scene.upstreamCalls.map(\.authorization) == ["Basic dTp0d28="] && server.leases.isEmpty)
    }

    @Test func aTryThatHasEndedForAnotherPasswordIsGivenBack() throws {
        let scene = try scene()
        scene.upstream = { _ in nil }
        let caller = scene.call()
        #expect(scene.upstreamCalls.count == 1 && server.leases.count == 1)
        secrets["P"] = "two"
        scene.inKeeper { $0.secretsMayHaveChanged() }
        #expect(server.leases.isEmpty)
        scene.upstream = { _ in Wire.ok() }
        try #require(scene.loops[0].kernel.connections.last).send(Wire.ok())
        scene.settle()
        #expect(caller.status == 200)
        // That the old one was taken proves nothing of the new one.
        scene.upstream = { _ in Wire.challenge }
        #expect(scene.status() >= 400 && scene.upstreamCalls.last?.authorization == "Basic dTp0d28=")
        #expect(scene.inKeeper { $0.tokens.all.first?.probation?.state } != .proven)
    }

    @Test func aPasswordThatCannotBeReadIsReadAgain() throws {
        secrets.missing = ["P"]
        let scene = try scene(fleet: false)
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/secret-unreadable"))
        secrets.missing = []
        scene.pass(seconds: 2)
        _ = scene.status()
        #expect(scene.status() == 200 && scene.upstreamCalls.last?.authorization == "Basic dTpvbmU=")
    }
}
