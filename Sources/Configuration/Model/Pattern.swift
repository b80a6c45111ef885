/// A regular expression for received bytes. It is a subset that runs in linear time: no backreference, no look-around, and a
/// bounded number of states, so that no input makes it slow (docs/security/guarantees.md#invariant-14).
///
/// `^ $ . | ( ) (?: ) [ ] [^ ]`, `? * + {m} {m,} {m,n}` each also lazy with a `?` behind it, `\d \D \w \W \s \S`, `\t \n \r \f
/// \v \xHH`, and `\` before any other sign. It finds what Python's `re.search` on bytes finds, but `$` is the very end. There is
/// exactly one capturing group; its text is the result.
public struct Pattern: Sendable, Hashable {
    /// The pattern as written.
    public let text: String
    let program: [Instruction]

    /// Bytes of a text, states, and bytes that are searched. Together they bound one search to about two million steps.
    public static let longestText = 512
    /// The most states of a pattern.
    public static let mostStates = 256
    /// Bytes of the longest text that is searched.
    public static let longestInput = 8 * 1024

    /// Why a text is no pattern.
    public struct Fault: Error, Equatable {
        /// Completes "'match' …".
        public var reason: String
        /// Bytes before the place that is meant.
        public var offset: Int
    }

    /// - Throws: `Fault` for a text that is no pattern or exceeds a bound.
    public init(_ text: String) throws(Fault) {
        var parser = PatternParser(text)
        program = try parser.parse()
        self.text = text
    }

    /// The work of one state on the byte at hand, or before it.
    enum Instruction: Sendable, Hashable {
        case byte(UInt8)
        case set(ByteSet)
        /// To places counted from this one; the first is preferred.
        case split(Int, Int)
        case jump(Int)
        case atStart, atEnd
        case openGroup, closeGroup
        case match
    }

    /// A set of bytes, as 256 bits.
    struct ByteSet: Sendable, Hashable {
        var low: UInt128 = 0
        var high: UInt128 = 0

        func contains(_ byte: UInt8) -> Bool { (byte < 128 ? low : high) >> (byte & 127) & 1 == 1 }
    }
}

// MARK: - Search

extension Pattern {
    /// The text of the group in the leftmost match; nil where nothing matches, the group has no part in the match, or the input is
    /// longer than `longestInput`.
    ///
    /// All ways to match are followed at once, byte by byte, each state at most once a byte (Thompson's simulation, with Pike's
    /// priorities for the group's place). A search costs at most states times bytes.
    public func firstGroup(in input: [UInt8]) -> Range<Int>? {
        guard input.count <= Self.longestInput else { return nil }
        var search = PatternSearch(program: program, input: input)
        return search.run()
    }
}

private struct PatternSearch {
    private struct Thread {
        var state: Int
        var start: Int
        var end: Int
    }

    private let program: [Pattern.Instruction]
    private let input: [UInt8]
    private var current: [Thread] = []
    private var next: [Thread] = []
    /// The position, counted from 1, at which a state was last entered.
    private var enteredAt: [Int]
    private var pending: [Thread] = []

    init(program: [Pattern.Instruction], input: [UInt8]) {
        self.program = program
        self.input = input
        enteredAt = Array(repeating: 0, count: program.count)
        current.reserveCapacity(program.count)
        next.reserveCapacity(program.count)
    }

    mutating func run() -> Range<Int>? {
        var found: Thread?
        for position in 0...input.count {
            // A match begins at the leftmost place: once there is one, no later start is tried. A new start ranks lowest.
            if found == nil { enter(Thread(state: 0, start: -1, end: -1), at: position) }
            swap(&current, &next)
            next.removeAll(keepingCapacity: true)
            guard !current.isEmpty || found == nil else { break }
            step: for thread in current {
                switch program[thread.state] {
                case .match:
                    found = thread
                    // Threads behind this one are less preferred.
                    break step
                case .byte(let byte) where position < input.count && input[position] == byte:
                    enter(moved(thread), at: position + 1)
                case .set(let set) where position < input.count && set.contains(input[position]):
                    enter(moved(thread), at: position + 1)
                default: break
                }
            }
        }
        guard let found, found.start >= 0, found.end >= found.start else { return nil }
        return found.start..<found.end
    }

    private func moved(_ thread: Thread, by distance: Int = 1) -> Thread {
        Thread(state: thread.state + distance, start: thread.start, end: thread.end)
    }

    /// Adds what a thread reaches without reading a byte, in order of preference.
    private mutating func enter(_ thread: Thread, at position: Int) {
        pending.append(thread)
        while var thread = pending.popLast() {
            guard enteredAt[thread.state] != position + 1 else { continue }
            enteredAt[thread.state] = position + 1
            switch program[thread.state] {
            case .jump(let distance): pending.append(moved(thread, by: distance))
            case .split(let preferred, let other):
                pending.append(moved(thread, by: other))
                pending.append(moved(thread, by: preferred))
            case .openGroup:
                thread.start = position
                pending.append(moved(thread))
            case .closeGroup:
                thread.end = position
                pending.append(moved(thread))
            case .atStart:
                if position == 0 { pending.append(moved(thread)) }
            case .atEnd:
                if position == input.count { pending.append(moved(thread)) }
            case .byte, .set, .match: next.append(thread)
            }
        }
    }
}

// MARK: - Sets

extension Pattern.ByteSet {
    mutating func insert(_ byte: UInt8) {
        if byte < 128 { low |= 1 << byte } else { high |= 1 << (byte & 127) }
    }

    mutating func formUnion(_ other: Self) {
        low |= other.low
        high |= other.high
    }

    var inverted: Self { Self(low: ~low, high: ~high) }

    static func of(_ ranges: ClosedRange<UInt8>...) -> Self {
        var set = Self()
        for range in ranges { for byte in range { set.insert(byte) } }
        return set
    }

    static let digits = of(0x30...0x39)
    static let words = of(0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A)
    static let blanks = of(0x09...0x0D, 0x20...0x20)
    static let anyButLineFeed = of(0x0A...0x0A).inverted
}
