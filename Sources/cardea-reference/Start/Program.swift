import ArgumentParser
import FoundationEssentials

/// Writes the reference and the manual pages out of the tables of the gateway's modules.
@main
struct ReferenceProgram: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cardea-reference",
        abstract: "Writes docs/reference and the manual pages out of the code's own tables.",
        subcommands: [Pages.self, Manuals.self])
}

/// The input of both: the commands, as `cardea --experimental-dump-help` tells them.
struct Sources: ParsableArguments {
    @Option(name: .long, help: "What 'cardea --experimental-dump-help' printed.")
    var commands: String

    @Option(name: .long, help: "The folder whose files give the examples of keys.")
    var examples = "config"

    func reference() throws -> Reference {
        try Reference(
            commands: CommandTree(dump: Data(contentsOf: URL(filePath: commands))),
            examples: KeyExamples(files: KeyExamples.files(under: examples)))
    }
}

struct Pages: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Writes the pages of docs/reference.")

    @OptionGroup var sources: Sources

    @Argument(help: "The folder.")
    var folder: String

    func run() throws {
        for page in try sources.reference().pages { try page.write(to: folder) }
    }
}

struct Manuals: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "manuals", abstract: "Writes cardea.1 and cardea.yaml.5.")

    @OptionGroup var sources: Sources

    @Option(name: .long, help: "The date of the pages, such as 2026-11-23.")
    var date: String

    @Argument(help: "The folder.")
    var folder: String

    func run() throws {
        for page in try sources.reference().manuals(date: date) { try page.write(to: folder) }
    }
}
