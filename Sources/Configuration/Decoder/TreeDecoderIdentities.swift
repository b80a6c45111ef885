extension TreeDecoder {
    mutating func decodeIdentities() {
        for entry in writtenIdentities.all { decodeIdentity(entry) }
        checkExchanges()
        checkDevices()
        checkPrincipals()
    }

    private mutating func decodeIdentity(_ entry: Node.Entry) {
        let place = "identity '\(Quoted.short(entry.key))'"
        if entry.key == "none" {
            error("an identity cannot be named 'none': 'use: none' means no identity", entry.mark)
        }
        guard entry.value.map != nil else { return }
        let reader = BlockReader(entry.value, Keys.identity, mark: entry.mark)
        let written = reader.written(Keys.handshakes.map(\.name))
        guard let key = written.first else {
            guard Keys.handshakes.allSatisfy({ reader.lacks($0.name) }) else { return }
            error(
                "\(place) needs exactly one handshake: \(Keys.handshakes.map(\.name).joined(separator: ", "))",
                entry.mark)
            return
        }
        if written.count > 1 {
            error(
                "\(place) has \(written.count) handshakes (\(written.joined(separator: ", "))); it needs exactly one",
                reader.mark(written[1]))
        }
        let network = network(reader)
        let handshake = handshake(key, reader, network: network, place: place)
        let token = token(reader, handshake, place: place)
        var form: [UInt8] = []
        if case .block(let block)? = Keys.identity[key]?.type, let node = reader.entry(key)?.value {
            form = CanonicalForm.of(handshake: key, node, block)
        }
        let identity = Identity(
            name: entry.key, mark: entry.mark, handshake: handshake, token: token, network: network,
            scopes: reader.texts("scopes") ?? [], canonicalForm: form)
        checkScopes(identity.scopes, of: identity, at: reader.mark("scopes"), place: place)
        identities.append(identity, named: identity.name)
    }

    /// `allowed_scopes` bounds what routes and identities may ask for.
    mutating func checkScopes(_ scopes: [String], of identity: Identity, at mark: Mark, place: String) {
        if case .mobileHub = identity.handshake, !scopes.isEmpty {
            error(
                "\(place) asks for 'scopes', but the scope of identity '\(identity.name)' is that of its backend", mark)
        }
        guard let allowed = identity.handshake.general?.allowedScopes else { return }
        for scope in scopes where !allowed.contains(scope) {
            error(
                "\(place) asks for scope '\(Quoted.short(scope))', which 'allowed_scopes' of identity '\(identity.name)' does not have",
                mark)
        }
    }

    /// The entry under `defaults`, below the block's own.
    private func merged(_ key: String, _ reader: BlockReader, _ block: Block) -> BlockReader {
        let base = defaults.entry(key)?.value
        let own = reader.entry(key)?.value
        return BlockReader(own?.merged(over: base) ?? base, block, mark: reader.mark(key))
    }

    // MARK: - Handshakes

    private mutating func handshake(
        _ key: String, _ reader: BlockReader, network: Network, place: String
    ) -> Handshake {
        if key == "client_certificate" { return .clientCertificate(clientCertificates(reader, place: place)) }
        guard case .block(let block)? = Keys.identity[key]?.type else { preconditionFailure("'\(key)' is no block") }
        let inside = reader.inside(key, block)
        let place = "\(place) (\(key))"
        if reader.entry(key)?.value.map != nil { require(inside, place) }
        // A stand-in where a required secret is missing, which was just reported.
        let absent = SecretReference.environment(name: "")
        switch key {
        case "static":
            return .static(
                StaticHandshake(
                    value: inside.secret("value") ?? absent, header: inside.text("header") ?? "",
                    prefix: inside.text("prefix") ?? ""))
        case "basic":
            let username = inside.text("username") ?? ""
            if username.contains(":") {
                error("'username' of \(place) must not have a colon (RFC 7617)", inside.mark("username"))
            }
            return .basic(BasicHandshake(username: username, password: inside.secret("password") ?? absent))
        case "oauth2": return .oauth2(oauth2(inside, network: network, place: place))
        case "oam_webgate": return .oamWebgate(oamWebgate(inside, network: network, place: place))
        case "oam_oauth": return .oamOAuth(oamOAuth(inside, network: network, place: place))
        case "mobilefirst": return .mobileFirst(mobileFirst(inside, network: network, place: place))
        case "adobe_pass": return .adobePass(adobePass(inside, network: network, place: place))
        case "mobile_hub": return .mobileHub(mobileHub(inside, network: network, place: place))
        case "recipe":
            var decoder = RecipeDecoder(inside, place: place, allowsCleartext: network.allowCleartext)
            let recipe = decoder.decode()
            diagnostics += decoder.diagnostics
            return .recipe(recipe)
        // `Keys.handshakes` names no other; a test reads one of each.
        default: preconditionFailure("'\(key)' has no reader")
        }
    }

    private mutating func clientCertificates(_ identity: BlockReader, place: String) -> [ClientKeyFiles] {
        guard let value = identity.entry("client_certificate")?.value else { return [] }
        let mark = identity.mark("client_certificate")
        if value.list?.isEmpty == true { error("'client_certificate' of \(place) is an empty list", mark) }
        return (value.list ?? [value]).map { node in
            let reader = BlockReader(node, Keys.clientCertificate, mark: mark)
            if node.map != nil { require(reader, "\(place) (client_certificate)") }
            return ClientKeyFiles(
                certificate: reader.path("certificate") ?? "", key: reader.secret("key"),
                password: reader.secret("password"))
        }
    }

    private mutating func oamWebgate(_ reader: BlockReader, network: Network, place: String) -> OAMWebgateHandshake {
        let paths = reader.inside("paths", Keys.oamPaths)
        func path(_ key: String) -> String { paths.parsed(key, AddressParser.servicePath) ?? "" }
        let isTerminateOff = paths.text("terminate") == "off"
        let missing = ServiceURL(origin: Origin(scheme: .https, host: "", port: 443), path: "/", query: nil)
        let webgate = OAMWebgateHandshake(
            userAgentPrefix: reader.text("user_agent_prefix") ?? "", userAgentMode: reader.word("user_agent_mode"),
            contextSource: reader.word("context_source"), challengeScheme: reader.text("challenge_scheme") ?? "",
            contextParam: reader.text("context_param") ?? "", replayHeader: reader.text("replay_header") ?? "",
            replayPrefix: reader.text("replay_prefix") ?? "", tokenScope: reader.word("token_scope"),
            resourceURL: reader.word("resource_url"), resourceSuffix: reader.text("resource_suffix") ?? "",
            stripCookies: reader.boolean("strip_cookies"), handleUnknown: reader.texts("handle_unknown") ?? [],
            service: reader.httpURL("service") ?? missing,
            paths: .init(
                register: path("register"), authenticate: path("authenticate"), access: path("access"),
                info: path("info"), terminate: isTerminateOff ? nil : path("terminate")),
            serviceDomain: reader.text("service_domain") ?? "",
            serviceDomainHeader: reader.text("service_domain_header") ?? "", clientAuth: reader.word("client_auth"),
            clientAuthHeader: reader.text("client_auth_header") ?? "", clientID: reader.text("client_id"),
            deviceClaims: reader.pairs("device_claims"), userTokenType: reader.text("user_token_type") ?? "",
            userTokenTTL: reader.duration("user_token_ttl"), restVersion: reader.text("rest_version"),
            username: reader.text("username") ?? "",
            password: reader.secret("password") ?? .environment(name: ""), probe: reader.text("probe"))
        guard reader.node != nil else { return webgate }
        if webgate.clientAuth != .none, reader.lacks("client_id") {
            error("\(place) needs 'client_id', or 'client_auth: none'", reader.mark)
        }
        if let url = reader.httpURL("service") {
            requireSafe(url, network, reader.mark("service"), "'service' of \(place)")
            if url.query != nil { error("'service' of \(place) must not have a query", reader.mark("service")) }
        }
        for key in ["replay_header", "service_domain_header", "client_auth_header"] {
            if let name = reader.text(key), ReservedHeader.contains(name) {
                error("'\(key)' of \(place) must not be '\(name)', which the connection itself uses", reader.mark(key))
            }
        }
        return webgate
    }

    /// Clear text to an issuer needs to be asked for, except on this machine (docs/design/security.md#invariant-4).
    mutating func requireSafe(_ url: ServiceURL, _ network: Network, _ mark: Mark, _ what: String) {
        guard url.origin.isCleartext, !url.origin.isLoopback, !network.allowCleartext else { return }
        error("\(what) sends credentials in clear text; use https:, or network: {allow_cleartext: true}", mark)
    }

    // MARK: - Token and network

    private mutating func token(_ identity: BlockReader, _ handshake: Handshake, place: String) -> TokenPolicy {
        let reader = merged("token", identity, Keys.token)
        let failure: TokenPolicy.OnIssuerFailure
        if reader.entry("on_issuer_failure")?.value.map != nil {
            let inside = reader.inside("on_issuer_failure", Keys.onIssuerFailure)
            require(inside, "'on_issuer_failure' of \(place)")
            failure = .serveExpired(for: inside.duration("serve_expired_for"))
        } else {
            failure = reader.text("on_issuer_failure") == "fail" ? .fail : .serveValid
        }
        let isWebgate = if case .oamWebgate = handshake { true } else { false }
        let isOwnLifetime = !reader.has("default_lifetime") && isWebgate
        let policy = TokenPolicy(
            refreshAhead: reader.parsed("refresh_ahead", Units.refreshAhead) ?? .percent(20),
            defaultLifetime: isOwnLifetime ? .seconds(900) : reader.duration("default_lifetime"),
            onIssuerFailure: failure, startup: reader.word("startup"),
            loginAttempts: reader.integer("login_attempts") ?? 1,
            allowLastAttempt: reader.boolean("allow_last_attempt"), negativeFor: reader.duration("negative_for"),
            acquireTimeout: reader.duration("acquire_timeout"), persist: reader.boolean("persist"),
            connectivity: reader.word("connectivity"))
        if policy.startup != .lazy, handshake.isChallengeDriven, handshake.probe == nil {
            error(
                "'startup: \(policy.startup.rawValue)' of \(place) needs 'probe': its token comes out of a challenge",
                reader.mark("startup"))
        }
        return policy
    }

    private mutating func network(_ identity: BlockReader) -> Network {
        let reader = merged("network", identity, Keys.network)
        var resolve: [String: [IPAddress]] = [:]
        for entry in reader.entry("resolve")?.value.map ?? [] {
            let items = entry.value.list ?? [entry.value]
            let addresses = items.compactMap { $0.scalar.flatMap { IPAddress($0.text) } }
            if items.isEmpty { error("'\(Quoted.short(entry.key))' in 'resolve' needs an address", entry.mark) }
            resolve[(try? AddressParser.host(entry.key)) ?? entry.key] = addresses
        }
        return Network(
            tls: tls(reader), proxy: proxy(reader, place: "a network"), timeout: reader.duration("timeout"),
            connections: reader.integer("connections") ?? 64, allowCleartext: reader.boolean("allow_cleartext"),
            resolve: resolve)
    }

    /// The `tls` of a route or a network.
    mutating func tls(_ parent: BlockReader) -> ClientTLS {
        let reader = parent.inside("tls", Keys.tls)
        let tls = ClientTLS(
            authorities: reader.list("ca", AddressParser.authority) ?? [.system],
            identity: reader.path("certificate").map {
                ClientKeyFiles(certificate: $0, key: reader.secret("key"), password: reader.secret("password"))
            },
            serverName: reader.parsed("server_name", AddressParser.host), minVersion: reader.word("min_version"),
            legacy: reader.boolean("legacy"))
        for key in reader.written(["key", "password"]) where reader.lacks("certificate") {
            error("'\(key)' in 'tls' goes only with 'certificate'", reader.mark(key))
        }
        if reader.items("ca")?.isEmpty == true {
            error("'ca' is an empty list, so no server could be trusted", reader.mark("ca"))
        }
        if tls.legacy {
            warning("'legacy: true' accepts ciphers and keys that are no longer safe", reader.mark("legacy"))
        }
        return tls
    }
}
