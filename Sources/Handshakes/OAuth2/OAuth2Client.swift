internal import Configuration
internal import Octets
internal import TLS

/// The proof of a client, read for one flight.
enum OAuth2Client {
    /// `none` and `tls`: the request has only its name.
    case named
    case secret(Secret)
    /// `private_key_jwt`: the issuer may know the first of them, or not yet.
    case keys([NamedSigningKey], certificate: [UInt8]?)
    /// With an assertion that the server itself has given.
    case issued(OAMIssuedClient)
}

// MARK: - Client authentication (RFC 6749 §2.3.1)

extension OAuth2Handshake {
    /// Reads what the client proves itself with.
    func client(_ environment: any GrantEnvironment) async throws(GrantFailure) -> OAuth2Client {
        switch settings.clientAuth {
        case .tls, .none: return .named
        case .basic, .post, .clientSecretJWT:
            if let client {
                guard let secret = client.secret else { throw .internal(reason: "the registration has no secret") }
                return .secret(secret)
            }
            return .secret(try await environment.text("client_secret"))
        case .privateKeyJWT:
            return .keys(try await signingKeys(environment), certificate: try await certificate(environment))
        }
    }

    /// Read anew for each flight: a file that was replaced counts at once.
    func signingKeys(_ environment: any GrantEnvironment) async throws(GrantFailure) -> [NamedSigningKey] {
        var password: Secret?
        if settings.hasKeyPassword { password = try await environment.secret("key_password") }
        var keys: [NamedSigningKey] = []
        for name in settings.keys {
            keys += try NamedSigningKey.read(try await environment.secret(name), password: password, name: name)
        }
        return keys
    }

    /// DER of the certificate that names the key, where it stands in a file of its own.
    func certificate(_ environment: any GrantEnvironment) async throws(GrantFailure) -> [UInt8]? {
        guard settings.signing.hasCertificate, settings.signing.thumbprint != .none else { return nil }
        let file = try await environment.secret("certificate").withBytes { Array($0) }
        guard let certificate = certificateDER(inPEM: file) else {
            throw .secretUnreadable(name: "certificate", reason: "no PEM certificate found")
        }
        return certificate
    }

    /// How many proofs there are to try.
    func proofs(of client: OAuth2Client) -> Int {
        if case .keys(let keys, _) = client { keys.count } else { 1 }
    }

    /// The same at endpoints beside the token endpoint, where that is given. An assertion is for the server, which goes by the name of its token endpoint (RFC
    /// 7523 §3); some look for the name of the endpoint that was called, so that each is made once more for those.
    func proofs(of client: OAuth2Client, besides tokenEndpoint: IssuerURL?) -> Int {
        guard tokenEndpoint != nil, settings.signing.audience == .endpoint else { return proofs(of: client) }
        switch client {
        case .keys(let keys, _): return 2 * keys.count
        case .secret where settings.clientAuth == .clientSecretJWT: return 2
        case .named, .issued, .secret: return 1
        }
    }

    /// Puts the proof into form and headers; never more than one (RFC 6749 §2.3).
    /// - Parameter attempt: which of the `proofs` it is to be.
    func prove(
        _ client: OAuth2Client, attempt: Int, to endpoint: IssuerURL, in request: inout OAuth2Request,
        _ headers: inout [(name: String, value: String)]
    ) throws(GrantFailure) {
        switch client {
        case .named: request.add("client_id", settings.clientID)
        case .issued(let issued): prove(issued, in: &request)
        case .keys(let keys, let certificate):
            let proof = try assertion(claims(for: endpoint), with: keys[attempt], certificate: certificate)
            addAssertion(proof, to: &request)
        case .secret(let secret) where settings.clientAuth == .clientSecretJWT:
            addAssertion(assertion(try claims(for: endpoint), with: secret), to: &request)
        case .secret(let secret) where settings.clientAuth == .post:
            request.add("client_id", settings.clientID)
            request.add("client_secret", secret)
        case .secret(let secret):
            headers.append((name: "Authorization", value: basicCredentials(secret)))
        }
    }

    private func claims(for endpoint: IssuerURL) throws(GrantFailure) -> JWTClaims {
        JWTClaims(
            issuer: settings.clientID, subject: settings.clientID, audience: try audience(of: endpoint),
            others: (settings.oracle?.clientClaims ?? []).map { ($0.name, $0.value) })
    }

    private func addAssertion(_ assertion: Secret, to request: inout OAuth2Request) {
        // Some servers look the client up by its name before they read the assertion (RFC 7521 §4.2 allows it).
        request.add("client_id", settings.clientID)
        request.add("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
        request.add("client_assertion", assertion)
        // The issuer may have noted its `jti`: a second arrival would be a replay.
        request.isSingleUse = true
    }
    /// Servers that do not undo the form encoding of Basic credentials (RFC 6749 §2.3.1) refuse what differs by it, with no other word
    /// than for a wrong secret.
    func basicAdvice(for client: OAuth2Client, on answer: OAuth2Answer) -> String? {
        guard answer.error == "invalid_client", case .basic = settings.clientAuth, case .secret(let secret) = client,
            settings.clientID.utf8.contains(where: Self.differs)
                || secret.withBytes({ $0.contains(where: Self.differs) })
        else { return nil }
        let other = settings.basicEncoding == .form ? "raw" : "form"
        return
            "id or secret has characters that the two encodings of Basic write differently: try basic_encoding: \(other)"
    }

    private static func differs(_ byte: UInt8) -> Bool {
        var encoded: [UInt8] = []
        encoded.appendFormEncoded(byte, space: "%20")
        return encoded != [byte]
    }

    // Id and secret are encoded separately, so that a colon in either cannot shift the border.
    private func basicCredentials(_ secret: Secret) -> String {
        var user: [UInt8] = []
        var password: [UInt8] = []
        password.reserveCapacity(3 * secret.count)
        switch settings.basicEncoding {
        case .form:
            // A space as %20, which is a space to those that undo the form encoding and to those that undo only percents.
            for byte in settings.clientID.utf8 { user.appendFormEncoded(byte, space: "%20") }
            secret.withBytes { for byte in $0 { password.appendFormEncoded(byte, space: "%20") } }
        case .raw:
            user = Array(settings.clientID.utf8)
            secret.withBytes { password.append(contentsOf: $0) }
        }
        var credentials = BasicHandshake.credentials(user: user, password: Secret(taking: &password))
        defer { credentials.wipe() }
        return "Basic " + String(decoding: credentials, as: UTF8.self)
    }
}
