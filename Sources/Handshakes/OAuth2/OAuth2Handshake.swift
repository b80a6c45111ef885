internal import HTTP1
internal import Octets

/// `oauth2`: any OAuth 2.0 authorization server (RFC 6749), with a token that is sent as Bearer (RFC 6750).
struct OAuth2Handshake: Handshake {
    var settings: OAuth2Settings
    /// The registered client, where the handshake registers itself.
    var client: RegisteredClient?
    let world: GrantWorld
    var discovery: OAuth2Discovery?
    /// nil: no answer changes the issuer.
    let resources: OAuth2Resources?
    let proofs = OAuth2ProofMemory()

    /// Throws `.configuration` if a setting cannot be put on the wire.
    init(_ settings: OAuth2Settings, _ world: GrantWorld = GrantWorld()) throws(GrantFailure) {
        switch settings.location {
        case .tokenURL: discovery = nil
        case .issuer(let issuer, let url):
            discovery = OAuth2Discovery(
                OAuth2MetadataRules(
                    issuer: issuer, url: url, allowsCleartext: settings.allowsCleartext,
                    prefersMutualTLS: settings.usesMutualTLS))
        }
        guard settings.allowedIssuers.isEmpty || !settings.grant.keepsRefreshToken else {
            throw .configuration(reason: "allowed_issuers: what this grant keeps is for one issuer")
        }
        resources =
            settings.allowedIssuers.isEmpty ? nil : OAuth2Resources(allowed: settings.allowedIssuers, settings)
        self.world = world
        guard settings.registration != nil || !settings.clientID.isEmpty, !settings.clientID.hasControls else {
            throw .configuration(reason: "client_id: empty, or with a control character")
        }
        if settings.clientAuth == .basic, settings.basicEncoding == .raw,
            settings.clientID.utf8.contains(UInt8(ascii: ":"))
        {
            throw .configuration(reason: "client_id: holds a colon, which basic_encoding: raw cannot carry")
        }
        var names = Self.ownMembers
        for (name, _) in settings.extra {
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .configuration(reason: "extra: a member is empty, repeated, or one that the grant sets itself")
            }
        }
        var parameters = Self.ownParameters
        for (name, _) in settings.loginParameters {
            guard !name.isEmpty, parameters.insert(name).inserted else {
                throw .configuration(
                    reason: "login_parameters: a name is empty, repeated, or one that the login sets itself")
            }
        }
        var headers = settings.headers
        if let domain = settings.identityDomain { headers.append((settings.identityDomainHeader, domain)) }
        for (name, value) in headers {
            guard name.isFieldName, value.isFieldContent, !IssuerCall.ownFields.contains(name.lowercased()) else {
                throw .configuration(reason: "headers: not a field that a token request may carry")
            }
        }
        for scope in settings.allowedScopes ?? [] where !OAuth2Scope.isToken(scope) {
            throw .configuration(reason: "allowed_scopes: not a scope")
        }
        self.settings = settings
    }

    /// Members of a token request that have a key of their own.
    static let ownMembers: Set = [
        "grant_type", "client_id", "client_secret", "client_assertion", "client_assertion_type", "scope", "username",
        "password", "refresh_token", "assertion", "subject_token", "subject_token_type", "actor_token",
        "actor_token_type", "requested_token_type", "code", "code_verifier", "redirect_uri", "device_code",
    ]

    /// Parameters of an authorization request that the login sets itself.
    static let ownParameters: Set = [
        "response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method",
        "nonce",
        "resource", "audience",
    ]

    var scheme: String { settings.oracle == nil ? "oauth2" : "oam_oauth" }
    var statusRule: StatusRule { .known }

    var inspectedStatuses: [Int] {
        let widens = !(settings.allowedScopes ?? []).isEmpty
        return settings.rejectedStatuses + (widens && !settings.rejectedStatuses.contains(403) ? [403] : [])
    }

    func injection(for token: [UInt8]) -> InjectedField {
        // With `dpop` the line is not sent but given to the signer.
        let prefix = settings.dpop ? "" : settings.oracle?.tokenPrefix ?? "Bearer "
        return InjectedField(name: "Authorization", value: Array(prefix.utf8) + token)
    }
}

// MARK: - Endpoints

extension OAuth2Handshake {
    func endpoints(_ environment: any GrantEnvironment) async throws(GrantFailure) -> OAuth2Endpoints {
        if let discovery {
            let found = try await discovery.endpoints(headers: settings.headers, environment: environment)
            return found.completed(by: written)
        }
        guard case .tokenURL(let url) = settings.location else { throw .internal(reason: "no endpoint") }
        var endpoints = OAuth2Endpoints(token: url)
        for (member, url) in written { endpoints[keyPath: member] = url }
        return endpoints
    }

    /// The endpoints that the operator has written down, beside `issuer` or `token_url`.
    private var written: [(member: WritableKeyPath<OAuth2Endpoints, IssuerURL?>, url: IssuerURL?)] {
        [
            (\.authorization, settings.authorizationURL), (\.device, settings.deviceAuthorizationURL),
            (\.revocation, settings.revocationURL), (\.introspection, settings.introspectionURL),
            (\.registration, settings.registration?.url),
        ]
    }

    /// Where metadata and configuration name different endpoints, in words; the metadata counts. Empty without `issuer`.
    func endpointConflicts(environment: any GrantEnvironment) async throws(GrantFailure) -> [String] {
        guard let discovery else { return [] }
        let found = try await discovery.endpoints(headers: settings.headers, environment: environment)
        let keys = [
            "authorization_url", "device_authorization_url", "revocation_url", "introspection_url", "registration.url",
        ]
        return zip(keys, written).compactMap { key, own in
            guard let url = own.url, let named = found[keyPath: own.member], named != url else { return nil }
            return "'\(key)' is not what the issuer's metadata names, \(named), which counts"
        }
    }
}

// MARK: - Challenges (RFC 6750 §3)

extension OAuth2Handshake {
    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        let status = answer.status
        guard inspectedStatuses.contains(status) else { return .none }
        let all = AuthChallenge.list(answer.values(of: "WWW-Authenticate")).filter {
            ($0.scheme.matches("Bearer") || settings.dpop && $0.scheme.matches("DPoP")) && $0.fault == nil
        }
        // The challenge counts that says what is wrong with the token that was sent.
        let known =
            (settings.dpop ? [Challenge.wantsNonce] : [])
            + [StepUp.error, "insufficient_scope", "invalid_token", "invalid_request"]
        let codes = all.map { bearer in
            guard case .one(let code) = bearer["error"] else { return known.count }
            return known.firstIndex { code.elementsEqual($0.utf8) } ?? known.count
        }
        let best = codes.indices.min { codes[$0] < codes[$1] }
        let bearer = best.map { all[$0] }
        var challenge = Challenge(resource: answer.requestURL)
        challenge.error = best.flatMap { codes[$0] < known.count ? known[codes[$0]] : nil }
        if case .one(let text)? = bearer?["scope"] {
            let asked = OAuth2Scope.set(String(decoding: text, as: UTF8.self)) ?? []
            challenge.scopes = asked.filter { settings.allowedScopes?.contains($0) == true }
            // The resource wants all of them (RFC 6750 §3): a token with some would be refused as well.
            if status == 403, challenge.scopes.count < asked.count { return .none }
        }
        if resources != nil, status == 401 {
            // The member is the resource's word, whichever of its challenges it stands in.
            for one in [bearer].compactMap(\.self) + all {
                guard challenge.resourceMetadata == nil, case .one(let text) = one["resource_metadata"] else {
                    continue
                }
                challenge.resourceMetadata = String(decoding: text.prefix(4096), as: UTF8.self)
            }
        }
        if let bearer, challenge.error == StepUp.error { challenge.stepUp = stepUpWish(bearer) }
        if settings.rejectedStatuses.contains(status) { return .challenged(challenge) }
        // A 403 is a plain refusal unless it names scopes that we may ask for.
        return challenge.error == "insufficient_scope" && !challenge.scopes.isEmpty ? .challenged(challenge) : .none
    }
}
