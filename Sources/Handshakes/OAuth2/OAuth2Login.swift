internal import Octets
internal import TLS

// Grants that begin with a person. What they bring is a refresh token; from then on it is an ordinary refresh.
extension OAuth2Handshake: InteractiveHandshake {
    var needsPerson: Bool { settings.grant.needsPerson }

    var redirect: LoginRedirect? {
        guard case .authorizationCode = settings.grant else { return nil }
        guard let uri = settings.redirectURI else {
            return LoginRedirect(port: nil, path: "/callback", isLoopback: true)
        }
        return LoginRedirect(
            port: settings.redirectHasPort ? UInt16(uri.port) : nil, path: uri.pathWithoutQuery,
            isLoopback: uri.isLoopback && !uri.isTLS)
    }

    func reach(environment: any GrantEnvironment) async throws(GrantFailure) {
        let endpoints = try await endpoints(environment)
        switch settings.grant {
        case .authorizationCode where endpoints.authorization == nil:
            throw .configuration(reason: "the issuer names no authorization_endpoint")
        case .deviceCode where endpoints.device == nil:
            throw .configuration(reason: "the issuer names no device_authorization_endpoint")
        default: break
        }
        guard discovery == nil else { return }
        // Whatever a token endpoint says to this, it is there.
        let call = IssuerCall(asking: endpoints.token, step: "reach", headers: settings.headers)
        _ = try await environment.answer(to: call)
    }

    func login(
        _ wanted: Wanted, dialogue: any LoginDialogue, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LoginGrant {
        try await asRegistered(environment) { handshake throws(GrantFailure) in
            try await handshake.login(wanted, dialogue, environment)
        }
    }

    private func login(
        _ wanted: Wanted, _ dialogue: any LoginDialogue, _ environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LoginGrant {
        let trip = try await trip("login", wanted, user: nil, environment)
        let stepUp = stepUp(of: wanted)
        let answer =
            switch settings.grant {
            case .authorizationCode: try await codeLogin(trip, stepUp, dialogue)
            case .deviceCode: try await deviceLogin(trip, stepUp, dialogue)
            default: throw .configuration(reason: "this grant needs no person")
            }
        var grant = try loginGrant(answer, asked: trip.target.text(of: "scope"))
        guard let stepUp else { return grant }
        let told = try authenticated(answer.idToken, for: stepUp)
        grant.authenticated = told
        if !told.isTold {
            let remark = "the issuer does not say how the person was authenticated: the upstream will judge"
            grant.remark = [grant.remark, remark].compactMap(\.self).joined(separator: "; ")
        }
        return grant
    }

    private func loginGrant(_ answer: OAuth2Answer, asked: String?) throws(GrantFailure) -> LoginGrant {
        let granted = try answer.grant()
        if let token = answer.refreshToken {
            return LoginGrant(
                material: LayerMaterial(
                    bytes: Secret([]), obtainedAt: answer.sentAt, lifetime: nil, refreshToken: token, isHuman: true,
                    refreshLife: answer.refreshLife))
        }
        // Some servers give a lasting access token and nothing to renew it with: then that is the session.
        let advice =
            asked?.split(separator: " ").contains("offline_access") == true
            ? "" : "; many give one for the scope offline_access"
        return LoginGrant(
            material: LayerMaterial(
                bytes: granted.token, obtainedAt: answer.sentAt, lifetime: granted.lifetime, isHuman: true),
            remark: "the issuer gave no refresh token: this login lasts as long as its access token\(advice)")
    }
}

// MARK: - Authorization code with PKCE (RFC 6749 §4.1, RFC 7636)

extension OAuth2Handshake {
    /// How long the browser is waited for, in nanoseconds. Codes and login pages do not live much longer.
    static let loginPatience: UInt64 = 600 * 1_000_000_000

    private func codeLogin(
        _ trip: Trip, _ stepUp: StepUp?, _ dialogue: any LoginDialogue
    ) async throws(GrantFailure) -> OAuth2Answer {
        guard let endpoint = trip.endpoints.authorization else {
            throw .configuration(reason: "login: the issuer names no authorization_endpoint")
        }
        let redirectURI = redirectURI(port: dialogue.redirectPort)
        // 32 octets make the 43 characters that RFC 7636 §4.1 recommends.
        let verifier = Base64.encodeURL(world.random(32))
        let state = Base64.encodeURL(world.random(24))
        let isOpenID = trip.target.text(of: "scope")?.split(separator: " ").contains("openid") == true
        let nonce = isOpenID ? Base64.encodeURL(world.random(24)) : nil
        var query = FormBody(capacity: 1024)
        query.member("response_type", "code")
        query.member("client_id", settings.clientID)
        query.member("redirect_uri", redirectURI)
        for member in trip.target.members { if case .text(let text) = member.value { query.member(member.name, text) } }
        query.member("state", state)
        query.member("code_challenge", Base64.encodeURL(sha256(Array(verifier.utf8))))
        query.member("code_challenge_method", "S256")
        if let nonce { query.member("nonce", nonce) }
        // The code is then good only with this key (RFC 9449 §10).
        if let key = trip.proofKey { query.member("dpop_jkt", key.thumbprint) }
        for (name, value) in loginParameters(stepUp) { query.member(name, value) }
        let joint = endpoint.path.utf8.contains(UInt8(ascii: "?")) ? "&" : "?"
        let url = "\(endpoint)\(joint)" + String(decoding: query.finish(), as: UTF8.self)
        guard url.utf8.count <= 8192 else { throw .configuration(reason: "login: the URL would be over 8 KiB") }
        let deadline = await trip.environment.now() + Self.loginPatience
        await dialogue.show(LoginPrompt(url: url, awaitsRedirect: true, deadline: deadline))
        let rules = AuthorizationAnswerRules(
            state: Secret(state), issuer: trip.endpoints.issuer, mustNameIssuer: trip.endpoints.answersNameIssuer)
        let code = try await dialogue.redirected(within: Self.loginPatience) { rules.judge($0) }
        await dialogue.progress("exchanging the code")
        var request = OAuth2Request(step: "login")
        request.add("grant_type", "authorization_code")
        request.add("code", code)
        request.add("redirect_uri", redirectURI)
        request.add("code_verifier", Secret(verifier))
        request.members += trip.target.members.filter { $0.name == "resource" || $0.name == "audience" }
        // A second use of a code is taken for theft (RFC 6749 §4.1.2).
        request.isSingleUse = true
        let answer = try await self.answer(request, trip)
        if let nonce { try checkIDToken(answer.idToken, nonce: nonce, issuer: trip.endpoints.issuer) }
        return answer
    }

    /// Loopback by number: a name may resolve elsewhere (RFC 8252 §8.3). Without a port where the address is to be pasted: nothing listens
    /// there, and servers leave the port out of account.
    private func redirectURI(port: UInt16?) -> String {
        guard let uri = settings.redirectURI else { return "http://127.0.0.1\(port.map { ":\($0)" } ?? "")/callback" }
        // The address is sent as it is written, since servers compare it character by character.
        guard let port, !settings.redirectHasPort, uri.isLoopback, !uri.isTLS else {
            return settings.redirectText ?? uri.description
        }
        let host = uri.host.utf8.contains(UInt8(ascii: ":")) ? "[\(uri.host)]" : uri.host
        return "http://\(host):\(port)\(uri.path)"
    }

    /// The token came straight from the token endpoint, so its signature says nothing more (OpenID Connect Core §3.1.3.7 point 6); what it says
    /// about whom it is for, and which login it belongs to, does.
    private func checkIDToken(_ token: Secret?, nonce: String, issuer: String?) throws(GrantFailure) {
        guard let token else { return }
        guard let claims = JWTPayload.object(token) else {
            throw .issuerAnswerInvalid(reason: "login: id_token is no JWT")
        }
        guard claims.string("nonce") == nonce else {
            throw .issuerAnswerInvalid(reason: "login: id_token belongs to another login (nonce)")
        }
        if let issuer, claims.string("iss") != issuer {
            throw .issuerAnswerInvalid(reason: "login: id_token is of another issuer")
        }
        if let audience = claims.string("aud"), audience != settings.clientID {
            throw .issuerAnswerInvalid(reason: "login: id_token is for another client")
        }
    }
}

/// Rules by which a query of the redirect address is the answer to one authorization request (RFC 6749 §4.1.2, RFC 9207).
struct AuthorizationAnswerRules: Sendable {
    let state: Secret
    /// nil: no issuer is known whose name could be compared.
    let issuer: String?
    let mustNameIssuer: Bool

    /// Longer answers are refused unread.
    static let longest = 8192

    func judge(_ query: String) -> RedirectVerdict {
        guard query.utf8.count <= Self.longest else { return .refused("the answer is over 8 KiB") }
        var values: [String: String] = [:]
        for pair in query.utf8.split(separator: UInt8(ascii: "&")) {
            let parts = pair.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = Self.decoded(parts[0]), let value = Self.decoded(parts.count == 2 ? Array(parts[1]) : [])
            else { return .refused("the answer is not what an issuer sends") }
            guard values.updateValue(value, forKey: name) == nil else {
                return .refused("the answer says something twice")
            }
        }
        // First of all: what does not know it is not from the issuer, and does not end anything.
        guard let told = values["state"], Secret(told) == state else {
            return .refused("this answer belongs to no login that was begun here")
        }
        if let issuer, let told = values["iss"], told != issuer {
            return .failed(.issuerAnswerInvalid(reason: "login: the answer is of another issuer (iss)"))
        }
        if mustNameIssuer, values["iss"] == nil {
            return .failed(.issuerAnswerInvalid(reason: "login: the answer does not name its issuer (iss)"))
        }
        if let error = values["error"] {
            let word = OAuth2Answer.shown(error)
            return .failed(
                error == "access_denied" || error == OAuth2Answer.unmetAuthentication
                    ? .policyDenied(reason: "login: refused, \(word)") : .configuration(reason: "login: \(word)"))
        }
        guard let code = values["code"], !code.isEmpty else {
            return .failed(.issuerAnswerInvalid(reason: "login: the answer has no code"))
        }
        return .accepted(Secret(code))
    }

    /// Nil for what is not printable ASCII behind its escapes: nothing else stands in any member that counts.
    private static func decoded(_ bytes: some Sequence<UInt8>) -> String? {
        guard let result = PercentEncoding.decode(bytes, plusIsBlank: true),
            result.allSatisfy({ (0x20...0x7E).contains($0) })
        else { return nil }
        return String(decoding: result, as: UTF8.self)
    }
}

extension IssuerURL {
    var pathWithoutQuery: String { String(path.prefix { $0 != "?" }) }
}
