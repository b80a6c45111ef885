/// `mobile_hub`: a backend of Oracle Mobile Hub, formerly Mobile Cloud Service.
///
/// With Basic every forwarded request is a login, so those methods have no token to renew: a refusal closes the identity. The field
/// that names the backend is the same in every request and is written by the route.
struct MobileHubHandshake: Handshake {
    let settings: MobileHubSettings
    let basic: BasicHandshake?
    let consumer: OAuth2Handshake?
    /// Where tokens are exchanged; nil for other methods.
    let exchangeURL: IssuerURL?
    let world: GrantWorld

    /// Throws `.configuration` if a setting cannot be put on the wire.
    init(_ settings: MobileHubSettings, _ world: GrantWorld = GrantWorld()) throws(GrantFailure) {
        self.settings = settings
        self.world = world
        guard !settings.backendID.isEmpty, settings.backendID.isFieldContent else {
            throw .configuration(reason: "backend_id: empty, or not fit for a header")
        }
        for (name, value) in settings.extraHeaders {
            let isOurs = IssuerCall.ownFields.union([MobileHubSettings.backendHeader.lowercased()])
                .contains(name.lowercased())
            guard name.isFieldName, value.isFieldContent, !isOurs else {
                throw .configuration(reason: "extra_headers: not a field that an exchange may carry")
            }
        }
        var basic: BasicHandshake?
        var consumer: OAuth2Settings?
        var path: String?
        switch settings.method {
        case .anonymousKey: break
        case .user(let name): basic = try BasicHandshake(username: name)
        case .consumer(let oauth2, _): consumer = oauth2
        case .exchange(let exchange):
            switch exchange.endpoint {
            case .sso: path = "mobile/platform/sso/exchange-token"
            case .token(let proof):
                path = "mobile/platform/auth/token"
                if case .assertion(let oauth2, _) = proof { consumer = oauth2 }
            }
        }
        self.basic = basic
        if let consumer {
            self.consumer = try OAuth2Handshake(consumer, world)
        } else {
            self.consumer = nil
        }
        exchangeURL = path.flatMap { settings.base.appending(path: $0) }
        guard path == nil || exchangeURL != nil else { throw .configuration(reason: "base_url: not a URL") }
    }

    var scheme: String { "mobile_hub" }
    /// A 403 is about roles or the backend: a new token would not change it (docs/design/wire/oracle-mobile-hub.md#errors).

    func injection(for token: [UInt8]) -> InjectedField {
        let scheme =
            switch settings.method {
            case .anonymousKey, .user: "Basic "
            case .consumer, .exchange: "Bearer "
            }
        return InjectedField(name: "Authorization", value: Array(scheme.utf8) + token)
    }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        switch settings.method {
        case .anonymousKey: return try await anonymousKey(environment)
        case .user:
            guard let basic else { throw .internal(reason: "no user") }
            return try await basic.acquire(wanted, environment: environment)
        case .consumer(_, let scope):
            return try await consumerGrant(scope, wanted, environment: environment)
        case .exchange(let exchange):
            let exchange = MobileHubExchange(
                handshake: self, exchange: exchange, wanted: wanted, environment: environment)
            return try await exchange.grant()
        }
    }

    /// The key is base 64 of a user and a password that nobody needs to know (docs/design/wire/oracle-mobile-hub.md#basic).
    private func anonymousKey(_ environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        let key = try await environment.secret("anonymous_key")
        guard TokenAlphabet.b64token.admits(key) else {
            throw .secretUnusable(name: "anonymous_key", reason: "not the base 64 text that the settings page shows")
        }
        return AccessGrant(
            token: key, tokenType: "Basic", lifetime: AccessGrant.longestLifetime, sentAt: await environment.now())
    }
}

// MARK: - OAuth consumer (docs/design/wire/oracle-mobile-hub.md#consumer)

extension MobileHubHandshake {
    func consumerGrant(
        _ scope: String?, _ wanted: Wanted, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> AccessGrant {
        guard let consumer else { throw .internal(reason: "no consumer") }
        var target = Wanted(scopes: scope.map { [$0] } ?? [], upstreamOrigin: wanted.upstreamOrigin)
        target.challenge = wanted.challenge
        // A password that may have arrived counts as tried: it is not sent again by itself.
        guard case .clientCredentials = consumer.settings.grant else {
            return try await consumer.acquire(target, environment: environment)
        }
        return try await Self.patiently(environment) { () throws(GrantFailure) in
            try await consumer.acquire(target, environment: environment)
        }
    }

    /// Does the work up to twice more while the server is in trouble and asks for no longer pause
    /// (docs/design/wire/oracle-mobile-hub.md#consumer).
    static func patiently<Value>(
        _ environment: any GrantEnvironment, _ work: () async throws(GrantFailure) -> Value
    ) async throws(GrantFailure) -> Value {
        for pause in [200_000_000, 800_000_000] as [UInt64] {
            do throws(GrantFailure) { return try await work() } catch {
                switch error {
                case .issuerUnavailable(retryAfterSeconds: nil, _), .timedOut: await environment.pause(pause)
                default: throw error
                }
            }
        }
        return try await work()
    }
}
