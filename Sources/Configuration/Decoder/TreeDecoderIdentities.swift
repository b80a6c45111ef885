extension TreeDecoder {
    mutating func decodeIdentities() {
        for entry in writtenIdentities.all { decodeIdentity(entry) }
        checkExchanges()
        checkPrincipals()
    }

    private mutating func decodeIdentity(_ entry: Node.Entry) {
        let place = "identity '\(Quoted.short(entry.key))'"
        if entry.key == "none" {
            error("an identity cannot be named 'none': 'use: none' means no identity", entry.mark)
        }
        guard entry.value.map != nil else { return }
        let reader = BlockReader(entry.value, identityKeys, mark: entry.mark, place: place, findings: findings)
        let written = reader.written(identityKeys.exactlyOneOf)
        guard let key = written.first, let type = schemes.first(where: { $0.key.name == key }) else {
            guard identityKeys.exactlyOneOf.allSatisfy(reader.lacks) else { return }
            error(
                "\(place) needs exactly one handshake: \(identityKeys.exactlyOneOf.joined(separator: ", "))",
                entry.mark)
            return
        }
        if written.count > 1 {
            error(
                "\(place) has \(written.count) handshakes (\(written.joined(separator: ", "))); it needs exactly one",
                reader.mark(written[1]))
        }
        let network = network(reader)
        let (scheme, secrets) = scheme(type, reader, SchemeOwner(name: entry.key, network: network))
        let token = token(reader, scheme, place: place)
        var form: [UInt8] = []
        if case .block(let block)? = identityKeys[key]?.type, let node = reader.entry(key)?.value {
            form = CanonicalForm.of(handshake: key, node, block)
        }
        let identity = Identity(
            name: entry.key, mark: entry.mark, scheme: scheme, secrets: secrets, token: token, network: network,
            scopes: reader.texts("scopes") ?? [], canonicalForm: form)
        checkScopes(identity.scopes, of: identity, at: reader.mark("scopes"), place: place)
        identities.append(identity, named: identity.name)
    }

    /// `allowed_scopes` bounds what routes and identities may ask for.
    mutating func checkScopes(_ scopes: [String], of identity: Identity, at mark: Mark, place: String) {
        if let reason = identity.scheme.reasonAgainstScopes, !scopes.isEmpty {
            error("\(place) asks for 'scopes', but \(reason)", mark)
        }
        guard let allowed = identity.scheme.allowedScopes else { return }
        for scope in scopes where !allowed.contains(scope) {
            error(
                "\(place) asks for scope '\(Quoted.short(scope))', which 'allowed_scopes' of identity '\(identity.name)' does not have",
                mark)
        }
    }

    /// The entry under `defaults`, below the block's own.
    private func merged(_ key: String, _ reader: BlockReader, _ block: Block, place: String) -> BlockReader {
        let base = defaults.entry(key)?.value
        let own = reader.entry(key)?.value
        let mark = reader.mark(key)
        return BlockReader(own?.merged(over: base) ?? base, block, mark: mark, place: place, findings: findings)
    }

    // MARK: - Schemes

    private func scheme(
        _ type: any ConfiguredScheme.Type, _ reader: BlockReader, _ owner: SchemeOwner
    ) -> (any ConfiguredScheme, [NamedSecretReference]) {
        let key = type.key.name
        if reader.entry(key)?.value.list?.isEmpty == true { reader.refuse(key, "is an empty list") }
        // A value that is no block was reported, and nothing else is to be said of it.
        let isBlock = reader.entry(key)?.value.scalar == nil
        let inside = BlockReader(
            reader.entry(key)?.value, reader.inside(key).block, mark: reader.mark(key),
            place: "\(reader.place) (\(key))", findings: isBlock ? findings : Findings())
        for block in inside.each where block.node != nil { block.needRequired() }
        return (type.init(inside, of: owner), type.secrets(inside))
    }

    // MARK: - Token and network

    private mutating func token(_ identity: BlockReader, _ scheme: any ConfiguredScheme, place: String) -> TokenPolicy {
        let reader = merged("token", identity, Keys.token, place: place)
        let failure: TokenPolicy.OnIssuerFailure
        if reader.entry("on_issuer_failure")?.value.map != nil {
            let inside = reader.inside("on_issuer_failure")
            inside.needRequired()
            failure = .serveExpired(for: inside.duration("serve_expired_for"))
        } else {
            failure = reader.text("on_issuer_failure") == "fail" ? .fail : .serveValid
        }
        let written = reader.duration("default_lifetime")
        let policy = TokenPolicy(
            refreshAhead: reader.parsed("refresh_ahead", Units.refreshAhead) ?? .percent(20),
            defaultLifetime: reader.has("default_lifetime") ? written : type(of: scheme).defaultLifetime ?? written,
            onIssuerFailure: failure, startup: reader.word("startup"),
            loginAttempts: reader.integer("login_attempts") ?? 1,
            allowLastAttempt: reader.boolean("allow_last_attempt"), negativeFor: reader.duration("negative_for"),
            acquireTimeout: reader.duration("acquire_timeout"), persist: reader.boolean("persist"),
            connectivity: reader.word("connectivity"))
        if policy.startup != .lazy, scheme.isChallengeDriven, scheme.probe == nil {
            error(
                "'startup: \(policy.startup.rawValue)' of \(place) needs 'probe': its token comes out of a challenge",
                reader.mark("startup"))
        }
        return policy
    }

    private mutating func network(_ identity: BlockReader) -> Network {
        network(in: merged("network", identity, Keys.network, place: "a network"))
    }

    mutating func network(in reader: BlockReader) -> Network {
        var resolve: [String: [IPAddress]] = [:]
        for entry in reader.entry("resolve")?.value.map ?? [] {
            let items = entry.value.list ?? [entry.value]
            let addresses = items.compactMap { $0.scalar.flatMap { IPAddress($0.text) } }
            if items.isEmpty { error("'\(Quoted.short(entry.key))' in 'resolve' needs an address", entry.mark) }
            resolve[(try? AddressParser.host(entry.key)) ?? entry.key] = addresses
        }
        return Network(
            tls: tls(reader), proxy: proxy(reader), timeout: reader.duration("timeout"),
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
        reader.refuseEmpty("ca", "'ca' is an empty list, so no server could be trusted")
        if tls.legacy {
            warning("'legacy: true' accepts ciphers and keys that are no longer safe", reader.mark("legacy"))
        }
        return tls
    }
}
