internal import Configuration
internal import Octets

/// The settings of a block `ntlm`.
struct NTLMSettings: Sendable, Equatable {
    var username: String
    /// The name of the domain, as it stands before the backslash; empty where the server or the user's own name knows it.
    var domain = ""
    /// The scheme of HTTP that carries the messages.
    var word = NTLMWord.ntlm

    static let block = Block(
        name: "ntlm",
        description:
            "NTLM version 2 ([MS-NTHT], [MS-NLMP]), which authenticates connections; the password itself is never sent.",
        keys: [
            KeySpec(
                "username", .text(.line), "The user: name, DOMAIN\\name, or name@domain.example.com.", required: true),
            // The same user may have another password elsewhere, and no issuer stands beside it.
            KeySpec("password", .secret, "The password.", required: true, digest: .place),
            KeySpec(
                "scheme", .words(NTLMWord.self),
                "ntlm: messages go as NTLM; negotiate: for servers that offer Negotiate alone and take NTLM in it.",
                digest: .nothing),
        ])

    init(username: String, domain: String = "", word: NTLMWord = .ntlm) {
        self.username = username
        self.domain = domain
        self.word = word
    }

    init(_ keys: BlockReader) {
        let name = keys.line("username")
        let parts = name.split(separator: "\\", maxSplits: 1, omittingEmptySubsequences: false)
        self.init(
            username: String(parts.last ?? ""), domain: parts.count == 2 ? String(parts[0]) : "",
            word: keys.word("scheme"))
        if username.isEmpty || parts.count == 2 && domain.isEmpty {
            keys.refuse("username", "must be a name, DOMAIN\\name, or name@domain.example.com")
        }
        if username.utf16.count > NTLMMessage.longestName || domain.utf16.count > NTLMMessage.longestName {
            keys.refuse("username", "must have at most \(NTLMMessage.longestName) characters on each side")
        }
    }
}

/// The scheme of HTTP in which the messages of NTLM travel.
enum NTLMWord: String, CaseIterable, Sendable {
    case ntlm, negotiate

    /// The word as a field has it.
    var written: String { self == .ntlm ? "NTLM" : "Negotiate" }
}
