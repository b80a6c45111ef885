import Reactor
import ScriptedKernel
import Testing

@testable import DataPath

/// Addresses of this network namespace, as the kernel tells of their changes.
@Suite struct AddressWatchTests {
    /// However many changes come at once, the addresses are read once a second.
    @Test func changesAreReadOnceASecond() throws {
        let kernel = FakeKernel()
        let loop = try Loop(name: "addresses", kernel: kernel)
        let watch = AddressWatch(loop: loop)
        var read: [LocalAddresses] = []
        watch.changed = { read.append($0) }
        defer { loop.close(watch) }
        #expect(watch.begin() && read.isEmpty)
        func pass(_ nanoseconds: UInt64) {
            kernel.advance(by: nanoseconds)
            for _ in 0..<3 { loop.turnOnce() }
        }
        // An address may have come between the start's own reading and the subscription.
        pass(10_000_000)
        #expect(read.count == 1)
        for _ in 0..<5 { watch.ready(.readable) }
        pass(500_000_000)
        watch.ready(.readable)
        #expect(read.count == 1)
        pass(600_000_000)
        #expect(read.count == 2)
        pass(5_000_000_000)
        #expect(read.count == 2, "nobody has told of a change")
    }
}
