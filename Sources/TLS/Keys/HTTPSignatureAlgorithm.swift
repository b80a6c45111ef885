internal import COpenSSL

/// How a message of HTTP is signed (RFC 9421 section 3.3), by the names of its registry.
public enum HTTPSignatureAlgorithm: String, Sendable, CaseIterable {
    case rsaPSS = "rsa-pss-sha512"
    case rsaPKCS1 = "rsa-v1_5-sha256"
    case ecdsaP256 = "ecdsa-p256-sha256"
    case ecdsaP384 = "ecdsa-p384-sha384"
    case ed25519 = "ed25519"
    /// With a shared secret instead of a key pair.
    case hmac = "hmac-sha256"
}

extension SigningKey {
    /// The only algorithm of RFC 9421 that the key can sign with; nil where there are two.
    public var onlyHTTPAlgorithm: HTTPSignatureAlgorithm? {
        switch kind {
        case .rsa: EVP_PKEY_is_a(key, "RSA-PSS") == 1 ? .rsaPSS : nil
        case .p256: .ecdsaP256
        case .p384: .ecdsaP384
        case .ed25519: .ed25519
        }
    }

    /// The signature over a signature base (RFC 9421 section 2.5).
    /// - Throws: `.configuration` where the algorithm does not go with the key.
    public func sign(_ base: [UInt8], _ algorithm: HTTPSignatureAlgorithm) throws(TLSFault) -> [UInt8] {
        switch (algorithm, kind) {
        case (.rsaPSS, .rsa): return try sign(base, hash: EVP_sha512(), isPSS: true, width: nil)
        case (.rsaPKCS1, .rsa) where onlyHTTPAlgorithm == nil:
            return try sign(base, hash: EVP_sha256(), isPSS: false, width: nil)
        case (.ecdsaP256, .p256): return try sign(base, hash: EVP_sha256(), isPSS: false, width: 32)
        case (.ecdsaP384, .p384): return try sign(base, hash: EVP_sha384(), isPSS: false, width: 48)
        case (.ed25519, .ed25519): return try sign(base, hash: nil, isPSS: false, width: nil)
        default: throw TLSFault(.configuration, "\(algorithm.rawValue) does not go with this kind of key")
        }
    }

    /// The private key in DER, as `init(file:)` reads it.
    public func der() throws(TLSFault) -> [UInt8] {
        ErrorQueue.clear()
        guard let octets = encoded({ i2d_PrivateKey(key, $0) }) else { throw ErrorQueue.configurationFault("key") }
        return octets
    }
}
