import FoundationEssentials
import Glibc

/// Oracle Mobile Hub: token endpoints of both generations, both exchanges of another issuer's token, and the users' page. What the
/// documentation leaves open is refused rather than guessed. Its backends' own APIs are in `MobileHubGate`.
///
/// The platform shares an address with the token endpoints, so that the issuer's faults apply to it as well.
struct MobileHubServer: Sendable {
    static let platform = "/mobile/platform/"
    static let idcsToken = "/mobile-idcs/oauth2/v1/token"
    static let classicToken = "/classic/oauth2/tokens"
    static let backends = ["5d0c7c2a-0001-4b6e-9d55-lab000000001", "5d0c7c2a-0002-4b6e-9d55-lab000000002"]
    static let identityDomain = "acme4711"
    static let backendHeader = "Oracle-Mobile-Backend-ID"
    static let jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

    let ledger: Ledger
    let faults: Faults

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

    struct Refusal: Error {
        let status: Int
        let code: String
        let why: String
        init(_ status: Int, _ code: String, _ why: String) {
            self.status = status
            self.code = code
            self.why = why
        }
    }

    static func operation(_ path: String) -> String? {
        switch path {
        case idcsToken: "hub_token"
        case classicToken: "hub_classic_token"
        case platform + "sso/exchange-token": "hub_sso"
        case platform + "auth/token": "hub_exchange"
        default: nil
        }
    }

    /// What the backend's settings page shows for the anonymous user.
    static func anonymousKey(_ settings: Settings) -> String {
        Base64.encode(Array("lab_anonymous:\(settings.apiKey)".utf8))
    }

    func answer(_ operation: String, _ request: Request, _ body: [UInt8]) -> Response {
        ledger.count(operation)
        do throws(Refusal) {
            let response =
                switch operation {
                case "hub_sso": try ssoExchange(request, body)
                case "hub_exchange": try exchange(request, body)
                default: try token(request, body, isClassic: operation == "hub_classic_token")
                }
            ledger.count("\(operation)_ok")
            return response
        } catch {
            ledger.refuse("\(operation): \(error.status) \(error.code): \(error.why)")
            // The description quotes what it should not: nobody may repeat it.
            return .json(
                error.status, "Refused",
                ["error": .string(error.code), "error_description": .string("\(error.why) \(ledger.mint(12))")])
        }
    }
}

// MARK: - OAuth consumer

extension MobileHubServer {
    private func token(_ request: Request, _ body: [UInt8], isClassic: Bool) throws(Refusal) -> Response {
        guard request.method == "POST",
            request.single("Content-Type")?.split(separator: ";").first?.lowercased()
                == "application/x-www-form-urlencoded",
            let text = String(validating: body, as: UTF8.self), let pairs = Form.parse(text)
        else { throw Refusal(400, "invalid_request", "not a form") }
        let form = Dictionary(pairs.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        guard form.count == pairs.count else { throw Refusal(400, "invalid_request", "a member stands twice") }
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
        let known: Set = ["grant_type", "scope", "username", "password"]
        guard known.isSuperset(of: form.keys) else { throw Refusal(400, "invalid_request", "an unknown member") }
        switch form["grant_type"] {
        case "client_credentials":
            guard form["username"] == nil, form["password"] == nil else {
                throw Refusal(400, "invalid_request", "a user without a user's grant")
            }
            return issue("consumer", isClassic ? ["oracle_client_assertion_type": "urn:ietf:params:oauth:x"] : [:])
        case "password":
            let verdict = ledger.login(
                user: form["username"] ?? "", password: form["password"] ?? "",
                refused: faults.take("wrong_password", on: "hub_token") != nil)
            guard verdict == .accepted else { throw Refusal(400, "invalid_grant", "user or password is wrong") }
            return issue(form["username"] ?? "", ["refresh_token": .string(ledger.mint(24))])
        default: throw Refusal(400, "unsupported_grant_type", "unknown grant")
        }
    }

    private func proveClient(_ request: Request) throws(Refusal) {
        guard let value = request.single("Authorization"), value.hasPrefix("Basic "),
            Base64.decodeText(String(value.dropFirst(6)))
                == "\(ledger.settings.oauthClientID):\(ledger.settings.clientSecret)",
            faults.take("invalid_client") == nil
        else { throw Refusal(401, "invalid_client", "client id or secret is wrong") }
    }

    private func issue(_ user: String, _ more: JSON) -> Response {
        let life = UInt64(max(0, faults.take("token_lifetime_ms")?.number ?? 3_600_000))
        let token = ledger.mint(40)
        record(token, backend: MobileHubServer.backends[0], user: user, life: life)
        var members: [(key: String, value: JSON)] = [
            ("access_token", .string(token)), ("token_type", "Bearer"), ("oracle_tk_context", "client_assertion"),
        ]
        members += lifetime(life)
        if case .object(let others) = more { members += others }
        return .json(200, .object(members), [("Cache-Control", "no-store")])
    }

    private func lifetime(_ life: UInt64) -> [(key: String, value: JSON)] {
        guard faults.take("no_expires_in") == nil else { return [] }
        let seconds = faults.take("expires_in")?.number ?? Int(life / 1000)
        return [("expires_in", faults.take("hub_expires_string") == nil ? JSON(seconds) : .string("\(seconds)"))]
    }

    private func record(_ token: String, backend: String, user: String, life: UInt64) {
        let record = Token(backend: backend, user: user, expires: Moment.now() + life)
        ledger.withState {
            $0.mobileTokens.insert(token, record)
            $0.secrets.insert(token, true)
        }
    }
}

// MARK: - Exchange

extension MobileHubServer {
    private func ssoExchange(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        guard request.method == "GET", request.target.hasSuffix("?format=json"), body.isEmpty else {
            throw Refusal(405, "invalid_request", "GET with format=json is wanted")
        }
        guard let backend = request.single(MobileHubServer.backendHeader), MobileHubServer.backends.contains(backend)
        else {
            throw Refusal(400, "invalid_request", "no such backend")
        }
        guard let value = request.single("Authorization"), value.hasPrefix("Bearer ") else {
            throw Refusal(401, "", "no token")
        }
        return exchanged(try subject(of: String(value.dropFirst(7)), status: 401, code: ""), at: backend)
    }

    private func exchange(_ request: Request, _ body: [UInt8]) throws(Refusal) -> Response {
        guard request.method == "POST", request.target.hasSuffix("/auth/token") else {
            throw Refusal(405, "invalid_request", "POST is wanted")
        }
        let form = try multipart(request, body)
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
            let token = ledger.withState { $0.mobileTokens[assertion] }
            guard form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
                let token, token.user == "consumer", token.expires > Moment.now()
            else { throw Refusal(401, "invalid_client", "the client's assertion is wrong") }
        default: throw Refusal(400, "invalid_request", "not exactly one client authentication")
        }
    }

    /// RFC 7578, only what a form of plain fields needs.
    private func multipart(_ request: Request, _ body: [UInt8]) throws(Refusal) -> [String: String] {
        let wrong = Refusal(400, "invalid_request", "not multipart/form-data")
        guard let type = request.single("Content-Type"), type.hasPrefix("multipart/form-data; boundary="),
            let text = String(validating: body, as: UTF8.self)
        else { throw wrong }
        let boundary = "--" + type.dropFirst("multipart/form-data; boundary=".count)
        guard boundary.utf8.count <= 72, text.hasPrefix(boundary + "\r\n"), text.hasSuffix("\r\n\(boundary)--\r\n")
        else {
            throw wrong
        }
        let parts = "\r\n\(text)".components(between: "\r\n\(boundary)")
        guard parts.first == "", parts.last == "--\r\n" else { throw wrong }
        var form: [String: String] = [:]
        for part in parts.dropFirst().dropLast() {
            let start = "\r\nContent-Disposition: form-data; name=\""
            let halves = part.components(between: "\"\r\n\r\n")
            guard part.hasPrefix(start), halves.count == 2,
                form.updateValue(halves[1], forKey: String(halves[0].dropFirst(start.count))) == nil
            else { throw wrong }
        }
        return form
    }

    /// JWTs as they are; SAML as base 64 of gzip, and nothing else; Bearer tokens of the OAuth server are accepted too.
    private func subject(of token: String, status: Int, code: String) throws(Refusal) -> String {
        if faults.take("hub_refuses") != nil { throw Refusal(status, code, "refused on demand") }
        var text = token
        if !token.contains("."), let bytes = Data(base64Encoded: token), bytes.first == 0x1F {
            guard let document = Gzip.expand(Array(bytes)), let plain = String(validating: document, as: UTF8.self)
            else {
                throw Refusal(status, code, "the assertion is no gzip")
            }
            text = plain
        }
        let known = ledger.withState { state in
            state.thirdParty[text]
                ?? state.bearerTokens[text].map { ThirdParty(subject: "bearer", expires: $0.expires) }
        }
        guard let known else { throw Refusal(status, code, "the token is of no known issuer") }
        guard known.expires > Moment.now() else {
            ledger.count("hub_expired_assertions")
            throw Refusal(status, code, "the assertion has expired")
        }
        return known.subject
    }

    private func exchanged(_ user: String, at backend: String) -> Response {
        let life = UInt64(max(0, faults.take("token_lifetime_ms")?.number ?? 21_600_000))
        let token: String
        switch faults.take("hub_answer")?.text {
        case "jwt": token = jwt(subject: user, life: life, scale: faults.isSet("hub_milliseconds") ? 1000 : 1)
        case "saml":
            let packed = Gzip.store(Array(saml(subject: user, life: life).utf8))
            token = Base64.encode(packed)
        default: token = ledger.mint(40)
        }
        record(token, backend: backend, user: user, life: life)
        var members: [(key: String, value: JSON)] = [("access_token", .string(token))]
        if faults.take("hub_no_type") == nil { members.append(("token_type", "Bearer")) }
        return .json(200, .object(members + lifetime(life)))
    }
}

// MARK: - Tokens of another issuer

extension MobileHubServer {
    /// What a control call asks for: `kind` jwt or saml, `subject`, `life_ms`.
    func mintThirdParty(_ wish: JSON?) -> String {
        let life = wish?["life_ms"]?.integer ?? 3_600_000
        let subject = wish?["subject"]?.text ?? "mara"
        let stated = UInt64(max(0, wish?["stated_ms"]?.integer ?? life))
        let token =
            wish?["kind"]?.text == "saml"
            ? saml(subject: subject, life: stated) : jwt(subject: subject, life: stated, scale: 1)
        let record = ThirdParty(subject: subject, expires: Moment.now() + UInt64(max(0, life)))
        ledger.withState {
            $0.thirdParty.insert(token, record)
            $0.secrets.insert(token, true)
        }
        return token
    }

    private func jwt(subject: String, life: UInt64, scale: Int) -> String {
        let now = Int(Glibc.time(nil))
        func part(_ value: JSON) -> String {
            Base64.encode(value.bytes).replacing("+", "-").replacing("/", "_").replacing("=", "")
        }
        let claims: JSON = [
            "sub": .string(subject), "iat": JSON(now * scale), "exp": JSON((now + Int(life / 1000)) * scale),
        ]
        return [part(["alg": "RS256"]), part(claims), ledger.mint(24)].joined(separator: ".")
    }

    private func saml(subject: String, life: UInt64) -> String {
        var seconds = Glibc.time(nil) + Int(life / 1000)
        var parts = tm()
        gmtime_r(&seconds, &parts)
        func two(_ number: Int32) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let day = "\(parts.tm_year + 1900)-\(two(parts.tm_mon + 1))-\(two(parts.tm_mday))"
        let time = "\(two(parts.tm_hour)):\(two(parts.tm_min)):\(two(parts.tm_sec))"
        return """
            <saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion" ID="_\(ledger.mint(12))" Version="2.0">
            <saml:Subject><saml:NameID>\(subject)</saml:NameID></saml:Subject>
            <saml:Conditions NotOnOrAfter="\(day)T\(time).000Z"/></saml:Assertion>
            """
    }
}

extension String {
    /// Split at each occurrence of a text.
    func components(between mark: String) -> [String] {
        let (text, wanted) = (Array(utf8), Array(mark.utf8))
        var parts: [[UInt8]] = [[]]
        var index = 0
        while index < text.count {
            if text[index...].starts(with: wanted) {
                parts.append([])
                index += wanted.count
            } else {
                parts[parts.count - 1].append(text[index])
                index += 1
            }
        }
        return parts.map { String(decoding: $0, as: UTF8.self) }
    }

    fileprivate func replacing(_ character: Character, _ other: String) -> String {
        String(flatMap { $0 == character ? other : String($0) })
    }
}
