internal import COpenSSL

// Keys of our own, for systems at which a client registers itself.
extension SigningKey {
    /// Makes an RSA key of 2048 bits with the exponent 65537. Takes up to a second: not on a loop.
    /// - Returns: the private key in DER, as `init(file:)` reads it.
    public static func makeRSA() throws(TLSFault) -> [UInt8] {
        try made("RSA key") { cardea_make_rsa_key(2048) }
    }

    /// Modulus and exponent of an RSA key, big-endian without leading zeros (RFC 7518 section 6.3.1); nil for other kinds.
    public var rsaNumbers: (n: [UInt8], e: [UInt8])? {
        guard kind == .rsa, let n = number("n"), let e = number("e") else { return nil }
        return (n, e)
    }
}

extension SigningKey {
    private static func made(_ word: String, _ make: () -> OpaquePointer?) throws(TLSFault) -> [UInt8] {
        ErrorQueue.clear()
        let key = make()
        defer { EVP_PKEY_free(key) }
        guard let key, let octets = encoded({ i2d_PrivateKey(key, $0) }) else {
            throw ErrorQueue.configurationFault(word)
        }
        return octets
    }
}

// Keys for proofs of possession.
extension SigningKey {
    /// Makes an EC key on P-256; takes well under a millisecond.
    /// - Returns: the private key in DER, as `init(file:)` reads it.
    public static func makeP256() throws(TLSFault) -> [UInt8] {
        try made("EC key") { cardea_make_p256_key() }
    }

    /// The public point of a key on P-256, 32 bytes each, big-endian (RFC 7518 section 6.2.1); nil for other kinds.
    public var p256Point: (x: [UInt8], y: [UInt8])? {
        func padded(_ number: [UInt8]) -> [UInt8] {
            [UInt8](repeating: 0, count: max(0, 32 - number.count)) + number
        }
        guard kind == .p256, let x = number("qx"), let y = number("qy") else { return nil }
        return (padded(x), padded(y))
    }
}
