internal import Octets

/// A challenge of `WWW-Authenticate` or `Proxy-Authenticate` (RFC 9110 §11.3), as bytes. Not for a request that is served from the cache:
/// it copies.
public struct AuthChallenge: Sendable {
    /// Compare it in any case.
    public internal(set) var scheme: [UInt8]
    /// The `token68` form, its `=` included.
    public internal(set) var token68: [UInt8]?
    /// At most 64.
    public internal(set) var parameters: [Parameter] = []
    /// The first thing wrong with it. Its neighbours in the list are not touched by it.
    public internal(set) var fault: Fault?

    /// An `auth-param`.
    public struct Parameter: Sendable {
        /// Compare it in any case.
        public var name: [UInt8]
        /// Quoted pairs undone, nothing else.
        public var value: [UInt8]
    }

    /// The reason why a challenge is unusable.
    public enum Fault: String, Sendable {
        case malformed
        case unterminatedQuote = "unterminated quoted string"
        case controlCharacter = "control character"
        case tooManyParameters = "too many parameters"
    }

    /// The value under a name.
    public enum Value: Sendable {
        case absent, one([UInt8]), duplicate
    }

    /// The parameter of this name, in any case.
    public subscript(name: String) -> Value {
        var found: [UInt8]?
        for parameter in parameters where parameter.name.matches(name) {
            guard found == nil else { return .duplicate }
            found = parameter.value
        }
        return found.map { .one($0) } ?? .absent
    }

    static let mostParameters = 64
    /// Challenges read of one answer. A list of this many may have had more.
    public static let mostChallenges = 64
}

// MARK: - The list

extension AuthChallenge {
    /// Reads all field lines as one list, in linear time. A member that is broken is kept with its fault, so that a scheme can tell
    /// "not for me" from "for me, but unusable".
    /// - Parameter lines: the values of the field, in order.
    public static func list(_ lines: [[UInt8]]) -> [AuthChallenge] {
        var parser = Parser()
        for line in lines {
            parser.read(unfolded(line))
            guard parser.list.count < mostChallenges else { break }
        }
        return parser.list
    }

    // obs-fold of an answer counts as one space (RFC 9112 §5.2).
    private static func unfolded(_ line: [UInt8]) -> [UInt8] {
        guard line.contains(0x0D) else { return line }
        var plain: [UInt8] = []
        plain.reserveCapacity(line.count)
        var index = 0
        while index < line.count {
            if line[index] == 0x0D, index + 2 < line.count, line[index + 1] == 0x0A, line[index + 2].isBlank {
                index += 2
                while index < line.count, line[index].isBlank { index += 1 }
                plain.append(0x20)
            } else {
                plain.append(line[index])
                index += 1
            }
        }
        return plain
    }

    private struct Parser {
        var list: [AuthChallenge] = []
        private var line: [UInt8] = []
        private var at = 0

        // A comma may separate challenges or parameters, so each member is told by what follows its first token: `=` makes it a
        // parameter of the challenge before it, everything else a new scheme.
        mutating func read(_ text: [UInt8]) {
            line = text
            at = 0
            while true {
                while at < line.count, line[at].isBlank || line[at] == UInt8(ascii: ",") { at += 1 }
                guard at < line.count else { return }
                let name = token()
                guard !name.isEmpty else {
                    blame(line[at].isControl ? .controlCharacter : .malformed)
                    skipMember()
                    continue
                }
                if next(after: at) == UInt8(ascii: "=") {
                    parameter(name)
                } else {
                    guard list.count < AuthChallenge.mostChallenges else { return }
                    scheme(name)
                }
            }
        }

        private mutating func scheme(_ name: [UInt8]) {
            list.append(AuthChallenge(scheme: name))
            guard at < line.count, line[at] != UInt8(ascii: ",") else { return }
            guard line[at].isBlank else {
                blame(line[at].isControl ? .controlCharacter : .malformed)
                return skipMember()
            }
            skipBlanks()
            guard at < line.count, line[at] != UInt8(ascii: ",") else { return }
            if let value = token68() {
                list[list.count - 1].token68 = value
                return
            }
            let first = token()
            guard !first.isEmpty, next(after: at) == UInt8(ascii: "=") else {
                blame(.malformed)
                return skipMember()
            }
            parameter(first)
        }

        private mutating func parameter(_ name: [UInt8]) {
            skipBlanks()
            at += 1  // the `=` that the caller has seen
            skipBlanks()
            var value: [UInt8] = []
            if at < line.count, line[at] == UInt8(ascii: "\"") {
                guard let text = quotedString() else { return }
                value = text
            } else {
                value = token()
                if value.isEmpty { blame(.malformed) }
            }
            if let index = list.indices.last {
                if list[index].parameters.count < AuthChallenge.mostParameters {
                    list[index].parameters.append(Parameter(name: name, value: value))
                } else {
                    blame(.tooManyParameters)
                }
            }
            skipBlanks()
            guard at == line.count || line[at] == UInt8(ascii: ",") else {
                blame(line[at].isControl ? .controlCharacter : .malformed)
                return skipMember()
            }
        }

        private mutating func quotedString() -> [UInt8]? {
            at += 1
            var text: [UInt8] = []
            while at < line.count {
                var byte = line[at]
                at += 1
                if byte == UInt8(ascii: "\"") { return text }
                if byte == UInt8(ascii: "\\") {
                    guard at < line.count else { break }
                    byte = line[at]
                    at += 1
                }
                if byte.isControl, byte != 0x09 { blame(.controlCharacter) }
                text.append(byte)
            }
            blame(.unterminatedQuote)
            return nil
        }

        private mutating func token() -> [UInt8] {
            let start = at
            while at < line.count, line[at].isTokenCharacter { at += 1 }
            return Array(line[start..<at])
        }

        // Only if the member ends behind it; otherwise nothing is consumed.
        private mutating func token68() -> [UInt8]? {
            var end = at
            while end < line.count, line[end].isLetterOrDigit || "-._~+/".utf8.contains(line[end]) { end += 1 }
            guard end > at else { return nil }
            while end < line.count, line[end] == UInt8(ascii: "=") { end += 1 }
            let follower = next(after: end)
            guard follower == nil || follower == UInt8(ascii: ",") else { return nil }
            defer { at = end }
            return Array(line[at..<end])
        }

        private func next(after index: Int) -> UInt8? {
            var index = index
            while index < line.count, line[index].isBlank { index += 1 }
            return index < line.count ? line[index] : nil
        }

        private mutating func skipBlanks() {
            while at < line.count, line[at].isBlank { at += 1 }
        }

        // To the next comma outside quotes: what a broken member swallows must not become a member of its own.
        private mutating func skipMember() {
            while at < line.count, line[at] != UInt8(ascii: ",") {
                if line[at] == UInt8(ascii: "\"") {
                    guard quotedString() != nil else { return }
                } else {
                    at += 1
                }
            }
        }

        private mutating func blame(_ fault: Fault) {
            guard let index = list.indices.last, list[index].fault == nil else { return }
            list[index].fault = fault
        }
    }
}
