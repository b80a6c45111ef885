internal import FoundationEssentials
internal import Numbers
internal import Octets

/// The JSON object of an issuer's answer: bounded, flat, and read without trust.
///
/// Values stay strings inside the decoder's memory, which is not wiped; what is kept of them goes into a `Secret`.
struct AnswerObject {
    private let members: [String: Member]

    enum Member {
        case string(String), integer(ReceivedNumber), number(Double), bool(Bool), null
        /// A single level of nesting is enough for the error objects met in the field.
        case object([String: String])
        case other
    }

    enum Fault: String, Error {
        case empty = "an empty body"
        case markup = "HTML instead of JSON"
        case tooLarge = "a body over 64 KiB"
        case tooDeep = "JSON nested too deeply"
        case tooManyMembers = "JSON with too many members"
        case duplicate = "JSON with a duplicate member"
        case notAnObject = "JSON that is no object"
        case notJSON = "a body that is no JSON"
    }

    static let largest = 64 * 1024
    static let deepest = 16
    static let mostMembers = 256

    /// Exact spelling first, then without case; an ambiguous spelling finds nothing.
    subscript(name: String) -> Member? {
        if let exact = members[name] { return exact }
        let loose = members.filter { $0.key.utf8.count == name.utf8.count && Array($0.key.utf8).matches(name) }
        return loose.count == 1 ? loose.first?.value : nil
    }

    func string(_ name: String) -> String? {
        if case .string(let text)? = self[name] { return text }
        return nil
    }

    var names: some Collection<String> { members.keys }
}

// MARK: - Reading

extension AnswerObject {
    init(_ body: [UInt8]) throws(Fault) {
        guard body.count <= Self.largest else { throw .tooLarge }
        guard let first = body.first(where: { !$0.isJSONBlank }) else { throw .empty }
        guard first != UInt8(ascii: "<") else { throw .markup }
        guard first == UInt8(ascii: "{") else { throw .notAnObject }
        let counted = try Self.survey(body)
        guard counted <= Self.mostMembers else { throw .tooManyMembers }
        guard String(validating: body, as: UTF8.self) != nil else { throw .notJSON }
        do {
            members = try JSONDecoder().decode(Members.self, from: Data(body)).all
        } catch {
            throw .notJSON
        }
        // The decoder keeps one of two members of the same name: which of two tokens it was must not be a matter of luck.
        guard members.count == counted else { throw .duplicate }
    }

    // The decoder recurses, so the depth is known before it starts. Returns the number of members of the outermost object.
    private static func survey(_ body: [UInt8]) throws(Fault) -> Int {
        var depth = 0
        var members = 0
        var quoted = false
        var escaped = false
        for byte in body {
            if quoted {
                if escaped {
                    escaped = false
                } else if byte == UInt8(ascii: "\\") {
                    escaped = true
                } else if byte == UInt8(ascii: "\"") {
                    quoted = false
                }
                continue
            }
            switch byte {
            case UInt8(ascii: "\""): quoted = true
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                depth += 1
                guard depth <= deepest else { throw .tooDeep }
            case UInt8(ascii: "}"), UInt8(ascii: "]"): depth -= 1
            case UInt8(ascii: ":") where depth == 1: members += 1
            default: break
            }
        }
        guard depth == 0, !quoted else { throw .notJSON }
        return members
    }

    private struct Members: Decodable {
        var all: [String: Member] = [:]

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: Name.self)
            for name in container.allKeys { all[name.stringValue] = Self.member(name, in: container) }
        }

        private static func member(_ name: Name, in container: KeyedDecodingContainer<Name>) -> Member {
            if let text = try? container.decode(String.self, forKey: name) { return .string(text) }
            if let number = try? container.decode(Int64.self, forKey: name) { return .integer(ReceivedNumber(number)) }
            if let number = try? container.decode(Double.self, forKey: name) { return .number(number) }
            if let flag = try? container.decode(Bool.self, forKey: name) { return .bool(flag) }
            if (try? container.decodeNil(forKey: name)) == true { return .null }
            guard let nested = try? container.nestedContainer(keyedBy: Name.self, forKey: name),
                nested.allKeys.count <= AnswerObject.mostMembers
            else { return .other }
            var texts: [String: String] = [:]
            for key in nested.allKeys { texts[key.stringValue] = try? nested.decode(String.self, forKey: key) }
            return .object(texts)
        }
    }

    private struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

// MARK: - Error codes

extension String {
    /// The text if it has the shape of a code (`invalid_client`, `IDAAS-12345`): short, without anything that could be a value.
    var asErrorCode: String? {
        let isCode =
            (1...48).contains(utf8.count) && utf8.first?.isLetter == true
            && utf8.allSatisfy { $0.isLetterOrDigit || $0 == UInt8(ascii: "_") || $0 == UInt8(ascii: "-") }
        return isCode ? self : nil
    }

    /// The text if it is letters, a hyphen and up to six digits, as Oracle's codes are: `IDAAS-62001`, `AUTH-3001`.
    var asOracleCode: String? {
        let parts = utf8.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard parts.count == 2, (2...8).contains(parts[0].count), (1...6).contains(parts[1].count),
            parts[0].allSatisfy({ $0.isLetter }), parts[1].allSatisfy({ $0.isDigit })
        else { return nil }
        return self
    }
}

extension AnswerObject: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    var description: String { "JSON object of \(members.count) members" }
    var debugDescription: String { description }
    var customMirror: Mirror { Mirror(self, children: []) }
}
