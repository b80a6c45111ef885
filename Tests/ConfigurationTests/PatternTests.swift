import Glibc
import TemporaryFolder
import Testing

@testable import Configuration

@Suite struct PatternTests {
    private func take(_ pattern: String, _ text: String) throws -> String? {
        let input = Array(text.utf8)
        return try Pattern(pattern).firstGroup(in: input).map { String(decoding: input[$0], as: UTF8.self) }
    }

    @Test(arguments: [
        ("^([^:]+):", "HR_WG:2 /hr", "HR_WG"), ("^([^:]+):", ":2", nil), ("id=(\\d+)", "a id=12; id=3", "12"),
        ("(a|ab)(?:c|bcd)", "abcd", "a"), ("(?:a|ab)(c|bcd)$", "abcd", "bcd"), ("x*(y?)", "xxz", ""),
        ("(a{2,3})", "aaaa", "aaa"), ("(a{2,3}?)", "aaaa", "aa"), ("\"(.*?)\"", "\"a\" \"b\"", "a"),
        ("(?:(a)|b)+", "ab", "a"), ("(?:x|(y))", "x", nil), ("([\\w.-]+)@", "<a.b-c@d>", "a.b-c"),
        ("(\\x41\\t)", "A\t", "A\t"), ("([^\\]\\d]+)", "1]ab2", "ab"), ("(.)", "\n", nil), ("(a)$", "a\n", nil),
        ("(é)", "née", "é"),
    ])
    func finds(pattern: String, text: String, group: String?) throws { #expect(try take(pattern, text) == group) }

    @Test(arguments: [
        ("abc", "needs one group", 0), ("(a)(b)", "has 2 groups", 0), ("(a", "has a '(' that is not closed", 0),
        ("(a))", "has a ')'", 3), ("(a)*?+", "has two repetitions", 3), ("(*a)", "has a repetition with nothing", 1),
        ("((?:a*)+)", "repeats what can be empty", 1), ("(a*)*", "repeats what can be empty", 0),
        ("(^)*", "repeats what can be empty", 0), ("(a)\\1", "has '\\1'", 3), ("(?=a)(b)", "has '(?' without ':'", 0),
        ("([a", "has a '[' that is not closed", 1), ("([])", "has an empty '[ ]'", 1), ("([z-a])", "has a range", 3),
        ("(a{3,2})", "has a repetition that is not", 2), ("(a{257})", "has a repetition that is not", 2),
        ("(a{x)", "has '{' without a number", 2), ("((?:a{100}){100})", "is too large", 0), ("(a\\", "ends in", 2),
        ("(\\bx)", "has '\\b'", 1), ("([é])", "has a sign beyond ASCII", 2), ("(a]b)", "has a lone ']'", 2),
    ])
    func refuses(pattern: String, reason: String, offset: Int) {
        do {
            _ = try Pattern(pattern)
            Issue.record("\(pattern) was taken")
        } catch {
            #expect(error.reason.hasPrefix(reason), "\(pattern): \(error.reason)")
            #expect(error.offset == offset, "\(pattern): \(error.offset)")
        }
    }

    @Test func boundsHold() throws {
        #expect(throws: Pattern.Fault.self) { try Pattern(String(repeating: "a", count: 600)) }
        #expect(throws: Pattern.Fault.self) {
            try Pattern(String(repeating: "(?:", count: 20) + "(a)" + String(repeating: ")", count: 20))
        }
        let long = Array(repeating: UInt8(ascii: "a"), count: Pattern.longestInput)
        #expect(try Pattern("(a)$").firstGroup(in: long) == (long.count - 1)..<long.count)
        #expect(try Pattern("(a)").firstGroup(in: long + [0x61]) == nil)
    }

    /// What makes a backtracking engine take for ever costs one pass here. The bound is on steps, so nothing is measured in time.
    @Test(arguments: ["(?:a|a)*(b)", "(?:a|aa)+(b)$", "((?:a+){1,9})b", "(?:a?){60}(b)", "(x)?(?:[a-z]+[a-z]+)+1"])
    func noPatternIsSlow(pattern: String) {
        guard let pattern = try? Pattern(pattern) else { return }
        #expect(pattern.program.count <= Pattern.mostStates)
        #expect(pattern.firstGroup(in: Array(repeating: UInt8(ascii: "a"), count: Pattern.longestInput)) == nil)
    }

    // MARK: - Python

    /// Random patterns of the subset on random texts: Python's engine, which backtracks, must find the same bytes.
    @Test func findsWhatPythonFinds() throws {
        var random = Sequence(seed: 0x5EED_CA4D)
        var cases: [(pattern: String, python: String, input: [UInt8])] = []
        while cases.count < 4000 {
            let (ours, theirs) = random.pattern()
            guard (try? Pattern(ours)) != nil else { continue }
            for _ in 0..<4 { cases.append((ours, theirs, random.input())) }
        }
        let answers = try python(cases.map { "\(hex(Array($0.python.utf8))) \(hex($0.input))" })
        #expect(answers.count == cases.count)
        var matches = 0
        for (item, answer) in zip(cases, answers) {
            let range = try Pattern(item.pattern).firstGroup(in: item.input)
            let found = range.map { "\($0.lowerBound) \($0.upperBound)" } ?? "none"
            if found != "none" { matches += 1 }
            #expect(found == answer, "\(item.pattern) on \(String(decoding: item.input, as: UTF8.self))")
        }
        // Otherwise the generator, not the engine, would be what agrees.
        #expect(matches > cases.count / 4)
    }

    private func hex(_ bytes: [UInt8]) -> String {
        "x" + bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    private static let script = """
        import re, sys
        for line in open(sys.argv[1]):
            pattern, text = (bytes.fromhex(word[1:]) for word in line.split())
            found = re.search(pattern, text)
            print('none' if not found or found.start(1) < 0 else '%d %d' % found.span(1))
        """

    private func python(_ lines: [String]) throws -> [String] {
        let scratch = Scratch()
        let input = scratch.write("cases", lines.joined(separator: "\n") + "\n")
        let output = scratch.path + "/answers"
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT, 0o600)
        let arguments: [String] = ["python3", "-c", Self.script, input]
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        var status: Int32 = 0
        #expect(posix_spawnp(&process, "python3", &actions, nil, &words, environ) == 0)
        #expect(waitpid(process, &status, 0) == process && status == 0)
        let bytes = try FileReader.read(output, bound: 1 << 22)
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }

    /// Patterns and texts out of few signs, so that they meet.
    private struct Sequence {
        private var state: UInt64
        private var groups = 0
        init(seed: UInt64) { state = seed }

        mutating func number(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int((state >> 33) % UInt64(bound))
        }

        mutating func input() -> [UInt8] { (0..<number(12)).map { _ in Array("aabbc1 \n:".utf8)[number(9)] } }

        /// Ours, and as Python writes it: its `$` also matches before a last line feed.
        mutating func pattern() -> (String, String) {
            groups = 0
            let body = tree(3)
            let text = groups == 0 ? "(" + body + ")" : body
            let ours = text.replacing("END", with: "$")
            return (ours, text.replacing("END", with: "\\Z"))
        }

        private mutating func tree(_ depth: Int) -> String {
            (0...number(2)).map { _ in (0...number(3)).map { _ in piece(depth) }.joined() }.joined(separator: "|")
        }

        private mutating func piece(_ depth: Int) -> String {
            var text: String
            switch number(depth > 0 ? 12 : 8) {
            case 0: text = "a"
            case 1: text = "b"
            case 2: text = "[ab]"
            case 3: text = "[^a:]"
            case 4: text = "."
            case 5: text = ["\\d", "\\w", "\\s", "\\D", "\\W", "\\S"][number(6)]
            case 6: return number(2) == 0 ? "^" : "END"
            case 7: text = "[a-c\\d\\-]"
            case 8 where groups == 0:
                groups = 1
                text = "(" + tree(depth - 1) + ")"
            default: text = "(?:" + tree(depth - 1) + ")"
            }
            if number(3) == 0 {
                text += ["*", "+", "?", "{2}", "{1,2}", "{0,2}", "{1,}"][number(7)] + (number(3) == 0 ? "?" : "")
            }
            return text
        }
    }
}
