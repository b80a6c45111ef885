// `Via` (RFC 9110 §7.6.3): every request we forward carries our pseudonym, and a request that carries it already has
// been here before.

/// A line of our own after those received: the same list as a member appended to the last of them (RFC 9110 §5.3), and
/// the received lines stay as they are.
func writeVia(_ minorVersion: UInt8, _ pseudonym: Span<UInt8>, _ output: inout OutputCursor) {
    output.append(minorVersion > 0 ? "Via: 1.1 " : "Via: 1.0 ")
    output.append(pseudonym)
    output.append("\r\n")
}

extension RequestHead {
    /// Whether a `Via` member names `pseudonym` as its recipient, in any case. A comma in a comment may start a member
    /// that is none; at worst a request that spells our name there is taken for a loop.
    public func viaNames(_ pseudonym: Span<UInt8>, in bytes: Span<UInt8>) -> Bool {
        guard contains(.via), !pseudonym.isEmpty else { return false }
        for index in 0..<fieldCount where self[index].known == .via {
            var members = ListMembers(self[index].value)
            while let member = members.next(in: bytes) {
                if recipient(of: member, bytes, is: pseudonym) { return true }
            }
        }
        return false
    }

    /// `received-protocol RWS received-by [ RWS comment ]`.
    private func recipient(of member: ByteRange, _ bytes: Span<UInt8>, is name: Span<UInt8>) -> Bool {
        var cursor = Int(member.start)
        let end = Int(member.end)
        while cursor < end, !isBlank(bytes[cursor]) { cursor &+= 1 }
        while cursor < end, isBlank(bytes[cursor]) { cursor &+= 1 }
        var offset = 0
        while cursor < end, !isBlank(bytes[cursor]) {
            guard offset < name.count, lowercased(bytes[cursor]) == lowercased(name[offset]) else { return false }
            offset &+= 1
            cursor &+= 1
        }
        return offset == name.count
    }

    /// `Max-Forwards` of a TRACE or OPTIONS (RFC 9110 §7.6.2): at 0 the request is ours to answer.
    public func maxForwards(in bytes: Span<UInt8>) -> UInt64? {
        guard knownMethod == .trace || knownMethod == .options else { return nil }
        guard let value = first(.maxForwards) else { return nil }
        return bytes.decimal(at: value)
    }
}
