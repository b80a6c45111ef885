internal import Configuration
internal import Handshakes
internal import Reactor
internal import TLS
internal import Tokens

/// Turns configured identities into what the keeper and the loops work with.
struct IdentityCompiler {
    let environment: @Sendable (String) -> String?
    let secretFiles: SecretFilePolicy
    let persists: Bool
    var keyCatalog = ClientKeyCatalog()
    var trustCatalog = TrustCatalog()
    var proxyCatalog = ProxyCatalog()
    var callerTokens = CallerTokenCatalog()

    /// All of a configuration, in its order: the position is an identity's number on the data path.
    func compile(_ identities: [ConfiguredIdentity]) throws(GatewayFault) -> [KeptIdentity] {
        var compiled: [KeptIdentity] = []
        for (index, identity) in identities.enumerated() { compiled.append(try compile(identity, index: index)) }
        return compiled
    }

    func compile(_ identity: ConfiguredIdentity, index: Int) throws(GatewayFault) -> KeptIdentity {
        let handshake = try handshake(of: identity, statuses: nil)
        let policy = try policy(of: identity)
        let plan = IdentityPlan(
            index: index, name: identity.name, handshake: handshake, acquireTimeout: policy.access.acquireTimeout,
            reportsSuccess: policy.kind == .basic, resourceFromCaller: resourceFromCaller(identity.handshake),
            statuses: nil, signer: Self.signer(of: identity, handshake))
        // A token may be bound to the certificate that it was asked for with (RFC 8705).
        let thumbprints = policy.network.clientKeys?.certificates.flatMap(\.thumbprint) ?? []
        guard let digest = IdentityDigest(sha256(identity.canonicalForm + thumbprints)) else {
            throw GatewayFault("identity \(identity.name): no digest")
        }
        let kept = KeptIdentity(
            plan: plan, digest: digest, policy: policy, account: account(of: identity), issuer: issuer(of: identity))
        kept.probe = probe(of: identity.handshake)
        kept.scopes = identity.scopes
        return kept
    }

    /// What computes the credential of each request.
    private static func signer(
        of identity: ConfiguredIdentity, _ handshake: any Handshakes.Handshake
    ) -> (any RequestSigner)? {
        if let oauth2 = handshake as? Handshakes.OAuth2Handshake { return oauth2.signer }
        guard case .recipe(let recipe) = identity.handshake, recipe.isSigned else { return nil }
        return RecipeSigner(recipe, identity: identity.name)
    }

    // MARK: - Handshakes

    /// - Parameter statuses: of a route that names its own rejected statuses.
    func handshake(of identity: ConfiguredIdentity, statuses: [Int]?) throws(GatewayFault) -> any Handshakes.Handshake {
        do throws(Handshakes.GrantFailure) {
            switch identity.handshake {
            case .static(let configured):
                return try Handshakes.StaticHandshake(header: configured.header, prefix: configured.prefix)
            case .basic(let configured):
                return try Handshakes.BasicHandshake(username: configured.username)
            case .oauth2(let configured):
                var settings = try settings(configured, statuses: statuses)
                settings.allowsCleartext = identity.network.allowCleartext
                settings.usesMutualTLS = identity.network.tls.identity != nil
                return try Handshakes.OAuth2Handshake(settings)
            case .oamOAuth(let configured):
                var settings = try settings(configured, statuses: statuses)
                settings.allowsCleartext = identity.network.allowCleartext
                return try Handshakes.OAuth2Handshake(settings)
            case .oamWebgate(let configured):
                return try OAMWebGateHandshake(settings(configured))
            case .mobileFirst(let configured):
                return try Handshakes.MobileFirstHandshake(settings(configured, identity))
            case .adobePass(let configured):
                return Handshakes.AdobePassHandshake(try settings(configured, identity, statuses: statuses))
            case .mobileHub(let configured): return try Handshakes.MobileHubHandshake(settings(configured))
            case .clientCertificate: return ClientCertificateHandshake()
            case .recipe(let recipe):
                if recipe.isSigned { return RecipeSigningHandshake(recipe) }
                return RecipeHandshake(recipe, identity: identity.name)
            }
        } catch {
            throw GatewayFault("identity \(identity.name): \(error)")
        }
    }

    func proxy(_ settings: OutgoingProxy) -> ProxyPlan {
        proxyCatalog.plan(settings, environment: environment, policy: secretFiles)
    }

    func clientKeys(_ files: [ClientKeyFiles]) -> ClientKeys? {
        keyCatalog.keys(files, environment: environment, policy: secretFiles)
    }

    func trust(_ authorities: [ClientTLS.Authority]) -> TrustAnchors {
        trustCatalog.anchors(authorities, environment: environment)
    }

    private func settings(_ configured: ConfiguredWebGate) throws(Handshakes.GrantFailure) -> OAMWebGateSettings {
        guard let service = IssuerURL(configured.service) else { throw .configuration(reason: "service: not a URL") }
        var settings = OAMWebGateSettings(
            service: service, username: configured.username, clientID: configured.clientID,
            userAgentPrefix: configured.userAgentPrefix)
        settings.paths.register = configured.paths.register
        settings.paths.authenticate = configured.paths.authenticate
        settings.paths.access = configured.paths.access
        settings.paths.info = configured.paths.info
        settings.paths.terminate = configured.paths.terminate
        settings.serviceDomain = configured.serviceDomain
        settings.serviceDomainHeader = configured.serviceDomainHeader
        settings.clientAuth =
            switch configured.clientAuth {
            case .uidpassword: .uidPassword
            case .basic: .basic
            case .none: .none
            }
        settings.clientAuthHeader = configured.clientAuthHeader
        for claim in configured.deviceClaims { settings.deviceClaims[claim.name] = claim.value }
        settings.userTokenType = configured.userTokenType
        settings.userTokenTTL = UInt64(clamping: configured.userTokenTTL.wholeNanoseconds)
        settings.restVersion = configured.restVersion
        settings.userAgentMode = configured.userAgentMode == .replace ? .replace : .prepend
        settings.contextSource =
            switch configured.contextSource {
            case .challenge: .challenge
            case .redirect: .redirect
            case .auto: .auto
            }
        settings.challengeScheme = configured.challengeScheme
        settings.contextParam = configured.contextParam
        settings.replayHeader = configured.replayHeader
        settings.replayPrefix = configured.replayPrefix
        settings.tokenScope = configured.tokenScope == .url ? .url : .webgate
        settings.resourceURL = configured.resourceURL == .caller ? .caller : .upstream
        settings.resourceSuffix = configured.resourceSuffix
        settings.stripCookies = configured.stripCookies
        settings.handleRejectedCodes = Set(configured.handleUnknown)
        settings.handleRejectedPhrases = configured.handleUnknown.map { $0.lowercased() }
        return settings
    }

    private func resourceFromCaller(_ handshake: ConfiguredHandshake) -> Bool {
        if case .oamWebgate(let configured) = handshake { return configured.resourceURL == .caller }
        return false
    }

    // MARK: - Policy

    private func policy(of identity: ConfiguredIdentity) throws(GatewayFault) -> IdentityPolicy {
        let token = identity.token
        var access = AccessTokenPolicy()
        access.onIssuerFailure =
            switch token.onIssuerFailure {
            case .serveValid: .serveValid
            case .fail: .fail
            case .serveExpired(let duration): .serveExpired(UInt64(clamping: duration.wholeNanoseconds))
            }
        access.negativeFor = UInt64(clamping: token.negativeFor.wholeNanoseconds)
        access.acquireTimeout = UInt64(clamping: token.acquireTimeout.wholeNanoseconds)
        access.persist = persists && token.persist
        access.renewsByTimer = token.startup != .lazy
        access.connectivity =
            switch token.connectivity {
            case .auto: .auto
            case .online: .online
            case .offline: .offline
            }
        let kind: IdentityPolicy.Kind
        switch identity.handshake {
        case .static, .clientCertificate:
            kind = .fixed
            access.canRegrant = false
            access.persist = false
        case .basic:
            kind = .basic
            access.canRegrant = false
            access.persist = false
        case .oamWebgate(let configured):
            kind = .challengeDriven
            access.needsChallenge = configured.probe == nil
        case .recipe(let recipe) where recipe.isSigned:
            kind = .fixed
            access.canRegrant = false
            access.persist = false
        case .recipe(let recipe):
            kind = recipe.isChallengeDriven ? .challengeDriven : .proactive
            access.needsChallenge = recipe.isChallengeDriven && recipe.probe == nil
        case .mobileHub(let hub) where hub.method.isBasic:
            kind = .basic
            access.canRegrant = false
            access.persist = false
        case .mobileHub(let hub):
            kind = .proactive
            access.persist = access.persist && hub.persistsTokens
        case .oauth2, .oamOAuth, .mobileFirst, .adobePass:
            kind = .proactive
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
            secrets: secrets(of: identity.handshake), network: network(of: identity), kind: kind,
            startup: startup(of: identity))
        if case .recipe(let recipe) = identity.handshake { policy.attemptSecrets = recipe.attemptSecrets }
        if case .mobileFirst(let mobileFirst) = identity.handshake, mobileFirst.mode == .registered {
            let accounts = mobileFirst.attemptAccounts(identity: identity.name)
            policy.attemptAccounts = accounts
            policy.attemptSecrets = accounts.keys.sorted()
        }
        policy.isShared = token.persist && access.canRegrant
        if case .oauth2(let configured) = identity.handshake {
            policy.isBoundHere = configured.dpop
            policy.isIrreplaceable = configured.beginsWithPerson
        }
        if case .oamOAuth(let configured) = identity.handshake {
            policy.isIrreplaceable = configured.general.beginsWithPerson
        }
        if case .mobileHub(let hub) = identity.handshake {
            policy.isShared = policy.isShared && hub.persistsTokens
            policy.forgetsWhenReplaced = true
            policy.refusalsUntilClosed = hub.refusalsUntilClosed
        }
        return policy
    }

    private func startup(of identity: ConfiguredIdentity) -> IdentityPolicy.Startup {
        // There is no token to wait for.
        if case .clientCertificate = identity.handshake { return .lazy }
        return identity.token.startup == .required ? .required : identity.token.startup == .wait ? .wait : .lazy
    }

    private func secrets(of handshake: ConfiguredHandshake) -> [String: SecretSource] {
        var sources: [String: SecretSource] = [:]
        // The keys of certificates are read by their own set.
        if case .clientCertificate = handshake { return [:] }
        for (key, reference) in handshake.secrets {
            sources[key] = { [environment, secretFiles] in
                // A certificate is no secret, only a file that is read like one.
                let policy = key == "certificate" ? .warn : secretFiles
                let bytes = try readSecret(reference, environment: environment, policy: policy)
                return bytes.withBytes { Secret($0) }
            }
        }
        if case .recipe(let recipe) = handshake { recipe.addAttemptSecrets(to: &sources) }
        if case .mobileFirst(let mobileFirst) = handshake { mobileFirst.addAttemptSecrets(to: &sources) }
        return sources
    }

    private func network(of identity: ConfiguredIdentity) -> IssuerNetwork {
        let network = identity.network
        var resolve: [String: [SocketAddress]] = [:]
        for (host, addresses) in network.resolve {
            resolve[host] = addresses.compactMap { SocketAddress(host: "\($0)", port: 0) }
        }
        return IssuerNetwork(
            trust: trust(network.tls.authorities),
            minimumVersion: network.tls.minVersion == .tls13 ? .v1_3 : .v1_2, legacyTLS: network.tls.legacy,
            clientKeys: clientKeys(network.tls.identity.map { [$0] } ?? []), proxy: network.proxy.map { proxy($0) },
            serverName: network.tls.serverName, timeout: UInt64(clamping: network.timeout.wholeNanoseconds),
            connections: network.connections,
            patience: UInt64(clamping: identity.token.acquireTimeout.wholeNanoseconds), resolve: resolve)
    }

    // MARK: - Keys

    private func account(of identity: ConfiguredIdentity) -> Account? {
        switch identity.handshake {
        case .oamWebgate(let configured):
            Account(issuer: Tokens.Origin(configured.service.origin), user: ByteString(configured.username))
        case .basic(let configured):
            // The upstream is the judge of the password; it stands in the route, so the account is the identity's alone.
            Account(
                issuer: Tokens.Origin(scheme: "basic", host: ByteString(identity.name), port: 0),
                user: ByteString(configured.username))
        case .oauth2(let configured):
            (configured.tokenURL ?? configured.issuer).map {
                Account(
                    issuer: Tokens.Origin($0.origin), user: ByteString(configured.username ?? configured.clientID))
            }
        case .oamOAuth(let configured):
            configured.general.tokenURL.map {
                Account(issuer: Tokens.Origin($0.origin), user: ByteString(configured.user))
            }
        case .mobileFirst(let configured): configured.account(identity: identity.name)
        case .adobePass(let configured): configured.account
        case .mobileHub(let configured): configured.account
        case .recipe(let recipe): recipe.account
        case .static, .clientCertificate: nil
        }
    }

    private func issuer(of identity: ConfiguredIdentity) -> Tokens.Origin? {
        switch identity.handshake {
        case .oamWebgate(let configured): Tokens.Origin(configured.service.origin)
        case .oauth2(let configured): (configured.tokenURL ?? configured.issuer).map { Tokens.Origin($0.origin) }
        case .oamOAuth(let configured): configured.general.tokenURL.map { Tokens.Origin($0.origin) }
        case .mobileFirst(let configured): Tokens.Origin(configured.base.origin)
        case .adobePass(let configured): Tokens.Origin(configured.base.origin)
        case .mobileHub(let configured): configured.issuer
        case .recipe(let recipe): recipe.issuer.map { Tokens.Origin($0) }
        case .static, .basic, .clientCertificate: nil
        }
    }

    private func probe(of handshake: ConfiguredHandshake) -> String? {
        handshake.probe
    }
}

extension IssuerURL {
    init?(_ url: ConfiguredURL) {
        self.init("\(url.origin)\(url.target)")
    }
}

extension Tokens.Origin {
    init(_ origin: ConfiguredOrigin) {
        self.init(scheme: ByteString(origin.scheme.rawValue), host: ByteString(origin.host), port: origin.port)
    }
}
