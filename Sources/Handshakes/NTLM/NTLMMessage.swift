internal import Octets

/// The messages of NTLM ([MS-NLMP] section 2.2.1). Numbers are little-endian, texts UTF-16.
enum NTLMMessage {
    static let signature = Array("NTLMSSP\0".utf8)

    /// Flags ([MS-NLMP] section 2.2.2.5).
    struct Flags: OptionSet {
        let rawValue: UInt32
        static let unicode = Flags(rawValue: 0x0000_0001)
        static let requestTarget = Flags(rawValue: 0x0000_0004)
        static let ntlm = Flags(rawValue: 0x0000_0200)
        static let alwaysSign = Flags(rawValue: 0x0000_8000)
        static let extendedSession = Flags(rawValue: 0x0008_0000)
        static let targetInfo = Flags(rawValue: 0x0080_0000)

        /// No key is exchanged, since nothing is signed or sealed with one: TLS does that.
        static let ours: Flags = [.unicode, .requestTarget, .ntlm, .alwaysSign, .extendedSession]
    }

    /// NEGOTIATE: says what we speak, and nothing of who we are, by two empty names and an empty version.
    static let first = signature + octets(UInt32(1)) + octets(Flags.ours.rawValue) + [UInt8](repeating: 0, count: 24)

    static func octets(_ number: UInt32) -> [UInt8] {
        [0, 8, 16, 24].map { UInt8(truncatingIfNeeded: number >> $0) }
    }

    static func octets(_ number: UInt16) -> [UInt8] { [0, 8].map { UInt8(truncatingIfNeeded: number >> $0) } }
    static func octets(_ text: String) -> [UInt8] { text.utf16.flatMap { octets($0) } }
}

/// The reason why a message of the server is none.
enum NTLMFault: String, Error {
    case notNTLM = "no NTLM message"
    case short = "it is too short"
    case outside = "a field lies outside of it"
    case noUnicode = "it speaks no Unicode"
    case noTargetInfo = "it is of NTLM version 1, which is not answered"
    case brokenPairs = "its target information is broken"
}

/// CHALLENGE: the server's message ([MS-NLMP] section 2.2.1.2).
struct NTLMChallenge: Sendable, Equatable {
    let octets: [UInt8]
    /// Eight octets.
    let nonce: [UInt8]
    let pairs: [NTLMPair]

    /// Characters of base64: a message has target information of at most 64 KiB, and real ones have less than one.
    static let longestText = 16384

    /// - Throws: for whatever cannot be answered by NTLM version 2.
    init(_ message: [UInt8]) throws(NTLMFault) {
        guard message.starts(with: NTLMMessage.signature) else { throw .notNTLM }
        guard message.count >= 48 else { throw .short }
        guard Self.number(message, 8) == 2 else { throw .notNTLM }
        let flags = NTLMMessage.Flags(rawValue: Self.number(message, 20))
        guard flags.contains(.unicode) else { throw .noUnicode }
        let length = Int(Self.short(message, 40))
        let start = Int(Self.number(message, 44))
        guard flags.contains(.targetInfo), length > 0 else { throw .noTargetInfo }
        guard start >= 48, start <= message.count, length <= message.count - start else { throw .outside }
        octets = message
        nonce = Array(message[24..<32])
        pairs = try NTLMPair.list(message[start..<(start + length)])
    }

    static func short(_ octets: [UInt8], _ index: Int) -> UInt16 {
        UInt16(octets[index]) | UInt16(octets[index + 1]) << 8
    }

    private static func number(_ octets: [UInt8], _ index: Int) -> UInt32 {
        UInt32(short(octets, index)) | UInt32(short(octets, index + 2)) << 16
    }
}

/// AV_PAIR: one fact of the target information ([MS-NLMP] section 2.2.2.1).
struct NTLMPair: Sendable, Equatable {
    var id: UInt16
    var value: [UInt8]

    static let flags: UInt16 = 6
    static let timestamp: UInt16 = 7
    static let targetName: UInt16 = 9
    static let channelBindings: UInt16 = 10

    private static let end: UInt16 = 0
    private static let mostPairs = 64

    static func list(_ octets: ArraySlice<UInt8>) throws(NTLMFault) -> [NTLMPair] {
        let octets = Array(octets)
        var pairs: [NTLMPair] = []
        var place = 0
        while octets.count - place >= 4 {
            let id = NTLMChallenge.short(octets, place)
            let length = Int(NTLMChallenge.short(octets, place + 2))
            place += 4
            if id == end { return pairs }
            guard length <= octets.count - place, pairs.count < mostPairs else { throw .brokenPairs }
            pairs.append(NTLMPair(id: id, value: Array(octets[place..<(place + length)])))
            place += length
        }
        throw .brokenPairs
    }

    static func octets(_ pairs: [NTLMPair]) -> [UInt8] {
        (pairs + [NTLMPair(id: end, value: [])]).flatMap {
            NTLMMessage.octets($0.id) + NTLMMessage.octets(UInt16(clamping: $0.value.count)) + $0.value
        }
    }
}
