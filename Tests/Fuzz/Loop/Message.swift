/// A message as the readers of this folder see it. They share no code with the gateway: a mistake cannot hide on both sides.
struct Message {
    var method: [UInt8] = []
    var target: [UInt8] = []
    /// Zero: a request.
    var status = 0
    /// Names in lower case; over HTTP/2 without the pseudo-fields.
    var fields: [Field] = []
    var body: [UInt8] = []
    var trailers: [Field] = []
    /// HTTP/1.0.
    var isOld = false
    /// The head was seen to its end; of half a head nothing is known.
    var hasHead = false
    /// Its end was seen where the message says that it is.
    var isWhole = false
    /// Nothing on the way says where the body ends but the connection's end.
    var endsWithConnection = false
    /// Asks to leave HTTP on this connection or stream, or agrees.
    var upgrades = false
    /// HTTP/2: `:authority`.
    var authority: [UInt8]?
    /// HTTP/2: `:protocol`.
    var protocolName: [UInt8]?

    struct Field: Equatable {
        var name: [UInt8]
        var value: [UInt8]
    }

    func values(_ name: StaticString) -> [[UInt8]] {
        fields.filter { $0.name.elementsEqual(bytes(of: name)) }.map(\.value)
    }

    /// The members of a field that is a list, in lower case.
    func members(_ name: StaticString) -> [[UInt8]] {
        values(name).flatMap { value in
            value.split(separator: 0x2C, omittingEmptySubsequences: false).map { trimmed($0).map(lowercase) }
        }
    }
}

/// Messages of one direction of a connection, in the order in which they begin, and what is wrong behind the last one.
struct Messages {
    var all: [Message] = []
    var flaw: String?
}

func bytes(of text: StaticString) -> UnsafeBufferPointer<UInt8> {
    UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
}

func lowercase(_ octet: UInt8) -> UInt8 { (0x41...0x5A).contains(octet) ? octet | 0x20 : octet }

func trimmed(_ value: ArraySlice<UInt8>) -> [UInt8] {
    var rest = value
    while let octet = rest.first, octet == 0x20 || octet == 0x09 { rest.removeFirst() }
    while let octet = rest.last, octet == 0x20 || octet == 0x09 { rest.removeLast() }
    return Array(rest)
}

/// RFC 9110 section 5.6.2.
func isToken(_ octet: UInt8) -> Bool {
    switch octet {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    case 0x21, 0x23, 0x24, 0x25, 0x26, 0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x5E, 0x5F, 0x60, 0x7C, 0x7E: true
    default: false
    }
}

func number(_ text: some Collection<UInt8>, radix: Int = 10) -> Int? {
    guard !text.isEmpty, text.allSatisfy({ isToken($0) && $0 != 0x2B && $0 != 0x2D }) else { return nil }
    return Int(String(decoding: text, as: UTF8.self), radix: radix)
}
