import Configuration
import Gateway

extension Reference {
    /// cardea.1 and cardea.yaml.5.
    /// - Parameter date: of both pages, such as `2026-11-23`.
    func manuals(date: String) -> [Page] {
        [
            Page(name: "cardea.1", text: programManual(date).text),
            Page(name: "cardea.yaml.5", text: fileManual(date).text),
        ]
    }

    private func programManual(_ date: String) -> Manual {
        var page = Manual("CARDEA", section: 1, date: date)
        page.section("NAME")
        page.macro("Nm", "cardea")
        page.macro("Nd", "HTTP gateway that answers authentication challenges")
        page.section("SYNOPSIS")
        let leaves = command.leaves()
        for (name, leaf) in leaves {
            page.macro("Nm", name.joined(separator: " "))
            for argument in leaf.shownArguments { page.raw(Self.synopsis(of: argument)) }
        }
        page.section("DESCRIPTION")
        page.words(command.abstract ?? "")
        page.paragraph()
        page.words(
            "A caller sends its plain request to Cardea. Cardea obtains the token, keeps it, puts it into the request and forwards it."
        )
        page.words("What goes where, and with which identity, is said by a file:")
        page.raw("Xr cardea.yaml 5 .")
        page.section("COMMANDS")
        for (name, leaf) in leaves {
            page.subsection(name.joined(separator: " "))
            page.words(leaf.abstract ?? "")
            for line in (leaf.discussion ?? "").split(separator: "\n") {
                page.paragraph()
                page.words(String(line))
            }
            let arguments = leaf.shownArguments
            if !arguments.isEmpty {
                page.paragraph()
                page.words(arguments.count == 1 ? "Its argument:" : "Its arguments:")
            }
            page.list(
                arguments.map { argument in
                    let value = argument.kind == .option ? " \(argument.placeholder)" : ""
                    let fallback = argument.defaultValue.map { " Default: \($0)." } ?? ""
                    return (
                        tag: [argument.spellings.joined(separator: ", ") + value],
                        words: [(argument.abstract ?? "") + fallback]
                    )
                }, macro: "Cm")
        }
        page.section("SIGNALS")
        page.words("To")
        page.raw("Nm cardea run :")
        page.list(CommandWords.signals.map { (tag: [$0.name], words: [$0.meaning]) }, macro: "Dv")
        page.section("ENVIRONMENT")
        page.list(CommandWords.environment.map { (tag: [$0.name], words: [$0.meaning]) }, macro: "Ev")
        page.section("FILES")
        page.list(CommandWords.files.map { (tag: [$0.name], words: [$0.meaning]) }, macro: "Pa")
        page.section("EXIT STATUS")
        page.list(ProcessEnd.allCases.map { (tag: ["\($0.rawValue)"], words: [$0.meaning + "."]) }, macro: "")
        page.section("EXAMPLES")
        page.words("The smallest file for an OAuth 2.0 API, then its check with one token, then the gateway:")
        page.literal(Self.smallestFile)
        page.literal("cardea check --live\ncardea run")
        page.section("SEE ALSO")
        page.raw("Xr cardea.yaml 5")
        return page
    }

    private static func synopsis(of argument: CommandTree.Argument) -> String {
        let repeated = argument.isRepeating ? " ..." : ""
        let name = Manual.escaped(argument.preferredName.map { String($0.spelling.dropFirst()) } ?? "")
        let value = Manual.escaped(argument.placeholder)
        let own: String =
            switch argument.kind {
            case .positional:
                (argument.terminator.isEmpty ? "" : "Cm \\-\\- ") + "Ar \(value)\(repeated)"
            case .flag: "Fl \(name)"
            case .option: "Fl \(name) Ar \(value)\(repeated)"
            }
        return argument.isOptional ? "Op \(own)" : own
    }

    static let smallestFile = """
        identities:
          orders:
            oauth2:
              token_url: https://idp.example.com/token
              client_id: edge
              client_secret: file:/run/secrets/orders
        routes:
          - listen: 127.0.0.1:8080
            to: https://orders.example.com
            use: orders
        """

    private func fileManual(_ date: String) -> Manual {
        let tree = KeyTree()
        var page = Manual("CARDEA.YAML", section: 5, date: date)
        page.section("NAME")
        page.macro("Nm", "cardea.yaml")
        page.macro("Nd", "configuration of cardea")
        page.section("DESCRIPTION")
        page.words("The file of")
        page.raw("Xr cardea 1")
        page.words(
            "is YAML. 'cardea check' shows every mistake at once with line, column and the nearest name that exists.")
        page.paragraph()
        page.words("A duration has its unit (ms, s, m, h, d), as has a size (B, KiB, MiB, GiB).")
        page.words("In any value, ${NAME} and ${NAME:-default} come from the environment.")
        page.words(
            "Secrets are references: file:PATH, env:NAME, credential:NAME (systemd) or exec:PATH ARGUMENTS; literal: is for trials."
        )
        page.paragraph()
        page.words("In a place, '*' stands for a name of your own and '[]' for each item of a list.")
        for section in tree.sections {
            page.section(section.anchor.uppercased().replacing("_", with: " "))
            page.words(section.block.description)
            if !section.places.isEmpty {
                page.paragraph()
                page.words("Stands at \(section.places.joined(separator: ", ")).")
            }
            if !section.block.exactlyOneOf.isEmpty {
                page.words("Exactly one of \(section.block.exactlyOneOf.joined(separator: ", ")).")
            }
            page.list(section.block.keys.map { (tag: [$0.name], words: words(of: $0, in: section, tree)) }, macro: "Cm")
        }
        page.section("FILES")
        page.list(
            ConfigurationSource.places.map { (tag: [$0], words: ["The first that there is, where no file is named."]) },
            macro: "Pa")
        page.section("EXAMPLES")
        page.literal(Self.smallestFile)
        page.section("SEE ALSO")
        page.raw("Xr cardea 1")
        return page
    }

    private func words(of key: KeySpec, in section: KeyTree.Section, _ tree: KeyTree) -> [String] {
        let type = ValueWords.words(key.type) { inside in
            tree.section(of: inside).map { "a map, see \($0.anchor.uppercased().replacing("_", with: " "))" } ?? "a map"
        }
        let takes = type.filter { $0 != "`" && $0 != "\\" }
        let most = key.required ? "; required" : key.defaultText.map { "; default \($0)" } ?? ""
        let example = examples.example(of: key, in: section).map { ["For example: \($0)"] } ?? []
        return [key.description, "Takes \(takes)\(most)."] + example
    }
}
