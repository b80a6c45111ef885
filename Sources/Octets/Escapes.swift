// Escapes in which programs write an octet that their text has another use for.

/// The kinds of escapes that a text is read with.
struct Escapes: OptionSet {
    let rawValue: UInt8

    /// `%2F` of URLs and forms, in either case of digits.
    static let percent = Escapes(rawValue: 1)
    /// `\/`, `\"`, `\u002f` and their like of JSON and its relatives.
    static let backslash = Escapes(rawValue: 2)
    /// `&amp;`, `&sol;`, `&#47;`, `&#x2f;` of HTML and XML.
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

    /// - Parameter isLast: nothing follows the text.
    /// - Precondition: `position` lies in `text`, and an octet there introduces escapes of the kind `kind`.
    init(_ text: UnsafeRawBufferPointer, at position: Int, _ kind: Escapes, isLast: Bool) {
        let next = position &+ 1
        let read: WrittenOctets =
            switch kind {
            case .percent: .ofDigits(text, next, count: 2, length: 3)
            case .backslash: .ofBackslash(text, next)
            default: .ofAmpersand(text, next, isLast)
            }
        if isLast, case .open = read { self = .plain } else { self = read }
    }

    /// The octet of `%252F` and its like: a percent sign that was escaped itself, once or more often.
    ///
    /// Nobody can tell whether `%25` is such a sign or the beginning of such an escape: whoever asks knows which octet to expect.
    /// - Precondition: `%25` stands at `position`.
    init(ofEscapedPercent text: UnsafeRawBufferPointer, at position: Int, isLast: Bool) {
        var next = position &+ 3
        for _ in 1..<Self.mostEscapings {
            switch WrittenOctets.ofDigits(text, next, count: 2, length: next &- position &+ 2) {
            case .escaped(0x25, _, _): next &+= 2
            case .open where isLast:
                self = .plain
                return
            case let read:
                self = read
                return
            }
        }
        self = .plain
    }

    /// So often a text is escaped when it is passed on in an address of an address.
    private static let mostEscapings = 4

    private static func ofBackslash(_ text: UnsafeRawBufferPointer, _ next: Int) -> WrittenOctets {
        guard next < text.count else { return .open }
        let octet = text[next]
        switch octet {
        case UInt8(ascii: "u"): return .ofUnits(text, next + 1)
        case UInt8(ascii: "x"): return .ofDigits(text, next + 1, count: 2, length: 4)
        case UInt8(ascii: "n"): return .escaped(octets: 0x0A, count: 1, length: 2)
        case UInt8(ascii: "r"): return .escaped(octets: 0x0D, count: 1, length: 2)
        case UInt8(ascii: "t"): return .escaped(octets: 0x09, count: 1, length: 2)
        default:
            if octet.isLetterOrDigit || octet <= 0x20 || octet >= 0x7F { return .plain }
            return .escaped(octets: UInt32(octet), count: 1, length: 2)
        }
    }

    /// `count` hexadecimal digits, which have to be there: the value is `octets`.
    private static func ofDigits(
        _ text: UnsafeRawBufferPointer, _ start: Int, count: Int, length: Int
    ) -> WrittenOctets {
        var value: UInt32 = 0
        for index in start..<start + count {
            guard index < text.count else { return .open }
            guard let digit = text[index].hexValue else { return .plain }
            value = value << 4 | UInt32(digit)
        }
        return .escaped(octets: value, count: 1, length: length)
    }

    /// The four digits behind `\u`; a character beyond the first 65,536 has two of them (RFC 8259 §7).
    private static func ofUnits(_ text: UnsafeRawBufferPointer, _ start: Int) -> WrittenOctets {
        let first = ofDigits(text, start, count: 4, length: 6)
        guard case .escaped(let unit, _, _) = first else { return first }
        guard 0xD800..<0xDC00 ~= unit else { return .of(codePoint: unit, 6) }
        for (index, octet) in [UInt8(ascii: "\\"), UInt8(ascii: "u")].enumerated() {
            guard start + 4 + index < text.count else { return .open }
            guard text[start + 4 + index] == octet else { return .plain }
        }
        let second = ofDigits(text, start + 6, count: 4, length: 12)
        guard case .escaped(let low, _, _) = second else { return second }
        guard 0xDC00..<0xE000 ~= low else { return .plain }
        return .of(codePoint: 0x10000 + (unit - 0xD800) << 10 + (low - 0xDC00), 12)
    }

    /// With its zeros in front, `&#x0000002f;` has eleven octets behind its first.
    private static let longestReference = 16

    private static func ofAmpersand(_ text: UnsafeRawBufferPointer, _ start: Int, _ isLast: Bool) -> WrittenOctets {
        guard start < text.count else { return .open }
        return text[start] == UInt8(ascii: "#") ? ofNumber(text, start, isLast) : ofName(text, start)
    }

    /// Readers of HTML take a number without a semicolon, too.
    private static func ofNumber(_ text: UnsafeRawBufferPointer, _ start: Int, _ isLast: Bool) -> WrittenOctets {
        var place = start + 1
        guard place < text.count else { return .open }
        let isHexadecimal = text[place] | 0x20 == UInt8(ascii: "x")
        if isHexadecimal { place += 1 }
        let digits = place
        var value: UInt64 = 0
        while place < text.count, let digit = text[place].hexValue, isHexadecimal || digit < 10 {
            guard place - start < longestReference else { return .plain }
            // At most fifteen digits: nothing overflows.
            value = value * (isHexadecimal ? 16 : 10) + UInt64(digit)
            place += 1
        }
        guard place < text.count || isLast else { return .open }
        guard place > digits, let codePoint = UInt32(exactly: value) else { return .plain }
        let hasEnd = place < text.count && text[place] == UInt8(ascii: ";")
        return .of(codePoint: codePoint, place - start + (hasEnd ? 2 : 1))
    }

    private static func ofName(_ text: UnsafeRawBufferPointer, _ start: Int) -> WrittenOctets {
        let rest = text[start...]
        var mayFollow = false
        for (name, octet) in references {
            if rest.starts(with: name) { return .escaped(octets: UInt32(octet), count: 1, length: name.count + 1) }
            if rest.count < name.count, name.starts(with: rest) { mayFollow = true }
        }
        return mayFollow ? .open : .plain
    }

    /// The names of HTML for characters of ASCII, each with its semicolon.
    private static let references: [(name: [UInt8], octet: UInt8)] = [
        ("amp", "&"), ("AMP", "&"), ("lt", "<"), ("LT", "<"), ("gt", ">"), ("GT", ">"), ("quot", "\""), ("QUOT", "\""),
        ("apos", "'"), ("Tab", "\t"), ("NewLine", "\n"), ("excl", "!"), ("num", "#"), ("dollar", "$"), ("percnt", "%"),
        ("lpar", "("), ("rpar", ")"), ("ast", "*"), ("midast", "*"), ("plus", "+"), ("comma", ","), ("period", "."),
        ("sol", "/"), ("colon", ":"), ("semi", ";"), ("equals", "="), ("quest", "?"), ("commat", "@"), ("lsqb", "["),
        ("lbrack", "["), ("bsol", "\\"), ("rsqb", "]"), ("rbrack", "]"), ("Hat", "^"), ("lowbar", "_"),
        ("UnderBar", "_"), ("grave", "`"), ("DiacriticalGrave", "`"), ("lcub", "{"), ("lbrace", "{"), ("verbar", "|"),
        ("vert", "|"), ("VerticalLine", "|"), ("rcub", "}"), ("rbrace", "}"),
    ].map { (name: Array($0.utf8) + [UInt8(ascii: ";")], octet: Array($1.utf8)[0]) }

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
