import Testing

@testable import Telemetry

@Suite struct LogFormatTests {
    private func escaped(_ bytes: [UInt8]) -> String {
        var line = LogLine()
        line.append(escaped: bytes)
        return String(decoding: line.bytes, as: UTF8.self)
    }

    @Test(
        arguments: [
            (Array("plain /ä/€/😀".utf8), "plain /ä/€/😀"),
            (Array("a\"b\\c".utf8), #"a\"b\\c"#),
            ([0x0a, 0x0d, 0x09, 0x00, 0x1b, 0x7f], #"\n\r\t\u0000\u001b\u007f"#),
            // Latin-1, a lone continuation, a cut sequence.
            ([0xe9], #"\u00e9"#), ([0x80], #"\u0080"#), ([0xe2, 0x82], #"\u00e2\u0082"#),
            // Overlong, surrogate, above the last code point.
            ([0xc0, 0xaf], #"\u00c0\u00af"#), ([0xe0, 0x80, 0xaf], #"\u00e0\u0080\u00af"#),
            ([0xed, 0xa0, 0x80], #"\u00ed\u00a0\u0080"#), ([0xf4, 0x90, 0x80, 0x80], #"\u00f4\u0090\u0080\u0080"#),
            ([0xf8, 0x88], #"\u00f8\u0088"#),
            // C1 control, line separator, right-to-left override, byte order mark.
            ([0xc2, 0x9b], #"\u009b"#), ([0xe2, 0x80, 0xa8], #"\u2028"#), ([0xe2, 0x80, 0xae], #"\u202e"#),
            ([0xef, 0xbb, 0xbf], #"\ufeff"#),
        ] as [([UInt8], String)])
    func escapesHostileBytes(bytes: [UInt8], text: String) {
        #expect(escaped(bytes) == text)
    }

    @Test(
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"), (1_709_251_200, "2024-03-01T00:00:00.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"), (4_107_542_400, "2100-03-01T00:00:00.000Z"),
            (18_446_744_073, "2554-07-21T23:34:33.000Z"),
        ] as [(UInt64, String)])
    func writesTimes(seconds: UInt64, text: String) {
        var line = LogLine()
        line.append(time: seconds * 1_000_000_000)
        #expect(String(decoding: line.bytes, as: UTF8.self) == text)
    }

    @Test(
        arguments: [
            (0x0, 0x1, "[::1]:80"), (0x0, 0x0, "[::]:80"), (0x2001_0db8_0000_0000, 0x1, "[2001:db8::1]:80"),
            (0x2001_0db8_0000_0001, 0x0001_0001_0001_0001, "[2001:db8:0:1:1:1:1:1]:80"),
            (0x2001_0000_0000_0001, 0x0000_0000_0000_0001, "[2001:0:0:1::1]:80"),
            (0x2001_0db8_0001_0002, 0x0003_0004_0000_0000, "[2001:db8:1:2:3:4::]:80"),
        ] as [(UInt64, UInt64, String)])
    func writesAddresses(high: UInt64, low: UInt64, text: String) {
        var line = LogLine()
        LogAddress(family: .ipv6, high: high, low: low, port: 80).write(to: &line)
        #expect(String(decoding: line.bytes, as: UTF8.self) == text)
    }

    private func formatter(_ format: LogFormat, route: String = "hr") -> (LogFormatter, UInt16, UInt16) {
        let routes = NameTable()
        let faults = NameTable()
        let number = routes.intern(route)
        return (LogFormatter(format: format, routes: routes, faults: faults), number, faults.intern("connect"))
    }

    private var event: LogEvent {
        LogEvent(
            time: 1_500_000_000, level: .warn, message: "renewal failed",
            fields: [
                LogField("identity", .name("h\"r")), LogField("why", .word("timeout")), LogField("tries", .count(-3)),
                LogField("took", .duration(1_234_567)), LogField("status", .code(503)), LogField("served", .flag(true)),
                LogField("issuer", .address(LogAddress(family: .ipv4, low: 0x7f00_0001, port: 443))),
            ])
    }

    @Test func writesEventsAsJSON() {
        var (formatter, _, _) = formatter(.json)
        formatter.write(event)
        #expect(
            String(decoding: formatter.line.bytes, as: UTF8.self)
                == #"{"time":"1970-01-01T00:00:01.500Z","level":"warn","message":"renewal failed","identity":"h\"r","#
                + #""why":"timeout","tries":-3,"took":1.234,"status":503,"served":true,"issuer":"127.0.0.1:443"}"#
                + "\n")
    }

    @Test func writesEventsAsText() {
        var (formatter, _, _) = formatter(.text)
        formatter.write(event)
        #expect(
            String(decoding: formatter.line.bytes, as: UTF8.self)
                == #"1970-01-01T00:00:01.500Z warn  renewal failed identity="h\"r" why=timeout tries=-3 took=1.234ms"#
                + " status=503 served=true issuer=127.0.0.1:443\n")
    }

    @Test func writesAccessRecords() {
        var (formatter, route, fault) = formatter(.json)
        var record = AccessRecord()
        record.time = 1_000_000
        record.route = route
        Array("GET".utf8).withUnsafeBytes { record.setMethod($0) }
        Array("/a\u{1}?password=x".utf8).withUnsafeBytes { record.setPath($0) }
        record.status = 200
        record.bytesIn = 10
        record.bytesOut = 20
        record.caller = LogAddress(family: .ipv4, low: 0xc000_0201, port: 1)
        record.upstream = LogAddress(family: .unix, low: 0, port: 0)
        record.callerProtocol = .http11
        record.upstreamProtocol = .http2
        record.tokenWait = 1_000
        record.total = 2_000_000
        record.cache = .grant
        record.replayed = true
        record.fault = fault
        record.setTrace(high: 0xab, low: 1)
        formatter.write(record)
        #expect(
            String(decoding: formatter.line.bytes, as: UTF8.self)
                == #"{"time":"1970-01-01T00:00:00.001Z","route":"hr","method":"GET","path":"/a\u0001","status":200,"#
                + #""bytes_in":10,"bytes_out":20,"caller":"192.0.2.1:1","upstream":"unix","protocol":"HTTP/1.1","#
                + #""upstream_protocol":"HTTP/2","token_wait_ms":0.001,"connect_ms":0.000,"first_byte_ms":0.000,"#
                + #""total_ms":2.000,"cache":"grant","replayed":true,"fault":"connect","#
                + #""trace":"00000000000000ab0000000000000001"}"# + "\n")
    }

    @Test func keepsPathsBounded() {
        var record = AccessRecord()
        let long = [UInt8](repeating: 0x2f, count: 500)
        long.withUnsafeBytes { record.setPath($0) }
        #expect(record.path.count == 200 && record.pathWasCut)
        (long[..<200] + [0x3f, 0x61]).withUnsafeBytes { record.setPath($0) }
        #expect(record.path.count == 200 && !record.pathWasCut)
        long.withUnsafeBytes { record.setMethod($0) }
        #expect(record.method.count == 16)
        Array("/a#b".utf8).withUnsafeBytes { record.setPath($0) }
        #expect(record.path == Array("/a".utf8))
    }

    @Test func longestLinesFitASink() {
        var (formatter, route, _) = formatter(.json, route: String(repeating: "\u{1}", count: 256))
        var record = AccessRecord()
        record.route = route
        [UInt8](repeating: 0, count: 300).withUnsafeBytes {
            record.setPath($0)
            record.setMethod($0)
        }
        formatter.write(record)
        #expect(formatter.line.bytes.count < LogSink.longestLine)
    }

    @Test func namesKeepTheirNumbers() {
        let table = NameTable(none: "?")
        #expect(table.intern("a") == 1)
        #expect(table.intern("b") == 2)
        #expect(table.intern("a") == 1)
        #expect(table.name(of: 2) == "b")
        #expect(table.name(of: 77) == "?")
        for number in 0..<70_000 { _ = table.intern("n\(number)") }
        #expect(table.intern("one too many") == 0)
    }

    @Test(arguments: [
        (AccessPolicy.all, 200, false, true), (.errors, 200, false, false), (.off, 200, false, false),
        (.errors, 404, false, true), (.errors, 200, true, true), (.errors, 0, false, true),
        (.off, 404, false, true), (.off, 200, true, true), (.off, 0, false, true),
    ])
    func takes(policy: AccessPolicy, status: Int, faulted: Bool, taken: Bool) {
        #expect(policy.takes(status: status, faulted: faulted) == taken)
    }
}
