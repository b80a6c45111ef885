internal import FoundationEssentials
internal import Octets
internal import TLS

/// A key that signs, with what its file says about its use.
struct NamedSigningKey: Sendable {
    var key: SigningKey
    /// `kid` of a JWK.
    var id: String?
    /// `alg` of a JWK.
    var algorithm: JWSAlgorithm?

    /// Reads a secret that holds one key (PEM, PKCS#8, PKCS#12, JWK) or a JWK set, of which the private signing keys count, in order.
    /// - Parameters:
    ///   - name: the secret's, for the reason of a failure.
    ///   - kinds: that are admitted.
    static func read(
        _ secret: Secret, password: Secret?, name: String, of kinds: [SigningKey.Kind] = SigningKey.Kind.ofJWS
    ) throws(GrantFailure) -> [NamedSigningKey] {
        var file = secret.withBytes { Array($0) }
        var phrase = password.map { $0.withBytes { Array($0) } } ?? []
        defer {
            file.wipe()
            phrase.wipe()
        }
        do throws(TLSFault) {
            guard file.first(where: { !$0.isJSONBlank }) == UInt8(ascii: "{") else {
                return [NamedSigningKey(key: try SigningKey(file: file, password: phrase, of: kinds))]
            }
            let keys = try PrivateJWK.all(in: file)
            guard !keys.isEmpty else { throw TLSFault(.configuration, "no private key for signatures in the JWK") }
            return keys
        } catch {
            throw .secretUnreadable(name: name, reason: error.message)
        }
    }
}

/// A private JSON Web Key (RFC 7517). Its strings stay in the decoder's memory, which is not wiped; what is kept of them is in the
/// `SigningKey`.
private struct PrivateJWK: Decodable {
    var kty: String
    var crv: String?
    var kid: String?
    var alg: String?
    var use: String?
    var x: String?
    var y: String?
    var d: String?
    var n: String?
    var e: String?
    var p: String?
    var q: String?
    var dp: String?
    var dq: String?
    var qi: String?

    private struct Keys: Decodable { var keys: [PrivateJWK] }

    static func all(in file: [UInt8]) throws(TLSFault) -> [NamedSigningKey] {
        let decoder = JSONDecoder()
        let data = Data(file)
        let found: [PrivateJWK]
        if let set = try? decoder.decode(Keys.self, from: data) {
            found = set.keys
        } else if let one = try? decoder.decode(PrivateJWK.self, from: data) {
            found = [one]
        } else {
            throw TLSFault(.configuration, "neither a JWK nor a JWK set")
        }
        var keys: [NamedSigningKey] = []
        for jwk in found where jwk.d != nil && jwk.use != "enc" {
            guard let numbers = jwk.numbers else {
                throw TLSFault(.configuration, "a JWK is RSA (with p, q, dp, dq, qi), EC on P-256, or OKP on Ed25519")
            }
            keys.append(
                NamedSigningKey(
                    key: try SigningKey(numbers), id: jwk.kid, algorithm: jwk.alg.flatMap(JWSAlgorithm.init(rawValue:)))
            )
        }
        return keys
    }

    private var numbers: JWKNumbers? {
        func number(_ text: String?) -> [UInt8]? { text.flatMap { Base64.decodeURL($0) } }
        switch (kty, crv) {
        case ("RSA", _):
            guard let n = number(n), let e = number(e), let d = number(d), let p = number(p), let q = number(q),
                let dp = number(dp), let dq = number(dq), let qi = number(qi)
            else { return nil }
            return .rsa(n: n, e: e, d: d, p: p, q: q, dp: dp, dq: dq, qi: qi)
        case ("EC", "P-256"):
            guard let x = number(x), let y = number(y), let d = number(d) else { return nil }
            return .p256(x: x, y: y, d: d)
        case ("OKP", "Ed25519"): return number(d).map { .ed25519(d: $0) }
        default: return nil
        }
    }
}
