internal import COpenSSL

/// A hash function, for protocols whose servers choose one.
public enum HashFunction: Sendable {
    /// RFC 1321: 16 bytes. Only where a protocol has nothing better; libraries in FIPS mode do not have it.
    case md5
    /// FIPS 180-4: 32 bytes.
    case sha256
    /// FIPS 180-4: 64 bytes.
    case sha512
    /// SHA-512/256 of FIPS 180-4: 32 bytes, and not the first half of SHA-512.
    case sha512Truncated256

    /// - Returns: nil where the library does not have the function.
    public func hash(_ bytes: [UInt8]) -> [UInt8]? {
        guard var running = RunningHash(self) else { return nil }
        bytes.withUnsafeBytes { running.add($0) }
        return running.finish()
    }

    var method: OpaquePointer? {
        switch self {
        case .md5: EVP_md5()
        case .sha256: EVP_sha256()
        case .sha512: EVP_sha512()
        case .sha512Truncated256: EVP_sha512_256()
        }
    }
}

/// The hash of bytes that come piece by piece.
public struct RunningHash: ~Copyable {
    private var context: OpaquePointer

    /// A hash that has seen no byte.
    /// - Returns: nil where the library does not have the function.
    public init?(_ function: HashFunction) {
        guard let context = EVP_MD_CTX_new() else { return nil }
        guard EVP_DigestInit_ex(context, function.method, nil) == 1 else {
            EVP_MD_CTX_free(context)
            return nil
        }
        self.context = context
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Bytes may come in any number of pieces.
    public mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        // A hash that left bytes out would be the same for other bodies.
        precondition(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "the hash cannot go on")
    }

    /// Nothing may be added afterwards.
    public mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        precondition(EVP_DigestFinal_ex(context, &digest, &count) == 1, "the hash cannot be finished")
        return Array(digest[..<Int(count)])
    }
}
