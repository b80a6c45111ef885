import Testing

@testable import Telemetry

/// The spans that are made of one exchange.
@Suite struct ExchangeTraceTests {
    private func exchange() -> ExchangeTrace {
        var trace = ExchangeTrace()
        (trace.traceHigh, trace.traceLow, trace.span, trace.parent) = (1, 2, 100, 7)
        (trace.startedAt, trace.sentAt, trace.endedAt, trace.sends) = (1000, 1200, 2000, 1)
        (trace.method, trace.status, trace.route, trace.identity) = (.get, 200, 3, 4)
        trace.isSampled = true
        return trace
    }

    private func spans(_ trace: ExchangeTrace, since origin: UInt64 = 0) -> [SpanRecord] {
        var spans: [SpanRecord] = []
        trace.forEachSpan(since: origin) { spans.append($0) }
        return spans
    }

    @Test func aRequestAndItsUpstream() {
        let spans = spans(exchange(), since: 5_000_000)
        #expect(spans.map(\.work) == [.request, .upstream])
        #expect(spans.map(\.span) == [100, 101] && spans.map(\.parent) == [7, 100])
        #expect(spans.map(\.start) == [5_001_000, 5_001_200] && spans.map(\.end) == [5_002_000, 5_002_000])
        #expect(spans.allSatisfy { $0.traceHigh == 1 && $0.traceLow == 2 && $0.route == 3 && $0.identity == 4 })
        #expect(spans.allSatisfy { $0.status == 200 && $0.method == .get && $0.isSampled && !$0.isFailed })
    }

    @Test func aReplayStandsBehindTheFirstSendAndTheWaitBetween() {
        var trace = exchange()
        trace.wait = TraceStep(start: 1010, end: 1100)
        trace.firstSend = TraceStep(start: 1100, end: 1150)
        trace.laterWait = TraceStep(start: 1150, end: 1190)
        (trace.sends, trace.isReplayed) = (2, true)
        let spans = spans(trace)
        #expect(spans.map(\.work) == [.request, .tokenWait, .tokenWait, .upstream, .replay])
        #expect(spans.map(\.start) == [1000, 1010, 1150, 1100, 1200])
        #expect(spans.map(\.end) == [2000, 1100, 1190, 1150, 2000])
        #expect(Set(spans.map(\.span)).count == 5 && spans.dropFirst().allSatisfy { $0.parent == 100 })
        // The upstream was told of these two.
        #expect(spans[3].span == 101 && spans[4].span == 102)
        #expect(spans[3].status == 0 && spans[4].status == 200)
    }

    @Test func aFailureThatIsNotSampledIsOneSpan() {
        var trace = exchange()
        trace.wait = TraceStep(start: 1010, end: 1100)
        (trace.isSampled, trace.isFailed, trace.status, trace.fault) = (false, true, 502, 9)
        let spans = spans(trace)
        #expect(spans.count == 1 && spans[0].work == .request && spans[0].isFailed && !spans[0].isSampled)
        #expect(spans[0].fault == 9 && spans[0].status == 502)
    }

    @Test func aProblemSaysNothingOfTheUpstreamsAnswer() {
        var trace = exchange()
        (trace.isFailed, trace.status, trace.fault) = (true, 502, 9)
        let spans = spans(trace)
        #expect(spans.map(\.status) == [502, 0] && spans.allSatisfy { $0.isFailed })
    }

    @Test func aRequestThatWentNowhereHasNoOtherSpan() {
        var trace = exchange()
        (trace.sentAt, trace.sends) = (0, 0)
        #expect(spans(trace).map(\.work) == [.request])
    }

    @Test func aClearedRecordIsANewOnes() {
        var trace = exchange()
        trace.isReplayed = true
        trace.clear()
        #expect(trace.span == 0 && trace.sends == 0 && !trace.isReplayed && trace.wait.start == 0 && trace.status == 0)
    }
}
