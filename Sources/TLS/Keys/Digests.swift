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

/// HMAC (RFC 2104) with another function, for protocols that fixed it.
/// - Returns: nil where the library does not have the function.
public func keyedHash(_ function: HashFunction, key: [UInt8], _ bytes: [UInt8]) -> [UInt8]? {
    var code = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    // OpenSSL reads a null key as "the one set before", so an empty key needs an address.
    let address = key.isEmpty ? [0] : key
    guard HMAC(function.method, address, Int32(clamping: key.count), bytes, bytes.count, &code, &count) != nil else {
        return nil
    }
    return Array(code[..<Int(count)])
}

/// HMAC-SHA-256 of a key that is not copied; HS256 of JWS (RFC 7518 section 3.2).
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
