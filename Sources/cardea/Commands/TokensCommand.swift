import Admin
import ArgumentParser
import Configuration
import Keeping
import Octets
import World

/// `cardea tokens`: what the running gateway holds, and forgetting it. A value is never told, nor a user's name.
struct TokensCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tokens", abstract: "Lists the state of every token, or purges tokens, in the running gateway.",
        discussion: "'cardea tokens --watch' lists them again and again; 'cardea help tokens list' has every option.",
        subcommands: [List.self, Purge.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Lists every token: its state, age and end, what comes next, and what failed last.",
            discussion: """
                Tokens of end users are counted, not listed. --json tells times in seconds.
                --watch lists them again and again until Ctrl-C: a page on a terminal, one list behind the other in a pipe, a line of JSON each with \
                --json. It goes on when the gateway restarts, and says so.
                """)

        @OptionGroup var common: GatewayOptions

        @Argument(help: "Only of these identities.")
        var identities: [String] = []

        @Flag(name: .long, help: "List them again and again, until Ctrl-C.")
        var watch = false

        @Option(name: .long, help: "Seconds between two lists of --watch, from 0.5 to 3600.")
        var interval = WatchInterval.standard

        func validate() throws {
            guard watch || interval == .standard else { throw ValidationError("--interval goes with --watch") }
        }

        func run() throws {
            let gateway = try RunningGateway.found(common)
            try gateway.require(identities, as: "identity") { $0.identities.map(\.name) }
            let time = SystemTime()
            let asked = time.sinceBoot()
            let answer = try answer(of: gateway, "GET", "/status")
            guard answer.status == 200, let status = StatusDocument(parsing: answer.body) else {
                throw gateway.refused(answer)
            }
            if gateway.configuration == nil {
                try RunningGateway.require(identities, as: "identity", among: status.identities.map(\.name))
            }
            if watch { repeats(status, asked: asked, of: gateway, time) }
            let table = TokenTable(status, of: identities)
            print(common.json ? snakeCaseJSON(table) : table.text(hasColours: Terminal.hasColours))
        }

        private func repeats(
            _ first: StatusDocument, asked: UInt64, of gateway: RunningGateway, _ time: some TimeSource
        ) -> Never {
            var watch = TokenWatch(socket: gateway.socket, interval: interval, names: identities)
            let form = common.json ? TokenWatch.Form.json : Terminal.hasScreen ? .screen : .text
            watch.run(first, asked: asked, as: form, time: time) {
                if let other = gateway.whoElse() { return .nothing("\(other)") }
                guard let answer = gateway.client.request("GET", "/status") else {
                    return .nothing(gateway.silence)
                }
                guard answer.status == 200, let status = StatusDocument(parsing: answer.body) else {
                    return .nothing("the gateway refused: \(refusal(in: answer.body) ?? "status \(answer.status)")")
                }
                return .status(status)
            }
        }
    }

    struct Purge: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forgets tokens, in memory and in the store; they are had anew when they are asked for.",
            discussion: """
                What is under way is not published any more. With an identity goes the session that its tokens were had with, but never a
                person's login: that is 'cardea logout'. Refused credentials stay refused: that is 'cardea reset'.
                """)

        @OptionGroup var common: GatewayOptions

        @Argument(help: "Identities whose tokens go.")
        var identities: [String] = []

        @Option(name: .long, help: "A route whose tokens go, whoever else uses them; may be given several times.")
        var route: [String] = []

        @Flag(name: .long, help: "All tokens of all identities.")
        var all = false

        func validate() throws {
            guard all != (!identities.isEmpty || !route.isEmpty) else {
                throw ValidationError("say what: identities, --route NAME, or --all alone")
            }
        }

        func run() throws {
            let gateway = try RunningGateway.found(common)
            try gateway.require(identities, as: "identity") { $0.identities.map(\.name) }
            try gateway.require(route, as: "route") { $0.routes.map(\.name) }
            let wishes =
                all
                ? ["all=yes"]
                : identities.map { "identity=\(PercentEncoding.encode($0))" }
                    + route.map { "route=\(PercentEncoding.encode($0))" }
            var count = 0
            var names: [String] = []
            for wish in wishes {
                let answer = try answer(of: gateway, "POST", "/tokens/purge?\(wish)")
                guard answer.status == 200, let told = PurgeReport(parsing: answer.body) else {
                    throw gateway.refused(answer)
                }
                count += told.tokens
                names += told.identities.filter { !names.contains($0) }
            }
            if common.json {
                print(
                    "{\"identities\":[\(names.map(\.jsonQuoted).joined(separator: ","))],\"tokens\":\(count)}")
            } else {
                print(
                    "\(count) \(count == 1 ? "token" : "tokens") purged"
                        + (names.isEmpty ? "" : " of \(names.joined(separator: ", "))"))
            }
        }
    }
}

private func answer(of gateway: RunningGateway, _ method: String, _ target: String) throws -> AdminClient.Answer {
    guard let answer = gateway.client.request(method, target) else {
        throw gateway.absent(
            "; tokens live in the gateway: is it running, with the same configuration and user?")
    }
    return answer
}
