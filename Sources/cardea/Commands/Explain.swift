import Admin
import ArgumentParser
import DataPath
import Gateway
import Octets

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says which route, identity and key a request would have, and why.",
        discussion: """
            The route is found in the configuration; nothing is sent to it. A running gateway is asked for the state of its tokens,
            and with --trace for what the last run of the identity's recipe did: names and lengths, never a value.
            """)

    @OptionGroup var common: GatewayOptions

    @Argument(help: "The request's method.")
    var method: String

    @Argument(help: "Its URL, as the caller would call it.")
    var url: String

    @Option(name: [.customShort("H"), .customLong("header")], help: "A header of the request: 'Name: value'.")
    var headers: [String] = []

    @Flag(name: .long, help: "Show the last run of the identity's recipe, step by step.")
    var trace = false

    func run() throws {
        let configuration = try ConfigurationAccess.loaded(common.common.config)
        let explanation: Explanation
        do {
            explanation = try Explanation(
                method: method, url: url, headers: try fields(), configuration: configuration,
                environment: ConfigurationAccess.environment)
        } catch {
            throw ExitCode(64, saying: "\(error)")
        }
        var report = ExplainReport(method: method, url: url, explanation: explanation)
        var client: AdminClient?
        do throws(RunningGateway.Other) { client = try RunningGateway(common).client } catch {
            report.explanation.notes.append("\(error)")
        }
        let status = explanation.route.flatMap { _ in document(StatusDocument.self, client?.request("GET", "/status")) }
        if let origin = explanation.origin {
            let upstream = status?.upstreams.first { $0.upstream == origin }
            report.addresses = upstream.flatMap { $0.addresses.isEmpty ? nil : $0.addresses }
            report.outage = upstream?.outage
        }
        if let identity = explanation.identity, let status {
            report.tokens = status.tokens.filter { $0.identity == identity && $0.upstream == explanation.origin }
            report.identityState = status.identities.first { $0.name == identity }
            if trace {
                let path = "/run?identity=\(PercentEncoding.encode(identity))"
                report.run = document(RunDocument.self, client?.request("GET", path))?.run
            }
        } else if explanation.identity != nil, client != nil {
            let socket = common.socket ?? ConfigurationAccess.adminSocket(configuration)
            report.explanation.notes.append("no gateway answers at \(socket): the state of tokens is not known")
        }
        print(common.json ? snakeCaseJSON(report) : report.text(tracing: trace))
        if explanation.route == nil { throw ExitCode(1) }
    }

    private func fields() throws(GatewayFault) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for header in headers {
            guard let colon = header.firstIndex(of: ":"), colon != header.startIndex else {
                throw GatewayFault("'\(header)' is not a header such as 'Name: value'")
            }
            fields.append((String(header[..<colon]), String(header[header.index(after: colon)...].drop { $0 == " " })))
        }
        return fields
    }

    private func document<Document: AdminDocument>(_ type: Document.Type, _ answer: AdminClient.Answer?) -> Document? {
        guard let answer, answer.status == 200 else { return nil }
        return Document(parsing: answer.body)
    }
}
