/// Settings of an `oauth2` identity with the client credentials grant.
public struct OAuth2Settings: Sendable {
    /// The token endpoint; its query, if any, is kept.
    public var tokenURL: IssuerURL
    public var clientID: String
    public var clientAuth: ClientAuth = .basic
    public var basicEncoding: BasicEncoding = .form
    /// Further members of the request, in order.
    public var extra: [(name: String, value: String)] = []
    /// Further headers of the request.
    public var headers: [(name: String, value: String)] = []
    /// Scopes that a challenge may add to those of the route; nil or empty: none.
    public var allowedScopes: [String]?
    /// Statuses that mean "token refused" on this identity's routes (`on_rejected.statuses`).
    public var rejectedStatuses: [Int] = [401]
    public var identityDomain: String?
    public var identityDomainHeader = "X-OAUTH-IDENTITY-DOMAIN-NAME"

    public init(tokenURL: IssuerURL, clientID: String) {
        self.tokenURL = tokenURL
        self.clientID = clientID
    }

    /// How the client proves itself (RFC 6749 §2.3.1).
    public enum ClientAuth: Sendable { case basic, post, none }
    /// Whether id and secret are form-encoded before they are joined, as RFC 6749 says and some servers do not expect.
    public enum BasicEncoding: Sendable { case form, raw }
}

/// `oauth2`: the client credentials grant (RFC 6749 §4.4).
public struct OAuth2Handshake: Handshake {
    public let settings: OAuth2Settings

    /// Throws `.configuration` if a setting cannot be put on the wire.
    public init(_ settings: OAuth2Settings) throws(GrantFailure) {
        guard !settings.clientID.isEmpty, !settings.clientID.hasControls else {
            throw .configuration(reason: "client_id: empty, or with a control character")
        }
        if settings.clientAuth == .basic, settings.basicEncoding == .raw,
            settings.clientID.utf8.contains(UInt8(ascii: ":"))
        {
            throw .configuration(reason: "client_id: holds a colon, which basic_encoding: raw cannot carry")
        }
        var names: Set = ["grant_type", "client_id", "client_secret", "scope"]
        for (name, _) in settings.extra {
            guard !name.isEmpty, names.insert(name).inserted else {
                throw .configuration(reason: "extra: a member is empty, repeated, or one that the grant sets itself")
            }
        }
        var headers = settings.headers
        if let domain = settings.identityDomain { headers.append((settings.identityDomainHeader, domain)) }
        for (name, value) in headers {
            let isOurs = ["authorization", "content-type", "content-length", "host", "transfer-encoding", "connection"]
                .contains(name.lowercased())
            guard name.isFieldName, value.isFieldContent, !isOurs else {
                throw .configuration(reason: "headers: not a field that a token request may carry")
            }
        }
        for scope in settings.allowedScopes ?? [] where !OAuth2Scope.isToken(scope) {
            throw .configuration(reason: "allowed_scopes: not a scope")
        }
        self.settings = settings
    }

    public var scheme: String { "oauth2" }
    public var isChallengeDriven: Bool { false }

    public var inspectedStatuses: [Int] {
        let widens = !(settings.allowedScopes ?? []).isEmpty
        return settings.rejectedStatuses + (widens && !settings.rejectedStatuses.contains(403) ? [403] : [])
    }

    public func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: "Authorization", value: Array("Bearer ".utf8) + token)
    }
}

// MARK: - Challenges (RFC 6750 §3)

extension OAuth2Handshake {
    public func judge(
        status: Int, wwwAuthenticate: [[UInt8]], location: [UInt8]?, requestURL: String
    ) -> ChallengeVerdict {
        guard inspectedStatuses.contains(status) else { return .none }
        let bearer = AuthChallenge.list(wwwAuthenticate).first { $0.scheme.matches("Bearer") && $0.fault == nil }
        var challenge = Challenge(resource: requestURL)
        if case .one(let code)? = bearer?["error"] {
            let known = ["invalid_request", "invalid_token", "insufficient_scope"]
            challenge.error = known.first { code.elementsEqual($0.utf8) }
        }
        if case .one(let text)? = bearer?["scope"] {
            let asked = OAuth2Scope.set(String(decoding: text, as: UTF8.self)) ?? []
            challenge.scopes = asked.filter { settings.allowedScopes?.contains($0) == true }
        }
        if settings.rejectedStatuses.contains(status) { return .challenged(challenge) }
        // A 403 is a plain refusal unless it names scopes that we may ask for.
        return challenge.error == "insufficient_scope" && !challenge.scopes.isEmpty ? .challenged(challenge) : .none
    }
}

// MARK: - The grant

extension OAuth2Handshake {
    public nonisolated(nonsending) func acquire(
        _ wanted: Wanted, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> AccessGrant {
        let scopes = try requestedScopes(wanted)
        for uri in wanted.resource where !Self.isResource(uri) {
            throw .configuration(reason: "resource: not an absolute URI without fragment")
        }
        var secret: Secret?
        if settings.clientAuth != .none {
            let read = try await ledger.secret("client_secret")
            guard read.isText, !read.isEmpty else {
                throw .secretUnreadable(name: "client_secret", reason: "empty, not UTF-8, or with a control character")
            }
            secret = read
        }
        var call = call(scopes: scopes, wanted: wanted, secret: secret)
        defer { call.body.wipe() }
        let answer: IssuerAnswer
        do throws(IssuerFault) {
            answer = try await issuer.send(call)
        } catch {
            throw GrantFailure(error, step: "token")
        }
        return try OAuth2Answer.grant(answer)
    }

    private func requestedScopes(_ wanted: Wanted) throws(GrantFailure) -> [String] {
        var scopes: [String] = []
        let added = (wanted.challenge?.scopes ?? []).filter { settings.allowedScopes?.contains($0) == true }
        for scope in wanted.scopes + added where !scopes.contains(scope) {
            guard OAuth2Scope.isToken(scope) else { throw .configuration(reason: "scopes: not a scope") }
            scopes.append(scope)
        }
        return scopes
    }

    // RFC 8707 §2.
    private static func isResource(_ uri: String) -> Bool {
        guard let colon = uri.utf8.firstIndex(of: UInt8(ascii: ":")), uri.utf8.first?.isLetter == true else {
            return false
        }
        return uri.utf8[..<colon].allSatisfy { $0.isLetterOrDigit || "+-.".utf8.contains($0) }
            && uri.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: "#") }
    }

    private func call(scopes: [String], wanted: Wanted, secret: Secret?) -> IssuerCall {
        let texts = scopes + wanted.audience + wanted.resource + settings.extra.flatMap { [$0.name, $0.value] }
        let size = texts.reduce(0) { $0 + $1.utf8.count + 16 } + settings.clientID.utf8.count + (secret?.count ?? 0)
        var body = FormBody(capacity: 256 + 3 * size)
        var headers = [
            (name: "Content-Type", value: "application/x-www-form-urlencoded"),
            (name: "Accept", value: "application/json"),
        ]
        body.member("grant_type", "client_credentials")
        switch settings.clientAuth {
        case .basic:
            if let secret { headers.append((name: "Authorization", value: basicCredentials(secret))) }
        case .post:
            body.member("client_id", settings.clientID)
            if let secret { body.member("client_secret", secret) }
        case .none:
            body.member("client_id", settings.clientID)
        }
        // An empty member counts as absent (RFC 6749 §3.2).
        if !scopes.isEmpty { body.member("scope", scopes.joined(separator: " ")) }
        for audience in wanted.audience where !audience.isEmpty { body.member("audience", audience) }
        for uri in wanted.resource { body.member("resource", uri) }
        for (name, value) in settings.extra { body.member(name, value) }
        headers += settings.headers
        if let domain = settings.identityDomain {
            headers.append((name: settings.identityDomainHeader, value: domain))
        }
        return IssuerCall(
            step: "token", method: "POST", url: settings.tokenURL, headers: headers, body: body.finish(),
            carriesPassword: false)
    }

    // Id and secret are encoded separately, so that a colon in either cannot shift the border (RFC 6749 §2.3.1).
    private func basicCredentials(_ secret: Secret) -> String {
        var user: [UInt8] = []
        var password: [UInt8] = []
        password.reserveCapacity(3 * secret.count)
        switch settings.basicEncoding {
        case .form:
            for byte in settings.clientID.utf8 { user.appendFormEncoded(byte) }
            secret.withBytes { for byte in $0 { password.appendFormEncoded(byte) } }
        case .raw:
            user = Array(settings.clientID.utf8)
            secret.withBytes { password.append(contentsOf: $0) }
        }
        var credentials = BasicHandshake.credentials(user: user, password: Secret(taking: &password))
        defer { credentials.wipe() }
        return "Basic " + String(decoding: credentials, as: UTF8.self)
    }
}

/// Scopes (RFC 6749 §3.3).
enum OAuth2Scope {
    static func isToken(_ text: String) -> Bool {
        (1...1024).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 == 0x21 || (0x23...0x5B).contains($0) || (0x5D...0x7E).contains($0) }
    }

    /// Sorted and unique; nil if any is not a scope token, or there are more than 256.
    static func set(_ text: String) -> [String]? {
        let scopes = Set(text.split(separator: " ").map(String.init))
        return scopes.count <= 256 && scopes.allSatisfy(isToken) ? scopes.sorted() : nil
    }
}
