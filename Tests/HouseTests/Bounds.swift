/// The tables of docs/security/bounds.md: bounds with a key and a default, and bounds with a constant of the code.
enum Bounds {
    static let path = "docs/security/bounds.md"

    /// A row of a table, without its head.
    struct Row: Equatable {
        var value: String
        /// A key of the configuration, or `Type.constant`.
        var name: String
    }

    /// Rows whose table has this word above its third column.
    static func rows(under word: String, in text: String) -> [Row] {
        var rows: [Row] = []
        var isUnder = false
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            let cells = cells(of: line)
            guard cells.count >= 3 else {
                isUnder = false
                continue
            }
            if cells[2] == word {
                isUnder = true
            } else if isUnder, !cells[2].hasPrefix("---") {
                rows.append(Row(value: cells[1], name: cells[2].filter { $0 != "`" }))
            }
        }
        return rows
    }

    /// The cells of a line of a table; a bar behind a backslash is part of its cell.
    static func cells(of line: Substring) -> [String] {
        guard line.hasPrefix("|") else { return [] }
        let parts = line.replacing("\\|", with: "\u{1}").split(separator: "|", omittingEmptySubsequences: false)
        return parts.dropFirst().dropLast().map { part in
            let start = part.drop { $0 == " " }
            return String(
                start.prefix(upTo: start.lastIndex { $0 != " " }.map { start.index(after: $0) } ?? start.endIndex))
        }
    }

    /// The default of a key as the reference has it, empty where there is none; nil where there is no such key.
    static func written(of key: String, in reference: String) -> String? {
        for line in reference.split(separator: "\n") where line.contains("<a id=\"\(key)\"></a>") {
            let cells = cells(of: line)
            return cells.count > 2 ? cells[2] : nil
        }
        return nil
    }

    // MARK: - Numbers

    /// `64 KiB`, `10 s`, `4096`.
    static func number(_ text: String) -> Int? {
        let words = text.split(separator: " ")
        guard let first = words.first, let count = Int(first), words.count <= 2 else { return nil }
        let units = ["KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "s": 1]
        return words.count == 1 ? count : units[String(words[1])].map { count * $0 }
    }

    /// The value of a constant: a number, a product of two, or one that is shifted.
    static func value(of expression: Substring) -> Int? {
        let words = expression.split(separator: " ").map { $0.filter { $0 != "_" } }
        guard let first = words.first.flatMap({ Int($0) }) else { return nil }
        guard words.count > 2, let second = Int(words[2]) else { return words.count == 1 ? first : nil }
        switch words[1] {
        case "*": return first * second
        case "<<": return first << second
        default: return nil
        }
    }

    /// Every value that a constant of this name is given in files that declare or extend the type: those that have its name, else any.
    static func values(of name: String, in files: [SourceTree.File]) -> [Int] {
        let parts = name.split(separator: ".").map(String.init)
        guard parts.count == 2 else { return [] }
        let named = files.filter { $0.name == "\(parts[0]).swift" || $0.name.hasPrefix("\(parts[0])+") }
            .flatMap { values(of: parts[1], in: $0) }
        guard named.isEmpty else { return named }
        let words = ["struct", "class", "enum", "actor"].flatMap { ["\($0) \(parts[0]) ", "\($0) \(parts[0]):"] }
        return files.filter { file in words.contains { file.text.utf8.firstRange(of: $0.utf8) != nil } }
            .flatMap { values(of: parts[1], in: $0) }
    }

    private static func values(of constant: String, in file: SourceTree.File) -> [Int] {
        let starts = ["let ", "var "].flatMap { ["\($0)\(constant) =", "\($0)\(constant):"] }
        return file.text.split(separator: "\n").compactMap { line in
            guard starts.contains(where: { line.contains($0) }), let sign = line.firstRange(of: " = ") else {
                return nil
            }
            return value(of: line[sign.upperBound...])
        }
    }
}
