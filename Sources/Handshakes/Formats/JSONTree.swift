internal import Numbers
internal import Octets

/// A JSON document of unknown shape (RFC 8259), read strictly and within bounds, for values that a pointer names.
indirect enum JSONTree: Sendable {
    /// UTF-8, escapes undone.
    case string([UInt8])
    /// The number's text, as written.
    case number([UInt8])
    case bool(Bool)
    case null
    case list([JSONTree])
    case object([(name: [UInt8], value: JSONTree)])

    static let largest = 64 * 1024
    static let deepest = 16
    static let mostValues = 4096

    enum Fault: String, Error {
        case empty = "an empty body"
        case markup = "HTML instead of JSON"
        case tooLarge = "a body over 64 KiB"
        case tooDeep = "JSON nested too deeply"
        case tooManyValues = "JSON with too many values"
        case duplicate = "JSON with a duplicate member"
        case notJSON = "a body that is no JSON"
    }

    init(_ body: [UInt8]) throws(Fault) {
        guard body.count <= Self.largest else { throw .tooLarge }
        guard let first = body.first(where: { !$0.isJSONBlank }) else { throw .empty }
        guard first != UInt8(ascii: "<") else { throw .markup }
        guard body.isUTF8 else { throw .notJSON }
        var reader = JSONTreeReader(body: body)
        self = try reader.document()
    }

    /// The value that the pointer (RFC 6901) names; nil where nothing is. Of two members with one name neither is it: which one was meant
    /// must not be a matter of luck.
    func value(at pointer: [String]) throws(Fault) -> JSONTree? {
        var here = self
        for token in pointer {
            switch here {
            case .object(let members):
                let found = members.filter { $0.name.elementsEqual(token.utf8) }
                guard found.count <= 1 else { throw .duplicate }
                guard let member = found.first else { return nil }
                here = member.value
            case .list(let items):
                let isIndex = (1...4).contains(token.utf8.count) && token.utf8.allSatisfy(\.isDigit)
                guard isIndex, token == "0" || token.utf8.first != UInt8(ascii: "0"),
                    let index = ReceivedNumber(token)?.within(0...9999),
                    index < items.count
                else { return nil }
                here = items[index]
            default: return nil
            }
        }
        return here
    }

    /// The bytes of a single value; nil for null, lists and objects.
    var scalar: [UInt8]? {
        switch self {
        case .string(let bytes), .number(let bytes): bytes
        case .bool(let flag): Array((flag ? "true" : "false").utf8)
        case .null, .list, .object: nil
        }
    }
}

// MARK: - Values at a place, where a fault is as good as nothing there

extension JSONTree {
    /// The text of a string.
    func text(_ pointer: [String]) -> String? {
        guard case .string(let bytes)? = try? value(at: pointer) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }

    /// A whole number, or the same in quotes, as some servers write times.
    func number(_ pointer: [String]) -> ReceivedNumber? {
        (try? value(at: pointer))?.scalar.flatMap { ReceivedNumber(decimal: $0) }
    }

    /// Milliseconds since 1970. A login that never ends is told as one that ends in the year 9999, or later.
    func moment(_ pointer: [String]) -> WallTime? { number(pointer).map { WallTime(milliseconds: $0) } }

    /// True or false, and nothing that merely reads so.
    func flag(_ pointer: [String]) -> Bool? {
        guard case .bool(let flag)? = try? value(at: pointer) else { return nil }
        return flag
    }

    func members(_ pointer: [String]) -> [(name: String, value: JSONTree)]? {
        guard case .object(let members)? = try? value(at: pointer) else { return nil }
        return members.map { (String(decoding: $0.name, as: UTF8.self), $0.value) }
    }

    func items(_ pointer: [String]) -> [JSONTree]? {
        guard case .list(let items)? = try? value(at: pointer) else { return nil }
        return items
    }
}

// MARK: - Reading

private struct JSONTreeReader {
    let body: [UInt8]
    private var at = 0
    private var values = 0

    init(body: [UInt8]) { self.body = body }

    mutating func document() throws(JSONTree.Fault) -> JSONTree {
        let tree = try value(depth: 1)
        skipBlanks()
        guard at == body.count else { throw .notJSON }
        return tree
    }

    private mutating func value(depth: Int) throws(JSONTree.Fault) -> JSONTree {
        guard depth <= JSONTree.deepest else { throw .tooDeep }
        values += 1
        guard values <= JSONTree.mostValues else { throw .tooManyValues }
        skipBlanks()
        guard at < body.count else { throw .notJSON }
        switch body[at] {
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "{"): return .object(try members(depth: depth))
        case UInt8(ascii: "["): return .list(try items(depth: depth))
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return .number(try number())
        }
    }

    private mutating func members(depth: Int) throws(JSONTree.Fault) -> [(name: [UInt8], value: JSONTree)] {
        at += 1
        var members: [(name: [UInt8], value: JSONTree)] = []
        if take("}") { return members }
        repeat {
            skipBlanks()
            guard at < body.count, body[at] == UInt8(ascii: "\"") else { throw .notJSON }
            let name = try string()
            guard take(":") else { throw .notJSON }
            members.append((name, try value(depth: depth + 1)))
        } while take(",")
        guard take("}") else { throw .notJSON }
        return members
    }

    private mutating func items(depth: Int) throws(JSONTree.Fault) -> [JSONTree] {
        at += 1
        var items: [JSONTree] = []
        if take("]") { return items }
        repeat { items.append(try value(depth: depth + 1)) } while take(",")
        guard take("]") else { throw .notJSON }
        return items
    }

    private mutating func word(_ text: String, _ value: JSONTree) throws(JSONTree.Fault) -> JSONTree {
        guard body[at...].starts(with: text.utf8) else { throw .notJSON }
        at += text.utf8.count
        return value
    }

    private mutating func number() throws(JSONTree.Fault) -> [UInt8] {
        let begin = at
        if peek("-") { at += 1 }
        let whole = digits()
        guard whole > 0, whole == 1 || body[at - whole] != UInt8(ascii: "0") else { throw .notJSON }
        if peek(".") {
            at += 1
            guard digits() > 0 else { throw .notJSON }
        }
        if peek("e") || peek("E") {
            at += 1
            if peek("+") || peek("-") { at += 1 }
            guard digits() > 0 else { throw .notJSON }
        }
        return Array(body[begin..<at])
    }

    private mutating func digits() -> Int {
        let begin = at
        while at < body.count, body[at].isDigit { at += 1 }
        return at - begin
    }

    private mutating func string() throws(JSONTree.Fault) -> [UInt8] {
        at += 1
        var text: [UInt8] = []
        while at < body.count {
            let byte = body[at]
            at += 1
            switch byte {
            case UInt8(ascii: "\""): return text
            case UInt8(ascii: "\\"): try escape(into: &text)
            case 0..<0x20: throw .notJSON
            default: text.append(byte)
            }
        }
        throw .notJSON
    }

    private mutating func escape(into text: inout [UInt8]) throws(JSONTree.Fault) {
        guard at < body.count else { throw .notJSON }
        let sign = body[at]
        at += 1
        switch sign {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): text.append(sign)
        case UInt8(ascii: "b"): text.append(0x08)
        case UInt8(ascii: "f"): text.append(0x0C)
        case UInt8(ascii: "n"): text.append(0x0A)
        case UInt8(ascii: "r"): text.append(0x0D)
        case UInt8(ascii: "t"): text.append(0x09)
        case UInt8(ascii: "u"):
            var code = try unit()
            if (0xD800..<0xDC00).contains(code) {
                guard at + 1 < body.count, body[at] == UInt8(ascii: "\\"), body[at + 1] == UInt8(ascii: "u") else {
                    throw .notJSON
                }
                at += 2
                let low = try unit()
                guard (0xDC00..<0xE000).contains(low) else { throw .notJSON }
                code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
            }
            // A lone half of a pair is no character.
            guard let scalar = Unicode.Scalar(code) else { throw .notJSON }
            text += Array(String(Character(scalar)).utf8)
        default: throw .notJSON
        }
    }

    private mutating func unit() throws(JSONTree.Fault) -> UInt32 {
        guard at + 4 <= body.count, let unit = Hexadecimal.decode(body[at..<(at + 4)]) else { throw .notJSON }
        at += 4
        return UInt32(unit[0]) << 8 | UInt32(unit[1])
    }

    private mutating func skipBlanks() { while at < body.count, body[at].isJSONBlank { at += 1 } }

    private func peek(_ sign: Unicode.Scalar) -> Bool { at < body.count && body[at] == UInt8(ascii: sign) }

    private mutating func take(_ sign: Unicode.Scalar) -> Bool {
        skipBlanks()
        guard peek(sign) else { return false }
        at += 1
        return true
    }
}
