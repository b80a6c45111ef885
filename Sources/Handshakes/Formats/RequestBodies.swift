internal import Octets

/// A JSON object written straight into bytes: a password never becomes a `String`, members keep their order, and the whole can be
/// wiped after it was sent.
struct JSONBody: ~Copyable {
    private var bytes: [UInt8] = [UInt8(ascii: "{")]

    /// - Parameter capacity: an upper bound of the size, so that no growth leaves an unwiped copy behind.
    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    mutating func member(_ name: String, _ value: String) {
        key(name)
        string(value)
    }

    /// The secret must be UTF-8.
    mutating func member(_ name: String, _ value: Secret) {
        key(name)
        value.withBytes { string($0) }
    }

    mutating func member(_ name: String, _ value: Int64) {
        key(name)
        bytes.append(contentsOf: String(value).utf8)
    }

    mutating func flag(_ name: String, _ value: Bool) {
        key(name)
        bytes.append(contentsOf: (value ? "true" : "false").utf8)
    }

    mutating func list(_ name: String, _ values: [String]) {
        key(name)
        bytes.append(UInt8(ascii: "["))
        for (index, value) in values.enumerated() {
            if index > 0 { bytes.append(UInt8(ascii: ",")) }
            string(value)
        }
        bytes.append(UInt8(ascii: "]"))
    }

    mutating func null(_ name: String) {
        key(name)
        bytes.append(contentsOf: "null".utf8)
    }

    mutating func open(_ name: String) {
        key(name)
        bytes.append(UInt8(ascii: "{"))
    }

    mutating func close() { bytes.append(UInt8(ascii: "}")) }

    consuming func finish() -> [UInt8] {
        close()
        return bytes
    }

    private mutating func key(_ name: String) {
        if bytes.last != UInt8(ascii: "{") { bytes.append(UInt8(ascii: ",")) }
        string(name)
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func string(_ text: String) {
        var text = text
        text.withUTF8 { string(UnsafeRawBufferPointer($0)) }
    }

    private mutating func string(_ text: UnsafeRawBufferPointer) {
        bytes.append(UInt8(ascii: "\""))
        bytes.appendJSONEscaped(text)
        bytes.append(UInt8(ascii: "\""))
    }
}

/// `application/x-www-form-urlencoded` (RFC 6749 appendix B), written straight into bytes for the same reasons.
struct FormBody: ~Copyable {
    private var bytes: [UInt8] = []

    init(capacity: Int) { bytes.reserveCapacity(capacity) }

    mutating func member(_ name: String, _ value: String) {
        key(name)
        for byte in value.utf8 { bytes.appendFormEncoded(byte) }
    }

    mutating func member(_ name: String, _ value: Secret) {
        key(name)
        value.withBytes { for byte in $0 { bytes.appendFormEncoded(byte) } }
    }

    consuming func finish() -> [UInt8] { bytes }

    private mutating func key(_ name: String) {
        if !bytes.isEmpty { bytes.append(UInt8(ascii: "&")) }
        for byte in name.utf8 { bytes.appendFormEncoded(byte) }
        bytes.append(UInt8(ascii: "="))
    }
}

// MARK: - Checks

extension Secret {
    /// The text; octets that are not UTF-8 are replaced.
    var text: String { withBytes { String(decoding: $0, as: UTF8.self) } }

    /// Whether the bytes are UTF-8 text without control characters: what fits into JSON and into Basic credentials.
    var isText: Bool { withBytes { $0.isUTF8 && !$0.contains(where: \.isControl) } }
}
