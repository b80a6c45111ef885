internal import Octets
internal import TLS

/// AUTHENTICATE: the answer to a server's message, by NTLM version 2 alone ([MS-NLMP] sections 2.2.1.3, 3.1.5.1.2 and 3.3.2).
struct NTLMAnswer {
    private let challenge: NTLMChallenge
    private let settings: NTLMSettings
    private let clientNonce: [UInt8]
    /// Tenths of microseconds since 1601, little-endian.
    private let time: [UInt8]
    private let pairs: [NTLMPair]
    /// The server has told its time, and so checks the code over all three messages.
    private let hasCode: Bool

    /// - Parameters:
    ///   - clientNonce: eight random octets of this answer alone.
    ///   - service: the server's name, as `HTTP/host`.
    ///   - serverEndPoint: the hash of the server's certificate (RFC 5929 §4.1).
    init(
        to challenge: NTLMChallenge, as settings: NTLMSettings, clientNonce: [UInt8], wallSeconds: Int64,
        service: String?,
        serverEndPoint: [UInt8]?
    ) {
        self.challenge = challenge
        self.settings = settings
        self.clientNonce = clientNonce
        let told = challenge.pairs.first { $0.id == NTLMPair.timestamp && $0.value.count == 8 }?.value
        hasCode = told != nil
        time = told ?? Self.time(wallSeconds)
        pairs = Self.pairs(challenge.pairs, service, serverEndPoint, hasCode: told != nil)
    }

    private static func time(_ wallSeconds: Int64) -> [UInt8] {
        // The seconds from 1601 to 1970; far from any bound for a clock that is right.
        let since = UInt64(clamping: wallSeconds).addingReportingOverflow(11_644_473_600).partialValue
        let ticks = since.multipliedReportingOverflow(by: 10_000_000).partialValue
        return (0..<8).map { UInt8(truncatingIfNeeded: ticks >> (8 * $0)) }
    }

    /// The server's facts of itself and ours of the connection, which the proof covers.
    private static func pairs(
        _ told: [NTLMPair], _ service: String?, _ serverEndPoint: [UInt8]?, hasCode: Bool
    ) -> [NTLMPair] {
        let ours = [NTLMPair.flags, NTLMPair.targetName, NTLMPair.channelBindings]
        var pairs = told.filter { !ours.contains($0.id) }
        if hasCode { pairs.append(NTLMPair(id: NTLMPair.flags, value: [2, 0, 0, 0])) }
        pairs.append(NTLMPair(id: NTLMPair.channelBindings, value: bindings(serverEndPoint)))
        let name = service.map { NTLMMessage.octets($0) } ?? []
        pairs.append(NTLMPair(id: NTLMPair.targetName, value: name.count <= 1024 ? name : []))
        return pairs
    }

    /// MD5 of GSSAPI's structure without addresses (RFC 4121 section 4.1.1.2); zeros where there is no channel.
    private static func bindings(_ serverEndPoint: [UInt8]?) -> [UInt8] {
        guard let serverEndPoint else { return [UInt8](repeating: 0, count: 16) }
        let data = Array("tls-server-end-point:".utf8) + serverEndPoint
        let structure =
            [UInt8](repeating: 0, count: 16) + NTLMMessage.octets(UInt32(clamping: data.count)) + data
        return HashFunction.md5.hash(structure) ?? [UInt8](repeating: 0, count: 16)
    }

    // MARK: - The message

    /// - Returns: nil where the library lacks the function.
    func message(_ key: NTLMKey) -> [UInt8]? {
        let zeros = { (count: Int) in [UInt8](repeating: 0, count: count) }
        let blob = [1, 1] + zeros(6) + time + clientNonce + zeros(4) + NTLMPair.octets(pairs) + zeros(4)
        guard let proof = key.code(challenge.nonce + blob), let session = key.code(proof) else { return nil }
        // A server that tells its time wants no answer of the older form.
        let older = hasCode ? zeros(24) : key.code(challenge.nonce + clientNonce).map { $0 + clientNonce }
        guard let older else { return nil }
        let parts = [
            older, proof + blob, NTLMMessage.octets(settings.domain), NTLMMessage.octets(settings.username), [], [],
        ]
        var fields: [UInt8] = []
        var place: UInt32 = 88
        for part in parts {
            let count = UInt16(clamping: part.count)
            fields += NTLMMessage.octets(count) + NTLMMessage.octets(count) + NTLMMessage.octets(place)
            place &+= UInt32(count)
        }
        let head =
            NTLMMessage.signature + NTLMMessage.octets(UInt32(3)) + fields
            + NTLMMessage.octets(NTLMMessage.Flags.ours.union(.targetInfo).rawValue) + zeros(8)
        let body = parts.flatMap(\.self)
        guard hasCode else { return head + zeros(16) + body }
        let whole = NTLMMessage.first + challenge.octets + head + zeros(16) + body
        guard let code = NTLMKey(octets: session).code(whole) else { return nil }
        return head + code + body
    }
}

/// The key that NTLM version 2 makes of a password and its user (NTOWFv2, [MS-NLMP] section 3.3.2).
struct NTLMKey {
    /// Sixteen.
    let octets: [UInt8]

    init(octets: [UInt8]) { self.octets = octets }

    /// - Returns: nil where the library lacks the function.
    init?(of password: Secret, _ settings: NTLMSettings) {
        var text = password.withBytes { NTLMMessage.octets(String(decoding: $0, as: UTF8.self)) }
        defer { text.wipe() }
        let name = NTLMMessage.octets(Self.upperCased(settings.username) + settings.domain)
        guard let octets = NTLMKey(octets: MD4.hash(text)).code(name) else { return nil }
        self.octets = octets
    }

    init?(hexadecimal text: UnsafeRawBufferPointer) {
        guard text.count == 32, let octets = Hexadecimal.decode(text) else { return nil }
        self.octets = octets
    }

    /// Letter by letter, as servers do: no letter becomes two.
    private static func upperCased(_ text: String) -> String {
        String(
            String.UnicodeScalarView(
                text.unicodeScalars.map { scalar in
                    let upper = scalar.properties.uppercaseMapping.unicodeScalars
                    return upper.count == 1 ? upper.first ?? scalar : scalar
                }))
    }

    /// HMAC-MD5.
    func code(_ bytes: [UInt8]) -> [UInt8]? { keyedHash(.md5, key: octets, bytes) }
}
