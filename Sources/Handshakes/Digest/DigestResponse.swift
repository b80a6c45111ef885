internal import Octets
internal import TLS

/// The computation of RFC 7616 §3.4, for one request.
struct DigestResponse {
    let challenge: DigestChallenge
    /// nil: as before RFC 2617, without a number and a nonce of ours.
    let protection: DigestProtection?
    let username: [UInt8]
    let method: [UInt8]
    /// The request target, byte for byte as it is sent.
    let target: [UInt8]
    /// Eight hexadecimal digits.
    let count: [UInt8]
    let clientNonce: [UInt8]
    /// With which the key of a session was made (`-sess`); nil: with those of this request.
    var session: (nonce: [UInt8], clientNonce: [UInt8])?
    /// Raw; nil where the body is not covered.
    var bodyDigest: [UInt8]?

    /// The response, and the octets that the server's `rspauth` then has; both in hexadecimal digits.
    ///
    /// The server's proof covers its answer's body where the request's is covered, and that is not known here.
    /// - Returns: nil where the library lacks the hash function.
    func digests(_ password: UnsafeRawBufferPointer) -> (response: [UInt8], proof: [UInt8]?)? {
        guard var key = key(password) else { return nil }
        defer { key.wipe() }
        let body = protection == .authInt ? [Self.colon] + Hexadecimal.octets(of: bodyDigest ?? []) : []
        guard let response = keyed(key, method + [Self.colon] + target + body),
            let proof = keyed(key, [Self.colon] + target)
        else { return nil }
        return (response, protection == .authInt ? nil : proof)
    }

    /// The user's name as a hash (RFC 7616 §3.4.4).
    var userHash: [UInt8]? { hexadecimal(username + [Self.colon] + challenge.realm) }

    private static let colon = UInt8(ascii: ":")

    /// `H(A1)` (RFC 7616 §3.4.2).
    private func key(_ password: UnsafeRawBufferPointer) -> [UInt8]? {
        var plain: [UInt8] = []
        // Enough at once, so that no growth leaves a copy behind.
        plain.reserveCapacity(username.count + challenge.realm.count + password.count + 2)
        plain += username
        plain.append(Self.colon)
        plain += challenge.realm
        plain.append(Self.colon)
        plain += password
        defer { plain.wipe() }
        guard var key = hexadecimal(plain) else { return nil }
        guard challenge.algorithm.isSession else { return key }
        defer { key.wipe() }
        let made = session ?? (challenge.nonce, clientNonce)
        return hexadecimal(key + [Self.colon] + made.nonce + [Self.colon] + made.clientNonce)
    }

    /// The whole of RFC 7616 §3.4.1, given what `A2` is made of.
    private func keyed(_ key: [UInt8], _ request: [UInt8]) -> [UInt8]? {
        guard let request = hexadecimal(request) else { return nil }
        let middle: [[UInt8]] =
            protection.map { [challenge.nonce, count, clientNonce, Array($0.rawValue.utf8)] } ?? [challenge.nonce]
        return hexadecimal(Array(([key] + middle + [request]).joined(separator: [Self.colon])))
    }

    private func hexadecimal(_ bytes: [UInt8]) -> [UInt8]? {
        challenge.algorithm.function.hash.hash(bytes).map { Hexadecimal.octets(of: $0) }
    }
}
