/// Citations in comments: `docs/design/tokens.md#rule-5`.
enum Citations {
    /// One run of comment lines, joined by blanks, so that a citation may go on in the next line.
    struct Remark: Equatable {
        let line: Int
        let text: String
    }

    static func remarks(in text: String) -> [Remark] {
        var remarks: [Remark] = []
        // Whether the last remark goes on with a comment line that follows.
        var isOpen = false
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let comment = comment(of: line) else {
                isOpen = false
                continue
            }
            let isWhole = line.drop { $0 == " " || $0 == "\t" }.hasPrefix("//")
            if isOpen, isWhole, let last = remarks.popLast() {
                remarks.append(Remark(line: last.line, text: "\(last.text) \(comment)"))
            } else {
                remarks.append(Remark(line: index + 1, text: String(comment)))
            }
            isOpen = isWhole
        }
        return remarks
    }

    /// The words of a comment line, or of the comment behind code; nil where there is none.
    static func comment(of line: Substring) -> Substring? {
        let start = line.drop { $0 == " " || $0 == "\t" }
        for mark in ["///", "//"] where start.hasPrefix(mark) {
            return start.dropFirst(mark.count).drop { $0 == " " }
        }
        return line.firstRange(of: " // ").map { line[$0.upperBound...] }
    }

    /// Every citation in a text, in order.
    static func targets(in text: String) -> [String] {
        text.ranges(of: "docs/").compactMap { range in
            // The tail of a longer path, such as an address, is none.
            if let before = text[..<range.lowerBound].last, !" (\"'`".contains(before) { return nil }
            let rest = text[range.lowerBound...].prefix { $0.isLetter || $0.isNumber || "/-_.#".contains($0) }
            let target = rest.hasSuffix(".") ? rest.dropLast() : rest
            return target.contains(".md") ? String(target) : nil
        }
    }

    /// Of names of functions such as `rule5_…` the number.
    static func numbers(of kind: String, in text: String) -> [Substring] {
        text.ranges(of: "func \(kind)").compactMap { range in
            let digits = text[range.upperBound...].prefix { $0.isNumber }
            return digits.isEmpty || !text[digits.endIndex...].hasPrefix("_") ? nil : digits
        }
    }

    /// Forms that lead nowhere: a section of nothing, a numbered rule, law or invariant without its page, and the names of papers that
    /// are not in the repository.
    static func strays(in remark: String) -> [String] {
        var strays: [String] = []
        for name in ["protocols/", "protocol notes", "design §", "Design §", "design:"] where remark.contains(name) {
            strays.append(name)
        }
        let words = remark.split(separator: " ")
        for (index, word) in words.enumerated() {
            if let sign = word.firstIndex(of: "§"), !isOfStandard(words[..<index], word[..<sign]) {
                strays.append(String(word))
            }
            let kind = word.lowercased().filter { $0.isLetter }
            guard index + 1 < words.count, let number = words[index + 1].first, number.isNumber else { continue }
            switch kind {
            case "rule", "rules", "invariant", "law":
                let place = kind == "rules" ? "rule-" : "\(kind)-"
                let digits = words[index + 1].prefix { $0.isNumber }
                if !remark.contains("#\(place)\(digits)"), !remark.contains("#answer-\(place)\(digits)") {
                    strays.append("\(word) \(words[index + 1])")
                }
            default: break
            }
        }
        return strays
    }

    /// Whether sections are a published standard's: behind `RFC 9110`, `Core` or `CSP3`, or behind other sections of one.
    private static func isOfStandard(_ before: ArraySlice<Substring>, _ glued: Substring) -> Bool {
        guard glued.allSatisfy({ !$0.isLetter && !$0.isNumber }) else { return false }
        for (index, word) in zip(before.indices, before).reversed() {
            let bare = word.filter { $0.isLetter || $0.isNumber }
            if word.contains("§") || bare == "and" { continue }
            if ["Core", "core", "CSP3"].contains(bare) { return true }
            guard !bare.isEmpty, bare.allSatisfy(\.isNumber), index > before.startIndex else { return false }
            return before[index - 1].filter(\.isLetter) == "RFC"
        }
        return false
    }
}
