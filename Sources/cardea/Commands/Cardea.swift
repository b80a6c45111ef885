import ArgumentParser

/// The command line.
@main
struct Cardea: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cardea",
        abstract: "An HTTP gateway that answers authentication challenges for callers that know nothing of them.",
        discussion: """
            The configuration is found in this order: --config, CARDEA_CONFIG, CARDEA_CONFIG_YAML (the text itself), \
            ./cardea.yaml, /etc/cardea/cardea.yaml, CARDEA_LISTEN and its companions.

            Exit status: \(ExitStatus.summary).
            """,
        version: "cardea \(version)",
        subcommands: [
            Run.self, Check.self, Health.self, Login.self, Logout.self, Reset.self, Explain.self, TokensCommand.self,
            StoreCommand.self, AuditCommand.self, CertificateAuthorityCommand.self, ImportCommand.self,
            Schema.self, Version.self,
        ])

    static let version = "0.1.0"
}

struct Schema: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints the JSON Schema of the configuration, for editors.")

    @Flag(name: .long, help: "The schema is JSON in any case.")
    var json = false

    func run() {
        print(ConfigurationAccess.schema())
    }
}

struct Version: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Prints the version.")

    @Flag(name: .long, help: "Print JSON instead of text.")
    var json = false

    func run() {
        print(json ? "{\"name\":\"cardea\",\"version\":\"\(Cardea.version)\"}" : "cardea \(Cardea.version)")
    }
}
