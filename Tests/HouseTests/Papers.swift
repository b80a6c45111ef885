import FoundationEssentials

/// The papers of this package: pages under `docs` and beside `README.md`.
enum Papers {
    struct Page {
        let path: String
        let text: String

        /// Names that the page gives to its places: `<a id="rule-5"></a>`.
        var anchors: [String] {
            text.split(separator: "<a id=\"").dropFirst().compactMap { part in
                part.split(separator: "\"", omittingEmptySubsequences: false).first.map(String.init)
            }
        }

        /// Names by which a forge leads to the page's headings: in lower case, without punctuation, hyphens for blanks. A heading that
        /// stands twice is led to once.
        var headings: [String] {
            var isCode = false
            return text.split(separator: "\n").compactMap { line in
                if line.hasPrefix("```") { isCode.toggle() }
                guard !isCode, line.hasPrefix("#") else { return nil }
                let words = line.drop { $0 == "#" }.dropFirst().lowercased()
                return String(
                    words.filter { $0.isLetter || $0.isNumber || " -_".contains($0) }.map { $0 == " " ? "-" : $0 })
            }
        }

        /// Words between backquotes that could be names of files or tests.
        var quoted: [String] {
            text.split(separator: "`", omittingEmptySubsequences: false).enumerated().compactMap { index, part in
                let isName = part.allSatisfy { $0.isLetter || $0.isNumber || "_.+/-".contains($0) }
                return index % 2 == 1 && isName && !part.isEmpty ? String(part) : nil
            }
        }

        /// The targets of `[text](target)`, without those of other sites.
        var links: [String] {
            text.split(separator: "](").dropFirst().compactMap { part in
                guard let end = part.firstIndex(of: ")") else { return nil }
                let target = part[..<end]
                return target.contains("://") || target.contains(" ") ? nil : String(target)
            }
        }
    }

    static let top = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"]

    /// Every page, by its path from the top of the package.
    static func pages() throws -> [String: Page] {
        let below = try SourceTree.files(under: "docs", [".md"]).map { Page(path: $0.path, text: $0.text) }
        let beside = try top.map { Page(path: $0, text: try text(of: $0)) }
        return Dictionary(uniqueKeysWithValues: (below + beside).map { ($0.path, $0) })
    }

    private static func text(of path: String) throws -> String {
        String(decoding: try Data(contentsOf: URL(filePath: "\(SourceTree.root)/\(path)")), as: UTF8.self)
    }

    /// Names of the test suites that a Swift file declares.
    static func suites(in text: String) -> [String] { names(behind: "struct ", in: text) }

    /// The words of letters and digits that follow a word of the language, such as `extension `.
    static func names(behind word: String, in text: String) -> [String] {
        text.split(separator: word, omittingEmptySubsequences: false).dropFirst().map {
            String($0.prefix { $0.isLetter || $0.isNumber })
        }
    }

    /// Names of the functions behind `@Test`, without backquotes.
    static func tests(in text: String) -> [String] {
        text.split(separator: "@Test", omittingEmptySubsequences: false).dropFirst().compactMap { part in
            guard let start = part.firstRange(of: "func ") else { return nil }
            let rest = part[start.upperBound...]
            return rest.first == "`"
                ? String(rest.dropFirst().prefix { $0 != "`" })
                : String(rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
        }
    }

    /// Names of the functions that a Python file declares at its top level.
    static func functions(in text: String) -> [String] {
        text.split(separator: "\ndef ", omittingEmptySubsequences: false).dropFirst().map {
            String($0.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
        }
    }

    /// What is wrong with a citation or a link; nil where it leads to a page, and to a place of it where it names one. Links may name a
    /// heading; citations stay where they are when a heading's words change, so they want a name that the page gives.
    static func fault(of target: String, in pages: [String: Page], isLink: Bool = false) -> String? {
        let parts = target.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        guard let page = pages[parts[0]] else { return "there is no page \(parts[0])" }
        guard parts.count == 2 else { return nil }
        let places = isLink ? page.anchors + page.headings : page.anchors
        return places.contains(parts[1]) ? nil : "\(parts[0]) has no place \(parts[1])"
    }
}
