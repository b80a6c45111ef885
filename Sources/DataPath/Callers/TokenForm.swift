internal import Octets

/// Reads the form of a token request (RFC 6749 §4) as it comes, for its `grant_type` alone. Of every other member, secrets among them,
/// not an octet is kept.
struct TokenForm {
    /// Octets of a form. RFC 6749 sets no bound; assertions of SAML are the longest that callers send.
    static let longest: UInt64 = 64 * 1024

    private static let name = Array("grant_type".utf8)
    /// The longest that is known has 47 octets; of a longer one enough to tell that it is none of them.
    private static let longestGrant = 64

    private var part = Part.name
    /// Octets of the name so far, as long as it may become `grant_type`; -1: it is another.
    private var matched = 0
    private var escape = Escape.none
    private var grant: [UInt8] = []
    /// Non-empty values of `grant_type`, and the length of the one that is read.
    private var values = 0
    private var valueLength = 0
    private var isMalformed = false

    private enum Part { case name, grant, other }
    private enum Escape: Equatable { case none, begun, high(UInt8) }

    enum Verdict: Equatable {
        case grant(TokenStubGrants)
        case unsupported
        /// No grant type, two of them, or one that is encoded wrongly.
        case invalid
    }
}

extension TokenForm {
    mutating func read(_ octets: UnsafeRawBufferPointer) {
        for octet in octets { read(octet) }
    }

    private mutating func read(_ octet: UInt8) {
        if octet == UInt8(ascii: "&") { return endMember() }
        switch part {
        case .other: break
        case .name where octet == UInt8(ascii: "="):
            endEscape()
            part = matched == Self.name.count ? .grant : .other
        case .name:
            guard let octet = decoded(octet) else { return }
            matched = matched >= 0 && matched < Self.name.count && Self.name[matched] == octet ? matched + 1 : -1
        case .grant:
            guard let octet = decoded(octet) else { return }
            valueLength += 1
            if values == 0, grant.count < Self.longestGrant { grant.append(octet) }
        }
    }

    /// The body's end.
    mutating func end() -> Verdict {
        endMember()
        // A parameter must not stand twice (RFC 6749 §3.2): which of the two is meant is not ours to choose.
        guard values == 1, !isMalformed else { return .invalid }
        return TokenStubGrants(named: grant).map { .grant($0) } ?? .unsupported
    }

    private mutating func endMember() {
        endEscape()
        // An empty value counts as none (RFC 6749 §3.2).
        if part == .grant, valueLength > 0 { values += 1 }
        valueLength = 0
        part = .name
        matched = 0
    }

    private mutating func endEscape() {
        if escape != .none { _ = broken() }
    }

    /// nil: more is needed.
    private mutating func decoded(_ octet: UInt8) -> UInt8? {
        switch escape {
        case .none where octet == UInt8(ascii: "%"):
            escape = .begun
            return nil
        case .none: return octet == UInt8(ascii: "+") ? 0x20 : octet
        case .begun:
            guard let digit = octet.hexValue else { return broken() }
            escape = .high(digit)
            return nil
        case .high(let high):
            guard let digit = octet.hexValue else { return broken() }
            escape = .none
            return high << 4 | digit
        }
    }

    /// A name with a wrong escape is none that we know; only a grant type is to blame for one.
    private mutating func broken() -> UInt8? {
        escape = .none
        if part == .grant { isMalformed = true } else { matched = -1 }
        return nil
    }
}
