internal import HTTP1
internal import Numbers

/// The authentication of its user that a protected resource asks for (RFC 9470 §3): one of some classes, or one that is not long ago, or both.
public struct StepUp: Sendable, Equatable {
    /// Values of `acr`, the one that the resource likes best first; empty: any class will do. Visible ASCII without quotes and backslashes, at
    /// most `mostValues`.
    public var acrValues: [String]
    /// Seconds since the person was authenticated, at most; nil: however long ago.
    public var maxAge: UInt32?

    /// Memberwise; nothing is checked.
    public init(acrValues: [String] = [], maxAge: UInt32? = nil) {
        self.acrValues = acrValues
        self.maxAge = maxAge
    }

    /// The error code of a challenge that asks for it.
    public static let error = "insufficient_user_authentication"
    /// Classes in one challenge.
    static let mostValues = 8
    /// Octets of `acr_values`.
    static let longestValues = 512

    /// Nothing is asked for.
    var isEmpty: Bool { acrValues.isEmpty && maxAge == nil }

    /// Whether a text may stand in a list of classes.
    static func isValue(_ text: some StringProtocol) -> Bool {
        (1...longestValues).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 == 0x21 || (0x23...0x5B).contains($0) || (0x5D...0x7E).contains($0) }
    }

    /// Seconds below 2³¹ in decimal digits; nil for anything else.
    static func age(_ text: some Collection<UInt8>) -> UInt32? {
        guard text.first != UInt8(ascii: "-"), text.count <= 10 else { return nil }
        return ReceivedNumber(decimal: text)?.within(0...UInt32(Int32.max))
    }

    /// The demand of a challenge; nil for one whose words cannot be used.
    init?(_ challenge: AuthChallenge) {
        self.init()
        switch challenge["acr_values"] {
        case .absent: break
        case .duplicate: return nil
        case .one(let text):
            guard text.count <= Self.longestValues else { return nil }
            for value in String(decoding: text, as: UTF8.self).split(separator: " ") {
                guard Self.isValue(value) else { return nil }
                if !acrValues.contains(String(value)) { acrValues.append(String(value)) }
            }
            guard acrValues.count <= Self.mostValues else { return nil }
        }
        switch challenge["max_age"] {
        case .absent: break
        case .duplicate: return nil
        case .one(let text):
            guard let age = Self.age(text) else { return nil }
            maxAge = age
        }
    }

    /// Takes up another demand, so that a single login meets both. A demand for classes of which none is among these is left out.
    package mutating func join(_ other: StepUp) {
        let common = acrValues.filter { other.acrValues.contains($0) }
        if acrValues.isEmpty {
            acrValues = other.acrValues
        } else if !common.isEmpty {
            acrValues = common
        }
        maxAge = [maxAge, other.maxAge].compactMap(\.self).min()
    }
}

extension StepUp: CustomStringConvertible {
    /// The words of the challenge, which may be shown.
    public var description: String {
        let words = [
            acrValues.isEmpty ? nil : "acr_values '\(acrValues.joined(separator: " "))'",
            maxAge.map { "max_age \($0)" },
        ]
        return words.compactMap(\.self).joined(separator: ", ")
    }
}

/// A resource's wish for another authentication, as the identity takes it.
public struct StepUpWish: Sendable, Equatable {
    /// The demand that the identity's person may be asked to meet; nil: nobody is asked.
    public var login: StepUp?
    /// The wish, and why nobody is asked for it where nobody is: safe text for callers and operators.
    public var words: String

    /// The wish for a login.
    init(_ stepUp: StepUp) { self.init(login: stepUp, words: Self.words(stepUp)) }

    /// A wish that is refused.
    /// - Parameter asked: nil where its words cannot be used.
    init(_ asked: StepUp?, refused reason: String) { self.init(login: nil, words: "\(Self.words(asked)), \(reason)") }

    private init(login: StepUp?, words: String) {
        self.login = login
        self.words = words
    }

    private static func words(_ asked: StepUp?) -> String {
        let details = asked.map { $0.isEmpty ? "" : ": \($0)" } ?? ""
        return "the upstream wants its user authenticated in another way (\(StepUp.error)\(details))"
    }
}

/// The authentication that a login was made with, as far as is known.
public struct Authenticated: Sendable, Equatable {
    /// The classes of which it is one; empty: none was asked for and the issuer named none.
    public var acrValues: [String] = []
    /// Seconds from the person's authentication to the request that brought the login's tokens; nil: no `max_age` was asked for, so that it may
    /// have been long ago.
    public var age: UInt32?
    /// The issuer has said so; else it is what was asked for.
    var isTold = true
}
