/// Where a head goes that is written: what becomes of each field is decided once, in `RequestWriter` and `ResponseWriter`, and each version of
/// HTTP puts it down in its own way.
///
/// The writers are generic and compiled for each sink in this module: nothing of this is a call through a table.
protocol HeadSink: ~Copyable {
    /// Takes the octets of what was begun, until its end.
    var output: OutputCursor { get set }
    /// Fields that speak of one connection are written: its framing and its end are told by them.
    static var hasConnectionFields: Bool { get }

    /// A request's method; its target and its host follow.
    mutating func put(method: ByteRange, of bytes: Span<UInt8>, asHEAD: Bool)
    mutating func put(target: ByteRange, of bytes: Span<UInt8>)
    /// A target that is put together in `output`.
    mutating func beginTarget()
    mutating func endTarget()
    mutating func put(host: ByteRange, of bytes: Span<UInt8>)
    mutating func put(host: Span<UInt8>)
    /// A response's first line.
    mutating func put(status: Int, reason: ByteRange, of bytes: Span<UInt8>)

    /// A received line as it is. Those that are kept need not be written before `flush`.
    mutating func keep(_ field: Field, of bytes: Span<UInt8>)
    /// Comes before anything else that follows a kept line.
    mutating func flush(_ bytes: Span<UInt8>)

    /// A field whose value is put together in `output`.
    /// - Parameter text: the name, `: ` and what the value begins with.
    mutating func begin(_ text: StaticString, _ known: KnownField)
    mutating func begin(name: Span<UInt8>)
    /// A field under the name that was received.
    mutating func begin(_ field: Field, of bytes: Span<UInt8>)
    mutating func end()
    /// A ready line with its CRLF.
    mutating func put(line: StaticString, _ known: KnownField)
    /// Ready lines, each with its CRLF.
    mutating func put(lines: Span<UInt8>)

    /// The head is complete.
    mutating func finish()
}

/// HTTP/1.1: lines of text.
struct LineSink {
    var output: OutputCursor
    /// Kept lines that stand one behind the other, to be copied at once.
    private var run = ByteRange.empty

    @inline(__always)
    init(_ output: OutputCursor) {
        self.output = output
    }
}

// MARK: -

extension LineSink: HeadSink {
    @inline(__always)
    static var hasConnectionFields: Bool { true }

    @inline(__always)
    mutating func put(method: ByteRange, of bytes: Span<UInt8>, asHEAD: Bool) {
        if asHEAD { output.append("HEAD") } else { output.append(bytes, method) }
        output.append(byte: 0x20)
    }

    @inline(__always)
    mutating func put(target: ByteRange, of bytes: Span<UInt8>) { output.append(bytes, target) }

    @inline(__always)
    mutating func beginTarget() {}

    @inline(__always)
    mutating func endTarget() {}

    @inline(__always)
    mutating func put(host: ByteRange, of bytes: Span<UInt8>) {
        output.append(" HTTP/1.1\r\nHost: ")
        output.append(bytes, host)
        output.append("\r\n")
    }

    @inline(__always)
    mutating func put(host: Span<UInt8>) {
        output.append(" HTTP/1.1\r\nHost: ")
        output.append(host)
        output.append("\r\n")
    }

    @inline(__always)
    mutating func put(status: Int, reason: ByteRange, of bytes: Span<UInt8>) {
        output.append("HTTP/1.1 ")
        output.append(decimal: UInt64(status))
        output.append(" ")
        output.append(bytes, reason)
        output.append("\r\n")
    }

    @inline(__always)
    mutating func keep(_ field: Field, of bytes: Span<UInt8>) {
        if run.end == field.line.start, !run.isEmpty {
            run.count += field.line.count
        } else {
            output.append(bytes, run)
            run = field.line
        }
    }

    @inline(__always)
    mutating func flush(_ bytes: Span<UInt8>) {
        output.append(bytes, run)
        run = .empty
    }

    @inline(__always)
    mutating func begin(_ text: StaticString, _ known: KnownField) { output.append(text) }

    @inline(__always)
    mutating func begin(name: Span<UInt8>) {
        output.append(name)
        output.append(": ")
    }

    @inline(__always)
    mutating func begin(_ field: Field, of bytes: Span<UInt8>) {
        output.append(bytes, field.name)
        output.append(": ")
    }

    @inline(__always)
    mutating func end() { output.append("\r\n") }

    @inline(__always)
    mutating func put(line: StaticString, _ known: KnownField) { output.append(line) }

    @inline(__always)
    mutating func put(lines: Span<UInt8>) { output.append(lines) }

    @inline(__always)
    mutating func finish() { output.append("\r\n") }
}
