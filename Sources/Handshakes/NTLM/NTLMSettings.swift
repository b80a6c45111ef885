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

    init(_ user: NTLMUser, word: NTLMWord) { self.init(username: user.name, domain: user.domain, word: word) }

    init(_ keys: BlockReader) { self.init(keys.ntlmUser(), word: keys.word("scheme")) }
}
