/// Walks the parameters of a `Forwarded` value (RFC 7239 §4), element by element.
///
/// ```
/// Forwarded         = 1#forwarded-element
/// forwarded-element = [ forwarded-pair ] *( ";" [ forwarded-pair ] )
/// forwarded-pair    = token "=" ( token / quoted-string )
/// ```
struct ForwardedList {
    private var position = 0
    /// Index of the element that the last parameter stood in.
    private(set) var element = 0
    /// Something that is not in the grammar was met; what came before it is right.
    private(set) var isBroken = false

    struct Parameter {
        var name: ByteRange
        /// The value; of a quoted one the text between the quotes, escapes included.
        var value: ByteRange
    }
}

// MARK: -

extension ForwardedList {
    /// The next parameter, or nil at the end and at what is broken.
    mutating func next(in value: Span<UInt8>) -> Parameter? {
        while position < value.count, !isBroken {
            let octet = value[position]
            if octet == 0x2C {
                element += 1
                position &+= 1
            } else if octet == 0x3B || isBlank(octet) {
                position &+= 1
            } else {
                return parameter(value)
            }
        }
        return nil
    }

    private mutating func parameter(_ value: Span<UInt8>) -> Parameter? {
        let start = position
        while position < value.count, OctetClass.token.contains(value[position]) { position &+= 1 }
        let name = ByteRange(start..<position)
        guard !name.isEmpty, position < value.count, value[position] == 0x3D else { return broken() }
        position &+= 1
        guard position < value.count else { return broken() }
        let found: ByteRange
        if value[position] == 0x22 {
            let inside = position &+ 1
            position = inside
            while position < value.count, value[position] != 0x22 {
                position &+= value[position] == 0x5C ? 2 : 1
            }
            guard position < value.count else { return broken() }
            found = ByteRange(inside..<position)
            position &+= 1
        } else {
            let begin = position
            // A colon and brackets want quotes; senders leave them out, and no reader takes them for a mark.
            while position < value.count,
                OctetClass.token.contains(value[position]) || OctetClass.addressLiteral.contains(value[position])
                    || value[position] == 0x5B || value[position] == 0x5D
            {
                position &+= 1
            }
            found = ByteRange(begin..<position)
            guard !found.isEmpty else { return broken() }
        }
        while position < value.count, isBlank(value[position]) { position &+= 1 }
        guard position == value.count || value[position] == 0x2C || value[position] == 0x3B else { return broken() }
        return Parameter(name: name, value: found)
    }

    private mutating func broken() -> Parameter? {
        isBroken = true
        return nil
    }
}

/// Whether an element may be written behind `value` and be read as one.
func isForwardedList(_ value: Span<UInt8>) -> Bool {
    var list = ForwardedList()
    while list.next(in: value) != nil {}
    return !list.isBroken
}
