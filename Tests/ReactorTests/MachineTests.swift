import Glibc
import Testing

@testable import Reactor

@Suite struct CPULimitTests {
    @Test(
        arguments: [
            ("max 100000\n", nil), ("200000 100000\n", 2000), ("150000 100000", 1500), ("1 100000", 1),
            ("100001 100000", 1001),
            ("0 100000", nil), ("-1 100000", nil), ("100000 0", nil), ("100000", nil), ("", nil), ("a b", nil),
            ("99999999999999999999 1", nil), ("9223372036854775807 1", nil), ("1 2 3", nil),
        ] as [(String, Int?)])
    func readsTheSecondVersion(text: String, quota: Int?) {
        #expect(CPULimit.quota(v2: text) == quota)
    }

    @Test(
        arguments: [
            ("-1\n", "100000\n", nil), ("250000\n", "100000\n", 2500), ("x", "100000", nil), ("1", "", nil),
        ] as [(String, String, Int?)])
    func readsTheFirstVersion(limit: String, period: String, quota: Int?) {
        #expect(CPULimit.quota(v1: limit, period: period) == quota)
    }

    @Test(
        arguments: [
            (8, [], 4), (2, [], 2), (0, [], 1), (8, [1500], 2), (8, [1001], 2), (8, [1], 1), (2, [9000], 2),
            (8, [3000, 500], 1),
        ] as [(Int, [Int], Int)])
    func countsLoops(processors: Int, quotas: [Int], loops: Int) {
        #expect(CPULimit.loops(processors: processors, quotas: quotas) == loops)
    }

    @Test func findsItsCgroups() {
        let both = CPULimit.cgroupPaths("12:cpu,cpuacct:/docker/ab\n3:memory:/x\n0::/init.scope\n")
        #expect(both.v2 == "/init.scope" && both.v1 == "/docker/ab")
        let hostile = CPULimit.cgroupPaths("0::/../../etc\nnonsense\n1:cpu\n:::")
        #expect(hostile.v2 == nil && hostile.v1 == nil)
        #expect(CPULimit.ancestry("/a/b") == ["/a/b", "/a", ""])
        #expect(CPULimit.ancestry("/") == [""])
    }

    @Test func theMachineHasSome() {
        #expect((1...4).contains(CPULimit.loops()))
    }
}

@Suite struct BufferPoolTests {
    @Test func isBoundedAndGivesTheLastFirst() throws {
        let pool = BufferPool(blockSize: 5000, capacity: 2)
        #expect(pool.blockSize == 8192)
        let first = try #require(pool.take())
        let second = try #require(pool.take())
        #expect(first.count == 8192 && first.baseAddress != second.baseAddress)
        #expect(pool.take() == nil && pool.taken == 2 && pool.bytes == 16_384)
        pool.give(first)
        pool.give(second)
        #expect(pool.take()?.baseAddress == second.baseAddress)
        #expect(pool.take()?.baseAddress == first.baseAddress)
        pool.give(first)
        pool.give(second)
    }

    @Test func returnsOnlyWhatNobodyUsed() throws {
        let pool = BufferPool(blockSize: 4096, capacity: 8)
        let blocks = try (0..<8).map { _ in try #require(pool.take()) }
        for block in blocks { pool.give(block) }
        // All of them wait, and were all in use a moment ago.
        pool.trimUnused(keeping: 1)
        #expect(pool.waitingCount == 8)
        for block in (0..<3).compactMap({ _ in pool.take() }) { pool.give(block) }
        pool.trimUnused(keeping: 1)
        #expect(pool.waitingCount == 3 && pool.bytes == 3 * 4096)
        pool.trimUnused(keeping: 1)
        #expect(pool.waitingCount == 1)
        pool.trimUnused(keeping: 1)
        #expect(pool.waitingCount == 1 && pool.take()?.baseAddress == blocks[5].baseAddress)
    }

    @Test func wipesWhereAsked() throws {
        let pool = BufferPool(capacity: 1)
        let block = try #require(pool.take())
        block.storeBytes(of: 0xffff_ffff_ffff_ffff, toByteOffset: 0, as: UInt64.self)
        pool.give(block, wiping: 4)
        let again = try #require(pool.take())
        #expect(again.load(as: UInt32.self) == 0 && again.load(fromByteOffset: 4, as: UInt32.self) == .max)
        pool.give(again, wiping: .max)
        #expect(pool.take()?.load(fromByteOffset: 4, as: UInt32.self) == 0)
    }
}

@Suite struct HardeningTests {
    @Test func appliesEveryStep() {
        #expect(Hardening.apply() == [])
        #expect(Hardening.descriptorLimit > 0)
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &limit)
        #expect(limit.rlim_cur == 0 && limit.rlim_max == 0)
    }
}
