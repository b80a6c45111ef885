internal import Configuration

/// `program`: a credential that a program brings, with the time of its end.
struct ProgramScheme: Scheme {
    static let key = KeySpec(
        Block(
            name: "program", description: "A program that writes a credential as JSON, and when it ends.",
            keys: ProgramKeys.keys + [
                KeySpec(
                    "format", .words(ProgramAnswer.Format.self),
                    "What it writes. token: `{\"token\": …, \"expires_in\": seconds}`, or `expires_at` as in RFC 3339. docker: as a helper of Docker's credential store, which is told the server. kubernetes: as a plug-in of kubectl, an ExecCredential with a token."
                ),
                KeySpec(
                    "server", .text(.line),
                    "For docker: the server, as it stands in Docker's own file; it is written to the program's standard input."
                ),
            ]))

    private let format: ProgramAnswer.Format
    let program: ProgramCall?

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        format = keys.word("format")
        let server = keys.line("server")
        switch format {
        case .docker: keys.need(["server"], ", which a helper of Docker is asked for")
        case .token, .kubernetes: keys.refuse(["server"], "goes only with 'format: docker'")
        }
        if server.utf8.count > 1024 { keys.refuse("server", "is longer than 1024 bytes") }
        program = ProgramKeys.call(
            keys, input: format == .docker ? Array(server.utf8) + [0x0A] : [],
            variables: format == .kubernetes ? ["KUBERNETES_EXEC_INFO": ProgramAnswer.kubernetesQuestion] : [:])
    }

    var reasonAgainstScopes: String? { "a program is run with the same words for every route" }

    /// The answer of a helper says what kind of credential it is.
    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        guard format == .docker, keys.has("inject") else { return }
        keys.error(
            "'inject' of \(keys.place): what a helper of Docker brings is the whole of Authorization", at: "inject")
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        ProgramHandshake(path: program?.path ?? "", format: format, world: world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        var traits = SchemeTraits(.proactive)
        // A password stays in memory, as that of `basic` does.
        traits.keepsTokens = format != .docker
        return traits
    }
}
