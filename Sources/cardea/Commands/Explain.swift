import Admin
import ArgumentParser
import DataPath
import Gateway
import Octets

struct Explain: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Says which route, identity and key a request would have, and why; or why the last requests failed.",
        discussion: """
            The route is found in the configuration; nothing is sent to it. A running gateway is asked for the state of its tokens,
            and with --trace for what the last run of the identity's recipe did: names and lengths, never a value.

            explain --last [ROUTE or URL]: the failed requests that the running gateway remembers since its start, of all routes or of one, by \
            their problem: how often, when, where the time went, and what to do. Nothing that a caller sent is remembered: no query, no header, \
            no path.
            """)

    @OptionGroup var common: GatewayOptions

    @Argument(help: "The request's method; with --last the name of a route, or a URL.")
    var method: String?

    @Argument(help: "Its URL, as the caller would call it.")
    var url: String?

    @Option(name: [.customShort("H"), .customLong("header")], help: "A header of the request: 'Name: value'.")
    var headers: [String] = []

    @Flag(name: .long, help: "Show the last run of the identity's recipe, step by step.")
    var trace = false

    @Flag(name: .long, help: "Say why the last requests failed, of all routes or of one.")
    var last = false

    func validate() throws {
        if last {
            guard !trace, headers.isEmpty else { throw ValidationError("--last goes with a route or a URL alone") }
        } else if url == nil {
            throw ValidationError("say METHOD and URL of a request, or --last for those that failed")
        }
    }

    func run() throws {
        if last { return try tellFailures() }
        guard let method, let url else { return }
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
        var gateway: RunningGateway?
        do throws(RunningGateway.Other) { gateway = try RunningGateway(common) } catch {
            report.explanation.notes.append("\(error)")
        }
        let client = gateway?.client
        let status = explanation.route.flatMap { _ in document(StatusDocument.self, client?.request("GET", "/status")) }
        if let origin = explanation.origin {
            let upstream = status?.upstreams.first { $0.upstream == origin }
            report.addresses = upstream.flatMap { $0.addresses.isEmpty ? nil : $0.addresses }
            report.outage = upstream?.outage
        }
        if let identity = explanation.identity, let status {
            let names = explanation.identities ?? [identity]
            report.tokens = status.tokens.filter { names.contains($0.identity) && $0.upstream == explanation.origin }
            report.identityState = status.identities.first { $0.name == identity }
            if explanation.identities != nil {
                let chosen = status.routes.first { $0.name == explanation.route }?.identity
                report.explanation.notes.append(
                    chosen.map { "the upstream's challenges have chosen '\($0)', which answers now" }
                        ?? "no challenge of the upstream has chosen yet")
            }
            if trace {
                let path = "/run?identity=\(PercentEncoding.encode(identity))"
                report.run = document(RunDocument.self, client?.request("GET", path))?.run
            }
        } else if explanation.identity != nil, let gateway {
            report.explanation.notes.append("\(gateway.silence): the state of tokens is not known")
        }
        print(common.json ? snakeCaseJSON(report) : report.text(tracing: trace))
        if explanation.route == nil { throw ExitCode(1) }
    }

    // MARK: - The last failures

    private func tellFailures() throws {
        let gateway = try RunningGateway.found(common)
        let route = try route(in: gateway)
        let target = "/failures" + (route.map { "?route=\(PercentEncoding.encode($0))" } ?? "")
        guard let answer = gateway.client.request("GET", target) else {
            throw gateway.absent("; failures are remembered by the running gateway alone: is it running?")
        }
        let status = document(StatusDocument.self, gateway.client.request("GET", "/status"))
        guard let failures = document(FailuresDocument.self, answer) else {
            if answer.status == 404, let route, let status {
                try RunningGateway.require([route], as: "route", among: status.routes.map(\.name))
            }
            throw gateway.refused(answer)
        }
        let names = Set(failures.routes.compactMap(\.identity))
        let report = FailureText(
            failures: failures, identities: status?.identities.filter { names.contains($0.name) } ?? [])
        print(common.json ? snakeCaseJSON(report) : report.text(of: route))
    }

    /// The route that is asked for; nil for all.
    private func route(in gateway: RunningGateway) throws -> String? {
        guard let word = url ?? method else { return nil }
        guard url != nil || word.contains("://") else {
            // A route that a reload took away is known to the gateway alone.
            return word
        }
        let explanation: Explanation
        do {
            explanation = try Explanation(
                method: url == nil ? "GET" : method ?? "GET", url: word, headers: [],
                configuration: try gateway.requireConfiguration(), environment: ConfigurationAccess.environment)
        } catch let fault as GatewayFault {
            throw ExitCode(64, saying: "\(fault)")
        }
        guard let route = explanation.route else {
            throw ExitCode(1, saying: "\(word) is no route's; 'cardea explain METHOD URL' says why")
        }
        return route
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
