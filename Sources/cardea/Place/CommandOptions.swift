import ArgumentParser

extension CompletionKind {
    /// A shell offers files that may be configurations.
    static var configurationFile: CompletionKind { .file(extensions: ["yaml", "yml"]) }
}

/// Options that every command has.
struct CommonOptions: ParsableArguments {
    @Option(name: .long, help: "The configuration file.", completion: .configurationFile)
    var config: String?

    @Flag(name: .long, help: "Print JSON instead of text.")
    var json = false
}

/// Options of commands that speak with a running gateway.
struct GatewayOptions: ParsableArguments {
    @OptionGroup var common: CommonOptions

    @Option(
        name: .long,
        help:
            "The admin socket of the gateway that is asked, whatever configuration it serves; else it is found by the configuration.",
        completion: .file())
    var socket: String?

    var json: Bool { common.json }
}
