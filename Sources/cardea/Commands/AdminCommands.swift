import Admin
import ArgumentParser
internal import Octets

struct Health: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Exits with 0 when the gateway lives, 1 when not; for exec probes.",
        discussion:
            """
            Says nothing when it is good, and why not on standard error. A configuration that is not good any more is told there, too; the \
            gateway that serves on is asked.
            """)

    @OptionGroup var common: GatewayOptions

    @Flag(name: .long, help: "Ask whether traffic should come, not only whether it lives.")
    var ready = false

    func run() throws {
        let gateway: RunningGateway
        do throws(RunningGateway.Other) { gateway = try RunningGateway(common) } catch {
            // Whatever answers there, it is not what was asked about.
            if common.json { print("{\"good\":false,\"status\":0}") }
            throw common.json ? ExitCode(1) : ExitCode(1, saying: "\(error)")
        }
        let answer = gateway.client.request("GET", ready ? "/readyz" : "/livez")
        let good = answer?.status == 200
        if common.json {
            print("{\"good\":\(good),\"status\":\(answer?.status ?? 0)}")
        } else if !good {
            ConfigurationAccess.complain(
                "cardea: "
                    + (answer.map { "not \(ready ? "ready" : "alive"): \(reasons(in: $0.body) ?? $0.body)" }
                        ?? gateway.silence))
        }
        if answer == nil { throw gateway.statusWithoutAnswer(1) }
        if !good { throw ExitCode(1) }
    }
}

struct Reset: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Lifts the quarantine of an identity, in the running gateway.",
        discussion: "Its password or client secret will be tried again by the next request that needs it.")

    @OptionGroup var common: GatewayOptions

    @Argument(help: "The identity's name.")
    var identity: String

    func run() throws {
        let gateway = try RunningGateway.found(common)
        try gateway.requireIdentity(identity)
        guard let answer = gateway.client.request("POST", "/reset?identity=\(PercentEncoding.encode(identity))") else {
            throw gateway.absent("; is it running, with the same configuration and user?")
        }
        guard answer.status == 200 || answer.status == 204 else { throw gateway.refused(answer) }
        print(
            common.json ? "{\"reset\":\(identity.jsonQuoted)}" : "\(identity): reset; what was refused is tried again")
    }
}
