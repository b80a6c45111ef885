import COpenSSL

/// SHA-256 (FIPS 180-4), fed piece by piece.
final class SHA256 {
    private let state = EVP_MD_CTX_new()

    init() { EVP_DigestInit_ex(state, EVP_sha256(), nil) }

    deinit { EVP_MD_CTX_free(state) }

    func update(_ bytes: UnsafeRawBufferPointer) { EVP_DigestUpdate(state, bytes.baseAddress, bytes.count) }

    func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        EVP_DigestFinal_ex(state, &digest, nil)
        return digest
    }

    static func digest(_ text: String) -> [UInt8] {
        let digest = SHA256()
        Array(text.utf8).withUnsafeBytes(digest.update)
        return digest.finish()
    }
}

extension [UInt8] {
    /// Lower-case hexadecimal.
    var hex: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}
