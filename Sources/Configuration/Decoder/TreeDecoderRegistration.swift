/// `registration` and `introspection` of an `oauth2` identity.
extension TreeDecoder {
    func registration(_ reader: BlockReader) -> OAuth2Handshake.Registration? {
        guard reader.has("registration") else { return nil }
        let inside = reader.inside("registration", Keys.registration)
        return .init(
            url: inside.httpURL("url"), initialAccessToken: inside.secret("initial_access_token"),
            softwareStatement: inside.secret("software_statement"), metadata: metadata(inside))
    }

    private func metadata(_ reader: BlockReader) -> [OAuth2Handshake.Registration.Member] {
        (reader.entry("metadata")?.value.map ?? []).map { entry in
            let values = (entry.value.list ?? [entry.value]).compactMap(\.scalar?.text)
            // Of these the standard knows lists alone (RFC 7591 §2).
            let isList = entry.value.list != nil || ["redirect_uris", "contacts"].contains(entry.key)
            return .init(name: entry.key, values: values, isList: isList)
        }
    }

    mutating func checkRegistration(
        _ oauth2: OAuth2Handshake, _ reader: BlockReader, _ network: Network, _ place: String
    ) {
        if reader.has("introspection_url"), !oauth2.introspects {
            error(
                "'introspection_url' of \(place) is used only with 'introspection: true'",
                reader.mark("introspection_url"))
        }
        if oauth2.introspects, reader.has("token_url"), reader.lacks("introspection_url") {
            error("\(place) needs 'introspection_url' beside 'token_url' for 'introspection: true'", reader.mark)
        }
        guard let registration = oauth2.registration else {
            if reader.lacks("client_id"), !reader.has("registration") {
                error("\(place) needs 'client_id'", reader.mark)
            }
            return
        }
        for key in ["client_id", "client_secret"] where reader.has(key) {
            error("'\(key)' of \(place) is what 'registration' brings", reader.mark(key))
        }
        let inside = reader.inside("registration", Keys.registration)
        if let url = registration.url {
            requireSafe(url, network, inside.mark("url"), "'url' in 'registration' of \(place)")
        } else if reader.has("token_url"), inside.lacks("url") {
            error("'registration' of \(place) needs 'url' beside 'token_url'", reader.mark("registration"))
        }
        // Their keys would have to be registered too.
        if [.privateKeyJWT, .tls].contains(oauth2.clientAuth) {
            error(
                "'registration' of \(place) does not go with 'client_auth: \(oauth2.clientAuth.rawValue)'",
                reader.mark("registration"))
        }
        for pair in registration.metadata where Self.ownMetadata.contains(pair.name) {
            error("'\(pair.name)' in 'metadata' of \(place) is set by the gateway itself", inside.mark("metadata"))
        }
    }

    private static let ownMetadata: Set = [
        "token_endpoint_auth_method", "grant_types", "response_types", "software_statement", "dpop_bound_access_tokens",
    ]
}
