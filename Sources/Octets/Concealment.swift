/// Secrets in a text that comes piece by piece: each octet that belongs to one becomes `*`, so that the text keeps its length.
///
/// A secret is found in its own octets and in base 64 (either alphabet, with or without line breaks, alone or inside of a longer text that was
/// encoded), and both as they are or behind escapes: `%2F` and `%252F` of URLs, `\/` and `\u002f` of JSON, `&#47;` and `&sol;` of HTML, any
/// of its octets in any of these. Other forms pass: hexadecimal digits, what was escaped twice in other ways, compressed, encrypted or
/// reordered text, octets that others stand between.
///
/// The edges of pieces make no difference. Octets that may be the beginning of a secret are held until it is known whether they
/// are, and with the last piece everything goes. Where the text pauses, the first of them go: else a reader who answers each message of
/// a stream would wait for ever for the end of one that happens to end like the beginning of a secret. The memory that held secrets is
/// wiped.
public struct Concealment: ~Copyable {
    /// Octets of the shortest secret that is looked for: a shorter one would stand in texts by chance.
    public static let shortest = 8
    /// Octets of text over which one secret is followed; where it is not at its end there, what was followed is concealed.
    public static let longest = 128 * 1024
    /// Octets of one secret, as it is written, that may go before it is known to be one.
    public static let conceded = ConcealedWords.unbroken - 1

    private var words = ConcealedWords()
    /// Octets that are held, behind those that went with the last piece.
    private var buffer = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private var gone = 0
    private var end = 0
    /// Of the octets that are held, the first that have gone nevertheless: a secret may begin among them, so they are kept.
    private var ahead = 0
    /// Words that may begin at the first octet that is held, and how far each was followed.
    private var attempts: [Attempt] = []
    /// Octets before this place belong to a secret.
    private var maskEnd = 0
    /// Octets that the search may look at before the text counts as one that was made to be slow. Few are looked at more than once or
    /// twice in any other, so each octet that comes adds to it.
    private var patience = mostPatience
    private static let mostPatience = 1 << 20
    private static let patiencePerOctet = 64
    /// A text has cost more than a search may; everything is concealed from there on.
    private var isOverwhelmed = false
    /// Places at which secrets were found. What overlaps counts once, and so does everything that is concealed for its cost.
    public private(set) var found: UInt64 = 0

    private struct Attempt {
        var word: Int
        var escapes: Escapes
        /// Octets of the word that were found.
        var matched = 0
        /// The place in the text from which the next one is looked for.
        var position: Int
        /// How far a line break behind the last of them has come.
        var lineBreak = LineBreak.none

        enum LineBreak { case none, half, whole }
    }

    /// Looks for nothing yet.
    public init() {}

    deinit {
        buffer.wipe()
        buffer.deallocate()
    }
}

// MARK: -

extension Concealment {
    /// Nothing is looked for.
    public var isEmpty: Bool { words.list.isEmpty }

    /// From here on the secret is looked for, unless it is shorter than `shortest`.
    public mutating func add(_ secret: UnsafeRawBufferPointer) {
        guard secret.count >= Self.shortest else { return }
        words.add(secret)
    }

    /// Conceals in a whole text, where it lies.
    /// - Precondition: nothing is held of a text that comes in pieces.
    public mutating func conceal(_ text: UnsafeMutableRawBufferPointer) {
        precondition(gone == end, "a text is still on its way")
        guard !isEmpty, text.count >= Self.shortest else { return }
        maskEnd = 0
        refill(for: text.count)
        _ = search(text, isLast: true)
        maskEnd = 0
    }

    /// Takes the next piece of a text.
    ///
    /// - Parameter isLast: nothing follows, so nothing is held.
    /// - Returns: the octets that can go on their way, which may be none; they stay where they are until the next call.
    public mutating func take(_ piece: UnsafeRawBufferPointer, isLast: Bool) -> UnsafeMutableRawBufferPointer {
        append(piece)
        refill(for: piece.count)
        guard end > 0 else { return UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        let ready = search(UnsafeMutableRawBufferPointer(rebasing: buffer[..<end]), isLast: isLast)
        gone = ready
        maskEnd = max(0, maskEnd - ready)
        for index in attempts.indices { attempts[index].position -= ready }
        defer { ahead = max(0, ahead - ready) }
        return UnsafeMutableRawBufferPointer(rebasing: buffer[min(ahead, ready)..<ready])
    }

    /// The text pauses: nobody knows when its next piece comes.
    /// - Parameter target: at least `conceded` octets, which get the first of those that are held.
    /// - Returns: how many go on their way.
    public mutating func pause(into target: UnsafeMutableRawBufferPointer) -> Int {
        let limit = min(end - gone, Self.conceded)
        let first = ahead
        guard limit > first else { return 0 }
        for place in first..<limit { target[place - first] = place < maskEnd ? 0x2A : buffer[gone + place] }
        ahead = limit
        return limit - first
    }

    /// What earlier octets left over counts up to a bound.
    private mutating func refill(for octets: Int) {
        patience = min(patience, Self.mostPatience) + Self.patiencePerOctet * octets
    }

    /// Adds octets behind those that are held, which move to the front.
    private mutating func append(_ piece: UnsafeRawBufferPointer) {
        let held = end - gone
        if buffer.count < held + piece.count {
            let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: held + max(piece.count, 512), alignment: 16)
            larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[gone..<end]))
            buffer.wipe()
            buffer.deallocate()
            buffer = larger
        } else if gone > 0, held > 0 {
            buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[gone..<end]))
        }
        if !piece.isEmpty { UnsafeMutableRawBufferPointer(rebasing: buffer[held...]).copyMemory(from: piece) }
        gone = 0
        end = held + piece.count
    }
}

// MARK: - The search

extension Concealment {
    /// - Returns: the place up to which the text is decided.
    private mutating func search(_ text: UnsafeMutableRawBufferPointer, isLast: Bool) -> Int {
        guard let octets = text.baseAddress?.assumingMemoryBound(to: UInt8.self), !isEmpty else { return text.count }
        let reader = UnsafeRawBufferPointer(text)
        let beginnings = words.firstOctets
        let count = text.count
        var place = 0
        if !attempts.isEmpty {
            let earlier = attempts
            attempts = []
            for attempt in earlier { follow(attempt, from: 0, in: reader, isLast) }
            if isOverwhelmed {
                attempts = []
            } else if attempts.isEmpty {
                place = conceal(octets, at: 0)
            } else {
                return 0
            }
        }
        while place < count, !isOverwhelmed {
            // Through most of a text there is nothing to do.
            if place >= maskEnd {
                while place < count, beginnings[Int(octets[place])] == 0 { place &+= 1 }
                if place == count { break }
            }
            let octet = octets[place]
            if beginnings[Int(octet)] != 0 {
                begin(at: place, octet, in: reader, isLast)
                if isOverwhelmed { break }
                if !attempts.isEmpty { return place }
            }
            place = conceal(octets, at: place)
        }
        if isOverwhelmed {
            attempts = []
            maskEnd = count
            while place < count { place = conceal(octets, at: place) }
        }
        return count
    }

    /// - Returns: the place behind.
    @inline(__always)
    private func conceal(_ octets: UnsafeMutablePointer<UInt8>, at place: Int) -> Int {
        if place < maskEnd { octets[place] = 0x2A }
        return place &+ 1
    }

    /// Follows every word that may begin here.
    private mutating func begin(
        at place: Int, _ octet: UInt8, in text: UnsafeRawBufferPointer, _ isLast: Bool
    ) {
        let kind = Escapes(introducedBy: octet)
        // Most beginnings end here: with an octet behind them that is none of the word's and writes none.
        let following = place &+ 1 < text.count && kind.isEmpty ? text[place &+ 1] : nil
        let mayWrite = following.map { !Escapes(introducedBy: $0).isEmpty || $0 == UInt8(ascii: "+") } ?? true
        var next = words.first(octet)
        while next > 0 {
            let index = next &- 1
            let word = words.list[index]
            next = Int(word.next)
            if !mayWrite, following != word.second { continue }
            follow(Attempt(word: index, escapes: [], position: place), from: place, in: text, isLast)
            for escapes in others(word, []) {
                follow(
                    Attempt(word: index, escapes: escapes, position: place), from: place, in: text, isLast)
            }
        }
        guard !kind.isEmpty else { return }
        var first: UInt8?
        // Where the escape is of a percent sign, the octet that it may be the beginning of.
        var inner: UInt8?
        switch WrittenOctets(text, at: place, kind, isLast: isLast) {
        case .plain: return
        case .open: break
        case .escaped(let octets, _, _):
            first = UInt8(truncatingIfNeeded: octets)
            if kind == .percent, octets == 0x25 {
                switch WrittenOctets(ofEscapedPercent: text, at: place, isLast: isLast) {
                case .plain: break
                case .open: first = nil
                case .escaped(let octets, _, _): inner = UInt8(truncatingIfNeeded: octets)
                }
            }
        }
        if let first, words.first(first) <= 0, inner.map({ words.first($0) <= 0 }) ?? true { return }
        for index in words.list.indices
        where first == nil || words.list[index].first == first || words.list[index].first == inner {
            let word = words.list[index]
            for escapes in word.holds.isEmpty ? Self.anyEscapes : others(word, kind) {
                follow(
                    Attempt(word: index, escapes: escapes, position: place), from: place, in: text, isLast)
            }
        }
    }

    /// A word with an octet that introduces escapes may stand in a text that escapes in one way and has that octet as it is: then each way
    /// is one to read it. All other words are read as they are until the first escape comes, and with all escapes from there on.
    private func others(_ word: ConcealedWords.Word, _ kind: Escapes) -> [Escapes] {
        guard !word.holds.isEmpty else { return [] }
        return kind.isEmpty ? [.percent, .backslash, .ampersand, .all] : [kind, .all]
    }

    private static let anyEscapes: [Escapes] = [.all]

    private mutating func follow(
        _ first: Attempt, from start: Int, in text: UnsafeRawBufferPointer, _ isLast: Bool
    ) {
        var attempt = first
        let word = words.list[attempt.word]
        let before = attempt.position
        let outcome = run(&attempt, word, in: text, isLast)
        patience -= attempt.position - before + 1
        if patience < 0 { overwhelm() }
        switch outcome {
        case .none: break
        case .whole: find(from: start, to: attempt.position)
        case .open where attempt.position - start > Self.longest: overwhelm()
        case .open: attempts.append(attempt)
        case .escape:
            attempt.escapes = .all
            follow(attempt, from: start, in: text, isLast)
        }
    }

    private mutating func overwhelm() {
        if !isOverwhelmed { found &+= 1 }
        isOverwhelmed = true
    }

    private mutating func find(from start: Int, to end: Int) {
        if start >= maskEnd { found &+= 1 }
        maskEnd = max(maskEnd, end)
    }

    private enum Outcome {
        case none, whole, open
        /// Not as it is, but perhaps behind the escape that begins here.
        case escape
    }

    private func run(
        _ attempt: inout Attempt, _ word: ConcealedWords.Word, in text: UnsafeRawBufferPointer, _ isLast: Bool
    ) -> Outcome {
        guard let octets = words.memory, let base = text.baseAddress else { return .none }
        while attempt.matched < word.count {
            guard attempt.position < text.count else { return isLast ? .none : .open }
            let octet = base.load(fromByteOffset: attempt.position, as: UInt8.self)
            let wanted = octets.load(fromByteOffset: word.start &+ attempt.matched, as: UInt8.self)
            let kind = Escapes(introducedBy: octet)
            if !kind.isEmpty, attempt.escapes.contains(kind) {
                switch WrittenOctets(text, at: attempt.position, kind, isLast: isLast) {
                case .plain: break
                case .open: return .open
                case .escaped(let written, let count, let length):
                    if isNext(written, count, &attempt, word, octets) {
                        attempt.position &+= length
                        continue
                    }
                    guard kind == .percent, written == 0x25 else { return .none }
                    switch WrittenOctets(ofEscapedPercent: text, at: attempt.position, isLast: isLast) {
                    case .plain: return .none
                    case .open: return .open
                    case .escaped(let written, let count, let length):
                        guard isNext(written, count, &attempt, word, octets) else { return .none }
                        attempt.position &+= length
                        continue
                    }
                }
            }
            if octet == wanted {
                attempt.matched &+= 1
                attempt.lineBreak = .none
            } else if word.isBase64, mayBreak(octet, &attempt) {
            } else if octet == UInt8(ascii: "+"), wanted == 0x20, attempt.escapes.contains(.percent) {
                attempt.matched &+= 1
            } else {
                let isEscape = !kind.isEmpty || octet == UInt8(ascii: "+") && wanted == 0x20
                return isEscape && attempt.escapes.isEmpty && word.holds.isEmpty ? .escape : .none
            }
            attempt.position &+= 1
        }
        return .whole
    }

    /// Whether the octets of an escape are those that come next in the word.
    private func isNext(
        _ written: UInt32, _ count: Int, _ attempt: inout Attempt, _ word: ConcealedWords.Word,
        _ octets: UnsafeRawPointer
    ) -> Bool {
        if word.isBase64, count == 1, mayBreak(UInt8(truncatingIfNeeded: written), &attempt) { return true }
        guard attempt.matched + count <= word.count else { return false }
        for index in 0..<count {
            let wanted = octets.load(fromByteOffset: word.start + attempt.matched + index, as: UInt8.self)
            guard UInt8(truncatingIfNeeded: written >> UInt32(8 * index)) == wanted else { return false }
        }
        attempt.matched += count
        attempt.lineBreak = .none
        return true
    }

    /// Base 64 is often written in lines.
    private func mayBreak(_ octet: UInt8, _ attempt: inout Attempt) -> Bool {
        guard attempt.matched >= ConcealedWords.unbroken else { return false }
        switch (octet, attempt.lineBreak) {
        case (0x0D, .none): attempt.lineBreak = .half
        case (0x0A, .none), (0x0A, .half): attempt.lineBreak = .whole
        default: return false
        }
        return true
    }
}
