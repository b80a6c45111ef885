/// A JSON pointer (RFC 6901), taken apart.
public struct JSONPointer: Sendable, Hashable {
    /// Unescaped reference tokens; none for the whole document.
    public var tokens: [String]

    package init(text: String) throws(TextFault) {
        guard text.isEmpty || text.hasPrefix("/"), text.utf8.count <= 512 else {
            throw TextFault("must be a JSON pointer such as /token or /data/0/token")
        }
        tokens = []
        for part in text.split(separator: "/", omittingEmptySubsequences: false).dropFirst() {
            var rest = part.replacing("~0", with: "").replacing("~1", with: "")
            guard !rest.contains("~") else { throw TextFault("must have '~' only as '~0' or '~1' (RFC 6901)") }
            rest = part.replacing("~1", with: "/").replacing("~0", with: "~")
            tokens.append(String(rest))
        }
        guard tokens.count <= 16 else { throw TextFault("must have at most 16 parts") }
    }
}
