/// A manual page in mdoc(7).
struct Manual {
    private(set) var text: String

    /// - Parameters:
    ///   - section: 1 for commands, 5 for files.
    ///   - date: such as `2026-11-23`.
    init(_ title: String, section: Int, date: String) {
        text = ".Dd \(Self.spelled(date))\n.Dt \(title) \(section)\n.Os\n"
    }

    mutating func section(_ title: String) { text += ".Sh \(title)\n" }
    mutating func subsection(_ title: String) { text += ".Ss \(Self.argument(title))\n" }
    mutating func paragraph() { text += ".Pp\n" }

    /// Sentences, each on a line of its own, as roff has them.
    mutating func words(_ words: String) {
        for sentence in Self.sentences(words) { text += Self.line(sentence) + "\n" }
    }

    /// A line with a macro, whose arguments are words.
    mutating func macro(_ name: String, _ arguments: String...) {
        text += ".\(name)" + arguments.map { " " + Self.argument($0) }.joined() + "\n"
    }

    /// A line with macros among its words.
    mutating func raw(_ line: String) { text += ".\(line)\n" }

    /// A list of things with words for each.
    mutating func list(_ items: [(tag: [String], words: [String])], macro: String) {
        guard !items.isEmpty else { return }
        text += ".Bl -tag -width Ds\n"
        for item in items {
            text += (macro.isEmpty ? ".It" : ".It \(macro)") + item.tag.map { " " + Self.argument($0) }.joined() + "\n"
            for (index, line) in item.words.enumerated() {
                if index > 0 { text += ".br\n" }
                words(line)
            }
        }
        text += ".El\n"
    }

    /// Lines as they are.
    mutating func literal(_ lines: String) {
        text += ".Bd -literal -offset indent\n"
        for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
            text += Self.line(String(line)) + "\n"
        }
        text += ".Ed\n"
    }

    /// A sentence ends with a full stop, a blank and a capital.
    private static func sentences(_ text: String) -> [String] {
        var result: [String] = []
        var rest = text[...]
        while let stop = rest.firstMatch(of: /\. (?=[A-Z'])/)?.range {
            result.append(String(rest[..<stop.lowerBound]) + ".")
            rest = rest[stop.upperBound...]
        }
        return (result + [String(rest)]).filter { !$0.isEmpty }
    }

    // MARK: - Escaping

    /// Characters that roff would take for its own.
    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "\"": result += "\\(dq"
            case "'": result += "\\(aq"
            case "`": result += "\\(ga"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            case "…": result += "..."
            case let other where other.isASCII: result.unicodeScalars.append(other)
            case let other: result += "\\[u\(String(other.value, radix: 16, uppercase: true).leftPadded(to: 4))]"
            }
        }
        return result
    }

    /// A line of words may begin with what roff would take for a request.
    private static func line(_ text: String) -> String {
        let escaped = escaped(text)
        return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
    }

    /// Names of macros and punctuation stand for themselves.
    private static func argument(_ text: String) -> String {
        let escaped = escaped(text)
        let isName = escaped.utf8.count <= 3 && escaped.allSatisfy(\.isLetter) && escaped.first?.isUppercase == true
        let isPunctuation = escaped.utf8.count == 1 && !escaped.allSatisfy { $0.isLetter || $0.isNumber }
        let whole = isName || isPunctuation || escaped.isEmpty ? "\\&" + escaped : escaped
        return whole.contains(" ") ? "\"\(whole)\"" : whole
    }

    private static func spelled(_ date: String) -> String {
        let months = [
            "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
            "November", "December",
        ]
        let numbers = (1...12).map { $0 < 10 ? "0\($0)" : "\($0)" }
        let parts = date.split(separator: "-").map(String.init)
        guard parts.count == 3, let month = numbers.firstIndex(of: parts[1]) else { return date }
        return "\(months[month]) \(parts[2].trimmingPrefix("0")), \(parts[0])"
    }
}

extension String {
    fileprivate func leftPadded(to width: Int) -> String {
        String(repeating: "0", count: max(0, width - count)) + self
    }
}
