extension Configuration {
    /// A warning for identities that begin with one refresh token: at an issuer that rotates, its first use spends it for all of them. They
    /// go on together where issuer and client are the same, and end each other's login where these are not. Reads the tokens, but
    /// runs no program; what cannot be read is compared by its place. Blocks.
    public func checkRefreshTokens(environment: (String) -> String?) -> [Diagnostic] {
        var owners: [String: [(name: String, mark: Mark)]] = [:]
        for identity in identities {
            let first = identity.secrets.first { $0.key == "refresh_token" }?.reference
            guard let first else { continue }
            owners[likeness(of: first, environment), default: []].append((identity.name, identity.mark))
        }
        var diagnostics: [Diagnostic] = []
        for sharing in owners.values where sharing.count > 1 {
            let names = sharing.map { "'\($0.name)'" }.joined(separator: ", ")
            diagnostics.append(
                Diagnostic(
                    .warning,
                    "'refresh_token' of the identities \(names) is one and the same token: the first use may spend it for "
                        + "all of them. Use one identity on all routes, or give each a token of its own",
                    at: sharing[1].mark))
        }
        return diagnostics.sorted()
    }

    /// Equal for references that lead to the same token. Never shown.
    private func likeness(of reference: SecretReference, _ environment: (String) -> String?) -> String {
        if case .command(let path, let arguments) = reference {
            return "exec:" + ([path] + arguments).joined(separator: "\u{0}")
        }
        guard let bytes = try? readSecret(reference, environment: environment, policy: .warn) else {
            return "\(reference)"
        }
        return "value:" + bytes.withBytes { String(decoding: $0, as: UTF8.self) }
    }
}
