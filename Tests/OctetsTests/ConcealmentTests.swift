import Testing

@testable import Octets

/// Secrets are found, however they are written and however the text is split.
@Suite struct ConcealmentTests {
    private static let secret = Array("tok3n/with+both==of~them".utf8)
    private static let mask = UInt8(ascii: "*")

    private static func concealed(_ text: [UInt8], _ secrets: [[UInt8]], pieces: [Int] = []) -> (
        text: [UInt8], found: UInt64
    ) {
        var machine = Concealment()
        for secret in secrets { secret.withUnsafeBytes { machine.add($0) } }
        var result: [UInt8] = []
        var rest = text[...]
        for piece in pieces {
            let part = Array(rest.prefix(piece))
            rest = rest.dropFirst(piece)
            part.withUnsafeBytes { result += machine.take($0, isLast: false) }
        }
        Array(rest).withUnsafeBytes { result += machine.take($0, isLast: true) }
        return (result, machine.found)
    }

    private static func concealed(_ text: String, _ secret: String) -> String {
        String(decoding: concealed(Array(text.utf8), [Array(secret.utf8)]).text, as: UTF8.self)
    }

    // MARK: - Forms

    private static func escaped(_ secret: [UInt8], _ write: (UInt8) -> String) -> String { secret.map(write).joined() }

    private static func hexadecimal(_ octet: UInt8, isCapital: Bool = false) -> String {
        let digits = Hexadecimal.encode([octet])
        return isCapital ? digits.uppercased() : digits
    }

    private static let forms: [(name: String, text: String)] = [
        ("itself", String(decoding: secret, as: UTF8.self)),
        ("percent-encoded", PercentEncoding.encode(String(decoding: secret, as: UTF8.self))),
        (
            "percent-encoded in small letters",
            escaped(secret) { $0.isLetterOrDigit ? String(UnicodeScalar($0)) : "%" + hexadecimal($0) }
        ),
        ("percent-encoded whole", escaped(secret) { "%" + hexadecimal($0, isCapital: true) }),
        ("percent-encoded in part", String(decoding: secret, as: UTF8.self).replacing("+", with: "%2b")),
        ("of JSON with escaped slashes", String(decoding: secret, as: UTF8.self).replacing("/", with: "\\/")),
        (
            "of JSON with escapes of characters",
            escaped(secret) { $0.isLetterOrDigit ? String(UnicodeScalar($0)) : "\\u00" + hexadecimal($0) }
        ),
        ("of a program's string", escaped(secret) { "\\x" + hexadecimal($0) }),
        ("of HTML in decimal", escaped(secret) { $0.isLetterOrDigit ? String(UnicodeScalar($0)) : "&#\($0);" }),
        ("of HTML in hexadecimal", escaped(secret) { "&#x\(hexadecimal($0));" }),
        ("of HTML with zeros", escaped(secret) { "&#x000000\(hexadecimal($0, isCapital: true));" }),
        ("of HTML without semicolons", escaped(secret) { $0.isLetterOrDigit ? "&#\($0);" : "&#\($0)" }),
        (
            "of HTML by names",
            String(decoding: secret, as: UTF8.self).replacing("/", with: "&sol;").replacing("+", with: "&plus;")
                .replacing("=", with: "&equals;")
        ),
        (
            "percent-encoded twice",
            escaped(secret) { $0.isUnreserved ? String(UnicodeScalar($0)) : "%25" + hexadecimal($0) }
        ),
        ("percent-encoded four times", escaped(secret) { "%252525" + hexadecimal($0) }),
        (
            "of two escapes at once",
            String(decoding: secret, as: UTF8.self).replacing("/", with: "\\/").replacing("+", with: "%2B")
        ),
        ("base64", Base64.encode(secret)),
        ("base64 of URLs", Base64.encodeURL(secret)),
        ("base64 behind one octet", Base64.encode([1] + secret)),
        ("base64 behind two octets", Base64.encode([1, 2] + secret)),
        ("base64 before others", Base64.encode(secret + Array(" and more".utf8))),
        ("base64 with escaped slashes", Base64.encode(secret).replacing("/", with: "\\/")),
        ("percent-encoded base64", PercentEncoding.encode(Base64.encode(secret))),
        (
            "base64 in lines",
            Base64.encode(secret).enumerated().map { $0.offset % 7 == 6 ? "\($0.element)\r\n" : "\($0.element)" }
                .joined()
        ),
    ]

    @Test(arguments: forms) func isFound(form: (name: String, text: String)) {
        let around = ("{\"seen\": \"", "\", \"more\": [1, 2]}")
        let text = Array((around.0 + form.text + around.1).utf8)
        let (result, found) = Self.concealed(text, [Self.secret])
        #expect(found == 1)
        #expect(result.count == text.count)
        #expect(!Self.shows(result, Self.secret), "\(form.name): \(String(decoding: result, as: UTF8.self))")
        #expect(result.starts(with: around.0.utf8) && result.suffix(around.1.utf8.count).elementsEqual(around.1.utf8))
        // Every way to make two pieces of it, and all pieces of one octet.
        for split in 0...text.count { #expect(Self.concealed(text, [Self.secret], pieces: [split]).text == result) }
        let single = Self.concealed(text, [Self.secret], pieces: Array(repeating: 1, count: text.count))
        #expect(single.text == result && single.found == 1)
    }

    /// Wherever the lines end; of a secret whose first symbols stand at the end of one these may stay.
    @Test(arguments: ["\n", "\r\n", "\\n", "%0A"]) func base64InLines(lineBreak: String) {
        let whole = Base64.encode(Array("some ".utf8) + Self.secret + Array(" more".utf8))
        for length in 8...whole.count {
            var text = ""
            for (index, symbol) in whole.enumerated() {
                text += "\(symbol)\(index % length == length - 1 ? lineBreak : "")"
            }
            let result = Self.concealed(Array(text.utf8), [Self.secret]).text
            let left = Self.read(result).filter { $0.isLetterOrDigit || "+/".utf8.contains($0) }
            #expect(left.count < whole.filter { $0 != "=" }.count - Base64.encode(Self.secret).count + 9)
            #expect(!Self.shows(result, Array(Self.secret.dropFirst(5))))
        }
    }

    /// Of a short secret, too, no more than its first symbols stay, wherever in its line it stands.
    @Test(arguments: ["Zq8-xY7!", "Zq8-xY7!k", "Zq8-xY7!kk"]) func base64OfAShortSecretInLines(secret: String) {
        for place in 0..<80 {
            let whole = Base64.encode(Array((String(repeating: ".", count: place) + secret + "......").utf8))
            for length in [8, 60, 64, 76] {
                let text = whole.enumerated().map {
                    ($0.offset % length == length - 1 ? "\($0.element)\n" : "\($0.element)")
                }
                let result = Self.concealed(text.joined(), secret)
                #expect(result.count { $0 == "*" } >= secret.utf8.count - 2, "\(result)")
            }
        }
    }

    /// A line that ends in the first octet of a secret's base 64 goes on its way.
    @Test func endsOfLinesAreNotHeld() {
        var machine = Concealment()
        Self.secret.withUnsafeBytes { machine.add($0) }
        for symbol in Set(
            Base64.encode(Self.secret) + Base64.encode([0] + Self.secret) + Base64.encode([0, 0] + Self.secret))
        {
            for lineEnd in ["\n", "\r\n", "\n\n"] {
                let line = Array("data: \(symbol)\(lineEnd)".utf8)
                #expect(line.withUnsafeBytes { machine.take($0, isLast: false).count } == line.count)
            }
        }
    }

    /// Where a text pauses, three octets of what may be a secret have gone at most, and nothing is lost or comes twice.
    @Test func aPauseConcedesTheFirstOctets() {
        var random = SystemRandomNumberGenerator()
        let secret = String(decoding: Self.secret, as: UTF8.self)
        let text = Array("\(secret.prefix(2))\(secret) to\(secret.prefix(9)) and \(secret)\(secret)t".utf8)
        let whole = Self.concealed(text, [Self.secret]).text
        for _ in 0..<300 {
            var machine = Concealment()
            Self.secret.withUnsafeBytes { machine.add($0) }
            var result: [UInt8] = []
            var at = 0
            while at < text.count {
                let next = min(text.count, at + Int.random(in: 1...9, using: &random))
                text[at..<next].withUnsafeBytes { result += machine.take($0, isLast: next == text.count) }
                at = next
                if Bool.random(using: &random) { result += Self.paused(&machine) }
                #expect(result.count <= at)
            }
            #expect(result.count == text.count && machine.found == 3)
            // What is shown too much stands at the beginning of a secret.
            var shown = 0
            for (place, octet) in result.enumerated() {
                #expect(octet == whole[place] || octet == text[place])
                shown = octet == whole[place] ? 0 : shown + 1
                #expect(shown <= Concealment.conceded)
            }
        }
    }

    /// The end of a message that is like the beginning of a secret goes when the text pauses.
    @Test func aMessageDoesNotWaitForTheNextOne() {
        for message in [
            "to the t", "and so", "100%", "AT&T", "c:\\", String(decoding: Self.secret.prefix(3), as: UTF8.self),
        ] {
            var machine = Concealment()
            Self.secret.withUnsafeBytes { machine.add($0) }
            let octets = Array(message.utf8)
            var went = octets.withUnsafeBytes { Array(machine.take($0, isLast: false)) }
            went += Self.paused(&machine)
            #expect(went == octets)
            #expect(Self.paused(&machine).isEmpty)
            let rest = Array(Self.secret.suffix(from: 3) + Array(" x".utf8))
            let after = rest.withUnsafeBytes { Array(machine.take($0, isLast: true)) }
            let isSecret = message.utf8.elementsEqual(Self.secret.prefix(3))
            #expect(
                after == (isSecret ? [UInt8](repeating: Self.mask, count: rest.count - 2) + Array(" x".utf8) : rest))
        }
    }

    private static func paused(_ machine: inout Concealment) -> [UInt8] {
        var conceded = [UInt8](repeating: 0, count: Concealment.conceded)
        let count = conceded.withUnsafeMutableBytes { machine.pause(into: $0) }
        return Array(conceded[..<count])
    }

    @Test func nothingElseIsChanged() {
        #expect(
            Self.concealed("a tok3n/with+both==of~the m", "tok3n/with+both==of~them") == "a tok3n/with+both==of~the m")
        #expect(Self.concealed("%zz \\u00 & &#; 100% \\", "0123456789") == "%zz \\u00 & &#; 100% \\")
        #expect(Self.concealed("", "0123456789").isEmpty)
    }

    @Test func aShortSecretIsNotLookedFor() {
        #expect(Self.concealed("seven77", "seven77") == "seven77")
        #expect(Self.concealed("eight888", "eight888") == "********")
    }

    @Test func whatOverlapsIsConcealedTogether() {
        #expect(Self.concealed("x abababababababab y", "abababab") == "x **************** y")
        let (text, found) = Self.concealed(
            Array("Bearer secret-1 secret-1".utf8), [Array("Bearer secret-1".utf8), Array("secret-1".utf8)])
        #expect(String(decoding: text, as: UTF8.self) == "*************** ********")
        #expect(found == 2)
    }

    /// A password may have characters that an escape begins with, and others that only an escape can write.
    @Test(arguments: [
        ("100%25sure&ok", "100%25sure&ok"), ("100%25sure&ok", "100%2525sure%26ok"),
        ("100%25sure&ok", "100%25sure&amp;ok"),
        ("back\\slash", "back\\slash"), ("back\\slash", "back\\\\slash"), ("pässwörd", "p\\u00e4ssw\\u00F6rd"),
        ("pässwörd", "p&#228;ssw&#xF6;rd"), ("pässwörd", "p%C3%A4ssw%c3%b6rd"), ("two words", "two+words"),
        ("two words", "two%20words"), ("quote\"and'more", "quote&quot;and&#39;more"),
        ("smile \u{1F600}", "smile \\ud83d\\uDE00"), ("smile \u{1F600}", "smile &#128512;"),
        ("pass/word/", "pass&#47word&#47"),
        ("\\\\\\\\\\\\\\\\", "\\\\\\\\\\\\\\\\"),
        ("%%%%%%%%", "%%%%%%%%"), ("%%%%%%%%", "%25%25%25%25%25%25%25%25"),
    ])
    func charactersOfEscapes(secret: String, written: String) {
        let text = "<" + written + ">"
        let result = Self.concealed(text, secret)
        #expect(result == "<" + String(repeating: "*", count: written.utf8.count) + ">")
        for split in 0...text.utf8.count {
            let pieces = Self.concealed(Array(text.utf8), [Array(secret.utf8)], pieces: [split])
            #expect(String(decoding: pieces.text, as: UTF8.self) == result)
        }
    }

    @Test func hexadecimalIsOutOfReach() {
        let text = Hexadecimal.encode(Self.secret)
        #expect(Self.concealed(text, String(decoding: Self.secret, as: UTF8.self)) == text)
    }

    // MARK: - Bounds

    /// A text that would cost more than it may is concealed whole.
    @Test func aSearchWithoutEndEnds() {
        let secret = [UInt8](repeating: 0x61, count: 32_000) + [0x62]
        let text = [UInt8](repeating: 0x61, count: 200_000)
        let (result, found) = Self.concealed(text, [secret], pieces: Array(repeating: 16_384, count: 12))
        #expect(result.count == text.count && found == 1)
        #expect(result.suffix(1000).allSatisfy { $0 == Self.mask })
    }

    /// However small its pieces are: what they cost together counts.
    @Test func aSearchWithoutEndEndsInSmallPieces() {
        let secret = [UInt8](repeating: 0x61, count: 8000) + [0x62]
        let text = [UInt8](repeating: 0x61, count: 12_000)
        let (result, found) = Self.concealed(text, [secret], pieces: Array(repeating: 1, count: text.count))
        #expect(result.count == text.count && found == 1)
        #expect(result.suffix(1000).allSatisfy { $0 == Self.mask })
    }

    /// The octets that are held of an answer have a bound, whatever its upstream knows of the secret.
    @Test func whatIsHeldIsBounded() {
        let secret = (0..<30_000).map { UInt8(0x41 + $0 * $0 % 23) }
        let text = Array(Self.escaped(secret) { "\\u00" + Self.hexadecimal($0) }.utf8)
        var machine = Concealment()
        secret.withUnsafeBytes { machine.add($0) }
        var went = 0
        text.withUnsafeBytes { went = machine.take($0, isLast: false).count }
        #expect(went == text.count)
        let rest = Array("and so on".utf8)
        let concealed = rest.withUnsafeBytes { Array(machine.take($0, isLast: true)) }
        #expect(concealed.allSatisfy { $0 == Self.mask })
        // The secret, and the rest for its cost.
        #expect(machine.found == 2)
    }

    @Test func aWholeTextIsConcealedWhereItLies() {
        var machine = Concealment()
        Self.secret.withUnsafeBytes { machine.add($0) }
        var text = Array("a=".utf8) + Self.secret + Array(";".utf8)
        text.withUnsafeMutableBytes { machine.conceal($0) }
        #expect(String(decoding: text, as: UTF8.self) == "a=" + String(repeating: "*", count: Self.secret.count) + ";")
        // The end of one text and the beginning of the next are no secret together.
        var halves = [Array(Self.secret[..<9]), Array(Self.secret[9...])]
        for index in halves.indices { halves[index].withUnsafeMutableBytes { machine.conceal($0) } }
        #expect(halves[0] + halves[1] == Self.secret)
    }

    // MARK: - Against a reader that knows no pieces

    @Test func randomTextsAreConcealedAsTheyAreDefined() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<300 {
            let (text, secrets) = Self.randomText(&random)
            let result = Self.concealed(text, secrets, pieces: Self.randomPieces(of: text, &random)).text
            let expected = Self.expected(text, secrets)
            #expect(result == expected, "\(Self.words(secrets)) in \(String(decoding: text, as: UTF8.self))")
            if result != expected { return }
        }
    }

    @Test func piecesMakeNoDifference() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<4000 {
            let (text, secrets) = Self.randomText(&random)
            let pieces = Self.randomPieces(of: text, &random)
            let whole = Self.concealed(text, secrets)
            let split = Self.concealed(text, secrets, pieces: pieces)
            let isSame = whole.text == split.text && whole.found == split.found
            #expect(isSame, "\(Self.words(secrets)) in \(String(decoding: text, as: UTF8.self)) by \(pieces)")
            if !isSame { return }
        }
    }

    /// A text of few different octets, so that beginnings of secrets are frequent.
    private static func randomText(_ random: inout SystemRandomNumberGenerator) -> (text: [UInt8], secrets: [[UInt8]]) {
        let alphabet = Array(["ab%", "ab\\", "a&;b", "abA+ ", "xyzäö", "0aF%25"].randomElement(using: &random)!.utf8)
        let secrets = (0..<Int.random(in: 1...2, using: &random)).map { _ in
            (0..<Int.random(in: 8...14, using: &random)).map { _ in alphabet.randomElement(using: &random)! }
        }
        var text: [UInt8] = []
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            text += (0..<Int.random(in: 0...9, using: &random)).map { _ in alphabet.randomElement(using: &random)! }
            text += written(secrets.randomElement(using: &random)!, &random)
        }
        return (text, secrets)
    }

    private static func randomPieces(of text: [UInt8], _ random: inout SystemRandomNumberGenerator) -> [Int] {
        var pieces: [Int] = []
        var sum = 0
        while sum < text.count {
            pieces.append(Int.random(in: 0...7, using: &random))
            sum += pieces[pieces.count - 1]
        }
        return pieces
    }

    private static func words(_ secrets: [[UInt8]]) -> [String] { secrets.map { String(decoding: $0, as: UTF8.self) } }

    /// In one of many ways, perhaps cut off.
    private static func written(_ secret: [UInt8], _ random: inout SystemRandomNumberGenerator) -> [UInt8] {
        let before = [UInt8](repeating: 7, count: Int.random(in: 0...2, using: &random))
        let choice = Int.random(in: 0...7, using: &random)
        var written: [UInt8] = []
        for octet in secret {
            let isWritten = Bool.random(using: &random)
            switch choice {
            case 0 where isWritten:
                written += Array("%\(hexadecimal(octet, isCapital: Bool.random(using: &random)))".utf8)
            case 1 where isWritten: written += Array("\\u00\(hexadecimal(octet))".utf8)
            case 2 where isWritten: written += Array("&#x\(hexadecimal(octet));".utf8)
            case 3 where isWritten:
                written += Array(
                    ["%\(hexadecimal(octet))", "\\x\(hexadecimal(octet))", "&#\(octet);"].randomElement(using: &random)!
                        .utf8)
            default: written.append(octet)
            }
        }
        if choice == 4 { written = Array(Base64.encode(before + secret + before).utf8) }
        if choice == 5 { written = Array(Base64.encodeURL(before + secret).utf8) }
        return Int.random(in: 0...3, using: &random) == 0
            ? written.dropLast(Int.random(in: 1...5, using: &random)) : written
    }

    /// Every octet of every occurrence, as the definition has it: for each place and each way of reading from there, the words are compared with
    /// the rest of the text.
    private static func expected(_ text: [UInt8], _ secrets: [[UInt8]]) -> [UInt8] {
        var result = text
        // Random texts have no line breaks in base 64.
        var words: [[UInt8]] = []
        for secret in secrets {
            words.append(secret)
            for offset in 0..<3 {
                let whole = Array(Base64.encode([UInt8](repeating: 0, count: offset) + secret).utf8)
                let end = (offset + secret.count) * 8 / 6
                let standard = Array(whole[(offset == 0 ? 0 : offset + 1)..<end])
                words.append(standard)
                if standard.count >= 10 { words.append(Array(standard.dropFirst(4))) }
                let ofURLs = standard.map { $0 == 0x2B ? UInt8(0x2D) : $0 == 0x2F ? 0x5F : $0 }
                words.append(ofURLs)
                if ofURLs.count >= 10 { words.append(Array(ofURLs.dropFirst(4))) }
            }
        }
        for place in text.indices {
            for escapes in [Escapes(), .percent, .backslash, .ampersand, .all] {
                for word in words {
                    if let end = endOf(word, in: text, from: place, escapes) {
                        for index in place..<end { result[index] = mask }
                    }
                }
            }
        }
        return result
    }

    /// - Returns: nil where the word does not stand there.
    private static func endOf(_ word: [UInt8], in text: [UInt8], from place: Int, _ escapes: Escapes) -> Int? {
        var at = place
        var rest = word[...]
        while let wanted = rest.first {
            guard at < text.count else { return nil }
            let kind = Escapes(introducedBy: text[at])
            var units: [(octets: [UInt8], length: Int)] = []
            if !kind.isEmpty, escapes.contains(kind),
                let unit = octets(of: text.withUnsafeBytes { WrittenOctets($0, at: at, kind, isLast: true) })
            {
                units.append(unit)
                if kind == .percent, unit.octets == [0x25],
                    let inner = octets(
                        of: text.withUnsafeBytes { WrittenOctets(ofEscapedPercent: $0, at: at, isLast: true) })
                {
                    units.append(inner)
                }
            } else {
                units.append(([text[at]], 1))
                if text[at] == 0x2B, escapes.contains(.percent) { units.append(([0x20], 1)) }
            }
            guard let unit = units.first(where: { rest.starts(with: $0.octets) }) else { return nil }
            precondition(unit.octets.first == wanted)
            rest = rest.dropFirst(unit.octets.count)
            at += unit.length
        }
        return at
    }

    /// - Returns: nil where it is no escape.
    private static func octets(of written: WrittenOctets) -> (octets: [UInt8], length: Int)? {
        guard case .escaped(let octets, let count, let length) = written else { return nil }
        return ((0..<count).map { UInt8(truncatingIfNeeded: octets >> UInt32(8 * $0)) }, length)
    }

    /// Whether the secret can be read in a text, by any of the readers of the forms above.
    private static func shows(_ text: [UInt8], _ secret: [UInt8]) -> Bool {
        func holds(_ octets: [UInt8]) -> Bool { octets.firstRange(of: secret) != nil }
        if holds(text) { return true }
        let unescaped = read(text)
        if holds(unescaped) { return true }
        let symbols = unescaped.filter { $0 != 0x0D && $0 != 0x0A }.map {
            $0 == 0x2D ? 0x2B : $0 == 0x5F ? UInt8(0x2F) : $0
        }
        for start in symbols.indices {
            let run = symbols[start...].prefix { $0.isLetterOrDigit || $0 == 0x2B || $0 == 0x2F }
            let whole = run.prefix(run.count / 4 * 4)
            if let decoded = Base64.decode(whole), holds(decoded) { return true }
        }
        return false
    }

    /// Without escapes.
    private static func read(_ text: [UInt8]) -> [UInt8] {
        var unescaped: [UInt8] = []
        var at = 0
        while at < text.count {
            let kind = Escapes(introducedBy: text[at])
            if !kind.isEmpty,
                case .escaped(let octets, let count, let length) = text.withUnsafeBytes({
                    WrittenOctets($0, at: at, kind, isLast: true)
                })
            {
                for index in 0..<count { unescaped.append(UInt8(truncatingIfNeeded: octets >> UInt32(8 * index))) }
                at += length
            } else {
                unescaped.append(text[at])
                at += 1
            }
        }
        return unescaped
    }
}
