extension SecretReference {
    /// Reads `file:`, `env:`, `credential:`, `exec:` or `literal:`. No message repeats the text.
    package init(text: String) throws(TextFault) {
        guard let colon = text.firstIndex(of: ":") else { throw Self.bare }
        let rest = String(text[text.index(after: colon)...])
        switch text[..<colon] {
        case "file":
            guard !rest.isEmpty, rest.utf8.count < 4096 else { throw TextFault("needs a path after file:") }
            try AddressParser.requireLine(rest)
            self = .file(path: rest)
        case "env":
            let isName = !rest.isEmpty && rest.utf8.count <= 256 && !rest.contains("=")
            guard isName else { throw TextFault("needs a variable's name after env:") }
            try AddressParser.requireLine(rest)
            self = .environment(name: rest)
        case "credential":
            let isName = !rest.isEmpty && rest.utf8.count <= 255 && !rest.contains("/") && rest != "." && rest != ".."
            guard isName else { throw TextFault("needs a credential's name, without '/', after credential:") }
            try AddressParser.requireLine(rest)
            self = .credential(name: rest)
        case "exec":
            let words = rest.split(separator: " ").map(String.init)
            guard let path = words.first, path.hasPrefix("/"), words.count <= 64 else {
                throw TextFault("needs an absolute path, then arguments separated by spaces, after exec:")
            }
            try AddressParser.requireLine(rest)
            self = .command(path: path, arguments: Array(words.dropFirst()))
        case "literal":
            self = .literal(SecretBytes(rest))
        default: throw Self.bare
        }
    }

    private static var bare: TextFault {
        TextFault("must be a reference: file:, env:, credential: or exec: (literal: for trials)")
    }
}
