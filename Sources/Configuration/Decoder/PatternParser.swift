internal import Octets

/// A pattern as a tree.
indirect enum PatternTree: Sendable {
    case empty
    case byte(UInt8)
    case set(Pattern.ByteSet)
    case start, end
    case sequence([PatternTree])
    case alternatives([PatternTree])
    case group(PatternTree)
    /// `most` nil: without end.
    case repeated(PatternTree, least: Int, most: Int?, isLazy: Bool)

    /// Whether it matches without reading anything.
    var canBeEmpty: Bool {
        switch self {
        case .empty, .start, .end: true
        case .byte, .set: false
        case .sequence(let parts): parts.allSatisfy(\.canBeEmpty)
        case .alternatives(let parts): parts.contains(where: \.canBeEmpty)
        case .group(let inner): inner.canBeEmpty
        case .repeated(let inner, let least, _, _): least == 0 || inner.canBeEmpty
        }
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

    mutating func parse() throws(Pattern.Fault) -> PatternTree {
        guard text.count <= Pattern.longestText else { throw fault("must have at most 512 bytes", at: 0) }
        let tree = try alternatives()
        if at < text.count { throw fault("has a ')' that closes nothing", at: at) }
        guard groups == 1 else {
            throw fault(
                groups == 0
                    ? "needs one group '( )' around what is to be taken"
                    : "has \(groups) groups; '(?: )' takes nothing",
                at: 0)
        }
        return tree
    }

    // MARK: - Grammar

    private mutating func alternatives() throws(Pattern.Fault) -> PatternTree {
        depth += 1
        defer { depth -= 1 }
        guard depth <= Self.deepest else { throw fault("is nested deeper than 16 levels", at: at) }
        var parts = [try sequence()]
        while take("|") { parts.append(try sequence()) }
        return parts.count == 1 ? parts[0] : .alternatives(parts)
    }

    private mutating func sequence() throws(Pattern.Fault) -> PatternTree {
        var parts: [PatternTree] = []
        while at < text.count, text[at] != UInt8(ascii: "|"), text[at] != UInt8(ascii: ")") {
            parts.append(try repeated())
        }
        return parts.isEmpty ? .empty : parts.count == 1 ? parts[0] : .sequence(parts)
    }

    private mutating func repeated() throws(Pattern.Fault) -> PatternTree {
        let begin = at
        let item = try item()
        let mark = at
        guard let (least, most) = try counts() else { return item }
        // Engines differ in what such a repetition takes, and without it every loop reads a byte.
        guard !item.canBeEmpty else { throw fault("repeats what can be empty", at: begin) }
        let isLazy = take("?")
        if at < text.count, "*+?{".utf8.contains(text[at]) { throw fault("has two repetitions in a row", at: mark) }
        return .repeated(item, least: least, most: most, isLazy: isLazy)
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

    private mutating func item() throws(Pattern.Fault) -> PatternTree {
        let begin = at
        let byte = text[at]
        at += 1
        switch byte {
        case UInt8(ascii: "^"): return .start
        case UInt8(ascii: "$"): return .end
        case UInt8(ascii: "."): return .set(.anyButLineFeed)
        case UInt8(ascii: "["): return .set(try set(from: begin))
        case UInt8(ascii: "("): return try group(from: begin)
        case UInt8(ascii: "\\"): return try escape(from: begin)
        case UInt8(ascii: "*"), UInt8(ascii: "+"), UInt8(ascii: "?"):
            throw fault("has a repetition with nothing before it", at: begin)
        case UInt8(ascii: "{"), UInt8(ascii: "}"), UInt8(ascii: "]"):
            let sign = Character(Unicode.Scalar(byte))
            throw fault("has a lone '\(sign)'; '\\\(sign)' is the sign itself", at: begin)
        default: return .byte(byte)
        }
    }

    private mutating func group(from begin: Int) throws(Pattern.Fault) -> PatternTree {
        var captures = true
        if take("?") {
            guard take(":") else { throw fault("has '(?' without ':'; nothing else of that kind is known", at: begin) }
            captures = false
        }
        if captures { groups += 1 }
        let inner = try alternatives()
        guard take(")") else { throw fault("has a '(' that is not closed", at: begin) }
        return captures ? .group(inner) : inner
    }

    // MARK: - Signs

    private mutating func escape(from begin: Int) throws(Pattern.Fault) -> PatternTree {
        let sign = try escaped(from: begin)
        if let set = Self.classes[sign] { return .set(set) }
        return .byte(try byte(of: sign, from: begin))
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
            let place = at
            at += 1
            guard let high = try member(into: &set, from: begin), low <= high else {
                throw fault("has a range in '[ ]' whose end is no sign or lies before its start", at: place)
            }
            for byte in low...high { set.insert(byte) }
        }
        guard !isEmpty else { throw fault("has an empty '[ ]'; '\\]' is the sign itself", at: begin) }
        return isInverted ? set.inverted : set
    }

    /// A sign of a set; nil where it was a class, which is already in.
    private mutating func member(into set: inout Pattern.ByteSet, from begin: Int) throws(Pattern.Fault) -> UInt8? {
        let place = at
        let byte = text[at]
        at += 1
        if byte == UInt8(ascii: "[") { throw fault("has '[' inside '[ ]'; '\\[' is the sign itself", at: place) }
        // A sign of several bytes would be a set of its pieces.
        guard byte < 0x80 else { throw fault("has a sign beyond ASCII in '[ ]'; '\\xHH' is one byte", at: place) }
        guard byte == UInt8(ascii: "\\") else { return byte }
        let sign = try escaped(from: place)
        if let inner = Self.classes[sign] {
            set.formUnion(inner)
            return nil
        }
        return try self.byte(of: sign, from: place)
    }

    private mutating func take(_ sign: Unicode.Scalar) -> Bool {
        guard at < text.count, text[at] == UInt8(ascii: sign) else { return false }
        at += 1
        return true
    }

    private func fault(_ reason: String, at offset: Int) -> Pattern.Fault { .init(reason: reason, offset: offset) }
}

/// A tree as a list of states.
enum PatternProgram {
    static func of(_ tree: PatternTree) throws(Pattern.Fault) -> [Pattern.Instruction] {
        var program: [Pattern.Instruction] = []
        try append(tree, to: &program)
        try add(.match, to: &program)
        return program
    }

    private static func append(_ tree: PatternTree, to program: inout [Pattern.Instruction]) throws(Pattern.Fault) {
        switch tree {
        case .empty: break
        case .byte(let byte): try add(.byte(byte), to: &program)
        case .set(let set): try add(.set(set), to: &program)
        case .start: try add(.atStart, to: &program)
        case .end: try add(.atEnd, to: &program)
        case .sequence(let parts): for part in parts { try append(part, to: &program) }
        case .group(let inner):
            try add(.openGroup, to: &program)
            try append(inner, to: &program)
            try add(.closeGroup, to: &program)
        case .alternatives(let parts): try alternatives(parts[...], to: &program)
        case .repeated(let inner, let least, let most, let isLazy):
            for _ in 0..<least { try append(inner, to: &program) }
            guard let most else { return try endless(inner, isLazy: isLazy, to: &program) }
            // Each further one stands inside the one before it: x{0,2} is (x(x)?)?.
            var splits: [Int] = []
            for _ in least..<max(least, most) {
                splits.append(program.count)
                try add(.jump(0), to: &program)
                try append(inner, to: &program)
            }
            for split in splits { program[split] = choice(split + 1, program.count, isLazy: isLazy) }
        }
    }

    private static func alternatives(
        _ parts: ArraySlice<PatternTree>, to program: inout [Pattern.Instruction]
    ) throws(Pattern.Fault) {
        var jumps: [Int] = []
        for (index, part) in parts.enumerated() {
            guard index < parts.count - 1 else {
                try append(part, to: &program)
                break
            }
            let split = program.count
            try add(.jump(0), to: &program)
            try append(part, to: &program)
            jumps.append(program.count)
            try add(.jump(0), to: &program)
            program[split] = .split(split + 1, program.count)
        }
        for jump in jumps { program[jump] = .jump(program.count) }
    }

    private static func endless(
        _ inner: PatternTree, isLazy: Bool, to program: inout [Pattern.Instruction]
    ) throws(Pattern.Fault) {
        let split = program.count
        try add(.jump(0), to: &program)
        try append(inner, to: &program)
        try add(.jump(split), to: &program)
        program[split] = choice(split + 1, program.count, isLazy: isLazy)
    }

    private static func choice(_ more: Int, _ on: Int, isLazy: Bool) -> Pattern.Instruction {
        isLazy ? .split(on, more) : .split(more, on)
    }

    private static func add(
        _ instruction: Pattern.Instruction, to program: inout [Pattern.Instruction]
    ) throws(Pattern.Fault) {
        guard program.count < Pattern.mostStates else {
            throw Pattern.Fault(reason: "is too large: more than 256 states", offset: 0)
        }
        program.append(instruction)
    }
}
