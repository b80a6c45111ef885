internal import Configuration
internal import HTTP1
internal import Octets
internal import TLS

/// A challenge of the scheme `Digest` (RFC 7616 §3.3; RFC 2617 and 2069 of old servers), read and bounded. `domain` is left unread: a challenge
/// never says where a credential may go.
struct DigestChallenge: Sendable, Equatable {
    var realm: [UInt8]
    var nonce: [UInt8]
    /// Goes back as it came.
    var opaque: [UInt8]?
    var algorithm: DigestAlgorithm
    /// The word in which the server named its algorithm; nil: it named none, and the answer names none.
    var algorithmWord: [UInt8]?
    /// Empty where it offers none, as before RFC 2617.
    var protections: Set<DigestProtection> = []
    var isStale = false
    /// The user's name goes as a hash (RFC 7616 §3.4.4).
    var hashesUser = false
    /// The server says that it reads names as UTF-8.
    var isUTF8 = false

    static let longestRealm = 1024
    static let longestNonce = 2048
    static let longestOpaque = 2048
}

/// The part of a request that an answer covers beside its method and target (`qop`).
enum DigestProtection: String, CaseIterable, Sendable {
    case auth
    /// The body, too.
    case authInt = "auth-int"
}

/// A hash function, and whether the session's key is made once (`-sess`).
struct DigestAlgorithm: Sendable, Equatable {
    var function: DigestFunction
    var isSession: Bool

    init(_ function: DigestFunction, isSession: Bool = false) {
        self.function = function
        self.isSession = isSession
    }

    /// - Parameter word: as received, in any case.
    init?(_ word: [UInt8]) {
        for function in DigestFunction.allCases {
            for isSession in [false, true] where word.matches(function.rawValue + (isSession ? "-sess" : "")) {
                self.init(function, isSession: isSession)
                return
            }
        }
        return nil
    }
}

extension DigestFunction {
    var hash: HashFunction {
        switch self {
        case .sha512Truncated256: .sha512Truncated256
        case .sha256: .sha256
        case .md5: .md5
        }
    }
}

// MARK: - Reading

extension DigestChallenge {
    /// The reason why a challenge cannot be answered, in words that quote nothing of it.
    struct Complaint: Error, Equatable {
        var reason: String

        init(_ reason: String) { self.reason = reason }
    }

    init(_ item: AuthChallenge) throws(Complaint) {
        if let fault = item.fault { throw Complaint(fault.rawValue) }
        // A first parameter without a value looks like one.
        if item.token68 != nil { throw Complaint(AuthChallenge.Fault.malformed.rawValue) }
        realm = try Self.text("realm", of: item, atMost: Self.longestRealm) ?? []
        guard let nonce = try Self.text("nonce", of: item, atMost: Self.longestNonce), !nonce.isEmpty else {
            throw Complaint("no nonce")
        }
        self.nonce = nonce
        opaque = try Self.text("opaque", of: item, atMost: Self.longestOpaque)
        algorithmWord = try Self.text("algorithm", of: item, atMost: 64)
        guard let algorithm = algorithmWord.map({ DigestAlgorithm($0) }) ?? DigestAlgorithm(.md5) else {
            throw Complaint("an algorithm that is not known")
        }
        self.algorithm = algorithm
        // The value is a list, although a challenge of RFC 2617 may have it without quotes: then it is one word.
        let words = try Self.text("qop", of: item, atMost: 256) ?? []
        let offered = words.split { $0.isBlank || $0 == UInt8(ascii: ",") }
        protections = Set(
            DigestProtection.allCases.filter { known in offered.contains { Array($0).matches(known.rawValue) } })
        if !offered.isEmpty, protections.isEmpty { throw Complaint("no qop that is known") }
        isStale = try Self.says("true", "stale", of: item)
        hashesUser = try Self.says("true", "userhash", of: item)
        isUTF8 = try Self.says("UTF-8", "charset", of: item)
        if algorithm.isSession, protections.isEmpty { throw Complaint("a session without qop") }
    }

    private static func text(_ name: String, of item: AuthChallenge, atMost most: Int) throws(Complaint) -> [UInt8]? {
        switch item[name] {
        case .absent: return nil
        case .duplicate: throw Complaint("duplicate \(name)")
        case .one(let value):
            guard value.count <= most else { throw Complaint("\(name) of more than \(most) bytes") }
            guard !value.contains(where: \.isControl) else { throw Complaint("control character in \(name)") }
            return value
        }
    }

    private static func says(_ word: String, _ name: String, of item: AuthChallenge) throws(Complaint) -> Bool {
        try text(name, of: item, atMost: 64)?.matches(word) == true
    }
}
