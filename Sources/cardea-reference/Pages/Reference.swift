import FoundationEssentials

/// Everything that is written, each page with its name and text.
struct Reference: Sendable {
    let commands: CommandTree
    let examples: KeyExamples
}

/// A file that is made whole.
struct Page: Sendable {
    let name: String
    let text: String

    init(name: String, text: String) {
        self.name = name
        let end = text.lastIndex { !$0.isNewline }.map { text.index(after: $0) } ?? text.startIndex
        self.text = text[..<end] + "\n"
    }

    func write(to folder: String) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
    }
}

extension Reference {
    /// The pages of docs/reference.
    var pages: [Page] {
        get throws {
            let pages: [(page: Page, about: String)] = try [
                configurationPage, commandsPage, problemsPage, statesPage, metricsPage, eventsPage, exitStatusPage,
            ]
            return [index(of: pages)] + pages.map(\.page)
        }
    }

    private func index(of pages: [(page: Page, about: String)]) -> Page {
        var text = Markdown.head("Reference")
        text += "| page | what |\n|---|---|\n"
        for (page, about) in pages { text += "| [\(page.name)](\(page.name)) | \(about) |\n" }
        text +=
            "\nThese pages are made of the tables that the program itself uses. `make reference` writes them anew.\n"
        return Page(name: "README.md", text: text)
    }
}
