import Configuration

extension Reference {
    var configurationPage: (page: Page, about: String) {
        let tree = KeyTree()
        var text = Markdown.head("Configuration")
        text += """
            A file is YAML. `cardea check` shows every mistake at once with line, column and the nearest name that exists; `cardea schema` prints
            the JSON Schema, which editors use by the first line of each file under `config/`. A number never goes without its unit where it has
            one. In any value, `${NAME}` and `${NAME:-default}` come from the environment. Secrets are references: `file:PATH`, `env:NAME`,
            `credential:NAME` (systemd) or `exec:PATH ARGUMENTS`; `literal:` is for trials.


            """
        text += "In a place, `*` stands for a name of your own and `[]` for each item of a list.\n\n"
        for section in tree.sections {
            let about = section.depth == 0 ? "the whole file" : Markdown.plain(section.block.description)
            text += String(repeating: "  ", count: section.depth)
            text += "- [\(Markdown.code(section.anchor))](#\(section.anchor)): \(about)\n"
        }
        text += "\n"
        for section in tree.sections { text += self.section(section, tree) }
        return (Page(name: "configuration.md", text: text), "every key of the file: type, unit, default, an example")
    }

    private func section(_ section: KeyTree.Section, _ tree: KeyTree) -> String {
        let block = section.block
        var text = "\(Markdown.anchor(section.anchor))\n## \(section.anchor)\n\n\(Markdown.plain(block.description))"
        if !section.places.isEmpty { text += " Stands at \(Markdown.codes(section.places))." }
        if !block.exactlyOneOf.isEmpty { text += " Exactly one of \(Markdown.codes(block.exactlyOneOf))." }
        text += "\n\n"
        guard !block.keys.isEmpty else { return text + "It has no keys.\n\n" }
        let rows = block.keys.map { key in
            [
                "\(Markdown.anchor("\(section.anchor).\(key.name)"))\(Markdown.code(key.name))",
                ValueWords.words(key.type) { inside in
                    tree.section(of: inside).map { "[a map](#\($0.anchor))" } ?? "a map"
                },
                key.required ? "**required**" : key.defaultText.map(Markdown.code) ?? "",
                examples.example(of: key, in: section).map(Markdown.code) ?? "",
                Markdown.plain(key.description),
            ]
        }
        return text + Markdown.table(["key", "takes", "default", "for example", "what it is"], rows)
    }
}
