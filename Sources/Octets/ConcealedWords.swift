/// The texts by which a secret shows itself: its own octets, and the base 64 of them wherever they stand in a longer text that was encoded.
/// Their memory is wiped before it is given back.
struct ConcealedWords: ~Copyable {
    /// A text, in `octets`.
    struct Word {
        let start: Int
        let count: Int
        let first: UInt8
        let second: UInt8
        /// Line breaks may stand between its octets.
        let isBase64: Bool
        /// The kinds of escapes whose first octet is among its own.
        let holds: Escapes
        /// The place in `list` of the next word that begins with the same octet, counted from 1; 0 for none.
        let next: Int16
    }

    /// Symbols of base 64 between which no line break is looked for, at the beginning: every line that ends in the first of them would have
    /// to be held.
    static let unbroken = 4
    /// Symbols that may be a word by themselves: what is left of the shortest secret's behind the unbroken ones.
    private static let leastRest = 6

    private(set) var list: [Word] = []
    private var octets = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var used = 0
    /// For each octet the place in `list` of a word that begins with it, counted from 1; `escape` where an escape of a word's octet may begin
    /// with it, 0 for all others.
    private let beginnings: UnsafeMutablePointer<Int16>

    private static let escape: Int16 = -1

    init() {
        beginnings = .allocate(capacity: 256)
        beginnings.initialize(repeating: 0, count: 256)
    }

    deinit {
        octets.wipe()
        octets.deallocate()
        beginnings.deallocate()
    }

    /// Alive as long as nothing is added.
    var memory: UnsafeRawPointer? { octets.baseAddress.map { UnsafeRawPointer($0) } }
    /// See `beginnings`.
    var firstOctets: UnsafePointer<Int16> { UnsafePointer(beginnings) }

    /// The first of the words that begin with an octet, counted from 1; 0 or less for none.
    func first(_ octet: UInt8) -> Int { Int(beginnings[Int(octet)]) }

    /// - Parameter secret: eight octets or more.
    mutating func add(_ secret: UnsafeRawBufferPointer) {
        // Six texts of base 64, each at most two symbols longer than four for three octets.
        reserve(secret.count + 6 * ((secret.count + 4) / 3 * 4 + 2))
        let start = used
        UnsafeMutableRawBufferPointer(rebasing: octets[start...]).copyMemory(from: secret)
        used += secret.count
        guard addWord(start..<used, isBase64: false) else { return used = start }
        let symbols = Self.alphabet.span
        for offset in 0..<3 {
            let start = used
            appendBase64(of: secret, behind: offset, symbols)
            let end = used
            addBase64(start..<end)
            if appendInAlphabetOfURLs(start..<end) { addBase64(end..<used) }
        }
        for introducer: UInt8 in [0x25, 0x5C, 0x26] where beginnings[Int(introducer)] == 0 {
            beginnings[Int(introducer)] = Self.escape
        }
    }

    /// Adds a text, and what is behind its symbols between which no line break is looked for: a line may end among them.
    private mutating func addBase64(_ text: Range<Int>) {
        guard addWord(text, isBase64: true), text.count >= Self.leastRest + Self.unbroken else { return }
        _ = addWord(text.dropFirst(Self.unbroken), isBase64: true)
    }

    /// - Parameter place: in `octets`.
    /// - Returns: false where the text is a word already.
    private mutating func addWord(_ place: Range<Int>, isBase64: Bool) -> Bool {
        let word = UnsafeRawBufferPointer(rebasing: octets[place])
        let isKnown = list.contains { known in
            known.isBase64 == isBase64 && known.count == word.count
                && UnsafeRawBufferPointer(rebasing: octets[known.start..<known.start + known.count]).elementsEqual(word)
        }
        guard !isKnown, let first = word.first else { return false }
        var holds: Escapes = []
        // Base 64 has none of the octets that introduce one.
        if !isBase64 { for octet in word { holds.formUnion(Escapes(introducedBy: octet)) } }
        list.append(
            Word(
                start: place.lowerBound, count: word.count, first: first, second: word[1], isBase64: isBase64,
                holds: holds,
                next: max(0, beginnings[Int(first)])))
        beginnings[Int(first)] = Int16(clamping: list.count)
        return true
    }

    /// The symbols that the secret alone decides, where `offset` octets stand before it in their group of three.
    private mutating func appendBase64(
        of secret: UnsafeRawBufferPointer, behind offset: Int, _ symbols: borrowing Span<UInt8>
    ) {
        // Bits that wait for their symbol. The first symbol has some of the octets before, too.
        var bits = 2 * offset
        var isDecided = offset == 0
        var waiting: UInt32 = 0
        for octet in secret {
            waiting = waiting << 8 | UInt32(octet)
            bits &+= 8
            while bits >= 6 {
                bits &-= 6
                if isDecided { append(symbols[Int(waiting >> UInt32(bits) & 63)]) }
                isDecided = true
            }
        }
    }

    private static let alphabet: [UInt8] = Array(
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

    /// - Returns: false where the text is the same in both alphabets.
    private mutating func appendInAlphabetOfURLs(_ text: Range<Int>) -> Bool {
        let text = UnsafeRawBufferPointer(rebasing: octets[text])
        guard text.contains(where: { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "/") }) else { return false }
        for symbol in text {
            switch symbol {
            case UInt8(ascii: "+"): append(UInt8(ascii: "-"))
            case UInt8(ascii: "/"): append(UInt8(ascii: "_"))
            default: append(symbol)
            }
        }
        return true
    }

    private mutating func append(_ octet: UInt8) {
        octets[used] = octet
        used += 1
    }

    private mutating func reserve(_ count: Int) {
        guard octets.count - used < count else { return }
        let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: used + count, alignment: 16)
        larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: octets[..<used]))
        octets.wipe()
        octets.deallocate()
        octets = larger
    }
}
