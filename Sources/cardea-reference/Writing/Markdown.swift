/// Pieces of the pages of docs/reference: plain Markdown, readable on a forge and as a site.
enum Markdown {
    /// The title, and who makes the page.
    static func head(_ title: String) -> String {
        "# \(title)\n\n<!-- Made by `make reference` of the code's own tables. Change those. -->\n\n"
    }

    static func anchor(_ name: String) -> String { "<a id=\"\(name)\"></a>" }

    static func table(_ titles: [String], _ rows: [[String]]) -> String {
        let lines = [titles, titles.map { _ in "---" }] + rows
        return lines.map { "| \($0.joined(separator: " | ")) |\n" }.joined().replacing("| --- |", with: "|---|")
            .replacing(" --- |", with: "---|") + "\n"
    }

    /// Words as they are, whatever they are made of.
    static func plain(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "|", "*", "_", "`", "\\", "[", "]": result += "\\\(character)"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\n": result += " "
            default: result.append(character)
            }
        }
        return result
    }

    /// A name or a piece of a file. A bar would end the table's cell.
    static func code(_ text: String) -> String {
        guard !text.isEmpty else { return "`\"\"`" }
        let ticks = text.contains("`") ? "``" : "`"
        return ticks + text.replacing("|", with: "\\|") + ticks
    }

    static func codes(_ texts: [String], _ joint: String = ", ") -> String {
        texts.map(code).joined(separator: joint)
    }

    static func block(_ lines: String, _ language: String = "") -> String {
        "```\(language)\n\(lines)\n```\n\n"
    }

    /// A name out of words: letters and digits in lower case, everything else one hyphen.
    static func slug(_ text: String) -> String {
        text.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }.joined(separator: "-")
    }
}
