/// `mobile_hub`: what its keys mean together.
extension TreeDecoder {
    mutating func mobileHub(_ reader: BlockReader, network: Network, place: String) -> MobileHubHandshake {
        let missing = ServiceURL(origin: Origin(scheme: .https, host: "", port: 443), path: "/", query: nil)
        let hub = MobileHubHandshake(
            generation: reader.word("generation"), base: reader.httpURL("base_url") ?? missing,
            baseText: reader.text("base_url") ?? "", backendID: reader.text("backend_id") ?? "",
            backendVersion: reader.text("backend_version"), method: reader.word("method"),
            anonymousKey: reader.secret("anonymous_key"), username: reader.text("username"),
            password: reader.secret("password"), tokenURL: reader.httpURL("token_url"),
            clientID: reader.text("client_id"), clientSecret: reader.secret("client_secret"),
            scope: reader.text("scope"), identityDomain: reader.text("identity_domain"),
            identityDomainHeader: reader.text("identity_domain_header") ?? "",
            exchangeEndpoint: reader.word("exchange_endpoint"),
            thirdPartyToken: subjectToken("third_party_token", reader), tokenFormat: reader.word("token_format"),
            clientAuth: reader.word("client_auth"), grantType: reader.text("grant_type") ?? "",
            extraHeaders: reader.pairs("extra_headers"),
            sendsBackendIDWithBearer: reader.boolean("send_backend_id_with_bearer"),
            persistsTokens: reader.boolean("persist_tokens"))
        guard reader.node != nil else { return hub }
        for key in ["base_url", "token_url"] {
            guard let url = reader.httpURL(key) else { continue }
            requireSafe(url, network, reader.mark(key), "'\(key)' of \(place)")
        }
        if hub.base.query != nil { error("'base_url' of \(place) must not have a query", reader.mark("base_url")) }
        // Without it every other key would be judged by a method that nobody chose.
        guard reader.has("method") else { return hub }
        checkKeys(of: hub, reader, place: place)
        checkValues(of: hub, reader, place: place)
        return hub
    }

    /// Each method has keys that it needs and keys that it may have; any other would be without effect.
    private mutating func checkKeys(of hub: MobileHubHandshake, _ reader: BlockReader, place: String) {
        var needs: [String] = []
        var takes: Set<String> = []
        let consumer = ["token_url", "client_id", "client_secret"]
        let grant: Set = ["generation", "scope", "identity_domain", "identity_domain_header"]
        switch hub.method {
        case .basicAnonymous: needs = ["anonymous_key"]
        case .basicUser: needs = ["username", "password"]
        case .oauthClient:
            needs = consumer
            takes = grant
        case .oauthPassword:
            needs = consumer + ["username", "password"]
            takes = grant
        case .tokenExchange:
            takes = ["third_party_token", "exchange_endpoint", "token_format", "extra_headers"]
            guard hub.exchangeEndpoint == .authToken else { break }
            takes.formUnion(["client_auth", "grant_type"])
            switch hub.clientAuth {
            case .basic: needs = ["client_id", "client_secret"]
            case .form:
                needs = ["client_id"]
                takes.insert("client_secret")
            case .assertion:
                needs = consumer
                takes.formUnion(grant)
            }
        }
        if !hub.method.isBasic { takes.formUnion(["send_backend_id_with_bearer", "persist_tokens"]) }
        let always: Set = ["base_url", "backend_id", "backend_version", "method"]
        let setting = hub.method == .tokenExchange ? exchangeSetting(of: hub) : "'method: \(hub.method.rawValue)'"
        for spec in Keys.mobileHub.keys
        where reader.has(spec.name) && !always.contains(spec.name) && !needs.contains(spec.name)
            && !takes.contains(spec.name)
        {
            error("'\(spec.name)' of \(place) is not used by \(setting)", reader.mark(spec.name))
        }
        for key in needs where reader.lacks(key) { error("\(place) needs '\(key)' for \(setting)", reader.mark) }
        if hub.isConsumer, hub.generation == .classic, reader.lacks("identity_domain") {
            error("\(place) needs 'identity_domain' for 'generation: classic'", reader.mark("generation"))
        }
    }

    private func exchangeSetting(of hub: MobileHubHandshake) -> String {
        guard hub.exchangeEndpoint == .authToken else { return "'exchange_endpoint: \(hub.exchangeEndpoint.rawValue)'" }
        return "'exchange_endpoint: auth_token' with 'client_auth: \(hub.clientAuth.rawValue)'"
    }

    private mutating func checkValues(of hub: MobileHubHandshake, _ reader: BlockReader, place: String) {
        if hub.method == .basicUser, hub.username?.contains(":") == true {
            error("'username' of \(place) must not have a colon (RFC 7617)", reader.mark("username"))
        }
        if let id = hub.clientID, id.contains(":") || !id.utf8.allSatisfy({ (0x20...0x7E).contains($0) }) {
            error("'client_id' of \(place) must be ASCII without a colon", reader.mark("client_id"))
        }
        for pair in hub.extraHeaders {
            let own = ["authorization", "content-type", MobileHubHandshake.backendHeader.lowercased()]
            if ReservedHeader.contains(pair.name) || own.contains(pair.name.lowercased()) {
                error(
                    "'\(pair.name)' in 'extra_headers' of \(place) is set by the gateway itself",
                    reader.mark("extra_headers"))
            }
        }
    }
}
