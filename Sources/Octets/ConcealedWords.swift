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
        // Twelve texts of base 64, each at most two symbols longer than four for three octets.
        reserve(secret.count + 12 * ((secret.count + 4) / 3 * 4 + 2))
        let start = used
        for octet in secret { append(octet) }
        guard addWord(from: start, isBase64: false) else { return }
        for offset in 0..<3 {
            for isURL in [false, true] {
                let start = used
                appendBase64(of: secret, behind: offset, isURL)
                guard addWord(from: start, isBase64: true), used - start >= Self.leastRest + Self.unbroken else {
                    continue
                }
                // A line may end among the first symbols, where no break is looked for: what follows is found alone.
                let rest = used
                for index in start + Self.unbroken..<rest { append(octets[index]) }
                _ = addWord(from: rest, isBase64: true)
            }
        }
        for introducer: UInt8 in [0x25, 0x5C, 0x26] where beginnings[Int(introducer)] == 0 {
            beginnings[Int(introducer)] = Self.escape
        }
    }

    /// Takes the octets back where they are a word already.
    private mutating func addWord(from start: Int, isBase64: Bool) -> Bool {
        let word = UnsafeRawBufferPointer(rebasing: octets[start..<used])
        let isKnown = list.contains { known in
            known.isBase64 == isBase64
                && UnsafeRawBufferPointer(rebasing: octets[known.start..<known.start + known.count]).elementsEqual(word)
        }
        guard !isKnown, let first = word.first else {
            used = start
            return false
        }
        var holds: Escapes = []
        for octet in word { holds.formUnion(Escapes(introducedBy: octet)) }
        list.append(
            Word(
                start: start, count: word.count, first: first, second: word[1], isBase64: isBase64, holds: holds,
                next: max(0, beginnings[Int(first)])))
        beginnings[Int(first)] = Int16(clamping: list.count)
        return true
    }

    /// The symbols that the secret alone decides, where `offset` octets stand before it in their group of three.
    private mutating func appendBase64(of secret: UnsafeRawBufferPointer, behind offset: Int, _ isURL: Bool) {
        let first = offset == 0 ? 0 : offset + 1
        let end = (offset + secret.count) * 8 / 6
        for symbol in first..<end {
            let bit = symbol * 6 - offset * 8
            let octet = bit / 8
            let next = octet + 1 < secret.count ? secret[octet + 1] : 0
            let pair = UInt16(secret[octet]) << 8 | UInt16(next)
            append(Self.symbol(UInt8(truncatingIfNeeded: pair >> UInt16(10 - bit % 8) & 63), isURL))
        }
    }

    private static func symbol(_ value: UInt8, _ isURL: Bool) -> UInt8 {
        switch value {
        case 0..<26: UInt8(ascii: "A") + value
        case 26..<52: UInt8(ascii: "a") + value - 26
        case 52..<62: UInt8(ascii: "0") + value - 52
        case 62: isURL ? UInt8(ascii: "-") : UInt8(ascii: "+")
        default: isURL ? UInt8(ascii: "_") : UInt8(ascii: "/")
        }
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
