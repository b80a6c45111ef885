internal import HTTP1
internal import Octets
internal import TLS

/// A nonce of a `Digest` challenge.
final class DigestNonce: ServerNonce, @unchecked Sendable {
    let challenge: DigestChallenge
    /// With which a session's key was made, by its first answer (RFC 7616 §3.4.2); it lasts when the server names the next nonce.
    private(set) var session: (nonce: [UInt8], clientNonce: [UInt8])?

    init(_ challenge: DigestChallenge, session: (nonce: [UInt8], clientNonce: [UInt8])? = nil) {
        self.challenge = challenge
        self.session = session
        super.init(isStale: challenge.isStale)
    }

    fileprivate func session(beginningWith clientNonce: [UInt8]) -> (nonce: [UInt8], clientNonce: [UInt8])? {
        guard challenge.algorithm.isSession else { return nil }
        if session == nil { session = (challenge.nonce, clientNonce) }
        return session
    }
}

/// Answers the nonce of an upstream in each request (RFC 7616 §3.4).
struct DigestSigner: RequestSigner {
    let settings: DigestSettings

    var fieldNames: [String] { ["Authorization"] }
    var nonceRule: NonceRule { .ofConnection }
    /// A challenge may ask for it, and comes after the first body.
    var readsBody: Bool { settings.protections.contains(.authInt) }

    func bodyHash(answering nonce: ServerNonce?) -> HashFunction? {
        guard let nonce = nonce as? DigestNonce, settings.protection(for: nonce.challenge) == .authInt else {
            return nil
        }
        return nonce.challenge.algorithm.family.hash
    }

    func sign(
        _ request: RequestToSign, with password: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        // The connection's nonce may be one that another identity has answered.
        guard let nonce = request.serverNonce as? DigestNonce, settings.reason(against: nonce.challenge) == nil,
            let count = nonce.use()
        else { return RequestSignature([]) }
        let clientNonce = Hexadecimal.octets(of: entropy)
        let challenge = nonce.challenge
        let digits = Hexadecimal.octets(of: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) })
        let response = DigestResponse(
            challenge: challenge, protection: settings.protection(for: challenge),
            username: Array(settings.username.utf8),
            method: Array(request.method.utf8), target: Self.target(request.target), count: digits,
            clientNonce: clientNonce, session: nonce.session(beginningWith: clientNonce), bodyDigest: request.bodyDigest
        )
        guard let digests = response.digests(password) else {
            throw SigningFault("the system's library has no \(challenge.algorithm.family.rawValue)")
        }
        guard let value = Self.value(response, digests.response) else {
            throw SigningFault("the challenge does not fit into a field")
        }
        return RequestSignature(
            [InjectedField(name: "Authorization", value: value)],
            answering: NonceAnswer(nonce: nonce, count: count, proof: digests.proof))
    }

    func review(_ answer: UpstreamAnswer, to answered: NonceAnswer) -> NonceReview {
        guard let nonce = answered.nonce as? DigestNonce else { return .nothing }
        // The field is a list of parameters alone (RFC 7615 §3); the parser of challenges reads them behind a scheme.
        let lines = answer.values(of: "Authentication-Info").map { Array("Digest ".utf8) + $0 }
        guard let told = AuthChallenge.list(lines).first, told.fault == nil else { return .nothing }
        if case .one(let proof) = told["rspauth"], let expected = answered.proof {
            let isOurs = proof.map(\.asciiLowercased).withUnsafeBytes { proof in
                expected.withUnsafeBytes { $0.isEqualInConstantTime(to: proof) }
            }
            guard isOurs else { return .forged }
        }
        guard case .one(let next) = told["nextnonce"], !next.isEmpty, next.count <= DigestChallenge.longestNonce,
            next != nonce.challenge.nonce, !next.contains(where: \.isControl)
        else { return .nothing }
        var challenge = nonce.challenge
        challenge.nonce = next
        challenge.isStale = false
        return .next(DigestNonce(challenge, session: nonce.session))
    }

    /// The target as a server receives it, also where a proxy between is told the whole URL.
    private static func target(_ url: [UInt8]) -> [UInt8] {
        guard url.first != UInt8(ascii: "/"), let scheme = url.firstRange(of: Array("://".utf8)) else { return url }
        let rest = url[scheme.upperBound...]
        return Array(rest[(rest.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex)...])
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
