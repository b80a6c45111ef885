import Configuration

extension Reference {
    var commandsPage: (page: Page, about: String) {
        var text = Markdown.head("Commands")
        text += (command.abstract ?? "") + "\n\n"
        let leaves = command.leaves()
        text += Markdown.table(
            ["command", "what it does"],
            leaves.map { name, leaf in
                let words = name.joined(separator: " ")
                return ["[\(Markdown.code(words))](#\(Markdown.slug(words)))", Markdown.plain(leaf.abstract ?? "")]
            })
        text += "`cardea help COMMAND` prints the same. Statuses: [exit-status.md](exit-status.md).\n\n"
        for (name, leaf) in leaves { text += section(name, leaf) }
        text += Markdown.anchor("environment") + "\n## Environment\n\n"
        text += Markdown.table(
            ["variable", "what"], CommandWords.environment.map { [Markdown.code($0.name), Markdown.plain($0.meaning)] })
        text += Markdown.anchor("files") + "\n## Files\n\n"
        text += Markdown.table(
            ["file", "what"], CommandWords.files.map { [Markdown.code($0.name), Markdown.plain($0.meaning)] })
        text += Markdown.anchor("signals") + "\n## Signals\n\nTo `cardea run`:\n\n"
        text += Markdown.table(
            ["signal", "what"], CommandWords.signals.map { [Markdown.code($0.name), Markdown.plain($0.meaning)] })
        return (Page(name: "commands.md", text: text), "every command with its options; environment, files, signals")
    }

    var command: CommandTree.Command { commands.command }

    private func section(_ name: [String], _ leaf: CommandTree.Command) -> String {
        let words = name.joined(separator: " ")
        var text = "\(Markdown.anchor(Markdown.slug(words)))\n## \(words)\n\n\(Markdown.plain(leaf.abstract ?? ""))\n\n"
        text += Markdown.block(([words] + leaf.shownArguments.map(\.usage)).joined(separator: " "), "text synopsis")
        if command.isDefault(name) {
            text += "\(Markdown.code(name.dropLast().joined(separator: " "))) alone does the same.\n\n"
        }
        if let discussion = leaf.discussion, !discussion.isEmpty {
            text +=
                discussion.split(separator: "\n").map { Markdown.plain(String($0)) }.joined(separator: "\n\n") + "\n\n"
        }
        guard !leaf.shownArguments.isEmpty else { return text }
        text += Markdown.table(
            ["argument", "default", "what"],
            leaf.shownArguments.map { argument in
                let value = argument.kind == .option ? " \(argument.placeholder)" : ""
                return [
                    Markdown.code(argument.spellings.joined(separator: ", ") + value),
                    argument.defaultValue.map(Markdown.code) ?? "", Markdown.plain(argument.abstract ?? ""),
                ]
            })
        return text
    }
}

/// The command's surroundings, of which no table of the program says anything.
enum CommandWords {
    static let environment: [(name: String, meaning: String)] = [
        ("CARDEA_CONFIG", "The configuration's file, where --config is not given."),
        ("CARDEA_CONFIG_YAML", "The configuration's text itself, where neither is given."),
        (
            EnvironmentRoute.variables.joined(separator: ", "),
            "One route with the OAuth 2.0 grant client_credentials, where there is no file; CARDEA_CLIENT_SECRET_FILE is read, CARDEA_SCOPES may be left out."
        ),
        ("CREDENTIALS_DIRECTORY", "Where secrets of credential: are; systemd sets it."),
        ("XDG_RUNTIME_DIR", "Where the admin socket is made, where neither admin.socket nor store.path says."),
        ("LISTEN_FDS, LISTEN_PID", "Sockets that systemd passes."),
        (
            "NOTIFY_SOCKET, WATCHDOG_USEC",
            "Where systemd is told of readiness, reloads, the end, and that the gateway lives."
        ),
        (
            "JOURNAL_STREAM",
            "The journal's stream, by device and inode; systemd sets it. Lines that go there begin with their priority."
        ),
    ]

    static var files: [(name: String, meaning: String)] {
        let places = ConfigurationSource.places.map {
            (name: $0, meaning: "The configuration, where no other is named: the first that there is.")
        }
        return places + [
            (
                name: "cardea.sock",
                meaning: "The command line's way to the gateway: beside the store, else in $XDG_RUNTIME_DIR or /run."
            ), (name: "STORE.key", meaning: "The key that is made beside the store, where store.key is not set."),
        ]
    }

    static let signals: [(name: String, meaning: String)] = [
        (
            "SIGTERM, SIGINT",
            "Not ready at once, still accepting for shutdown.linger, then finishing what runs for at most shutdown.timeout."
        ),
        (
            "SIGHUP",
            "Reads the configuration again, as a change of its file does. No request is dropped, and a file that is not good changes nothing."
        ),
        (
            "SIGUSR2",
            "Upgrades in place: the program at the same path takes over sockets and store; if it fails, this process goes on."
        ),
    ]
}
