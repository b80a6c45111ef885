internal import Octets

/// The exchange of another issuer's token for a mobile one (docs/design/wire/oracle-mobile-hub.md#exchange).
struct MobileHubExchange {
    let handshake: MobileHubHandshake
    let exchange: MobileHubSettings.Exchange
    let wanted: Wanted
    let environment: any GrantEnvironment

    /// A token of another issuer: as it was had, as it is sent, and when it says that it ends.
    private struct Subject {
        let original: Secret
        let sent: Secret
        let expiry: Int64?
    }

    private enum Outcome {
        case granted(AccessGrant)
        /// The token itself was refused.
        case refused(String)
    }

    private var secret: String { "third_party_token" }
}

// MARK: - The ladder

extension MobileHubExchange {
    func grant() async throws(GrantFailure) -> AccessGrant {
        switch exchange.subject {
        case .caller:
            guard case .token(let token)? = wanted.user else {
                throw .configuration(reason: "third_party_token: the route does not take the caller's own")
            }
            guard case .granted(var grant) = try await ask(try subject(token)) else {
                throw .policyDenied(reason: "exchange: the backend refuses this subject")
            }
            // A caller's own token is not made to last longer by us, whatever the backend says.
            grant.notAfter = [grant.notAfter, wanted.user?.expiry].compactMap { $0 }.min()
            return grant
        case .identity(let name):
            switch try await ask(try subject(try await environment.token(of: name))) {
            case .granted(let grant): return grant
            case .refused(let reason): throw .policyDenied(reason: reason)
            }
        case .secret:
            return try await grantOfFile()
        }
    }

    /// Whoever rotates the file may do so at any moment: a refusal counts only if the token that was refused still stands there.
    private func grantOfFile() async throws(GrantFailure) -> AccessGrant {
        let first = try current(try await environment.secret(secret))
        let reason: String
        switch try await ask(first) {
        case .granted(let grant): return grant
        case .refused(let said): reason = said
        }
        let latest = try current(try await environment.latestSecret(secret))
        guard latest.original != first.original else { throw .credentialRejected(reason: reason) }
        switch try await ask(latest) {
        case .granted(let grant): return grant
        case .refused(let said): throw .credentialRejected(reason: said)
        }
    }

    /// A configured token; one that is over is not sent.
    private func current(_ token: Secret) throws(GrantFailure) -> Subject {
        let subject = try subject(token)
        if let expiry = subject.expiry, expiry <= handshake.world.wallSeconds {
            throw .secretUnusable(name: secret, reason: "by its own words it is over")
        }
        return subject
    }

    private func subject(_ token: Secret) throws(GrantFailure) -> Subject {
        let expiry: Int64?
        var sent = token
        switch exchange.format {
        case .jwt: expiry = MobileHubTimes(token)?.expires
        case .samlPacked: expiry = SAMLTimes.expiry(of: token)
        case .samlXML:
            guard token.count <= SAMLTimes.largest,
                token.withBytes({ $0.first { !$0.isJSONBlank } }) == UInt8(ascii: "<")
            else { throw .secretUnusable(name: secret, reason: "not XML, or larger than 256 KiB") }
            expiry = SAMLTimes.expiry(of: token)
            guard let packed = token.withBytes({ Gzip.compress(Array($0)) }) else {
                throw .internal(reason: "no memory")
            }
            sent = Secret(Base64.encode(packed))
        }
        guard TokenAlphabet.b64token.admits(sent) else {
            throw .secretUnusable(name: secret, reason: "empty, longer than 32 KiB, or not of its token_format")
        }
        return Subject(original: token, sent: sent, expiry: expiry)
    }
}

// MARK: - The call

extension MobileHubExchange {
    private func ask(_ subject: Subject) async throws(GrantFailure) -> Outcome {
        guard let url = handshake.exchangeURL else { throw .internal(reason: "no exchange") }
        var call: IssuerCall
        switch exchange.endpoint {
        case .sso: call = ssoCall(subject, url)
        case .token(let proof): call = try await tokenCall(subject, proof, url)
        }
        call.headers += handshake.settings.extraHeaders
        let ready = call
        defer { call.body.wipe() }
        return try await MobileHubHandshake.patiently(environment) { () throws(GrantFailure) in
            let answer = try await environment.answer(to: ready)
            return try outcome(answer, subject)
        }
    }

    /// The exchange by GET (docs/design/wire/oracle-mobile-hub.md#sso-exchange).
    private func ssoCall(_ subject: Subject, _ url: IssuerURL) -> IssuerCall {
        IssuerCall(
            asking: url.adding(query: "format=json"), step: "exchange",
            headers: [
                ("Authorization", "Bearer \(subject.sent.text)"),
                (MobileHubSettings.backendHeader, handshake.settings.backendID), IssuerCall.acceptsJSON,
            ])
    }

    /// The exchange by a form (docs/design/wire/oracle-mobile-hub.md#auth-token).
    private func tokenCall(
        _ subject: Subject, _ proof: MobileHubSettings.Exchange.ClientProof, _ url: IssuerURL
    ) async throws(GrantFailure) -> IssuerCall {
        var headers = [(name: "Accept", value: "application/json")]
        var fields: [(name: String, value: Secret)] = []
        if let type = exchange.grantType { fields.append(("grant_type", Secret(type))) }
        fields.append(("assertion", subject.sent))
        switch proof {
        case .basic(let id):
            var credentials = BasicHandshake.credentials(
                user: Array(id.utf8), password: try await environment.text("client_secret"))
            defer { credentials.wipe() }
            headers.append(("Authorization", "Basic " + String(decoding: credentials, as: UTF8.self)))
        case .form(let id, let hasSecret):
            fields.append(("client_id", Secret(id)))
            if hasSecret { fields.append(("client_secret", try await environment.text("client_secret"))) }
        case .assertion(_, let scope):
            let own = try await handshake.consumerGrant(scope, wanted, environment: environment)
            fields.append(("client_assertion_type", Secret("urn:ietf:params:oauth:client-assertion-type:jwt-bearer")))
            fields.append(("client_assertion", own.token))
        }
        // Random, so that no field can hold it.
        let boundary = Base64.encodeURL(handshake.world.random(24))
        headers.append(("Content-Type", "multipart/form-data; boundary=\(boundary)"))
        return IssuerCall(
            step: "exchange", method: "POST", url: url, headers: headers,
            body: Self.multipart(fields, boundary: boundary), carriesPassword: false)
    }

    /// RFC 7578.
    private static func multipart(_ fields: [(name: String, value: Secret)], boundary: String) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(fields.reduce(128) { $0 + 160 + $1.name.utf8.count + $1.value.count })
        for (name, value) in fields {
            body += Array("--\(boundary)\r\nContent-Disposition: form-data; name=\"\(name)\"\r\n\r\n".utf8)
            value.withBytes { body.append(contentsOf: $0) }
            body += [13, 10]
        }
        body += Array("--\(boundary)--\r\n".utf8)
        return body
    }
}

// MARK: - The answer

extension MobileHubExchange {
    private func outcome(_ answer: IssuerAnswer, _ subject: Subject) throws(GrantFailure) -> Outcome {
        if answer.status == 200 || answer.status == 201, let object = try? AnswerObject(answer.body),
            case .string(let text)? = object["access_token"]
        {
            return .granted(try grant(Secret(text), object, answer, subject))
        }
        let said = OAuth2Answer(answer)
        let code = said.error.map { ", \(OAuth2Answer.shown($0))" } ?? ""
        let reason = "exchange: status \(answer.status)\(code)"
        switch exchange.endpoint {
        // Its errors are told by their status alone; a code that speaks of something else is believed.
        case .sso where [401, 403].contains(answer.status) && said.error != "invalid_client": return .refused(reason)
        case .sso, .token: break
        }
        if said.error == "invalid_grant" { return .refused(reason) }
        _ = try said.grant()
        throw .issuerAnswerInvalid(reason: reason)
    }

    private func grant(
        _ token: Secret, _ object: AnswerObject, _ answer: IssuerAnswer, _ subject: Subject
    ) throws(GrantFailure) -> AccessGrant {
        guard TokenAlphabet.b64token.admits(token) else {
            throw .issuerAnswerInvalid(reason: "exchange: access_token is empty, too long, or not fit for a header")
        }
        // Not every server says what it is.
        if let type = object.string("token_type"), !Array(type.utf8).matches("Bearer") {
            throw .issuerAnswerInvalid(reason: "exchange: a token_type other than Bearer")
        }
        var grant = AccessGrant(
            token: token, tokenType: "Bearer", lifetime: try OAuth2Answer.lifetime(object["expires_in"]),
            sentAt: answer.sentAt)
        guard grant.lifetime == nil else { return grant }
        if let times = MobileHubTimes(token) {
            grant.statedTimes = (times.issued, times.expires)
        } else if let expires = SAMLTimes.expiry(of: token) {
            grant.statedTimes = (nil, expires)
        } else {
            // The answer does not say how long the token lives: no longer than usual, and than the token that was given for it
            // (docs/design/wire/oracle-mobile-hub.md#lifetime).
            grant.lifetime = MobileHubSettings.exchangedLife * 1_000_000_000
            grant.notAfter = subject.expiry
        }
        return grant
    }
}

/// Times of a token as `JWTTimes` reads them, but clients of this service were seen to take the numbers for milliseconds
/// (docs/design/wire/oracle-mobile-hub.md#sso-exchange).
private struct MobileHubTimes {
    let issued: Int64?
    let expires: Int64

    init?(_ token: Secret) {
        guard let times = JWTTimes(token), let expires = times.expires else { return nil }
        self.expires = Self.seconds(expires)
        issued = times.issued.map(Self.seconds)
    }

    private static func seconds(_ number: Int64) -> Int64 { number > 100_000_000_000 ? number / 1000 : number }
}
