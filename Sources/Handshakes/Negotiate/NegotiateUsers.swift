internal import Octets

/// The users in whose names an identity asks for tickets (`for_users`), and how a subject becomes a principal.
///
/// A subject is a stranger's text. A principal's text has a syntax of its own, in which `@` begins a realm, `/` a further part and `\` an escape, so
/// that a name with one of them is refused and never quoted. Directories compare names more loosely than octets: Active Directory knows no
/// case, and takes letters with accents or of double width, and blanks at an end, for the plain ones. A rule for many names
/// therefore takes plain names alone.
struct NegotiateUsers: Sendable, Equatable {
    /// The realm of all users.
    var realm: String
    var allow: [Rule]
    var deny: [Rule]
    /// Taken off a subject, which has to begin and end with them.
    var prefix = ""
    var suffix = ""

    /// Octets of a subject.
    static let longestName = 256
    /// The names of no people, which no `allow` admits: the KDC's own account, and machines.
    static let alwaysDenied = [Rule("krbtgt"), Rule("*$")]

    /// The reason for which a subject has no principal. Its description has nothing of the subject.
    enum Refusal: Error, Equatable, CaseIterable, CustomStringConvertible {
        case malformed, otherForm, denied, notAllowed

        var description: String {
            switch self {
            case .malformed:
                "the subject is no name of a user: it is empty, too long, or has a character that none may have"
            case .otherForm: "the subject has not the form that 'for_users' of the identity describes"
            case .denied: "'deny' of the identity refuses this user"
            case .notAllowed: "'allow' of the identity does not have this user"
            }
        }
    }

    /// An entry of `allow` or `deny`: a name, or a text with which names begin or end.
    struct Rule: Sendable, Equatable {
        let kind: Kind
        let text: [UInt8]

        enum Kind: Sendable { case exact, begins, ends }

        /// - Parameter written: with at most one `*`, which stands at the beginning or at the end.
        init(_ written: String) {
            let octets = Array(written.utf8)
            if octets.first == UInt8(ascii: "*") {
                kind = .ends
                text = Array(octets.dropFirst())
            } else if octets.last == UInt8(ascii: "*") {
                kind = .begins
                text = Array(octets.dropLast())
            } else {
                kind = .exact
                text = octets
            }
        }

        /// Any name at all.
        var isOpen: Bool { kind != .exact && text.isEmpty }
        /// The written form has a second `*`, or it stands in the middle.
        var isUnclear: Bool { text.contains(UInt8(ascii: "*")) }

        /// To the last octet; a rule for many names takes printable ASCII without blanks alone.
        func allows(_ name: [UInt8]) -> Bool {
            guard kind != .exact else { return name == text }
            return name.allSatisfy { (0x21...0x7e).contains($0) } && matches(name, text)
        }

        /// Whatever the case of its ASCII letters is.
        func denies(_ name: [UInt8]) -> Bool { matches(name.map(\.asciiLowercased), text.map(\.asciiLowercased)) }

        private func matches(_ name: [UInt8], _ text: [UInt8]) -> Bool {
            switch kind {
            case .exact: name == text
            case .begins: name.starts(with: text)
            case .ends: name.count >= text.count && name.suffix(text.count).elementsEqual(text)
            }
        }
    }

    /// The principal of a subject, as `name@REALM`.
    func principal(of subject: String) throws(Refusal) -> String {
        let whole = Array(subject.utf8)
        guard (1...Self.longestName).contains(whole.count) else { throw .malformed }
        guard whole.count >= prefix.utf8.count + suffix.utf8.count, whole.starts(with: prefix.utf8),
            whole.suffix(suffix.utf8.count).elementsEqual(suffix.utf8)
        else { throw .otherForm }
        let name = Array(whole.dropFirst(prefix.utf8.count).dropLast(suffix.utf8.count))
        guard let text = String(validating: name, as: UTF8.self), Self.isName(text) else { throw .malformed }
        guard !(Self.alwaysDenied + deny).contains(where: { $0.denies(name) }) else { throw .denied }
        guard allow.contains(where: { $0.allows(name) }) else { throw .notAllowed }
        return "\(text)@\(realm)"
    }

    /// Not empty, without `@`, `/`, `\`, what cannot be seen, and blanks at an end.
    static func isName(_ text: String) -> Bool {
        let scalars = text.unicodeScalars
        guard let first = scalars.first, let last = scalars.last, !first.properties.isWhitespace,
            !last.properties.isWhitespace
        else { return false }
        return scalars.allSatisfy { scalar in
            switch scalar {
            case "@", "/", "\\": return false
            default: break
            }
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned:
                return false
            default: return true
            }
        }
    }

    /// A realm is ASCII here; another one is not written by mistake alone (RFC 4120 §6.1).
    static func isRealm(_ text: String) -> Bool {
        (1...255).contains(text.utf8.count)
            && text.utf8.allSatisfy { (0x21...0x7e).contains($0) && !"@/\\:=\"*".utf8.contains($0) }
    }
}
