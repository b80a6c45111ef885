internal import Octets
internal import TLS

/// A key whose possession is proven with every request (RFC 9449), with the parts of a proof that never change.
///
/// Immutable, so it may be shared. The private half is the identity's durable material; it also goes with every token that is bound
/// to it, so that a token and the key it needs cannot come apart.
struct DPoPKey: Sendable {
    let key: SigningKey
    /// The private key in DER.
    let material: Secret
    /// RFC 7638: what `cnf.jkt` of a token that is bound to it says.
    let thumbprint: String
    /// The JOSE header, in base 64.
    private let header: String

    static let algorithm = JWSAlgorithm.es256

    /// Nil for what is no key on P-256.
    init?(_ material: Secret) {
        var bytes = material.withBytes { Array($0) }
        defer { bytes.wipe() }
        guard let key = try? SigningKey(file: bytes), let point = key.p256Point else { return nil }
        self.key = key
        self.material = material
        let (x, y) = (Base64.encodeURL(point.x), Base64.encodeURL(point.y))
        // In this order and without a blank: it is what the thumbprint is made of (RFC 7638 §3.2).
        let jwk = #"{"crv":"P-256","kty":"EC","x":"\#(x)","y":"\#(y)"}"#
        thumbprint = Base64.encodeURL(sha256(Array(jwk.utf8)))
        header = Base64.encodeURL(
            Array(#"{"alg":"\#(Self.algorithm.rawValue)","typ":"dpop+jwt","jwk":\#(jwk)}"#.utf8))
    }

    static func make() throws(GrantFailure) -> Secret {
        do throws(TLSFault) {
            var bytes = try SigningKey.makeP256()
            return Secret(taking: &bytes)
        } catch { throw .internal(reason: "dpop: \(error.message)") }
    }
}

/// The claims of a proof (RFC 9449 §4.2).
struct DPoPClaims {
    var method: String
    /// Absolute; what follows `?` or `#` is left out.
    var url: String
    /// Seconds since 1970, by the server's clock as far as it is known.
    var issuedAt: Int64
    /// The identifier of this proof alone.
    var identifier: [UInt8]
    /// The server's, if it gave one.
    var nonce: String?
    /// The token that is sent beside it.
    var token: UnsafeRawBufferPointer?
}

extension DPoPKey {
    func proof(_ claims: DPoPClaims) throws(TLSFault) -> String {
        var body = JSONBody(capacity: 512 + claims.url.utf8.count)
        body.member("jti", Base64.encodeURL(claims.identifier))
        body.member("htm", claims.method)
        body.member("htu", String(claims.url.prefix { $0 != "?" && $0 != "#" }))
        body.member("iat", claims.issuedAt)
        if let token = claims.token { body.member("ath", Base64.encodeURL(sha256(Array(token)))) }
        if let nonce = claims.nonce { body.member("nonce", nonce) }
        let input = header + "." + Base64.encodeURL(body.finish())
        return input + "." + Base64.encodeURL(try key.sign(Array(input.utf8), Self.algorithm))
    }
}

/// A nonce as a server may give one (RFC 9449 §8.1).
enum DPoPNonce {
    static let longest = 1024

    static func isNonce(_ bytes: some Collection<UInt8>) -> Bool {
        (1...longest).contains(bytes.count)
            && bytes.allSatisfy { $0 == 0x21 || (0x23...0x5B).contains($0) || (0x5D...0x7E).contains($0) }
    }
}

/// The text of a nonce that an upstream sent; nil for what is none.
public func proofNonce(_ value: UnsafeRawBufferPointer) -> String? {
    DPoPNonce.isNonce(value) ? String(decoding: value, as: UTF8.self) : nil
}
