internal import Octets

/// A part of a pattern as a list of states. Its jumps count from their own place, so that it can stand anywhere and more than once.
private struct PatternPart {
    var states: [Pattern.Instruction] = []
    /// Whether it matches without reading anything.
    var canBeEmpty = true
    /// The part has more states than a pattern may have; they are not kept.
    var isTooLarge = false

    init(_ state: Pattern.Instruction, canBeEmpty: Bool) {
        states = [state]
        self.canBeEmpty = canBeEmpty
    }

    init(_ parts: PatternPart...) {
        for part in parts { append(part) }
    }

    mutating func append(_ part: PatternPart) {
        states += part.states
        canBeEmpty = canBeEmpty && part.canBeEmpty
        isTooLarge = isTooLarge || part.isTooLarge || states.count >= Pattern.mostStates
        if isTooLarge { states = [] }
    }

    /// The alternative of this part and `other`; where both match, this one counts.
    func or(_ other: PatternPart) -> PatternPart {
        var both = PatternPart(
            PatternPart(.split(1, states.count + 2), canBeEmpty: true), self,
            PatternPart(.jump(other.states.count + 1), canBeEmpty: true), other)
        both.canBeEmpty = canBeEmpty || other.canBeEmpty
        return both
    }

    /// - Parameter most: nil: without end.
    func repeated(least: Int, most: Int?, isLazy: Bool) -> PatternPart {
        func choice(over count: Int) -> PatternPart {
            PatternPart(isLazy ? .split(count + 1, 1) : .split(1, count + 1), canBeEmpty: true)
        }
        var further = PatternPart()
        if let most {
            // Each further one stands inside the one before it: x{0,2} is (x(x)?)?.
            for _ in least..<max(least, most) {
                further = PatternPart(choice(over: states.count + further.states.count), self, further)
            }
        } else {
            let back = PatternPart(.jump(-states.count - 1), canBeEmpty: true)
            further = PatternPart(choice(over: states.count + 1), self, back)
        }
        var whole = PatternPart()
        for _ in 0..<least { whole.append(self) }
        whole.append(further)
        whole.canBeEmpty = least == 0
        return whole
    }
}

/// Reads a pattern's text; everything that is not in the subset is an error that says so.
struct PatternParser {
    private let text: [UInt8]
    private var at = 0
    private var groups = 0
    private var depth = 0

    private static let deepest = 16

    init(_ text: String) { self.text = Array(text.utf8) }

    mutating func parse() throws(Pattern.Fault) -> [Pattern.Instruction] {
        guard text.count <= Pattern.longestText else { throw fault("must have at most 512 bytes", at: 0) }
        let whole = try alternatives()
        if at < text.count { throw fault("has a ')' that closes nothing", at: at) }
        guard groups == 1 else {
            throw fault(
                groups == 0
                    ? "needs one group '( )' around what is to be taken"
                    : "has \(groups) groups; '(?: )' takes nothing",
                at: 0)
        }
        guard !whole.isTooLarge else { throw fault("is too large: more than 256 states", at: 0) }
        return whole.states + [.match]
    }

    // MARK: - Grammar

    private mutating func alternatives() throws(Pattern.Fault) -> PatternPart {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw fault("is nested deeper than 16 levels", at: at) }
        var parts = [try sequence()]
        while take("|") { parts.append(try sequence()) }
        let last = parts.removeLast()
        return parts.reversed().reduce(last) { $1.or($0) }
    }

    private mutating func sequence() throws(Pattern.Fault) -> PatternPart {
        var whole = PatternPart()
        while at < text.count, text[at] != UInt8(ascii: "|"), text[at] != UInt8(ascii: ")") {
            whole.append(try repeated())
        }
        return whole
    }

    private mutating func repeated() throws(Pattern.Fault) -> PatternPart {
        let begin = at
        let item = try item()
        let mark = at
        guard let (least, most) = try counts() else { return item }
        // Engines differ in what such a repetition takes, and without it every loop reads a byte.
        guard !item.canBeEmpty else { throw fault("repeats what can be empty", at: begin) }
        let isLazy = take("?")
        if at < text.count, "*+?{".utf8.contains(text[at]) { throw fault("has two repetitions in a row", at: mark) }
        return item.repeated(least: least, most: most, isLazy: isLazy)
    }

    private mutating func counts() throws(Pattern.Fault) -> (Int, Int?)? {
        if take("*") { return (0, nil) }
        if take("+") { return (1, nil) }
        if take("?") { return (0, 1) }
        let begin = at
        guard take("{") else { return nil }
        guard let least = number() else { throw fault("has '{' without a number; '\\{' is the sign itself", at: begin) }
        var most: Int? = least
        if take(",") { most = number() }
        guard take("}"), most ?? least >= least, max(least, most ?? 0) <= Pattern.mostStates else {
            throw fault("has a repetition that is not {m}, {m,} or {m,n}, or one over 256", at: begin)
        }
        return (least, most)
    }

    private mutating func number() -> Int? {
        let digits = text[at...].prefix { (0x30...0x39).contains($0) }
        guard (1...4).contains(digits.count) else { return nil }
        at += digits.count
        return digits.reduce(0) { $0 * 10 + Int($1 & 0x0F) }
    }

    private mutating func item() throws(Pattern.Fault) -> PatternPart {
        let begin = at
        let byte = text[at]
        at += 1
        switch byte {
        case UInt8(ascii: "^"): return PatternPart(.atStart, canBeEmpty: true)
        case UInt8(ascii: "$"): return PatternPart(.atEnd, canBeEmpty: true)
        case UInt8(ascii: "."): return PatternPart(.set(.anyButLineFeed), canBeEmpty: false)
        case UInt8(ascii: "["): return PatternPart(.set(try set(from: begin)), canBeEmpty: false)
        case UInt8(ascii: "("): return try group(from: begin)
        case UInt8(ascii: "\\"): return try escape(from: begin)
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"):
            throw fault("has a repetition with nothing before it", at: begin)
        case UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "]"):
            let sign = Character(Unicode.Scalar(byte))
            throw fault("has a lone '\(sign)'; '\\\(sign)' is the sign itself", at: begin)
        default: return PatternPart(.byte(byte), canBeEmpty: false)
        }
    }

    private mutating func group(from begin: Int) throws(Pattern.Fault) -> PatternPart {
        var captures = true
        if take("?") {
            guard take(":") else { throw fault("has '(?' without ':'; nothing else of that kind is known", at: begin) }
            captures = false
        }
        if captures { groups += 1 }
        let inner = try alternatives()
        guard take(")") else { throw fault("has a '(' that is not closed", at: begin) }
        guard captures else { return inner }
        return PatternPart(
            PatternPart(.openGroup, canBeEmpty: true), inner, PatternPart(.closeGroup, canBeEmpty: true))
    }

    // MARK: - Signs

    private mutating func escape(from begin: Int) throws(Pattern.Fault) -> PatternPart {
        let sign = try escaped(from: begin)
        if let set = Self.classes[sign] { return PatternPart(.set(set), canBeEmpty: false) }
        return PatternPart(.byte(try byte(of: sign, from: begin)), canBeEmpty: false)
    }

    private mutating func escaped(from begin: Int) throws(Pattern.Fault) -> UInt8 {
        guard at < text.count else { throw fault("ends in the middle of '\\'", at: begin) }
        at += 1
        return text[at - 1]
    }

    private mutating func byte(of sign: UInt8, from begin: Int) throws(Pattern.Fault) -> UInt8 {
        switch sign {
        case UInt8(ascii: "t"): return 0x09
        case UInt8(ascii: "n"): return 0x0A
        case UInt8(ascii: "v"): return 0x0B
        case UInt8(ascii: "f"): return 0x0C
        case UInt8(ascii: "r"): return 0x0D
        case UInt8(ascii: "x"):
            guard at + 2 <= text.count,
                let value = Hexadecimal.octet(text[at], text[at + 1])
            else { throw fault("has '\\x' without two hexadecimal digits", at: begin) }
            at += 2
            return value
        case 0x30...0x39, 0x41...0x5A, 0x61...0x7A:
            throw fault("has '\\\(Character(Unicode.Scalar(sign)))', which is not known here", at: begin)
        case 0x21...0x7E, 0x20: return sign
        default: throw fault("has '\\' before what is no visible sign", at: begin)
        }
    }

    private static let classes: [UInt8: Pattern.ByteSet] = [
        UInt8(ascii: "d"): .digits, UInt8(ascii: "D"): Pattern.ByteSet.digits.inverted,
        UInt8(ascii: "w"): .words, UInt8(ascii: "W"): Pattern.ByteSet.words.inverted,
        UInt8(ascii: "s"): .blanks, UInt8(ascii: "S"): Pattern.ByteSet.blanks.inverted,
    ]

    private mutating func set(from begin: Int) throws(Pattern.Fault) -> Pattern.ByteSet {
        var set = Pattern.ByteSet()
        let isInverted = take("^")
        var isEmpty = true
        while true {
            guard at < text.count else { throw fault("has a '[' that is not closed", at: begin) }
            if take("]") { break }
            isEmpty = false
            guard let low = try member(into: &set, from: begin) else { continue }
            guard at + 1 < text.count, text[at] == UInt8(ascii: "-"), text[at + 1] != UInt8(ascii: "]") else {
                set.insert(low)
                continue
            }
            let start = at
            at += 1
            guard let high = try member(into: &set, from: begin), low <= high else {
                throw fault("has a range in '[ ]' whose end is no sign or lies before its start", at: start)
            }
            for byte in low...high { set.insert(byte) }
        }
        guard !isEmpty else { throw fault("has an empty '[ ]'; '\\]' is the sign itself", at: begin) }
        return isInverted ? set.inverted : set
    }

    /// A sign of a set; nil where it was a class, which is already in.
    private mutating func member(into set: inout Pattern.ByteSet, from begin: Int) throws(Pattern.Fault) -> UInt8? {
        let start = at
        let byte = text[at]
        at += 1
        if byte == UInt8(ascii: "[") { throw fault("has '[' inside '[ ]'; '\\[' is the sign itself", at: start) }
        // A sign of several bytes would be a set of its pieces.
        guard byte < 0x80 else { throw fault("has a sign beyond ASCII in '[ ]'; '\\xHH' is one byte", at: start) }
        guard byte == UInt8(ascii: "\\") else { return byte }
        let sign = try escaped(from: start)
        if let inner = Self.classes[sign] {
            set.formUnion(inner)
            return nil
        }
        return try self.byte(of: sign, from: start)
    }

    private mutating func take(_ sign: Unicode.Scalar) -> Bool {
        guard at < text.count, text[at] == UInt8(ascii: sign) else { return false }
        at += 1
        return true
    }

    private func fault(_ reason: String, at offset: Int) -> Pattern.Fault { .init(reason: reason, offset: offset) }
}
