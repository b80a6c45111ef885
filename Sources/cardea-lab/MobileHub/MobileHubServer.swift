import FoundationEssentials

/// Oracle Mobile Hub: token endpoints of both generations, both exchanges of another issuer's token, and the users' page. What the
/// documentation leaves open is refused rather than guessed. Its backends' own APIs are in `MobileHubGate`.
///
/// The platform shares an address with the token endpoints, so that the issuer's faults apply to it as well.
struct MobileHubServer: SimulatedSystem {
    static let custom = "/mobile/custom/"
    static let platform = "/mobile/platform/"
    static let idcsToken = "/mobile-idcs/oauth2/v1/token"
    static let classicToken = "/classic/oauth2/tokens"
    static let backends = ["5d0c7c2a-0001-4b6e-9d55-lab000000001", "5d0c7c2a-0002-4b6e-9d55-lab000000002"]
    static let identityDomain = "acme4711"
    static let backendHeader = "Oracle-Mobile-Backend-ID"
    static let jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    let ledger: Ledger
    let state = Shared(State())

    struct State: Sendable {
        var tokens = BoundedTable<Token>(capacity: 10_000)
        var thirdParty = BoundedTable<ThirdParty>(capacity: 1_000)
    }

    /// A token of the mobile service: good at one backend for ever, whatever a request names.
    struct Token: Sendable {
        let backend: String
        let user: String
        let expires: UInt64
    }

    /// A token of another issuer, as that gave it out.
    struct ThirdParty: Sendable {
        let subject: String
        let expires: UInt64
    }

    private static let operations = [
        idcsToken: "hub_token", classicToken: "hub_classic_token", platform + "sso/exchange-token": "hub_sso",
        platform + "auth/token": "hub_exchange",
    ]

    func operation(_ path: String) -> String? { Self.operations[path] }

    var areas: [Area] { [Area(prefix: Self.custom, hasName: true, judge: admit)] }

    func revoke() { state.withLock { $0.tokens.removeAll() } }

    func control(_ path: String, _ body: JSON) throws(Refusal) -> JSON? {
        path == "/hub/third_party" ? ["token": "\(mintThirdParty(body))"] : nil
    }

    /// The key that the backend's settings page shows for the anonymous user.
    static func anonymousKey(_ settings: Settings) -> String {
        Base64.encode(Array("lab_anonymous:\(settings.apiKey)".utf8))
    }

    func serve(_ operation: String, _ request: Request) throws(Refusal) -> Response {
        switch operation {
        case "hub_sso": try ssoExchange(request)
        case "hub_exchange": try exchange(request)
        default: try token(request, isClassic: operation == "hub_classic_token")
        }
    }

    /// The description quotes what it should not: nobody may repeat it.
    func answer(to refusal: Refusal, _ operation: String) -> Response {
        let words = "\(refusal.why) \(ledger.mint(12))"
        return .json(["error": "\(refusal.code)", "error_description": "\(words)"], refusal.status)
    }
}

// MARK: - OAuth consumer

extension MobileHubServer {
    private func token(_ request: Request, isClassic: Bool) throws(Refusal) -> Response {
        let form = try request.form(["grant_type", "scope", "username", "password"])
        try proveClient(request)
        if isClassic {
            guard request.single("X-User-Identity-Domain-Name") == MobileHubServer.identityDomain else {
                throw Refusal(401, "invalid_client", "the identity domain is missing or wrong")
            }
            guard form["scope"] == nil else { throw Refusal(400, "invalid_scope", "a scope is not known here") }
        } else {
            // Port and all, and nothing in between.
            guard form["scope"] == "http://\(request.host)urn:opc:resource:consumer::all" else {
                throw Refusal(400, "invalid_scope", "the scope is not the backend's")
            }
        }
        switch form["grant_type"] {
        case "client_credentials":
            guard form["username"] == nil, form["password"] == nil else {
                throw Refusal(400, "invalid_request", "a user without a user's grant")
            }
            return issue("consumer", isClassic ? ["oracle_client_assertion_type": "urn:ietf:params:oauth:x"] : [:])
        case "password":
            guard ledger.login(form["username"], form["password"], at: "hub_token") == .accepted else {
                throw Refusal(400, "invalid_grant", "user or password is wrong")
            }
            return issue(form["username"] ?? "", ["refresh_token": "\(ledger.mint(24))"])
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    private func proveClient(_ request: Request) throws(Refusal) {
        guard request.credential("Basic").flatMap(Base64.decodeText) == ledger.settings.client,
            faults.take("invalid_client") == nil
        else { throw Refusal(401, "invalid_client", "client id or secret is wrong") }
    }

    private func issue(_ user: String, _ more: [String: JSON]) -> Response {
        let life = ledger.life()
        let token = ledger.mint(40)
        record(token, backend: MobileHubServer.backends[0], user: user, life: life)
        let members = lifetime(life).merging(more) { $1 }
        let always: [String: JSON] = [
            "access_token": "\(token)", "token_type": "Bearer", "oracle_tk_context": "client_assertion",
        ]
        return .json(.object(members.merging(always) { $1 })).with("Cache-Control", "no-store")
    }

    private func lifetime(_ life: UInt64) -> [String: JSON] {
        guard faults.take("no_expires_in") == nil else { return [:] }
        let seconds = faults.take("expires_in")?.number ?? Int(life / 1000)
        return ["expires_in": faults.take("hub_expires_string") == nil ? JSON(seconds) : "\(seconds)"]
    }

    private func record(_ token: String, backend: String, user: String, life: UInt64) {
        let record = Token(backend: backend, user: user, expires: Moment.now() + life)
        state.withLock { $0.tokens.insert(token, record) }
        ledger.keepSecret(token)
    }
}

// MARK: - Exchange

extension MobileHubServer {
    private func ssoExchange(_ request: Request) throws(Refusal) -> Response {
        guard request.method == "GET", request.target.hasSuffix("?format=json"), request.body.isEmpty else {
            throw Refusal(405, "invalid_request", "GET with format=json is wanted")
        }
        guard let backend = request.single(Self.backendHeader), Self.backends.contains(backend) else {
            throw Refusal(400, "invalid_request", "no such backend")
        }
        guard let token = request.credential("Bearer") else { throw Refusal(401, "", "no token") }
        return exchanged(try subject(of: token, status: 401, code: ""), at: backend)
    }

    private func exchange(_ request: Request) throws(Refusal) -> Response {
        guard request.method == "POST", request.target.hasSuffix("/auth/token") else {
            throw Refusal(405, "invalid_request", "POST is wanted")
        }
        let form = try multipart(request)
        let known: Set = [
            "grant_type", "assertion", "client_id", "client_secret", "client_assertion", "client_assertion_type",
        ]
        guard known.isSuperset(of: form.keys), let assertion = form["assertion"] else {
            throw Refusal(400, "invalid_request", "a member is missing or unknown")
        }
        if let type = form["grant_type"], type != MobileHubServer.jwtBearer {
            throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
        try proveClient(request, form)
        return exchanged(
            try subject(of: assertion, status: 400, code: "invalid_grant"), at: MobileHubServer.backends[0])
    }

    /// Exactly one of the three ways.
    private func proveClient(_ request: Request, _ form: [String: String]) throws(Refusal) {
        switch (request.values("Authorization").isEmpty, form["client_id"], form["client_assertion"]) {
        case (false, nil, nil): try proveClient(request)
        case (true, let id?, nil):
            let isWaived = form["client_secret"] == nil && faults.isSet("hub_waives_secret")
            guard id == ledger.settings.oauthClientID, isWaived || form["client_secret"] == ledger.settings.clientSecret
            else { throw Refusal(401, "invalid_client", "client id or secret is wrong") }
        case (true, nil, let assertion?):
            let token = state.withLock { $0.tokens[assertion] }
            guard form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                let token, token.user == "consumer", token.expires > Moment.now()
            else { throw Refusal(401, "invalid_client", "the client's assertion is wrong") }
        default: throw Refusal(400, "invalid_request", "not exactly one client authentication")
        }
    }

    /// RFC 7578, only what a form of plain fields needs.
    private func multipart(_ request: Request) throws(Refusal) -> [String: String] {
        let wrong = Refusal(400, "invalid_request", "not multipart/form-data")
        guard let type = request.single("Content-Type"), type.hasPrefix("multipart/form-data; boundary="),
            let text = String(validating: request.body, as: UTF8.self)
        else { throw wrong }
        let boundary = "--" + type.dropFirst("multipart/form-data; boundary=".count)
        guard boundary.utf8.count <= 72, text.hasPrefix(boundary + "\r\n"), text.hasSuffix("\r\n\(boundary)--\r\n")
        else {
            throw wrong
        }
        let parts = "\r\n\(text)".split(separator: "\r\n\(boundary)", omittingEmptySubsequences: false)
        guard parts.first == "", parts.last == "--\r\n" else { throw wrong }
        var form: [String: String] = [:]
        for part in parts.dropFirst().dropLast() {
            let start = "\r\nContent-Disposition: form-data; name=\""
            let halves = part.split(separator: "\"\r\n\r\n", omittingEmptySubsequences: false)
            guard part.hasPrefix(start), halves.count == 2,
                form.updateValue(String(halves[1]), forKey: String(halves[0].dropFirst(start.count))) == nil
            else { throw wrong }
        }
        return form
    }

    /// JWTs as they are; SAML as base 64 of gzip, and nothing else; Bearer tokens of the OAuth server are accepted too.
    private func subject(of token: String, status: Int, code: String) throws(Refusal) -> String {
        var text = token
        if !token.contains("."), let bytes = Data(base64Encoded: token), bytes.first == 0x1F {
            guard let document = Gzip.expand(Array(bytes)), let plain = String(validating: document, as: UTF8.self)
            else {
                throw Refusal(status, code, "the assertion is no gzip")
            }
            text = plain
        }
        let bearer = ledger.withState { $0.bearerTokens[text] }
        let ours = bearer.map { ThirdParty(subject: "bearer", expires: $0.expires) }
        guard let known = state.withLock({ $0.thirdParty[text] }) ?? ours else {
            throw Refusal(status, code, "the token is of no known issuer")
        }
        guard known.expires > Moment.now() else {
            ledger.count("hub_expired_assertions")
            throw Refusal(status, code, "the assertion has expired")
        }
        return known.subject
    }

    private func exchanged(_ user: String, at backend: String) -> Response {
        let life = ledger.life(21_600_000)
        let token =
            switch faults.take("hub_answer")?.text {
            case "jwt": jwt(subject: user, life: life, scale: faults.isSet("hub_milliseconds") ? 1000 : 1)
            case "saml": Base64.encode(Gzip.compress(Array(saml(subject: user, life: life).utf8)) ?? [])
            default: ledger.mint(40)
            }
        record(token, backend: backend, user: user, life: life)
        var members = lifetime(life)
        members["access_token"] = "\(token)"
        if faults.take("hub_no_type") == nil { members["token_type"] = "Bearer" }
        return .json(.object(members))
    }
}

// MARK: - Tokens of another issuer

extension MobileHubServer {
    /// Mints the token that a control call asks for: `kind` jwt or saml, `subject`, `life_ms`.
    private func mintThirdParty(_ wish: JSON) -> String {
        let life = UInt64(max(0, wish["life_ms"]?.integer ?? 3_600_000))
        let subject = wish["subject"]?.text ?? "mara"
        let stated = wish["stated_ms"]?.integer.map { UInt64(max(0, $0)) } ?? life
        let token =
            wish["kind"]?.text == "saml"
            ? saml(subject: subject, life: stated) : jwt(subject: subject, life: stated, scale: 1)
        let record = ThirdParty(subject: subject, expires: Moment.now() + life)
        state.withLock { $0.thirdParty.insert(token, record) }
        ledger.keepSecret(token)
        return token
    }

    private func jwt(subject: String, life: UInt64, scale: Int) -> String {
        let now = Int(Moment.wall() / 1000)
        let claims: JSON = [
            "sub": "\(subject)", "iat": JSON(now * scale), "exp": JSON((now + Int(life / 1000)) * scale),
        ]
        let head: JSON = ["alg": "RS256"]
        return [Base64.encodeURL(head.bytes), Base64.encodeURL(claims.bytes), ledger.mint(24)].joined(separator: ".")
    }

    private func saml(subject: String, life: UInt64) -> String {
        let end = Date.now.addingTimeInterval(Double(life / 1000)).ISO8601Format(
            .init(includingFractionalSeconds: true))
        return """
            <saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_\(ledger.mint(12))" Version="2.0">
            <saml:Subject><saml:NameID>\(subject)</saml:NameID></saml:Subject>
            <saml:Conditions NotOnOrAfter="\(end)"/></saml:Assertion>
            """
    }
}
