import Testing

@testable import Configuration

/// Ends of what a pattern may have: counts, states, levels, and repetitions of what reads nothing.
@Suite struct PatternBoundTests {
    private func reason(_ pattern: String) -> String? {
        do throws(Pattern.Fault) {
            _ = try Pattern(pattern)
            return nil
        } catch {
            return "\(error.offset) \(error.reason)"
        }
    }

    private static let notCounts = "has a repetition that is not {m}, {m,} or {m,n}, or one over 256"
    private static let noNumber = "has '{' without a number; '\\{' is the sign itself"
    private static let tooLarge = "0 is too large: more than 256 states"
    private static let empty = "repeats what can be empty"

    static let bounds: [(pattern: String, reason: String?)] = [
        // All states of the program count, with the group's two and the match.
        ("(a{253})", nil), ("(a{254})", tooLarge), ("(a{256})", tooLarge), ("(a{257})", "2 \(notCounts)"),
        ("(a{0,126})", nil), ("(a{0,127})", tooLarge), ("(a{0,256})", tooLarge), ("(a{0,257})", "2 \(notCounts)"),
        ("(a{1,257})", "2 \(notCounts)"), ("(a{257,})", "2 \(notCounts)"), ("(a{256,})", tooLarge),
        ("(a{250,})", nil), ("(a{251,})", tooLarge), ("(?:a{126}|a{124})(b)", nil), ("(?:a{126}|a{125})(b)", tooLarge),
        ("(a{2,2})", nil), ("(a{2,1})", "2 \(notCounts)"), ("(a{0,0})", nil), ("(a{0})", nil), ("(a{0,})", nil),
        ("(a{0012})", nil), ("(a{00012})", "2 \(noNumber)"), ("(a{})", "2 \(noNumber)"), ("(a{,2})", "2 \(noNumber)"),
        ("(a{2,00002})", "2 \(notCounts)"), ("(a{2;3})", "2 \(notCounts)"), ("(a{/})", "2 \(noNumber)"),
        ("(a{:})", "2 \(noNumber)"), ("(a{2", "2 \(notCounts)"), ("(a{2,", "2 \(notCounts)"), ("(a{", "2 \(noNumber)"),
        // Two repetitions in a row; the second sign of a lazy one is none.
        ("(a*?)", nil), ("(a+?)", nil), ("(a??)", nil), ("(a{2}?)", nil), ("(a**)", "2 has two repetitions in a row"),
        ("(a+*)", "2 has two repetitions in a row"), ("(a*+)", "2 has two repetitions in a row"),
        ("(a?{2})", "2 has two repetitions in a row"), ("(a*??)", "2 has two repetitions in a row"),
        ("(a{2}{2})", "2 has two repetitions in a row"),
        ("(+a)", "1 has a repetition with nothing before it"),
        ("(?a)", "0 has '(?' without ':'; nothing else of that kind is known"),
        ("(a|*)", "3 has a repetition with nothing before it"), ("(a|?)", "3 has a repetition with nothing before it"),
        ("({2})", "1 has a lone '{'; '\\{' is the sign itself"), ("(})", "1 has a lone '}'; '\\}' is the sign itself"),
        ("(])", "1 has a lone ']'; '\\]' is the sign itself"),
        // Groups.
        ("a", "0 needs one group '( )' around what is to be taken"),
        ("", "0 needs one group '( )' around what is to be taken"), ("()", nil), ("(a|)", nil), ("(a)|b", nil),
        ("(a)(b)(c)", "0 has 3 groups; '(?: )' takes nothing"), ("(a)b)", "4 has a ')' that closes nothing"),
        ("x(a", "1 has a '(' that is not closed"), ("x(?:a", "1 has a '(' that is not closed"),
        ("(?", "0 has '(?' without ':'; nothing else of that kind is known"),
        // Signs.
        ("(a\\", "2 ends in the middle of '\\'"), ("([a\\", "3 ends in the middle of '\\'"),
        ("([a", "1 has a '[' that is not closed"), ("([a-", "1 has a '[' that is not closed"),
        ("([^])", "1 has an empty '[ ]'; '\\]' is the sign itself"),
        ("([b-a])", "3 has a range in '[ ]' whose end is no sign or lies before its start"),
        ("([a-\\d])", "3 has a range in '[ ]' whose end is no sign or lies before its start"),
        ("([a[])", "3 has '[' inside '[ ]'; '\\[' is the sign itself"),
        ("([aé])", "3 has a sign beyond ASCII in '[ ]'; '\\xHH' is one byte"),
        ("(\\x4", "1 has '\\x' without two hexadecimal digits"), ("(\\x", "1 has '\\x' without two hexadecimal digits"),
        ("(a)\\x41", nil), ("(a)\\x4", "3 has '\\x' without two hexadecimal digits"),
        ("(\\xg4)", "1 has '\\x' without two hexadecimal digits"),
        ("([\\x4g])", "2 has '\\x' without two hexadecimal digits"),
        ("(\\q)", "1 has '\\q', which is not known here"), ("(\\é)", "1 has '\\' before what is no visible sign"),
        // Everything that reads a byte may be repeated, and nothing that may read none.
        ("(.*)", nil), ("([a]*)", nil), ("(\\d*)", nil), ("(\\.*)", nil), ("(a*)", nil), ("(?:(a))*", nil),
        ("(x)(?:ab?)*", nil), ("(x)(?:a?b)*", nil), ("(x)(?:a{1,2})*", nil), ("(x)(?:a+)*", nil), ("(x)(?:a|b)*", nil),
        ("(x)(?:^a)*", nil), ("(x)^*", "3 \(empty)"), ("(x)$*", "3 \(empty)"), ("(x)(?:)*", "3 \(empty)"),
        ("(x)(?:a|)*", "3 \(empty)"), ("(x)(?:|a)*", "3 \(empty)"), ("(x)(?:a|b?)+", "3 \(empty)"),
        ("(x)(?:a{0,2}){2}", "3 \(empty)"), ("(x)(?:a?b*)?", "3 \(empty)"), ("(x)(?:$^)?", "3 \(empty)"),
        ("()*", "0 \(empty)"),
    ]

    @Test(arguments: bounds)
    func aPatternBeyondABoundIsToldSo(pattern: String, reason: String?) {
        #expect(self.reason(pattern) == reason)
    }

    @Test func aProgramOf256StatesIsTheLargest() throws {
        #expect(try Pattern("(a{253})").program.count == Pattern.mostStates)
        #expect(try Pattern("(a{253})").firstGroup(in: Array(repeating: 0x61, count: 300)) == 0..<253)
    }

    @Test func sixteenLevelsAreTheDeepest() {
        func nested(_ groups: Int) -> String {
            String(repeating: "(?:", count: groups - 1) + "(a)" + String(repeating: ")", count: groups - 1)
        }
        #expect(reason(nested(15)) == nil)
        #expect(reason(nested(16)) == "46 is nested deeper than 16 levels")
        #expect(reason(String(repeating: "(?:a)", count: 40) + "(a)") == nil, "groups side by side are no levels")
    }

    @Test func textsAreBoundInTheirBytes() throws {
        #expect(reason("([" + String(repeating: "a", count: 509) + "])") == "0 must have at most 512 bytes")
        let pattern = try Pattern("(b)$")
        let long = Array(repeating: UInt8(ascii: "a"), count: 8191) + [UInt8(ascii: "b")]
        #expect(pattern.firstGroup(in: long) == 8191..<8192)
        #expect(pattern.firstGroup(in: [0x61] + long) == nil)
    }

    @Test(
        arguments: [
            ("(a*)", 5), ("(a+)", 5), ("(a?)", 1), ("(a{2})", 2), ("(a{2,})", 5), ("(a{2,3})", 3), ("(a{0,2})", 2),
            ("(a{0,0})", 0), ("(a{5})", 5), ("(a{6})", nil), ("(a{6,})", nil), ("(a*?)", 0), ("(a+?)", 1), ("(a??)", 0),
            ("(a{2}?)", 2), ("(a{2,}?)", 2), ("(a{2,3}?)", 2), ("(a*?)$", 5), ("(a+?)$", 5), ("^(a??)a{4}$", 1),
            ("^(a{2,4}?)a$", 4), ("^(a{0,9})a{3}$", 2), ("(a{10})", nil), ("(a{1,10})", 5), ("(b*)", 0), ("(b+)", nil),
        ] as [(String, Int?)])
    func aRepetitionTakesItsCount(pattern: String, count: Int?) throws {
        #expect(try Pattern(pattern).firstGroup(in: Array("aaaaa".utf8))?.count == count)
    }
}
