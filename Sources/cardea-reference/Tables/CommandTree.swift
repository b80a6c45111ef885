import FoundationEssentials

/// The command line, as `--experimental-dump-help` of ArgumentParser tells it.
struct CommandTree: Decodable, Sendable {
    let command: Command

    init(dump: Data) throws { self = try JSONDecoder().decode(CommandTree.self, from: dump) }

    struct Command: Decodable, Sendable {
        let commandName: String
        let abstract: String?
        let discussion: String?
        let subcommands: [Command]?
        let arguments: [Argument]?
        let shouldDisplay: Bool?
        let defaultSubcommand: String?
    }

    struct Argument: Decodable, Sendable {
        let kind: Kind
        let shouldDisplay: Bool
        let isOptional: Bool
        let isRepeating: Bool
        let parsingStrategy: String?
        let names: [Name]?
        let preferredName: Name?
        let valueName: String?
        let defaultValue: String?
        let abstract: String?

        enum Kind: String, Decodable, Sendable { case positional, option, flag }
    }

    struct Name: Decodable, Sendable {
        let kind: String
        let name: String

        var spelling: String { kind == "long" ? "--\(name)" : "-\(name)" }
    }
}

extension CommandTree.Command {
    /// The subcommands that a person is shown, without the parser's own.
    var shownCommands: [CommandTree.Command] {
        (subcommands ?? []).filter { $0.shouldDisplay != false && $0.commandName != "help" }
    }

    var shownArguments: [CommandTree.Argument] {
        let all = (arguments ?? []).filter {
            $0.shouldDisplay && !["help", "version"].contains($0.preferredName?.name)
        }
        return all.filter(\.terminator.isEmpty) + all.filter { !$0.terminator.isEmpty }
    }

    /// The commands below, each with its whole name: `cardea tokens purge`. A command that is only a folder of others is left out.
    func leaves(_ path: [String] = []) -> [(name: [String], command: CommandTree.Command)] {
        let name = path + [commandName]
        return shownCommands.isEmpty ? [(name, self)] : shownCommands.flatMap { $0.leaves(name) }
    }

    /// Whether the command of this name is the one that runs where only the folder above it is named.
    func isDefault(_ name: [String]) -> Bool {
        var command = self
        for part in name.dropFirst().dropLast() {
            guard let next = command.subcommands?.first(where: { $0.commandName == part }) else { return false }
            command = next
        }
        return command.defaultSubcommand != nil && command.defaultSubcommand == name.last
    }
}

extension CommandTree.Argument {
    /// `-H`, `--header`; of a positional argument its name.
    var spellings: [String] {
        guard kind != .positional else { return [placeholder] }
        return (names ?? []).map(\.spelling)
    }

    /// The word that stands for the value.
    var placeholder: String { (valueName ?? "value").uppercased().replacing("-", with: "_") }

    /// Stands before arguments that are another program's.
    var terminator: String { parsingStrategy == "postTerminator" ? "-- " : "" }

    /// How it stands in a line of usage.
    var usage: String {
        let own: String =
            switch kind {
            case .positional: terminator + (isRepeating ? "\(placeholder) …" : placeholder)
            case .flag: preferredName?.spelling ?? ""
            case .option: "\(preferredName?.spelling ?? "") \(placeholder)"
            }
        let all = kind != .positional && isRepeating ? "\(own) …" : own
        return isOptional ? "[\(all)]" : all
    }
}
