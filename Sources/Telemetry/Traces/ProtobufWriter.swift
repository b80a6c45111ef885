/// Writes the wire format of Protocol Buffers (protobuf.dev, "Encoding"), as far as OTLP's traces need it: numbers, texts, messages.
///
/// A field is written where it is called for; a proto3 field with its default value is to be left out by the caller. Written in the order
/// of their numbers, fields are octet for octet those of the reference implementations.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    private enum WireType: UInt64 {
        case varint = 0
        case fixed64 = 1
        case lengthDelimited = 2
        case fixed32 = 5
    }

    mutating func clear() { bytes.removeAll(keepingCapacity: true) }

    // MARK: - Fields

    mutating func write(_ field: UInt64, number: UInt64) {
        tag(field, .varint)
        append(varint: number)
    }

    mutating func write(_ field: UInt64, fixed number: UInt64) {
        tag(field, .fixed64)
        append(littleEndian: number)
    }

    mutating func write(_ field: UInt64, fixed number: UInt32) {
        tag(field, .fixed32)
        append(littleEndian: number)
    }

    /// - Parameter text: UTF-8 where the field is a `string`.
    mutating func write(_ field: UInt64, text: some Collection<UInt8>) {
        tag(field, .lengthDelimited)
        append(varint: UInt64(text.count))
        bytes.append(contentsOf: text)
    }

    mutating func write(_ field: UInt64, text: StaticString) {
        text.withUTF8Buffer { write(field, text: $0) }
    }

    /// Identifiers: the numbers' octets, the highest first.
    mutating func write(_ field: UInt64, octetsOf numbers: UInt64...) {
        tag(field, .lengthDelimited)
        append(varint: UInt64(numbers.count) &* 8)
        for number in numbers { append(littleEndian: number.byteSwapped) }
    }

    /// A message within this one.
    mutating func write(_ field: UInt64, _ message: (inout ProtobufWriter) -> Void) {
        tag(field, .lengthDelimited)
        let start = bytes.count
        message(&self)
        // Messages within messages are short here; to move them is less than to measure them first.
        var length = UInt64(bytes.count &- start)
        var prefix: [UInt8] = []
        while length > 0x7F {
            prefix.append(UInt8(truncatingIfNeeded: length) | 0x80)
            length >>= 7
        }
        prefix.append(UInt8(truncatingIfNeeded: length))
        bytes.insert(contentsOf: prefix, at: start)
    }

    /// Fields that were written before, as they are.
    mutating func append(fields: [UInt8]) { bytes += fields }

    // MARK: - Octets

    private mutating func tag(_ field: UInt64, _ type: WireType) { append(varint: field << 3 | type.rawValue) }

    /// Seven bits an octet, the lowest first.
    private mutating func append(varint number: UInt64) {
        var rest = number
        while rest > 0x7F {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    private mutating func append(littleEndian number: some FixedWidthInteger) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
}
