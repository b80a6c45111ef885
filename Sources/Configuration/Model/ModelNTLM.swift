/// The scheme of HTTP in which the messages of NTLM travel: the words of `ntlm.scheme` and of `proxy.ntlm`.
public enum NTLMWord: String, CaseIterable, Sendable {
    case ntlm = "ntlm"
    case negotiate = "negotiate"

    /// The word as a field has it.
    public var written: String { self == .ntlm ? "NTLM" : "Negotiate" }
}

/// The user of NTLM, as it is written: `name`, `DOMAIN\name`, or `name@domain.example.com`.
public struct NTLMUser: Sendable, Hashable {
    /// The name of the domain, as it stands before the backslash; empty where the server or the user's own name knows it.
    public var domain: String
    /// The user's name.
    public var name: String

    /// UTF-16 units of a user's or a domain's name; both have to fit into a field of 16 bits.
    public static let longestName = 256

    /// - Parameter text: as it is written.
    public init(_ text: String) {
        let parts = text.split(separator: "\\", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        self.init(domain: parts.count == 2 ? parts[0] : "", name: parts.last ?? "")
    }

    /// - Parameter domain: empty where the server or the user's own name knows it.
    public init(domain: String = "", name: String) {
        self.domain = domain
        self.name = name
    }

    /// Too long for a message.
    public var isLong: Bool { name.utf16.count > Self.longestName || domain.utf16.count > Self.longestName }
}
