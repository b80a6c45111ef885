// Escapes in which programs write an octet that their text has another use for.

/// The kinds of escapes that a text is read with.
struct Escapes: OptionSet {
    let rawValue: UInt8

    /// `%2F` of URLs and forms, in either case of digits.
    static let percent = Escapes(rawValue: 1)
    /// `\/`, `\"`, `\u002f` and their like of JSON and its relatives.
    static let backslash = Escapes(rawValue: 2)
    /// `&amp;`, `&#47;`, `&#x2f;` of HTML and XML.
    static let ampersand = Escapes(rawValue: 4)
    static let all: Escapes = [.percent, .backslash, .ampersand]

    init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The kind whose escapes begin with this octet; empty for any other octet.
    @inline(__always)
    init(introducedBy octet: UInt8) {
        switch octet {
        case 0x25: self = .percent
        case 0x5C: self = .backslash
        case 0x26: self = .ampersand
        default: self = []
        }
    }
}

/// The symbol at one place of a text that is read with some kinds of escapes.
enum WrittenOctets {
    /// An octet that stands for itself.
    case plain
    /// An escape of `length` octets that stands for `count` of them, at most four, the first in the lowest bits.
    case escaped(octets: UInt32, count: Int, length: Int)
    /// The beginning of an escape, of which the rest has not come.
    case open

    /// - Precondition: `position` lies in `text`, and an octet there introduces escapes of the kind `kind`.
    init(_ text: UnsafeRawBufferPointer, at position: Int, _ kind: Escapes) {
        let next = position &+ 1
        switch kind {
        case .percent: self = .ofDigits(text, next, count: 2, length: 3, isCodePoint: false)
        case .backslash: self = .ofBackslash(text, next)
        default: self = .ofAmpersand(text, next)
        }
    }

    private static func ofBackslash(_ text: UnsafeRawBufferPointer, _ next: Int) -> WrittenOctets {
        guard next < text.count else { return .open }
        let octet = text[next]
        switch octet {
        case UInt8(ascii: "u"): return .ofDigits(text, next + 1, count: 4, length: 6, isCodePoint: true)
        case UInt8(ascii: "x"): return .ofDigits(text, next + 1, count: 2, length: 4, isCodePoint: false)
        case UInt8(ascii: "n"): return .escaped(octets: 0x0A, count: 1, length: 2)
        case UInt8(ascii: "r"): return .escaped(octets: 0x0D, count: 1, length: 2)
        case UInt8(ascii: "t"): return .escaped(octets: 0x09, count: 1, length: 2)
        default:
            if octet.isLetterOrDigit || octet <= 0x20 || octet >= 0x7F { return .plain }
            return .escaped(octets: UInt32(octet), count: 1, length: 2)
        }
    }

    /// `count` hexadecimal digits, which have to be there.
    private static func ofDigits(
        _ text: UnsafeRawBufferPointer, _ start: Int, count: Int, length: Int, isCodePoint: Bool
    ) -> WrittenOctets {
        var value: UInt32 = 0
        for index in start..<start + count {
            guard index < text.count else { return .open }
            guard let digit = text[index].hexValue else { return .plain }
            value = value << 4 | UInt32(digit)
        }
        return isCodePoint ? .of(codePoint: value, length) : .escaped(octets: value, count: 1, length: length)
    }

    /// `&#x10FFFF;` has nine octets behind its first, and no name that is read has more.
    private static let longestReference = 9

    private static func ofAmpersand(_ text: UnsafeRawBufferPointer, _ start: Int) -> WrittenOctets {
        var end = start
        while end < text.count, text[end] != UInt8(ascii: ";") {
            guard end - start < longestReference, text[end].isLetterOrDigit || text[end] == UInt8(ascii: "#") else {
                return .plain
            }
            end += 1
        }
        guard end < text.count else { return .open }
        let name = text[start..<end]
        let length = end - start + 2
        if name.first == UInt8(ascii: "#") {
            let isHexadecimal = name.dropFirst().first.map { $0 | 0x20 == UInt8(ascii: "x") } ?? false
            let digits = name.dropFirst(isHexadecimal ? 2 : 1)
            guard !digits.isEmpty else { return .plain }
            var value: UInt32 = 0
            // At most eight digits: nothing overflows.
            for octet in digits {
                guard let digit = octet.hexValue, isHexadecimal || digit < 10 else { return .plain }
                value = value &* (isHexadecimal ? 16 : 10) &+ UInt32(digit)
            }
            return .of(codePoint: value, length)
        }
        for (known, octet) in references where name.elementsEqual(known.utf8) {
            return .escaped(octets: UInt32(octet), count: 1, length: length)
        }
        return .plain
    }

    private static let references: [(String, UInt8)] = [
        ("amp", 0x26), ("lt", 0x3C), ("gt", 0x3E), ("quot", 0x22), ("apos", 0x27),
    ]

    /// The UTF-8 of a character; half of a surrogate pair is none.
    private static func of(codePoint: UInt32, _ length: Int) -> WrittenOctets {
        guard let scalar = Unicode.Scalar(codePoint) else { return .plain }
        var octets: UInt32 = 0
        var count = 0
        for octet in UTF8.encode(scalar) ?? .init() {
            octets |= UInt32(octet) << UInt32(8 * count)
            count += 1
        }
        return count == 0 ? .plain : .escaped(octets: octets, count: count, length: length)
    }
}
