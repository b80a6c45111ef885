extension TreeDecoder {
    /// The `proxy` of a route or a network. `off` takes back the one under `defaults`.
    mutating func proxy(_ parent: BlockReader) -> OutgoingProxy? {
        let place = parent.place
        guard let value = parent.entry("proxy")?.value else { return nil }
        let mark = parent.mark("proxy")
        guard value.map != nil else {
            if ["off", "false", "no"].contains(value.scalar?.text ?? "") { return nil }
            return parent.httpURL("proxy").flatMap { proxy(at: $0, mark, place) }
        }
        let reader = parent.inside("proxy")
        reader.needRequired()
        guard let url = reader.httpURL("url"), var proxy = proxy(at: url, reader.mark("url"), place) else { return nil }
        proxy.username = reader.text("username")
        proxy.password = reader.secret("password")
        if reader.has("username") != reader.has("password") {
            error("'proxy' of \(place) needs both 'username' and 'password', or neither", mark)
        }
        if proxy.username?.contains(":") == true {
            error("'username' in 'proxy' of \(place) must not have a colon (RFC 7617)", reader.mark("username"))
        }
        proxy.digest = reader.words("digest") ?? []
        if reader.has("digest"), proxy.digest.isEmpty { reader.refuse("digest", "must name an algorithm") }
        if reader.has("digest"), !reader.has("username") {
            reader.refuse("digest", "needs 'username' and 'password' beside it")
        }
        tickets(at: reader, into: &proxy)
        ntlm(at: reader, url, into: &proxy)
        proxy.except = reader.list("except", AddressParser.hostPattern) ?? []
        return proxy
    }

    private func tickets(at reader: BlockReader, into proxy: inout OutgoingProxy) {
        guard reader.has("negotiate") else { return }
        reader.refuse(["username", "password", "digest", "ntlm"], "has no meaning beside 'negotiate'")
        let block = reader.inside("negotiate")
        proxy.tickets = block.ticketSource()
        proxy.service = block.ticketService()
        if proxy.tickets != nil, proxy.service == nil, IPAddress(proxy.host) != nil {
            block.need(["service"], ": Kerberos knows servers by name, and 'url' has an address")
        }
    }

    private func ntlm(at reader: BlockReader, _ url: ServiceURL, into proxy: inout OutgoingProxy) {
        proxy.ntlm = reader.text("ntlm").flatMap(NTLMWord.init(rawValue:))
        guard proxy.ntlm != nil else {
            return reader.refuse(reader.written(["allow_cleartext"]), "has a meaning with 'ntlm' alone")
        }
        reader.refuse(["digest"], "has no meaning beside 'ntlm'")
        guard reader.has("username"), reader.has("password") else {
            return reader.refuse("ntlm", "needs 'username' and 'password' beside it")
        }
        _ = reader.ntlmUser()
        guard !url.origin.isLoopback, !reader.boolean("allow_cleartext") else { return }
        error(
            "\(reader.place) speaks NTLM in clear text to \(proxy.host), and whoever reads it can guess the password; use 'negotiate' or 'digest', or allow_cleartext: true",
            reader.mark("ntlm"))
    }

    private mutating func proxy(at url: ServiceURL, _ mark: Mark, _ place: String) -> OutgoingProxy? {
        guard url.origin.scheme == .http else {
            error("'proxy' of \(place) must be an http: URL; TLS to the server runs through it end to end", mark)
            return nil
        }
        if url.path != "/" || url.query != nil { error("'proxy' of \(place) must not have a path or a query", mark) }
        return OutgoingProxy(host: url.origin.host, port: url.origin.port)
    }
}
