import Testing

@testable import HTTP1

/// W3C Trace Context, as its own test suite has it: what is taken, and what is replaced.
@Suite struct TraceContextTests {
    private static let trace = "0123456789abcdef0123456789abcdef"
    private static let span = "fedcba9876543210"

    private static func parse(_ text: String) -> TraceParent? { TraceParent(Array(text.utf8).span) }

    @Test(arguments: [
        ("00-\(trace)-\(span)-01", true), ("00-\(trace)-\(span)-00", false),
        // Flags that are not defined are not read.
        ("00-\(trace)-\(span)-03", true), ("00-\(trace)-\(span)-fe", false), ("00-\(trace)-\(span)-ff", true),
        // Versions to come begin as this one does.
        ("cc-\(trace)-\(span)-01", true), ("cc-\(trace)-\(span)-01-what-the-future-will-be-like", true),
        ("01-\(trace)-\(span)-00-", false),
    ])
    func isTaken(_ text: String, isSampled: Bool) throws {
        let parent = try #require(Self.parse(text))
        #expect(
            parent
                == TraceParent(
                    traceHigh: 0x0123_4567_89ab_cdef, traceLow: 0x0123_4567_89ab_cdef, span: 0xfedc_ba98_7654_3210,
                    isSampled: isSampled))
    }

    @Test(arguments: [
        "", "00", "00-\(trace)-\(span)", "00-\(trace)-\(span)-", "00-\(trace)-\(span)-0", "00-\(trace)-\(span)-001",
        "00-\(trace)-\(span)-01-", "00-\(trace)-\(span)-01-x", "00-\(trace)-\(span)-01x", "cc-\(trace)-\(span)-01.x",
        "ff-\(trace)-\(span)-01", "FF-\(trace)-\(span)-01", ".0-\(trace)-\(span)-01", "0-\(trace)-\(span)-01",
        "00-\(trace.uppercased())-\(span)-01", "00-\(trace)-\(span.uppercased())-01", "00-\(trace)-\(span)-0X",
        "00-00000000000000000000000000000000-\(span)-01", "00-\(trace)-0000000000000000-01",
        "00-\(trace.dropLast())-\(span)-01", "00-\(trace)0-\(span)-01", "00-\(trace)-\(span.dropLast())-01",
        "00-.\(trace.dropFirst())-\(span)-01", "00-\(trace)-\(span.dropLast())g-01", "00_\(trace)_\(span)_01",
        "00-\(trace)-\(span)-01 ", " 00-\(trace)-\(span)-01", "00-\(trace)-\(span)-01,00-\(trace)-\(span)-01",
    ])
    func isReplaced(_ text: String) { #expect(Self.parse(text) == nil) }

    @Test func itsLineIsReadAgain() throws {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 128, alignment: 1)
        defer { memory.deallocate() }
        for (high, low, span) in [(0, 1, 1), (.max, .max, .max), (0x0102, 0, 0x8000_0000_0000_0000)]
            as [(UInt64, UInt64, UInt64)]
        {
            for isSampled in [true, false] {
                var cursor = OutputCursor(memory)
                TraceParent.writeLine(
                    traceHigh: high, traceLow: low, span: span, isSampled: isSampled, into: &cursor)
                let line = String(decoding: memory[..<cursor.count], as: UTF8.self)
                #expect(line.hasPrefix("traceparent: ") && line.hasSuffix("\r\n"))
                let parent = Self.parse(String(line.dropFirst(13).dropLast(1)))
                #expect(
                    parent == TraceParent(traceHigh: high, traceLow: low, span: span, isSampled: isSampled))
            }
        }
    }

    // MARK: - tracestate

    @Test(arguments: [
        ("", 0), (",", 0), ("foo=1", 1), ("foo=1,bar=2", 2), ("foo=1 ,\t bar=2,", 2), ("fw529a3039@dt=FfFf;!", 1),
        ("t61rcWkgMzE=", nil), ("foo=1=2", nil), ("foo =1", nil), ("FOO=1", nil), ("foo.bar=1", nil), ("foo", nil),
        ("foo=", nil), ("=1", nil), ("@foo=1", nil), ("a@b@c=1", nil), ("foo=\u{e9}", nil), ("0tenant@vendor=1", 1),
        ("a_-*/=b c", 1), ("\(String(repeating: "k", count: 256))=1", 1),
        ("\(String(repeating: "k", count: 257))=1", nil),
        ("k=\(String(repeating: "v", count: 256))", 1), ("k=\(String(repeating: "v", count: 257))", nil),
    ])
    func membersAreCounted(_ text: String, _ count: Int?) {
        #expect(traceStateMembers(Array(text.utf8).span) == count)
    }
}
