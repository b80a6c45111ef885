internal import Configuration
internal import DataPath
internal import Handshakes
internal import Keeping
internal import Reactor
internal import TLS
internal import Tokens

/// Turns configured identities into what the keeper and the loops work with.
struct IdentityCompiler {
    let environment: @Sendable (String) -> String?
    let secretFiles: SecretFilePolicy
    let persists: Bool
    /// The platform whose clock and randomness handshakes get.
    var platform = Platform.machine
    var keyCatalog = PlanCatalog<[ClientKeyFiles], ClientKeys>()
    var trustCatalog = PlanCatalog<[ClientTLS.Authority], TrustAnchors>()
    var proxyCatalog = PlanCatalog<OutgoingProxy, ProxyPlan>()
    var callerTokens = PlanCatalog<SecretReference, CallerToken>()

    /// All of a configuration, in its order: the position is an identity's number on the data path.
    func compile(_ identities: [ConfiguredIdentity]) throws(GatewayFault) -> [KeptIdentity] {
        var compiled: [KeptIdentity] = []
        for (index, identity) in identities.enumerated() { compiled.append(try compile(identity, index: index)) }
        return compiled
    }

    func compile(_ identity: ConfiguredIdentity, index: Int) throws(GatewayFault) -> KeptIdentity {
        let scheme = try scheme(of: identity)
        let handshake = try handshake(of: identity, statuses: nil)
        let traits = scheme.traits(of: identity)
        let policy = policy(of: identity, traits)
        let plan = IdentityPlan(
            index: index, name: identity.name, handshake: handshake, acquireTimeout: policy.access.acquireTimeout,
            reportsSuccess: policy.kind == .basic, resourceFromCaller: scheme.edits.resourceFromCaller,
            isTokenless: !type(of: scheme).hasToken, statuses: nil, signer: handshake.signer)
        // A token may be bound to the certificate that it was asked for with (RFC 8705).
        let thumbprints = policy.network.clientKeys?.certificates.flatMap(\.thumbprint) ?? []
        guard let digest = IdentityDigest(sha256(identity.canonicalForm + thumbprints)) else {
            throw GatewayFault("identity \(identity.name): no digest")
        }
        let kept = KeptIdentity(
            plan: plan, digest: digest, policy: policy, account: traits.account, issuer: traits.issuer)
        kept.probe = scheme.probe
        kept.scopes = identity.scopes
        return kept
    }

    // MARK: - Handshakes

    /// Configurations are loaded with the schemes of `Schemes.all`.
    func scheme(of identity: ConfiguredIdentity) throws(GatewayFault) -> any Scheme {
        guard let scheme = identity.scheme as? any Scheme else {
            throw GatewayFault("identity \(identity.name): '\(identity.scheme.name)' makes no handshake")
        }
        return scheme
    }

    /// - Parameter statuses: of a route that names its own rejected statuses.
    func handshake(of identity: ConfiguredIdentity, statuses: [Int]?) throws(GatewayFault) -> any Handshakes.Handshake {
        let scheme = try scheme(of: identity)
        do throws(Handshakes.GrantFailure) {
            return try scheme.handshake(
                of: identity, statuses: statuses,
                GrantWorld(time: platform.time, random: platform.random))
        } catch {
            throw GatewayFault("identity \(identity.name): \(error)")
        }
    }

    func proxy(_ settings: OutgoingProxy) -> ProxyPlan {
        proxyCatalog.plan(settings) {
            let credential = credential(of: settings)
            _ = credential?.reload()
            return ProxyPlan(UpstreamEndpoint(host: settings.host, port: settings.port), credential: credential) {
                settings.serves($0)
            }
        }
    }

    private func credential(of settings: OutgoingProxy) -> ProxyCredential? {
        let reading: @Sendable (SecretReference) throws -> [UInt8] = { [environment, secretFiles] in
            try readSecret($0, environment: environment, policy: secretFiles).withBytes { Array($0) }
        }
        let world = GrantWorld(time: platform.time, random: platform.random)
        if let tickets = settings.tickets {
            let handshake = ProxyNegotiate(
                tickets, host: settings.host, port: settings.port, service: settings.service, world)
            return ProxyCredential(username: "", handshake: handshake) { try tickets.keys.map(reading) ?? [] }
        }
        guard let username = settings.username, let password = settings.password else { return nil }
        let handshake = settings.ntlm.map {
            ProxyNTLM(NTLMUser(username), word: $0, host: settings.host, world)
        }
        let digest =
            settings.digest.isEmpty
            ? nil : ProxyDigest(username: username, functions: settings.digest, random: platform.random)
        return ProxyCredential(username: username, digest: digest, handshake: handshake) { try reading(password) }
    }

    func callerToken(_ reference: SecretReference) -> CallerToken {
        callerTokens.plan(reference) {
            let token = CallerToken { [environment, secretFiles] use in
                try readSecret(reference, environment: environment, policy: secretFiles).withBytes(use)
            }
            _ = token.reload()
            return token
        }
    }

    func clientKeys(_ files: [ClientKeyFiles]) -> ClientKeys? {
        guard !files.isEmpty else { return nil }
        return keyCatalog.plan(files) {
            let keys = ClientKeys(
                files.map { files in
                    ClientKeys.Files(certificate: files.certificate) { [environment, secretFiles] in
                        try ClientCertificate(reading: files, environment: environment, policy: secretFiles)
                    }
                })
            _ = keys.reload()
            return keys
        }
    }

    func trust(_ authorities: [ClientTLS.Authority]) -> TrustAnchors {
        trustCatalog.plan(authorities) {
            let anchors = TrustAnchors(
                authorities.map { .init($0) },
                systemFile: authorities.contains(.system) ? environment("SSL_CERT_FILE") : nil)
            _ = anchors.reload()
            return anchors
        }
    }

    // MARK: - Policy

    private func policy(of identity: ConfiguredIdentity, _ traits: SchemeTraits) -> IdentityPolicy {
        let token = identity.token
        var access = AccessTokenPolicy(
            allowedScopes: ScopeSet((identity.scheme.allowedScopes ?? []).map { ByteString($0) }))
        access.onIssuerFailure =
            switch token.onIssuerFailure {
            case .serveValid: .serveValid
            case .fail: .fail
            case .serveExpired(let duration): .serveExpired(UInt64(clamping: duration.wholeNanoseconds))
            }
        access.negativeFor = UInt64(clamping: token.negativeFor.wholeNanoseconds)
        access.acquireTimeout = UInt64(clamping: token.acquireTimeout.wholeNanoseconds)
        access.holdsSecrets = traits.holdsSecrets
        if let program = identity.scheme.program { access.flightTime = UInt64(clamping: program.longestRun) }
        access.canRegrant = traits.kind == .proactive || traits.kind == .challengeDriven
        access.persist = persists && token.persist && traits.keepsTokens && access.canRegrant
        access.needsChallenge = traits.kind == .challengeDriven && identity.scheme.probe == nil
        access.renewsByTimer = token.startup != .lazy
        access.connectivity =
            switch token.connectivity {
            case .auto: .auto
            case .online: .online
            case .offline: .offline
            }
        let refreshAhead: Tokens.RefreshAhead =
            switch token.refreshAhead {
            case .percent(let percent): .percent(UInt8(clamping: percent))
            case .before(let duration): .duration(UInt64(clamping: duration.wholeNanoseconds))
            }
        var policy = IdentityPolicy(
            access: access,
            lifetime: LifetimePolicy(
                refreshAhead: refreshAhead, defaultLifetime: UInt64(clamping: token.defaultLifetime.wholeNanoseconds)),
            attempts: .init(
                loginAttempts: UInt32(clamping: token.loginAttempts), allowsLastAttempt: token.allowLastAttempt),
            secrets: secrets(of: identity, traits.attempts ?? []), network: network(of: identity), kind: traits.kind,
            startup: startup(of: identity))
        if let program = identity.scheme.program {
            policy.program = { () throws -> Secret in
                let answer = try program.run()
                return answer.withBytes { Secret($0) }
            }
        }
        policy.attemptSecrets = traits.attempts?.map(\.key)
        for attempt in traits.attempts ?? [] { policy.attemptAccounts[attempt.key] = attempt.account }
        policy.isShared = token.persist && traits.keepsTokens && access.canRegrant
        policy.isBoundHere = traits.isBoundHere
        policy.isIrreplaceable = traits.isIrreplaceable
        policy.forgetsWhenReplaced = traits.forgetsWhenReplaced
        policy.refusalsUntilClosed = traits.refusalsUntilClosed
        return policy
    }

    /// Without a token there is none to wait for.
    private func startup(of identity: ConfiguredIdentity) -> IdentityPolicy.Startup {
        guard type(of: identity.scheme).hasToken else { return .lazy }
        return identity.token.startup == .required ? .required : identity.token.startup == .wait ? .wait : .lazy
    }

    private func secrets(of identity: ConfiguredIdentity, _ attempts: [SchemeTraits.Attempt]) -> [String: SecretSource]
    {
        var sources: [String: SecretSource] = [:]
        // The keys of certificates are read by their own set.
        guard type(of: identity.scheme).hasToken else { return [:] }
        for secret in identity.secrets {
            sources[secret.key] = { [environment, secretFiles] in
                // A certificate is no secret, only a file that is read like one.
                let policy = secret.key == "certificate" ? .warn : secretFiles
                let bytes = try readSecret(secret.reference, environment: environment, policy: policy)
                return bytes.withBytes { Secret($0) }
            }
        }
        for attempt in attempts where sources[attempt.key] == nil {
            sources[attempt.key] = joined(attempt.secrets.compactMap { sources[$0] })
        }
        return sources
    }

    private func network(of identity: ConfiguredIdentity) -> IssuerNetwork {
        compile(identity.network, patience: UInt64(clamping: identity.token.acquireTimeout.wholeNanoseconds))
    }

    /// - Parameter patience: nanoseconds that a call beyond `network.connections` waits for its turn.
    func compile(_ network: Network, patience: UInt64) -> IssuerNetwork {
        var resolve: [String: [SocketAddress]] = [:]
        for (host, addresses) in network.resolve {
            resolve[host] = addresses.compactMap { SocketAddress(host: "\($0)", port: 0) }
        }
        return IssuerNetwork(
            trust: trust(network.tls.authorities),
            minimumVersion: network.tls.minVersion == .tls13 ? .v1_3 : .v1_2, legacyTLS: network.tls.legacy,
            clientKeys: clientKeys(network.tls.identity.map { [$0] } ?? []), proxy: network.proxy.map { proxy($0) },
            serverName: network.tls.serverName, timeout: UInt64(clamping: network.timeout.wholeNanoseconds),
            connections: network.connections, patience: patience, resolve: resolve)
    }

    /// - Throws: the endpoint cannot be called.
    func destination(of export: Tracing.Export) throws(GatewayFault) -> SpanDestination {
        guard let url = IssuerURL(export.url) else { throw GatewayFault("tracing.endpoint: cannot be called") }
        return SpanDestination(
            url: url,
            headers: export.headers.map { header in
                let read: SecretSource = { [environment, secretFiles] in
                    try readSecret(header.value, environment: environment, policy: secretFiles)
                        .withBytes { Secret($0) }
                }
                return (name: header.name, value: read)
            }, network: compile(export.network, patience: 0))
    }
}

/// Several secrets as one, so that no two lists of them are the same bytes.
private func joined(_ parts: [SecretSource]) -> SecretSource {
    {
        var bytes: [UInt8] = []
        for part in parts {
            try part().withBytes { secret in
                bytes += Array(String(secret.count).utf8) + [UInt8(ascii: ":")]
                bytes += Array(secret)
            }
        }
        return Secret(taking: &bytes)
    }
}
