internal import COpenSSL

/// SHA-256 (FIPS 180-4): 32 bytes.
public func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    SHA256(bytes, bytes.count, &digest)
    return digest
}

/// SHA-256 into 32 bytes of the caller's, without an allocation: for the data path.
public func sha256(_ bytes: UnsafeRawBufferPointer, into digest: UnsafeMutableRawBufferPointer) {
    precondition(digest.count >= 32, "a digest has 32 bytes")
    var none: UInt8 = 0
    withUnsafePointer(to: &none) { empty in
        cardea_sha256(
            bytes.baseAddress ?? UnsafeRawPointer(empty), bytes.count,
            digest.baseAddress?.assumingMemoryBound(to: UInt8.self))
    }
}

/// SHA-1 (FIPS 180-4): 20 bytes. For protocols that fixed it long ago and need no collision resistance, as WebSocket's handshake and JWS' `x5t`.
public func sha1(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 20)
    SHA1(bytes, bytes.count, &digest)
    return digest
}

/// HMAC-SHA-256 (RFC 2104): 32 bytes.
public func keyedHash(key: [UInt8], _ bytes: [UInt8]) -> [UInt8] {
    key.withUnsafeBytes { keyedHash(key: $0, bytes) }
}

/// The same, of a key that is not copied; HS256 of JWS (RFC 7518 section 3.2).
public func keyedHash(key: UnsafeRawBufferPointer, _ bytes: [UInt8]) -> [UInt8] {
    var code = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 32
    // OpenSSL reads a null key as "the one set before", so an empty key needs an address.
    var none: UInt8 = 0
    let done = withUnsafePointer(to: &none) { empty in
        HMAC(
            EVP_sha256(), key.baseAddress ?? UnsafeRawPointer(empty), Int32(clamping: key.count), bytes, bytes.count,
            &code,
            &count)
    }
    // SHA-256 is in every provider, FIPS included; without it a code of zeros would make all keys equal.
    precondition(done != nil && count == 32, "HMAC-SHA-256 not available")
    return code
}

/// SHA-256 of bytes that come piece by piece.
public struct RunningSHA256: ~Copyable {
    private var context: OpaquePointer?

    /// A hash that has seen no byte.
    public init() {
        context = EVP_MD_CTX_new()
        // A digest of nothing would be the same for every body.
        precondition(context != nil && EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1, "SHA-256 not available")
    }

    deinit { EVP_MD_CTX_free(context) }

    /// Bytes may come in any number of pieces.
    public mutating func add(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 0 else { return }
        precondition(EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) == 1, "SHA-256 not available")
    }

    /// 32 bytes. Nothing may be added afterwards.
    public mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 0
        precondition(EVP_DigestFinal_ex(context, &digest, &count) == 1 && count == 32, "SHA-256 not available")
        return digest
    }
}
