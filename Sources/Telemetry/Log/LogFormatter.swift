/// Turns events and records into lines: JSON for machines, text for people.
struct LogFormatter {
    let format: LogFormat
    let routes: NameTable
    let faults: NameTable
    let identities: NameTable
    /// Lines of events, and of access records, go into the journal and begin with a severity.
    var eventsHavePriority = false
    var recordsHavePriority = false
    private(set) var line = LogLine()
    private var first = true

    static let longestName = 256

    init(format: LogFormat, routes: NameTable, faults: NameTable, identities: NameTable = NameTable()) {
        self.format = format
        self.routes = routes
        self.faults = faults
        self.identities = identities
    }

    // MARK: - Events

    mutating func write(_ event: LogEvent) {
        begin(time: event.time, priority: eventsHavePriority ? event.level.priority : nil)
        switch format {
        case .json:
            word("level", event.level.word)
            word("message", event.message)
        case .text:
            line.append(" ")
            line.append(event.level.word)
            line.append(event.level == .info || event.level == .warn ? "  " : " ")
            line.append(event.message)
        }
        for field in event.fields { write(field) }
        end()
    }

    private mutating func write(_ field: LogField) {
        switch field.value {
        case .name(let name): text(field.key, name.utf8.prefix(Self.longestName))
        case .word(let value): word(field.key, value)
        case .count(let value):
            key(field.key)
            line.append(decimal: value)
        case .code(let value):
            key(field.key)
            line.append(decimal: Int64(value))
        case .duration(let value):
            key(field.key)
            line.append(milliseconds: value)
            if format == .text { line.append("ms") }
        case .flag(let value): word(field.key, value ? "true" : "false", quoted: false)
        case .address(let value): address(field.key, value)
        case .trace(let high, let low): trace(field.key, high, low)
        }
    }

    // MARK: - Access records

    mutating func write(_ record: AccessRecord) {
        begin(time: record.time, priority: recordsHavePriority ? JournalPriority.record : nil)
        text("route", routes.name(of: record.route).utf8)
        text("method", record.method)
        text("path", record.path)
        if record.pathWasCut { word("path_cut", "true", quoted: false) }
        number("status", UInt64(record.status))
        if record.incomplete != .none { word("incomplete", record.incomplete.word) }
        number("bytes_in", record.bytesIn)
        number("bytes_out", record.bytesOut)
        if record.caller.family != .none { address("caller", record.caller) }
        if record.upstream.family != .none { address("upstream", record.upstream) }
        if record.callerProtocol != .none { text("protocol", record.callerProtocol.rawValue.utf8) }
        if record.upstreamProtocol != .none { text("upstream_protocol", record.upstreamProtocol.rawValue.utf8) }
        duration("token_wait_ms", record.tokenWait)
        duration("connect_ms", record.connect)
        duration("first_byte_ms", record.firstByte)
        duration("total_ms", record.total)
        if record.cache != .none { word("cache", record.cache.word) }
        if record.replayed { word("replayed", "true", quoted: false) }
        if record.fault != 0 { text("fault", faults.name(of: record.fault).utf8) }
        if record.identity != 0 { text("identity", identities.name(of: record.identity).utf8) }
        if record.requestIDLength > 0 { text("request_id", record.requestID) }
        if record.traceHigh | record.traceLow != 0 { trace("trace", record.traceHigh, record.traceLow) }
        end()
    }

    // MARK: - Members

    private mutating func begin(time: UInt64, priority: StaticString?) {
        line.clear()
        if let priority { line.append(priority) }
        first = true
        switch format {
        case .json:
            line.append("{")
            key("time")
            quote()
            line.append(time: time)
            quote()
        case .text:
            line.append(time: time)
        }
    }

    private mutating func end() {
        if format == .json { line.append("}") }
        line.append("\n")
    }

    private mutating func key(_ name: StaticString) {
        switch format {
        case .json:
            line.append(first ? "\"" : ",\"")
            line.append(name)
            line.append("\":")
        case .text:
            line.append(" ")
            line.append(name)
            line.append("=")
        }
        first = false
    }

    private mutating func quote() {
        if format == .json { line.append("\"") }
    }

    private mutating func word(_ name: StaticString, _ value: StaticString, quoted: Bool = true) {
        key(name)
        if quoted { quote() }
        line.append(value)
        if quoted { quote() }
    }

    private mutating func number(_ name: StaticString, _ value: UInt64) {
        key(name)
        line.append(decimal: value)
    }

    private mutating func duration(_ name: StaticString, _ value: UInt64) {
        key(name)
        line.append(milliseconds: value)
    }

    private mutating func address(_ name: StaticString, _ value: LogAddress) {
        key(name)
        quote()
        value.write(to: &line)
        quote()
    }

    private mutating func trace(_ name: StaticString, _ high: UInt64, _ low: UInt64) {
        key(name)
        quote()
        line.append(hex: high, digits: 16)
        line.append(hex: low, digits: 16)
        quote()
    }

    private mutating func text(_ name: StaticString, _ value: some Collection<UInt8>) {
        key(name)
        // In text a value that could be taken for the next field, or for nothing, is quoted as well.
        let quoted = format == .json || value.isEmpty || value.contains { $0 <= 0x20 || $0 == 0x22 || $0 == 0x3d }
        if quoted { line.append("\"") }
        line.append(escaped: value)
        if quoted { line.append("\"") }
    }
}
