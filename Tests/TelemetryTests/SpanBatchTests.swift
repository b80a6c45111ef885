import Testing

@testable import Telemetry

/// Spans in the form of OTLP, octet for octet as the reference implementation writes them.
@Suite struct SpanBatchTests {
    private let routes = NameTable()
    private let identities = NameTable()
    private let faults = NameTable()

    private func batch() -> SpanBatch {
        SpanBatch(
            resource: SpanResource(name: "cardea", version: "0.1.0", instance: "pod-7"), routes: routes,
            identities: identities, faults: faults)
    }

    private func request() -> SpanRecord {
        var span = SpanRecord()
        span.traceHigh = 0x0102_0304_0506_0708
        span.traceLow = 0x090a_0b0c_0d0e_0f10
        span.span = 0x1112_1314_1516_1718
        span.start = 1_800_000_000_000_000_000
        span.end = 1_800_000_000_250_000_000
        span.method = .get
        span.route = routes.intern("billing")
        span.identity = identities.intern("payroll")
        span.status = 200
        return span
    }

    private static func method(_ text: String) -> SpanMethod { Array(text.utf8).withUnsafeBytes { SpanMethod($0) } }

    /// The same three spans, put together with the PyPI package opentelemetry-proto 1.45.2 (`SerializeToString(deterministic=True)`).
    private static let reference = [
        "0a95070a560a180a0c736572766963652e6e616d6512080a066361726465610a1a0a0f736572766963652e76657273696f6e",
        "12070a05302e312e300a1e0a13736572766963652e696e7374616e63652e696412070a05706f642d3712ba060a080a066361",
        "7264656112bc010a100102030405060708090a0b0c0d0e0f10120811121314151617182a0b4745542062696c6c696e673002",
        "390000b49376e2fa184180b29aa276e2fa184a1c0a13687474702e726571756573742e6d6574686f6412050a034745544a20",
        "0a19687474702e726573706f6e73652e7374617475735f636f6465120318c8014a190a0c6361726465612e726f7574651209",
        "0a0762696c6c696e674a1c0a0f6361726465612e6964656e7469747912090a07706179726f6c6c8501010000001287030a10",
        "0102030405060708090a0b0c0d0e0f1012082122232425262728220811121314151617182a0d6772616e7420706179726f6c",
        "6c3001390000b49376e2fa184180b29aa276e2fa184a220a0a6572726f722e7479706512140a126973737565722d756e6176",
        "61696c61626c654a1c0a0f6361726465612e6964656e7469747912090a07706179726f6c6c6a1c0a10000000000000000100",
        "00000000000001120800000000000000016a1c0a1000000000000000010000000000000002120800000000000000026a1c0a",
        "1000000000000000010000000000000003120800000000000000036a1c0a1000000000000000010000000000000004120800",
        "000000000000046a1c0a1000000000000000010000000000000005120800000000000000056a1c0a10000000000000000100",
        "00000000000006120800000000000000066a1c0a1000000000000000010000000000000007120800000000000000076a1c0a",
        "10000000000000000100000000000000081208000000000000000870017a02180285010100000012e4010a10010203040506",
        "0708090a0b0c0d0e0f101208ffffffffffffffff220811121314151617182a1348545450207265706c61792062696c6c696e",
        "673003390000b49376e2fa18410000b49376e2fa184a1f0a13687474702e726571756573742e6d6574686f6412080a065f4f",
        "544845524a200a19687474702e726573706f6e73652e7374617475735f636f6465120318f7034a130a0a6572726f722e7479",
        "706512050a033530334a190a0c6361726465612e726f75746512090a0762696c6c696e674a1c0a0f6361726465612e696465",
        "6e7469747912090a07706179726f6c6c7a021802",
    ].joined()

    @Test func threeSpansAreWhatTheReferenceWrites() {
        var batch = batch()
        let request = request()
        var grant = request
        grant.work = .grant
        grant.span = 0x2122_2324_2526_2728
        grant.parent = request.span
        grant.method = .none
        grant.route = 0
        grant.status = 0
        grant.isFailed = true
        grant.fault = faults.intern("issuer-unavailable")
        // There is room for eight.
        for number in 1...9 as ClosedRange<UInt64> {
            grant.link(to: SpanLink(traceHigh: 1, traceLow: number, span: number))
        }
        var replay = request
        replay.work = .replay
        replay.span = .max
        replay.parent = request.span
        replay.method = Self.method("BREW")
        replay.status = 503
        replay.isFailed = true
        replay.isSampled = false
        // A clock that was set back in between.
        replay.end = 5
        let taken = [request, grant, replay].map { batch.add($0) }
        #expect(taken == [true, true, true] && batch.count == 3)
        let text = batch.finish().map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
        #expect(text == Self.reference)
        #expect(batch.count == 0)
    }

    @Test func aFullBatchTakesNoMore() {
        var batch = batch()
        let span = request()
        for _ in 0..<SpanBatch.mostSpans {
            let isTaken = batch.add(span)
            #expect(isTaken)
        }
        let isTaken = batch.add(span)
        #expect(!isTaken && batch.isFull && batch.count == SpanBatch.mostSpans)
        #expect(batch.finish().count < SpanBatch.mostOctets)
        #expect(!batch.isFull)
    }

    /// Names of the user's own may be long, and a batch is bounded all the same.
    @Test func longNamesFillItEarlier() {
        var batch = batch()
        var span = request()
        span.route = routes.intern(String(repeating: "r", count: 4000))
        while batch.add(span) {}
        #expect(batch.count < SpanBatch.mostSpans)
        #expect(batch.finish().count < SpanBatch.mostOctets + 16_384)
    }

    /// A method is a caller's text: only those that everybody knows are told.
    @Test func anUnknownMethodIsNotTold() {
        for known in SpanMethod.allCases where known != .none && known != .other {
            #expect(Self.method("\(known.word)") == known)
        }
        for text in ["", "get", "GE", "GETS", "secret-token", "_OTHER"] { #expect(Self.method(text) == .other) }
        var batch = batch()
        var span = request()
        span.method = Self.method("secret-token")
        _ = batch.add(span)
        let octets = batch.finish()
        #expect(octets.firstRange(of: Array("_OTHER".utf8)) != nil)
        #expect(octets.firstRange(of: Array("secret".utf8)) == nil)
    }

    @Test func anEmptyBatchIsARequestWithoutSpans() {
        var batch = batch()
        #expect(batch.finish().count == 102)
    }
}
