import Reactor
import ScriptedKernel
import Testing

@testable import DataPath

/// Whether loops still come round, as a service manager's watchdog hears it.
@Suite struct HeartbeatTests {
    @Test func aLoopThatHangsIsMissedInTheNextRound() throws {
        let loops = try [Loop(name: "a", kernel: FakeKernel()), Loop(name: "b", kernel: FakeKernel())]
        let heartbeat = Heartbeat()
        #expect(heartbeat.beat(of: loops), "there is nothing to wait for in the first round")
        loops[0].turnOnce()
        #expect(!heartbeat.beat(of: loops))
        // A round in which nobody was asked has no answers to wait for.
        #expect(!heartbeat.beat(of: loops))
        loops[1].turnOnce()
        #expect(heartbeat.beat(of: loops))
        for loop in loops { loop.turnOnce() }
        #expect(heartbeat.beat(of: loops))
    }

    /// A full mailbox takes no question, and says nothing of its loop yet.
    @Test func aFullMailboxIsNoHang() throws {
        let loop = try Loop(name: "a", kernel: FakeKernel(), mailCapacity: 2)
        while loop.post({}) {}
        let heartbeat = Heartbeat()
        #expect(heartbeat.beat(of: [loop]) && heartbeat.beat(of: [loop]))
        loop.turnOnce()
        #expect(heartbeat.beat(of: [loop]))
        #expect(!heartbeat.beat(of: [loop]), "there was room for the question, and it was not answered")
    }
}
