internal import Octets
internal import TLS

/// How JWTs are made that prove the client or ask for a token (RFC 7523).
struct JWTSigning: Sendable, Equatable {
    /// RS256, PS256, ES256 or EdDSA; nil: the key's own.
    var algorithm: String?
    /// `kid`; nil: that of the JWK, if any.
    var keyID: String?
    /// Which names of the certificate go into the header (RFC 7515 §4.1.7, §4.1.8).
    var thumbprint: Thumbprint = .none
    /// Whether there is a secret `certificate`, which counts instead of one beside the key.
    var hasCertificate = false
    var audience: Audience = .endpoint
    /// Seconds from now to `exp`.
    var lifetime: Int = 60

    enum Thumbprint: String, Sendable, CaseIterable {
        case none = "none"
        case sha1 = "sha1"
        case sha256 = "sha256"
    }

    enum Audience: Sendable, Equatable {
        /// The URL of the token endpoint, as the RFC suggests.
        case endpoint
        /// The issuer identifier, as newer profiles demand.
        case issuer
        case text(String)
    }
}

/// Claims of one JWT.
struct JWTClaims {
    var issuer: String
    var subject: String
    var audience: String
    /// Further ones, in order.
    var others: [(name: String, value: String)] = []
}

// MARK: - Making

extension OAuth2Handshake {
    /// With a `jti` of its own, so that it works once and an eavesdropper gains nothing from it.
    func assertion(_ claims: JWTClaims, with named: NamedSigningKey, certificate: [UInt8]?) throws(GrantFailure)
        -> Secret
    {
        let wanted = settings.signing.algorithm.flatMap(JWSAlgorithm.init(rawValue:))
        guard let algorithm = wanted ?? named.algorithm ?? named.key.algorithm, named.key.signs(algorithm) else {
            let word = (wanted ?? named.algorithm)?.rawValue ?? "no algorithm"
            throw .configuration(reason: "signing: \(word) does not go with the kind of key")
        }
        var header = JSONBody(capacity: 512)
        header.member("alg", algorithm.rawValue)
        header.member("typ", "JWT")
        if let id = settings.signing.keyID ?? named.id { header.member("kid", id) }
        if settings.signing.thumbprint != .none {
            guard let der = certificate ?? named.key.certificate else {
                throw .configuration(reason: "signing: a thumbprint is wanted and there is no certificate")
            }
            switch settings.signing.thumbprint {
            case .sha1: header.member("x5t", Base64.encodeURL(sha1(der)))
            case .sha256: header.member("x5t#S256", Base64.encodeURL(sha256(der)))
            case .none: break
            }
        }
        do throws(TLSFault) {
            return Secret(
                try JWS.compact(header: header.finish(), payload: payload(claims)) { input throws(TLSFault) in
                    try named.key.sign(input, algorithm)
                })
        } catch {
            throw .configuration(reason: "signing: \(error.message)")
        }
    }

    /// `client_secret_jwt`: the secret's own bytes are the key.
    func assertion(_ claims: JWTClaims, with secret: Secret) -> Secret {
        var header = JSONBody(capacity: 64)
        header.member("alg", JWSAlgorithm.hs256.rawValue)
        header.member("typ", "JWT")
        if let id = settings.signing.keyID { header.member("kid", id) }
        return Secret(
            JWS.compact(header: header.finish(), payload: payload(claims)) { input in
                secret.withBytes { keyedHash(key: $0, input) }
            })
    }

    private func payload(_ claims: JWTClaims) -> [UInt8] {
        let now = world.wallSeconds
        var body = JSONBody(capacity: 1024)
        let own = Set(claims.others.map(\.name))
        if !own.contains("iss") { body.member("iss", claims.issuer) }
        if !own.contains("sub") { body.member("sub", claims.subject) }
        if settings.oracle?.listsAudience == true {
            body.list("aud", [claims.audience])
        } else {
            body.member("aud", claims.audience)
        }
        body.member("jti", Base64.encodeURL(world.random(16)))
        body.member("iat", now)
        body.member("exp", now + Int64(settings.signing.lifetime))
        for claim in claims.others { body.member(claim.name, claim.value) }
        return body.finish()
    }

    func audience(of endpoint: IssuerURL) throws(GrantFailure) -> String {
        switch settings.signing.audience {
        case .endpoint: return endpoint.description
        case .issuer:
            guard case .issuer(let issuer, _) = settings.location else {
                throw .configuration(reason: "signing: there is no issuer")
            }
            return issuer
        case .text(let text): return text
        }
    }
}
