/// `oauth2.allowed_issuers`: whom an API may send us to with our secrets.
extension TreeDecoder {
    mutating func checkAllowedIssuers(
        _ oauth2: OAuth2Handshake, _ reader: BlockReader, _ network: Network, _ place: String
    ) {
        guard !oauth2.allowedIssuers.isEmpty else { return }
        let whole = reader.mark("allowed_issuers")
        var seen: Set<String> = []
        for node in reader.items("allowed_issuers") ?? [] {
            guard let text = node.scalar?.text, let url = try? BlockReader.httpURL(text) else { continue }
            requireSafe(url, network, node.mark, "'allowed_issuers' of \(place)")
            if url.query != nil {
                error("'\(Quoted.short(text))' in 'allowed_issuers' of \(place) must not have a query", node.mark)
            }
            if text == oauth2.issuerText {
                error("'allowed_issuers' of \(place) has its own 'issuer', which is allowed anyway", node.mark)
            }
            if !seen.insert(text).inserted {
                error("'allowed_issuers' of \(place) has '\(Quoted.short(text))' twice", node.mark)
            }
        }
        if oauth2.registration != nil {
            error(
                "'allowed_issuers' of \(place) do not go with 'registration', which makes a client at one issuer", whole
            )
        }
        let isMinted = oauth2.grant == .jwtBearer && oauth2.assertion == nil
        guard oauth2.grant != .clientCredentials, oauth2.grant != .tokenExchange, !isMinted else { return }
        error(
            "'allowed_issuers' of \(place) go only with client_credentials, token_exchange, and jwt_bearer with 'key': what other grants keep or send is for one issuer",
            whole)
    }
}
