internal import COpenSSL
internal import Octets

/// Keys of which the first seals and every one opens, so that a key can be replaced without losing what an older one sealed.
///
/// A sealed value is
///
///     version (1) | key id (8, big-endian) | nonce (12) | ciphertext | authentication code (16)
///
/// with AES-256-GCM (NIST SP 800-38D); version, id and what the value is bound to are authenticated with it. Nonces are random:
/// 2^32 values per key are safe, which is one a second for over a century.
public final class SealingKeyRing: Sendable {
    /// The first seals, all open.
    public let keys: [SealingKey]

    /// Bytes that sealing adds to a plaintext.
    public static let overhead = headSize + nonceSize + codeSize
    /// The most keys in a ring.
    public static let maximumKeys = 8

    private static let version: UInt8 = 1
    private static let headSize = 9
    private static let nonceSize = 12
    private static let codeSize = 16

    /// - Throws: `.badKey` when there is none, or more than eight.
    public init(_ keys: [SealingKey]) throws(SealingFault) {
        guard !keys.isEmpty, keys.count <= Self.maximumKeys else { throw .badKey }
        self.keys = keys
    }

    /// The key that seals.
    public var first: SealingKey { keys[0] }

    /// The key of this id; nil where the ring has none.
    public func key(_ id: UInt64) -> SealingKey? { keys.first { $0.id == id } }

    /// The id of the key that sealed `sealed`; nil when it is no sealed value at all.
    public static func keyID(of sealed: [UInt8]) -> UInt64? {
        guard sealed.count >= overhead, sealed[0] == version else { return nil }
        return sealed[1..<headSize].reduce(0) { $0 << 8 | UInt64($1) }
    }

    // MARK: -

    /// Seals with the first key. What a value is bound to is not stored and must be given again to open it.
    /// - Throws: `.unavailable`.
    public func seal(_ plaintext: [UInt8], boundTo binding: [UInt8]) throws(SealingFault) -> [UInt8] {
        let key = first
        guard plaintext.count < Int(Int32.max), binding.count < Int(Int32.max), let cipher = Cipher.shared else {
            throw .unavailable
        }
        var sealed = [UInt8](repeating: 0, count: plaintext.count + Self.overhead)
        sealed[0] = Self.version
        for index in 0..<8 { sealed[1 + index] = UInt8(truncatingIfNeeded: key.id >> UInt64(56 - 8 * index)) }
        let done = sealed.withUnsafeMutableBytes { output -> Bool in
            SystemRandom.fill(
                UnsafeMutableRawBufferPointer(rebasing: output[Self.headSize..<Self.headSize + Self.nonceSize]))
            guard let start = output.baseAddress?.assumingMemoryBound(to: UInt8.self),
                let state = EVP_CIPHER_CTX_new()
            else { return false }
            defer { EVP_CIPHER_CTX_free(state) }
            let body = start + Self.headSize + Self.nonceSize
            var count: Int32 = 0
            guard EVP_EncryptInit_ex2(state, cipher, key.cipherKey, start + Self.headSize, nil) == 1,
                EVP_EncryptUpdate(state, nil, &count, start, Int32(Self.headSize)) == 1,
                EVP_EncryptUpdate(state, nil, &count, binding, Int32(binding.count)) == 1,
                EVP_EncryptUpdate(state, body, &count, plaintext, Int32(plaintext.count)) == 1,
                EVP_EncryptFinal_ex(state, body + plaintext.count, &count) == 1
            else { return false }
            return EVP_CIPHER_CTX_ctrl(
                state, EVP_CTRL_AEAD_GET_TAG, Int32(Self.codeSize), body + plaintext.count) == 1
        }
        ErrorQueue.clear()
        guard done else { throw .unavailable }
        return sealed
    }

    /// Opens what `seal` made, with whichever key made it.
    /// - Throws: `.unknownKey` or `.damaged`; nothing of the plaintext is given out then.
    public func open(_ sealed: [UInt8], boundTo binding: [UInt8]) throws(SealingFault) -> [UInt8] {
        guard let id = Self.keyID(of: sealed), sealed.count < Int(Int32.max) else { throw .damaged }
        guard let key = key(id) else { throw .unknownKey(id) }
        guard let cipher = Cipher.shared, binding.count < Int(Int32.max) else { throw .unavailable }
        let count = sealed.count - Self.overhead
        // A byte is to spare: an empty array has no address, and OpenSSL reads a null output as "associated data".
        var plaintext = [UInt8](repeating: 0, count: count + 1)
        let done = sealed.withUnsafeBytes { input -> Bool in
            guard let start = input.baseAddress?.assumingMemoryBound(to: UInt8.self), let state = EVP_CIPHER_CTX_new()
            else {
                return false
            }
            defer { EVP_CIPHER_CTX_free(state) }
            let body = start + Self.headSize + Self.nonceSize
            let code = UnsafeMutableRawPointer(mutating: body + count)
            var moved: Int32 = 0
            guard EVP_DecryptInit_ex2(state, cipher, key.cipherKey, start + Self.headSize, nil) == 1,
                EVP_DecryptUpdate(state, nil, &moved, start, Int32(Self.headSize)) == 1,
                EVP_DecryptUpdate(state, nil, &moved, binding, Int32(binding.count)) == 1,
                EVP_DecryptUpdate(state, &plaintext, &moved, body, Int32(count)) == 1,
                EVP_CIPHER_CTX_ctrl(state, EVP_CTRL_AEAD_SET_TAG, Int32(Self.codeSize), code) == 1
            else { return false }
            var rest: UInt8 = 0
            return EVP_DecryptFinal_ex(state, &rest, &moved) == 1
        }
        ErrorQueue.clear()
        guard done else {
            plaintext.wipe()
            throw .damaged
        }
        plaintext.removeLast()
        return plaintext
    }
}

/// Fetched once: a fetch by name takes locks in OpenSSL 3.0 and is most of the cost of sealing something small.
private enum Cipher {
    /// Immutable and reference-counted inside OpenSSL, therefore free to be shared; never freed.
    nonisolated(unsafe) static let shared: OpaquePointer? = EVP_CIPHER_fetch(nil, "AES-256-GCM", nil)
}
