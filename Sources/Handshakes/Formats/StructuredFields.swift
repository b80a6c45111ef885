internal import Numbers
internal import Octets

/// A bare item of structured fields (RFC 9651 §3.3).
enum StructuredValue: Sendable, Equatable {
    case integer(Int64)
    /// Nothing here has a use for the number itself.
    case decimal
    case string(String)
    case token(String)
    case bytes([UInt8])
    case boolean(Bool)
    /// Seconds since 1970.
    case date(Int64)
    case displayString(String)
}

/// A parameter behind an item or an inner list (RFC 9651 §3.1.2).
struct StructuredParameter: Sendable, Equatable {
    var key: String
    var value: StructuredValue
}

/// An item with its parameters (RFC 9651 §3.3).
struct StructuredItem: Sendable, Equatable {
    var value: StructuredValue
    var parameters: [StructuredParameter] = []
}

/// A dictionary of structured fields (RFC 9651 §3.2), as others wrote it. Where the standard lets the last of equal keys win, nothing is read: two readers
/// could take such a field for different ones.
struct StructuredDictionary: Sendable, Equatable {
    enum Value: Sendable, Equatable {
        case item(StructuredItem)
        case list([StructuredItem], [StructuredParameter])
    }

    struct Member: Sendable, Equatable {
        var key: String
        var value: Value
        /// The octets that spell key and value.
        var written: [UInt8]
    }

    /// In the order in which they were written.
    private(set) var members: [Member] = []

    /// The reasons why a field is not read, as clauses that quote nothing of it.
    enum Fault: String, Error {
        case malformed = "it is no dictionary of structured fields"
        case duplicate = "a key stands twice in it"
        case tooLong = "it is too long"
        case tooMany = "it has too many parts"
    }

    /// Octets of all lines together.
    static let longest = 16 * 1024
    static let mostMembers = 64
    /// Items of one inner list, and parameters behind one item.
    static let mostParts = 64
    static let longestKey = 64

    /// - Parameter lines: the value of each field of the name, in their order.
    init(_ lines: [[UInt8]]) throws(Fault) {
        let written = lines.filter { !$0.allSatisfy(\.isBlank) }
        guard written.reduce(0, { $0 + $1.count + 2 }) <= Self.longest else { throw .tooLong }
        var reader = StructuredFieldReader(Array(written.joined(separator: Array(", ".utf8))))
        members = try reader.dictionary()
    }

    subscript(key: String) -> Value? { members.first { $0.key == key }?.value }
}

/// Reads octets as RFC 9651 §4.2 says.
private struct StructuredFieldReader {
    private let octets: [UInt8]
    private var at = 0

    typealias Fault = StructuredDictionary.Fault

    init(_ octets: [UInt8]) { self.octets = octets }

    private var next: UInt8? { at < octets.count ? octets[at] : nil }

    private mutating func take(_ octet: Character) -> Bool {
        guard next == octet.asciiValue else { return false }
        at += 1
        return true
    }

    private mutating func skip(_ isSkipped: (UInt8) -> Bool) { while let next, isSkipped(next) { at += 1 } }

    private mutating func taken(_ isTaken: (UInt8) -> Bool) -> ArraySlice<UInt8> {
        let start = at
        skip(isTaken)
        return octets[start..<at]
    }

    // MARK: - Containers

    mutating func dictionary() throws(Fault) -> [StructuredDictionary.Member] {
        var members: [StructuredDictionary.Member] = []
        skip { $0 == 0x20 }
        guard next != nil else { return [] }
        while true {
            let start = at
            let key = try key()
            guard !members.contains(where: { $0.key == key }) else { throw .duplicate }
            guard members.count < StructuredDictionary.mostMembers else { throw .tooMany }
            let value: StructuredDictionary.Value
            if take("=") {
                value = next == UInt8(ascii: "(") ? try list() : .item(try item())
            } else {
                value = .item(StructuredItem(value: .boolean(true), parameters: try parameters()))
            }
            members.append(StructuredDictionary.Member(key: key, value: value, written: Array(octets[start..<at])))
            skip(\.isBlank)
            guard next != nil else { return members }
            guard take(",") else { throw .malformed }
            skip(\.isBlank)
        }
    }

    private mutating func list() throws(Fault) -> StructuredDictionary.Value {
        var items: [StructuredItem] = []
        guard take("(") else { throw .malformed }
        while true {
            skip { $0 == 0x20 }
            if take(")") { return .list(items, try parameters()) }
            guard items.count < StructuredDictionary.mostParts else { throw .tooMany }
            items.append(try item())
            guard next == 0x20 || next == UInt8(ascii: ")") else { throw .malformed }
        }
    }

    private mutating func item() throws(Fault) -> StructuredItem {
        let value = try bareItem()
        return StructuredItem(value: value, parameters: try parameters())
    }

    private mutating func parameters() throws(Fault) -> [StructuredParameter] {
        var parameters: [StructuredParameter] = []
        while take(";") {
            skip { $0 == 0x20 }
            let key = try key()
            guard !parameters.contains(where: { $0.key == key }) else { throw .duplicate }
            guard parameters.count < StructuredDictionary.mostParts else { throw .tooMany }
            parameters.append(StructuredParameter(key: key, value: take("=") ? try bareItem() : .boolean(true)))
        }
        return parameters
    }

    private mutating func key() throws(Fault) -> String {
        guard let first = next, first.isSmallLetter || first == UInt8(ascii: "*") else { throw .malformed }
        let key = taken { $0.isSmallLetter || $0.isDigit || "_-.*".utf8.contains($0) }
        guard key.count <= StructuredDictionary.longestKey else { throw .tooLong }
        return String(decoding: key, as: UTF8.self)
    }

    // MARK: - Bare items

    private mutating func bareItem() throws(Fault) -> StructuredValue {
        guard let first = next else { throw .malformed }
        switch first {
        case _ where first == UInt8(ascii: "-") || first.isDigit: return try number()
        case UInt8(ascii: "\""): return .string(try string())
        case _ where first == UInt8(ascii: "*") || first.isLetter:
            let token = taken { $0.isTokenCharacter || $0 == UInt8(ascii: ":") || $0 == UInt8(ascii: "/") }
            return .token(String(decoding: token, as: UTF8.self))
        case UInt8(ascii: ":"): return .bytes(try bytes())
        case UInt8(ascii: "?"):
            at += 1
            if take("1") { return .boolean(true) }
            guard take("0") else { throw .malformed }
            return .boolean(false)
        case UInt8(ascii: "@"):
            at += 1
            guard case .integer(let seconds) = try number() else { throw .malformed }
            return .date(seconds)
        case UInt8(ascii: "%"):
            at += 1
            return .displayString(try displayString())
        default: throw .malformed
        }
    }

    private mutating func number() throws(Fault) -> StructuredValue {
        let start = at
        _ = take("-")
        let whole = taken(\.isDigit)
        guard !whole.isEmpty else { throw .malformed }
        if take(".") {
            let fraction = taken(\.isDigit)
            guard whole.count <= 12, (1...3).contains(fraction.count) else { throw .malformed }
            return .decimal
        }
        guard whole.count <= 15, let number = ReceivedNumber(decimal: octets[start..<at]),
            let value: Int64 = number.within(Int64.min...Int64.max)
        else { throw .malformed }
        return .integer(value)
    }

    private mutating func string() throws(Fault) -> String {
        guard take("\"") else { throw .malformed }
        var text: [UInt8] = []
        while let octet = next {
            at += 1
            switch octet {
            case UInt8(ascii: "\""): return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"):
                guard let escaped = next, escaped == UInt8(ascii: "\"") || escaped == UInt8(ascii: "\\") else {
                    throw .malformed
                }
                at += 1
                text.append(escaped)
            case 0x20...0x7E: text.append(octet)
            default: throw .malformed
            }
        }
        throw .malformed
    }

    private mutating func bytes() throws(Fault) -> [UInt8] {
        guard take(":") else { throw .malformed }
        let text = taken { $0 != UInt8(ascii: ":") }
        guard take(":"), let bytes = Base64.decode(text) else { throw .malformed }
        return bytes
    }

    private mutating func displayString() throws(Fault) -> String {
        guard take("\"") else { throw .malformed }
        var text: [UInt8] = []
        while let octet = next {
            at += 1
            switch octet {
            case UInt8(ascii: "\""):
                guard let text = String(validating: text, as: UTF8.self) else { throw .malformed }
                return text
            case UInt8(ascii: "%"):
                let digits = Array(octets[at...].prefix(2))
                // Capital digits spell no octet.
                guard digits.count == 2, digits.allSatisfy({ $0.isDigit || $0.isSmallLetter }),
                    let high = digits[0].hexValue, let low = digits[1].hexValue
                else { throw .malformed }
                at += 2
                text.append(high << 4 | low)
            case 0x20...0x7E: text.append(octet)
            default: throw .malformed
            }
        }
        throw .malformed
    }
}

extension UInt8 {
    fileprivate var isSmallLetter: Bool { self &- 0x61 < 26 }
}

extension String {
    /// The text as a string of structured fields (RFC 9651 §4.1.6); nil where it is not printable ASCII.
    var structuredString: [UInt8]? {
        guard utf8.allSatisfy({ (0x20...0x7E).contains($0) }) else { return nil }
        var octets = [UInt8(ascii: "\"")]
        for octet in utf8 {
            if octet == UInt8(ascii: "\"") || octet == UInt8(ascii: "\\") { octets.append(UInt8(ascii: "\\")) }
            octets.append(octet)
        }
        return octets + [UInt8(ascii: "\"")]
    }
}
