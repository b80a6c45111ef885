internal import Configuration
internal import Octets
internal import TLS

/// The answer to a nonce in one request, as a field's value (RFC 7616 §3.4).
struct DigestAnswer {
    let value: [UInt8]
    /// The part of `value` that only a knower of the password can compute.
    let response: [UInt8]
    let answer: NonceAnswer

    /// - Parameters:
    ///   - target: the request target, octet for octet as the one who asked receives it.
    ///   - bodyDigest: raw, by the challenge's function; nil where the body is not covered.
    ///   - entropy: of this request alone.
    /// - Returns: nil where the settings do not allow an answer to this nonce, or it has no number left.
    /// - Throws: where the system lacks the function, or the value would be longer than any token.
    init?(
        to nonce: DigestNonce, under settings: DigestSettings, method: String, target: [UInt8], bodyDigest: [UInt8]?,
        password: UnsafeRawBufferPointer, entropy: [UInt8]
    ) throws(SigningFault) {
        // The connection's nonce may be one that another identity has answered.
        guard settings.reason(against: nonce.challenge) == nil, let count = nonce.use() else { return nil }
        let clientNonce = Hexadecimal.octets(of: entropy)
        let challenge = nonce.challenge
        let digits = Hexadecimal.octets(of: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) })
        let response = DigestResponse(
            challenge: challenge, protection: settings.protection(for: challenge),
            username: Array(settings.username.utf8), method: Array(method.utf8), target: target, count: digits,
            clientNonce: clientNonce, session: nonce.session(beginningWith: clientNonce), bodyDigest: bodyDigest)
        guard let digests = response.digests(password) else {
            throw SigningFault("the system's library has no \(challenge.algorithm.function.rawValue)")
        }
        guard let value = Self.value(response, digests.response) else {
            throw SigningFault("the challenge does not fit into a field")
        }
        self.value = value
        self.response = digests.response
        answer = NonceAnswer(nonce: nonce, count: count, proof: digests.proof)
    }

    /// - Returns: nil where it would be longer than any token.
    private static func value(_ response: DigestResponse, _ digest: [UInt8]) -> [UInt8]? {
        let challenge = response.challenge
        var parts: [[UInt8]] = []
        func put(_ name: String, _ value: [UInt8]) { parts.append(Array("\(name)=".utf8) + value) }
        func quote(_ name: String, _ value: [UInt8]) {
            let escaped = value.flatMap {
                $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") ? [UInt8(ascii: "\\"), $0] : [$0]
            }
            put(name, [UInt8(ascii: "\"")] + escaped + [UInt8(ascii: "\"")])
        }
        if challenge.hashesUser, let hash = response.userHash {
            quote("username", hash)
        } else if challenge.isUTF8, response.username.contains(where: { $0 >= 0x80 }) {
            let encoded = PercentEncoding.encode(String(decoding: response.username, as: UTF8.self))
            put("username*", Array("UTF-8''\(encoded)".utf8))
        } else {
            quote("username", response.username)
        }
        quote("realm", challenge.realm)
        quote("nonce", challenge.nonce)
        quote("uri", response.target)
        quote("response", digest)
        // The word has no quotes, which old servers would take for a part of it.
        if let word = challenge.algorithmWord { put("algorithm", word) }
        if let opaque = challenge.opaque { quote("opaque", opaque) }
        if let protection = response.protection {
            put("qop", Array(protection.rawValue.utf8))
            put("nc", response.count)
            quote("cnonce", response.clientNonce)
        }
        if challenge.hashesUser { put("userhash", Array("true".utf8)) }
        let value = Array("Digest ".utf8) + parts.joined(separator: Array(", ".utf8))
        return value.count <= TokenAlphabet.longest ? value : nil
    }
}
