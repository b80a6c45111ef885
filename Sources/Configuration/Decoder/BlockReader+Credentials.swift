/// Credentials that identities and proxies have in common.
extension BlockReader {
    /// `keytab`, `cache` and `principal`; nil where no file is named, which is reported.
    package func ticketSource() -> TicketSource? {
        if has("keytab"), has("cache") { refuse("cache", "must not stand beside 'keytab'") }
        if !has("keytab"), !has("cache") { need(["keytab"], ", or 'cache'") }
        if let path = path("cache"), !path.hasPrefix("/") { refuse("cache", "must be an absolute path") }
        let principal = text("principal")
        guard let reference = secret("keytab") else {
            return path("cache").map { .cache(path: $0, principal: principal) }
        }
        guard case .file(let path) = reference, path.hasPrefix("/") else {
            refuse("keytab", "must be file: and an absolute path: Kerberos reads the file itself")
            return nil
        }
        return .keytab(path: path, principal: principal)
    }

    /// `service`: the server's name in Kerberos; nil: made of its host.
    package func ticketService() -> String? {
        let service = text("service")
        if let service, !service.contains("/"), !service.contains("@") {
            refuse("service", "must be HTTP/host@REALM or HTTP@host")
        }
        return service
    }

    /// `username` of NTLM. What cannot stand in a message is reported.
    package func ntlmUser() -> NTLMUser {
        let text = line("username")
        let user = NTLMUser(text)
        if user.name.isEmpty || user.domain.isEmpty && text.contains("\\") {
            refuse("username", "must be a name, DOMAIN\\name, or name@domain.example.com")
        }
        if user.isLong { refuse("username", "must have at most \(NTLMUser.longestName) characters on each side") }
        return user
    }
}
