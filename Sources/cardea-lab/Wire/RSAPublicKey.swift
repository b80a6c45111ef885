import COpenSSL

/// An RSA public key with the exponent 65537 that verifies RS256 (RFC 8017 §8.2.2 with SHA-256).
struct RSAPublicKey: Sendable {
    private let modulus: [UInt8]

    /// - Returns: nil unless the modulus has 2048 to 4096 bits, without a leading zero, and is odd.
    init?(modulus: [UInt8]) {
        guard (256...512).contains(modulus.count), modulus[0] >= 0x80, modulus.last.map({ $0 & 1 }) == 1 else {
            return nil
        }
        self.modulus = modulus
    }

    func verifies(_ signature: [UInt8], of message: String) -> Bool {
        let encoded = subjectPublicKeyInfo
        let key = encoded.withUnsafeBufferPointer { bytes in
            var next = bytes.baseAddress
            return d2i_PUBKEY(nil, &next, bytes.count)
        }
        let check = EVP_MD_CTX_new()
        defer {
            EVP_MD_CTX_free(check)
            EVP_PKEY_free(key)
        }
        return EVP_DigestVerifyInit(check, nil, EVP_sha256(), nil, key) == 1
            && EVP_DigestVerify(check, signature, signature.count, Array(message.utf8), message.utf8.count) == 1
    }

    /// RFC 8017 appendix A.1 in the envelope of RFC 5280 §4.1.
    private var subjectPublicKeyInfo: [UInt8] {
        func long(_ tag: UInt8, _ body: [UInt8]) -> [UInt8] {
            [tag, 0x82, UInt8(body.count >> 8), UInt8(body.count & 255)] + body
        }
        let rsaEncryption: [UInt8] = [
            0x30, 0x0D, 0x06, 0x09, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 0x01, 0x01, 0x01, 0x05, 0x00,
        ]
        let numbers = long(0x30, long(0x02, [0] + modulus) + [0x02, 0x03, 0x01, 0x00, 0x01])
        return long(0x30, rsaEncryption + long(0x03, [0] + numbers))
    }
}
