import Testing

@testable import Telemetry

/// What is remembered of failed requests, and how much of it at most.
@Suite struct FailureMemoryTests {
    private let memory = FailureMemory()

    private func note(route: UInt16 = 1, fault: UInt16 = 0, status: UInt16 = 503, at time: UInt64) {
        var record = AccessRecord()
        (record.route, record.fault, record.status, record.time) = (route, fault, status, time)
        Array("GET".utf8).withUnsafeBytes { record.setMethod($0) }
        memory.note(record)
    }

    @Test func aSuccessIsNotRemembered() {
        for status: UInt16 in [200, 204, 304, 399] { note(status: status, at: 1) }
        #expect(memory.all.isEmpty)
        var cut = AccessRecord()
        (cut.status, cut.incomplete) = (200, .upstream)
        memory.note(cut)
        note(status: 0, at: 2)
        #expect(memory.all[0]?.map(\.kind.incomplete) == [.upstream] && memory.all[1]?.map(\.kind.status) == [0])
    }

    @Test func aKindIsThereOnceWithItsNumberAndItsLastRequests() {
        for time in 1...10 as ClosedRange<UInt64> { note(fault: 3, at: time) }
        note(fault: 4, at: 11)
        note(fault: 3, at: 12)
        let groups = memory.all[1] ?? []
        #expect(groups.map(\.kind.fault) == [3, 4], "the last one first")
        #expect(groups[0].count == 11 && groups[0].firstAt == 1 && groups[0].lastAt == 12)
        #expect(groups[0].requests.map(\.time) == [12, 10, 9, 8])
        #expect(groups[0].requests.allSatisfy { $0.method == "GET" })
    }

    @Test func theKindsOfARouteAreBounded() {
        for fault in 1...20 as ClosedRange<UInt16> { note(fault: fault, at: UInt64(fault)) }
        #expect(memory.all[1]?.map(\.kind.fault) == (13...20).reversed())
    }

    @Test func answersOfTheUpstreamDriveOutNoProblem() {
        for fault in 1...5 as ClosedRange<UInt16> { note(fault: fault, at: UInt64(fault)) }
        // A caller chooses which of many statuses the upstream answers with.
        for status in 400...450 as ClosedRange<UInt16> { note(status: status, at: UInt64(status)) }
        let groups = memory.all[1] ?? []
        #expect(groups.count == FailureMemory.maximumKinds)
        #expect(Set(groups.map(\.kind.fault)).subtracting([0]) == [1, 2, 3, 4, 5])
        #expect(groups.first?.kind.status == 450)
        // Where all places are problems', the next problem takes that of the one that is longest ago.
        for fault in 6...9 as ClosedRange<UInt16> { note(fault: fault, at: 1000) }
        #expect(memory.all[1]?.map(\.kind.fault) == [9, 8, 7, 6, 5, 4, 3, 2])
    }

    @Test func theRoutesAreBounded() {
        for route in 1...200 as ClosedRange<UInt16> { note(route: route, at: UInt64(route)) }
        #expect(memory.all.count == FailureMemory.maximumRoutes)
        #expect(Set(memory.all.keys) == Set(73...200), "those that failed last")
        note(route: 73, at: 500)
        note(route: 201, at: 501)
        #expect(memory.all[73] != nil && memory.all[74] == nil)
    }

    @Test func aMethodThatIsTextOfTheCallersIsNotKept() {
        var record = AccessRecord()
        Array("S3CR3T".utf8).withUnsafeBytes { record.setMethod($0) }
        Array("/a/path?with=query".utf8).withUnsafeBytes { record.setPath($0) }
        #expect(RequestFacts(record).method == nil)
        #expect(!"\(RequestFacts(record))".contains("path"))
    }

    @Test func theAddressIsWrittenAsTheLogWritesIt() {
        var record = AccessRecord()
        #expect(RequestFacts(record).upstream == nil)
        record.upstream = LogAddress(family: .ipv4, low: 0x7f00_0001, port: 9101)
        #expect(RequestFacts(record).upstream == "127.0.0.1:9101")
        #expect(logTime(1_700_000_000_123_456_789) == "2023-11-14T22:13:20.123Z")
    }
}
