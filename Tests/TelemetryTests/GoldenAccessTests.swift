import GoldenFiles
import Testing

@testable import Telemetry

/// The access log, which other programs read.
@Suite struct GoldenAccessTests {
    @Test func everyFieldHasTheNameThatItHad() throws {
        let names = NameTable()
        let route = names.intern("hr")
        var record = AccessRecord()
        record.time = 1_800_000_000_123_000_000
        record.route = route
        record.status = 502
        record.incomplete = .upstream
        record.bytesIn = 311
        record.bytesOut = 4096
        record.caller = LogAddress(family: .ipv4, low: 0x7f00_0001, port: 40_000)
        record.upstream = LogAddress(family: .ipv4, low: 0xc000_0207, port: 443)
        record.callerProtocol = .http11
        record.upstreamProtocol = .http2
        record.tokenWait = 1_500_000
        record.connect = 2_000_000
        record.firstByte = 3_000_000
        record.total = 4_000_000
        record.cache = .grant
        record.replayed = true
        record.fault = names.intern("upstream-closed")
        record.identity = names.intern("payroll")
        let id = String(repeating: "a.B-9_", count: 20)
        Array(id.utf8).withUnsafeBytes { record.setRequestID($0) }
        record.setTrace(high: 0x0123_4567_89ab_cdef, low: 1)
        "GET".withCString { record.setMethod(UnsafeRawBufferPointer(start: $0, count: 3)) }
        let path = "/" + String(repeating: "x", count: 250)
        Array(path.utf8).withUnsafeBytes { record.setPath($0) }
        var lines: [String] = []
        for (format, word) in [(LogFormat.json, "json"), (.text, "text")] {
            var formatter = LogFormatter(format: format, routes: names, faults: names, identities: names)
            formatter.write(record)
            lines.append("\(word): " + String(decoding: formatter.line.bytes.dropLast(), as: UTF8.self))
        }
        var formatter = LogFormatter(format: .json, routes: names, faults: names)
        formatter.write(AccessRecord())
        lines.append("json, nothing known: " + String(decoding: formatter.line.bytes.dropLast(), as: UTF8.self))
        for state in AccessRecord.CacheState.allCases { lines.append("word of cache: \(state.word)") }
        for side in LogSide.allCases { lines.append("word of incomplete: \(side.word)") }
        for version in [LogProtocol.none, .http10, .http11, .http2, .tunnel] {
            lines.append("word of protocol: \(version.rawValue)")
        }
        let file = GoldenFile(
            "access-record.txt",
            "Lines of the access log with every field in its place, and the words that fields take.",
            cost: "dashboards, alerts and scripts that read the access log find no value any more, without an error.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }
}
