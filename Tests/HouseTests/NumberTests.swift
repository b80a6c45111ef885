import Testing

/// A number that somebody else wrote becomes one of ours in a few files only, by a range or by clamping: everywhere else its arithmetic
/// could end the process.
@Suite struct NumberTests {
    /// Files that turn text into numbers, each with its reason.
    static let readers: [String: String] = [
        "Sources/Numbers/ReceivedNumber.swift": "the reader of numbers: digits of any length, without a trap",
        "Sources/Numbers/TimeSpan.swift": "the reader of seconds with a fraction, cut to a hundred years",
        "Sources/Configuration/Schema/JSONSchema.swift":
            "asks whether a word of ours looks like a number to YAML, and keeps no number",
    ]
    /// Shares nothing with the gateway; what ends it ends a test.
    static let simulators: Set<String> = ["cardea-lab"]

    @Test func textBecomesNumbersInTheReadersAlone() throws {
        for file in try SourceTree.files(under: "Sources", [".swift"])
        where Self.readers[file.path] == nil && !Self.simulators.contains(file.module) {
            let lines = file.text.split(separator: "\n", omittingEmptySubsequences: false)
            for (index, line) in lines.enumerated() {
                guard NumberReading.mayRead(line) else { continue }
                let next = index + 1 < lines.count ? lines[index + 1] : ""
                let before = index > 0 ? lines[index - 1] : ""
                if let reading = NumberReading.first(in: line, after: before, before: next) {
                    Issue.record(
                        "\(file):\(index + 1): '\(reading)' makes a number of text; use ReceivedNumber, or TimeSpan")
                }
            }
        }
    }

    @Test func everyReaderIsThereAndSaysWhy() throws {
        let paths = Set(try SourceTree.files(under: "Sources", [".swift"]).map(\.path))
        for (path, reason) in Self.readers {
            #expect(paths.contains(path), "\(path) is gone")
            #expect(!reason.isEmpty)
        }
    }
}

/// Finds initializers of numbers that take text. The types of arguments are not known here, so it goes by what only those have: their result
/// is optional, or a radix or a decoding stands in them, or the names that text has in this project.
enum NumberReading {
    private static let types = [
        "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64", "Double", "Float",
    ]
    private static let functions = ["strtol", "strtoul", "strtoll", "strtoull", "strtod", "atoi", "atol", "sscanf"]
    /// Labels of initializers that take numbers.
    private static let conversions = ["exactly:", "clamping:", "truncatingIfNeeded:", "bitPattern:", "ascii:"]
    private static let texts = [".dropFirst(", ".prefix(", "String(", "decoding:", "radix:", "digits)"]

    /// Rules out most lines without a closer look.
    static func mayRead(_ line: Substring) -> Bool {
        ["Int", "Double", "Float", "ato", "scan", "strt"].contains { line.utf8.firstRange(of: $0.utf8) != nil }
    }

    /// - Returns: the call; nil where the line has none.
    static func first(in line: Substring, after before: Substring = "", before next: Substring = "") -> String? {
        guard let code = code(of: line) else { return nil }
        for name in functions where !calls(of: name, in: code).isEmpty { return name }
        for type in types {
            if code.contains("ap(\(type).init)") { return "\(type).init" }
            for call in calls(of: type, in: code) {
                let argument = code[call.argument]
                if conversions.contains(where: { argument.hasPrefix($0) }) { continue }
                let head = code[..<call.start]
                let tail = code[call.end...]
                let isOptional =
                    [" ??", "?.", ".map", ".flatMap", " == nil", " != nil"].contains { tail.hasPrefix($0) }
                let isMapped = argument == "$0" && (head.hasSuffix("tMap { ") || head.hasSuffix("tMap({ "))
                let isText =
                    texts.contains { "\(argument))".contains($0) } || argument == "text"
                    || argument.hasPrefix("text[") && argument.hasSuffix("...]")
                if isOptional || isMapped || isText || isBound(head, tail, before, next) {
                    return "\(type)(\(argument))"
                }
            }
        }
        return nil
    }

    /// Whether the result is unwrapped by a condition, as only one of text is.
    private static func isBound(
        _ head: Substring, _ tail: Substring, _ before: Substring, _ next: Substring
    ) -> Bool {
        guard head.hasSuffix(" = ") else { return false }
        let words = head.split { $0 == " " || $0 == "\t" }
        guard let last = words.lastIndex(where: { $0 == "let" || $0 == "var" }), words.count == last + 3 else {
            return false
        }
        if last > 0, ["guard", "if", "while"].contains(words[0]) || words[last - 1].hasSuffix(",") { return true }
        if last > 1, words[0] == "}", words[2] == "if" { return true }
        let ends = tail.drop { $0 == " " }
        if ends.hasPrefix(",") || ends.hasPrefix("else") || ends.hasPrefix("{") { return true }
        guard ends.isEmpty else { return false }
        let following = next.drop { $0 == " " }
        return following.hasPrefix("else") || following.hasPrefix("{") || before.hasSuffix(",")
    }

    /// Without its comment; nil for a line that is one.
    private static func code(of line: Substring) -> Substring? {
        let start = line.drop { $0 == " " }
        if start.hasPrefix("//") { return nil }
        guard let comment = line.firstRange(of: " // ") else { return line }
        return line[..<comment.lowerBound]
    }

    private static func calls(
        of name: String, in code: Substring
    ) -> [(start: String.Index, argument: Range<String.Index>, end: String.Index)] {
        var calls: [(start: String.Index, argument: Range<String.Index>, end: String.Index)] = []
        for found in code.ranges(of: "\(name)(") {
            if found.lowerBound > code.startIndex {
                let previous = code[code.index(before: found.lowerBound)]
                if previous.isLetter || previous.isNumber || previous == "_" || previous == "." { continue }
            }
            var depth = 1
            var end = found.upperBound
            while end < code.endIndex, depth > 0 {
                depth += code[end] == "(" ? 1 : code[end] == ")" ? -1 : 0
                end = code.index(after: end)
            }
            // A call that goes on in the next line has more than one argument, and those take no text.
            guard depth == 0 else { continue }
            calls.append((found.lowerBound, found.upperBound..<code.index(before: end), end))
        }
        return calls
    }
}

/// The lint is what the rule stands on, so it is tried on lines of every form.
@Suite struct NumberReadingTests {
    @Test(arguments: [
        "guard let port = UInt16(digits) else { return nil }", "        let number = Int64(name) else { return }",
        "            let a = UInt32(b),", "if let x = Double(y) {", "guard words.count == 2, let quota = Int(words[0])",
        "let left = Int(said) ?? 0", "x.map { UInt8($0, radix: 16) }", "UInt8(String(decoding: a, as: UTF8.self))",
        "return UInt64(line.dropFirst(6))", "values.flatMap { UInt64($0) }", "parts.compactMap({ Int($0) })",
        "parts.compactMap(Int.init)", "parts.map(Int.init)", "Int(name).map { .number($0) }", "Double(word) == nil",
        "port = UInt16(text[place...])", "let n = strtol(text, nil, 10)", "} else if let a = Int(b) {",
    ])
    func aReadingIsSeen(line: String) { #expect(NumberReading.first(in: line[...]) != nil) }

    @Test(arguments: [
        "let width = Int(range.count)", "guard let a = UInt8(exactly: b) else { return }",
        "let a = UInt64(clamping: b)",
        "return Int(line.start)", "values.map { UInt32($0) }", "// guard let a = Int(text) else", "printInt(text)",
        "for index in 0..<Int(count) {", "let end = Int(line.end) &+ 2", "append(UInt8(ascii: \"%\"))",
        "if a == UInt8(ascii: \"%\"), b { return }", "guard bytes.count >= Int(count) else { throw x }",
    ])
    func otherLinesAreNone(line: String) { #expect(NumberReading.first(in: line[...]) == nil) }

    @Test func aConditionMayGoOnInTheNextLine() {
        #expect(NumberReading.first(in: "    let value = UInt8(bytes)", before: "else { return nil }") != nil)
        #expect(NumberReading.first(in: "    let value = UInt8(bytes)", after: "guard a,", before: "    ") != nil)
        #expect(NumberReading.first(in: "    let value = UInt8(bytes)", after: "{", before: "use(value)") == nil)
    }
}
