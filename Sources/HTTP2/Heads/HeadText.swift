internal import HTTP1

/// The text of a head in HTTP/1.1's form, with the index of it: one writes both, so that they cannot differ.
struct HeadText: ~Copyable {
    private(set) var buffer = OctetBuffer()
    var index = HeadIndex()
}

// MARK: -

extension HeadText {
    var bytes: UnsafeRawBufferPointer { buffer.bytes }

    mutating func clear() {
        buffer.clear()
        index.clear()
    }

    /// - Returns: false for a line that has to be parsed.
    mutating func begin(method: UnsafeRawBufferPointer, target: UnsafeRawBufferPointer) -> Bool {
        buffer.append(method, " ", target, " HTTP/1.1\r\n")
        return index.begin(method: method.octets, target: target.octets)
    }

    /// - Parameter status: 100–999.
    mutating func begin(status: Int) {
        let reason = reasonPhrase(status)
        var digits: UInt32 = 0x2030_3030
        digits += UInt32(status / 100) | UInt32(status / 10 % 10) << 8 | UInt32(status % 10) << 16
        withUnsafeBytes(of: digits.littleEndian) { digits in
            buffer.append(OctetBuffer.bytes(of: "HTTP/1.1 "), "", digits, "")
        }
        buffer.append(OctetBuffer.bytes(of: reason), "\r\n", OctetBuffer.none, "")
        index.begin(status: status, reason: OctetBuffer.bytes(of: reason).octets)
    }

    /// - Parameter known: what the name is.
    mutating func add(_ name: UnsafeRawBufferPointer, _ known: KnownField, _ value: UnsafeRawBufferPointer) {
        buffer.append(name, ": ", value, "\r\n")
        index.add(name: name.octets, known: known, value: value.octets)
    }

    mutating func add(_ name: StaticString, _ known: KnownField, _ value: UnsafeRawBufferPointer) {
        add(OctetBuffer.bytes(of: name), known, value)
    }

    /// Adds a line of a section that no head begins.
    mutating func add(line name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) {
        buffer.append(name, ": ", value, "\r\n")
    }

    mutating func end() {
        buffer.append("\r\n")
        index.end()
    }
}

extension UnsafeRawBufferPointer {
    /// The bytes for a pure module, which keeps nothing of them; they outlive the call that gets them.
    var octets: Span<UInt8> {
        @_lifetime(immortal)
        get { _overrideLifetime(Span(_unsafeBytes: self), copying: ()) }
    }
}
