import Testing

@testable import Admin

@Suite struct ProcessFactsTests {
    private let stat = "4242 (car) d (ea) S 1 4242 4242 0 -1 4194560 100 0 0 0 250 75 0 0 20 0 7 0 123400 1 2 3\n"
    private let status =
        "Name:\tcardea\nVmSize:\t  200000 kB\nVmRSS:\t   31000 kB\nRssAnon:\t    9000 kB\nVmRSS:\tbad kB\nThreads:\t7\n"

    @Test func readsTheKernelsWords() {
        let facts = ProcessFacts(stat: stat, status: status, bootTime: 1_700_000_000, ticks: 100)
        #expect(facts.cpuSeconds == 3.25)
        #expect(facts.threads == 7)
        #expect(facts.startTime == 1_700_001_234)
        #expect(facts.residentMemory == 31_000 * 1024)
        #expect(facts.residentAnonymous == 9000 * 1024)
        #expect(facts.virtualMemory == 200_000 * 1024)
    }

    @Test(
        arguments: ["", ")", "1 (a) S", "1 (a) S 1 2 3 4 5 6 7 8 9 x y z 99999999999999999999999"],
        ["", "VmRSS: 18446744073709551615 kB\n:::\n"])
    func whatCannotBeReadIsLeftOut(stat: String, status: String) {
        #expect(ProcessFacts(stat: stat, status: status, bootTime: nil, ticks: 0) == ProcessFacts())
    }

    @Test func findsTheBootTime() {
        #expect(ProcessFacts.bootTime(in: "cpu 1 2\nbtime 1700000000\nprocesses 5\n") == 1_700_000_000)
        #expect(ProcessFacts.bootTime(in: "btime\nbtime x\n") == nil)
    }

    @Test func readsThisProcess() {
        let facts = ProcessReader().read()
        #expect((facts.residentMemory ?? 0) > 0)
        #expect((facts.openDescriptors ?? 0) >= 3)
        #expect((facts.startTime ?? 0) > 1_000_000_000)
    }
}
