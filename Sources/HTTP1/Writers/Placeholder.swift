/// The token for a caller that insists on a token of its own (`token_stub`). It stands for nothing and admits nobody: real credentials
/// are put into requests in its place. All gateways give the same one, so that each knows it, also that of another or from before a
/// restart; it says itself what it is, where somebody meets it.
public enum Placeholder {
    /// Token68 (RFC 9110 §11.2), and nothing that is encoded in a query or a cookie.
    public static let text: StaticString = "cardea-placeholder-admits-nobody"
    /// By which it is known. What later versions put behind it does not matter.
    static let mark: StaticString = "cardea-placeholder"
    /// The beginning of each text that a confined program has in place of a secret; the gateway puts random digits behind it.
    public static let confined: StaticString = "cardea-confined-"
}

extension Span where Element == UInt8 {
    /// Whether a placeholder stands somewhere in `range`, as it is or percent-encoded.
    public func holdsPlaceholder(_ range: ByteRange) -> Bool { holds(Placeholder.mark, in: range) }

    /// Whether `mark` stands somewhere in `range`, as it is or percent-encoded.
    func holds(_ mark: StaticString, in range: ByteRange) -> Bool {
        let count = mark.utf8CodeUnitCount
        guard Int(range.count) >= count else { return false }
        var start = Int(range.start)
        let end = Int(range.end)
        while start &+ count <= end {
            if spells(mark, from: start, to: end) { return true }
            start &+= 1
        }
        return false
    }

    private func spells(_ mark: StaticString, from start: Int, to end: Int) -> Bool {
        var cursor = start
        for offset in 0..<mark.utf8CodeUnitCount {
            guard cursor < end else { return false }
            let (octet, width) = decodedOctet(self, at: cursor, end: end)
            guard octet == mark.utf8Start[offset] else { return false }
            cursor &+= width
        }
        return true
    }
}
