internal import COpenSSL

// Keys of our own, for systems at which a client registers itself.
extension SigningKey {
    /// Makes an RSA key of 2048 bits with the exponent 65537. Takes up to a second: not on a loop.
    /// - Returns: the private key in DER, as `init(file:)` reads it.
    public static func makeRSA() throws(TLSFault) -> [UInt8] {
        ErrorQueue.clear()
        guard let key = cardea_make_rsa_key(2048) else { throw ErrorQueue.configurationFault("RSA key") }
        defer { EVP_PKEY_free(key) }
        let count = i2d_PrivateKey(key, nil)
        guard count > 0 else { throw ErrorQueue.configurationFault("RSA key") }
        var bytes = [UInt8](repeating: 0, count: Int(count))
        let written = bytes.withUnsafeMutableBufferPointer { buffer in
            var place = buffer.baseAddress
            return i2d_PrivateKey(key, &place)
        }
        guard written == count else { throw ErrorQueue.configurationFault("RSA key") }
        return bytes
    }

    /// Modulus and exponent of an RSA key, big-endian without leading zeros (RFC 7518 section 6.3.1); nil for other kinds.
    public var rsaNumbers: (n: [UInt8], e: [UInt8])? {
        guard kind == .rsa, let n = number("n"), let e = number("e") else { return nil }
        return (n, e)
    }
}
