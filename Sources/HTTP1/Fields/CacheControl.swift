// Rules for a shared cache on an answer to a request whose credential the caller's side never saw.

extension ResponseHead {
    /// Whether the answer has to say `private`, so that caches before us treat it as they would had they seen the credential.
    ///
    /// RFC 9111 §3.5: a shared cache stores an answer to a request with `Authorization` only where `public`, `s-maxage` or
    /// `must-revalidate` says so. An answer that says one of these, or already keeps shared caches out, is left alone;
    /// what a caller's own cache may do does not change.
    public func wantsPrivate(in bytes: Span<UInt8>) -> Bool {
        guard contains(.cacheControl) else { return true }
        for index in 0..<fieldCount where self[index].known == .cacheControl {
            var directives = CacheDirectives(self[index].value)
            while let name = directives.next(in: bytes) {
                switch name.count {
                case 6 where bytes.spells("public", at: name), 7 where bytes.spells("private", at: name),
                    8 where bytes.spells("no-store", at: name), 8 where bytes.spells("s-maxage", at: name),
                    15 where bytes.spells("must-revalidate", at: name):
                    return false
                default: break
                }
            }
        }
        return true
    }
}

/// Walks the names of the directives of a `Cache-Control` value; a comma inside a quoted argument parts nothing.
struct CacheDirectives {
    private var position: Int
    private let end: Int

    init(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    mutating func next(in bytes: Span<UInt8>) -> ByteRange? {
        guard position < end else { return nil }
        let start = position
        var nameEnd = end
        var isQuoted = false
        while position < end {
            let octet = bytes[position]
            if isQuoted {
                if octet == 0x5C { position &+= 1 }
                if octet == 0x22 { isQuoted = false }
            } else if octet == 0x22 {
                isQuoted = true
            } else if octet == 0x2C {
                break
            } else if octet == 0x3D {
                nameEnd = min(nameEnd, position)
            }
            position &+= 1
        }
        position = min(position, end)
        nameEnd = min(nameEnd, position)
        position &+= 1
        return bytes.trimmed(start..<nameEnd)
    }
}
