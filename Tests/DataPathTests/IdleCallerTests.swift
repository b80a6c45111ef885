import Glibc
import HTTP1
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Most connections of most gateways wait for the next request: what one holds meanwhile is counted in octets.
@Suite struct IdleCallerTests {
    /// Octets of an object, as its class says. What the allocator has given may be more, where it had a larger piece left.
    private static func size(of object: AnyObject) -> Int {
        // Class metadata without Objective-C: kind, superclass, flags, address point, and at octet 24 the size (ABI/Metadata.h).
        let metadata = unsafeBitCast(type(of: object) as Any.Type, to: UnsafeRawPointer.self)
        return Int(metadata.load(fromByteOffset: 24, as: UInt32.self))
    }

    @Test func anIdleCallerHoldsItsObjectAlone() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let connection = try #require(scene.data.callers.members.first)
        #expect(connection.hasExchange && scene.data.buffers.pool.taken > 0)
        try #require(scene.upstreams.first).send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        #expect(!connection.hasExchange && scene.data.buffers.pool.taken == 0)
        // Ten thousand callers hold ten thousand times this much. A field that only a request needs belongs to `CallerExchange`, one
        // that few connections need behind a reference.
        let size = Self.size(of: connection)
        #expect(size > 100 && size <= 376, "\(size)")
        #expect(MemoryLayout<SocketAddress>.size <= 32)
        #expect(MemoryLayout<CallerPeer>.size <= 72)
        scene.end()
    }

    @Test func aConnectionWithoutARequestIsClosedSilently() throws {
        let scene = try Scene(Plans.open())
        let silent = scene.call()
        scene.settle()
        scene.pass(seconds: 74)
        #expect(!silent.sawEnd)
        scene.pass(seconds: 3)
        #expect(silent.isClosed && silent.takeText().isEmpty)
        scene.end()
    }

    @Test func whatAnExchangeLeftBehindIsGone() {
        let pool = ExchangePool(limit: 1)
        let first = pool.take()
        let second = pool.take()
        #expect(pool.lent == 2 && pool.waitingCount == 0)
        weak var look: AnswerLook?
        do {
            let held = AnswerLook(.none)
            first.pointee.answer.look = held
            look = held
        }
        #expect(look != nil)
        pool.give(first)
        #expect(look == nil, "what it held is let go")
        // One more than may wait.
        pool.give(second)
        #expect(pool.lent == 0 && pool.waitingCount == 1)
        // Each alone: nothing may hide behind another.
        let traces: [(inout CallerExchange) -> Void] = [
            { $0.request.searched = 17 }, { $0.request.headLength = 17 }, { $0.record.startedAt = 1 },
            { $0.record.fault = .noRoute },
            { $0.answer.status = 500 }, { $0.answer.hasBegun = true }, { $0.request.keepsAlive = false },
            { $0.request.minorVersion = 0 },
        ]
        for leave in traces {
            let used = pool.take()
            #expect(used == first && !used.pointee.isReset)
            leave(&used.pointee)
            pool.give(used)
            let again = pool.take()
            #expect(
                again.pointee.request.searched == 0 && again.pointee.request.headLength == 0
                    && again.pointee.answer.look == nil)
            #expect(again.pointee.record.startedAt == 0 && again.pointee.record.fault == nil)
            #expect(
                again.pointee.answer.status == 0 && !again.pointee.answer.hasBegun && again.pointee.request.keepsAlive)
            #expect(again.pointee.request.minorVersion == 1)
            pool.give(again)
        }
    }

    /// A head that breaks off, its end read in the same turn: the next caller borrows what that one had.
    @Test(arguments: [5, 600, 1_300]) func aHeadThatBreaksOffStopsNobodyElse(count: Int) throws {
        let scene = try Scene(Plans.open())
        let broken = scene.call()
        broken.send("GET /" + String(repeating: "a", count: count))
        broken.finish()
        scene.settle()
        #expect(broken.isClosed)
        let caller = scene.call(Wire.get())
        try #require(scene.upstreams.first).send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }

    @Test func anIdleCallersExchangeCannotBeRead() async {
        await #expect(processExitsWith: .failure) {
            let scene = try Scene(Plans.open())
            _ = scene.call()
            let connection = try #require(scene.data.callers.members.first)
            #expect(connection.exchange.request.headLength == 0)
        }
    }
}
