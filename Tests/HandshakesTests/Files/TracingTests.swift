import Testing

@testable import Configuration
@testable import Handshakes

/// `tracing`, and the `request_id` of a route.
@Suite struct TracingTests {
    @Test(arguments: [
        ("", nil), ("tracing: off", nil), ("tracing: on", 10_000), ("tracing: {}", 10_000),
        ("tracing: {ratio: 1%}", 10_000),
        ("tracing: {ratio: 0%}", 0), ("tracing: {ratio: 100%}", 1_000_000), ("tracing: {ratio: 0.05%}", 500),
        ("tracing: {ratio: 12.3456%}", 123_456), ("tracing: {ratio: 99.9%}", 999_000),
    ])
    func aRatioIsRead(_ text: String, _ ratio: Int?) {
        let trial = Trial(Trial.around(top: text))
        #expect(trial.errors == [])
        #expect(trial.draft?.tracing?.ratio == ratio)
    }

    @Test(arguments: ["1", "0.01", "101%", "100.1%", "-1%", "1.%", ".5%", "0.00001%", "1%%", "\"\""])
    func anythingElseIsRefused(_ ratio: String) {
        let trial = Trial(Trial.around(top: "tracing: {ratio: \(ratio)}"))
        #expect(trial.errors.count == 1 && trial.errors.first?.contains("'ratio: ") == true, "\(trial.errors)")
    }

    @Test func aRouteSaysWhoIsToldOfTheID() {
        for word in Route.RequestID.allCases {
            let trial = Trial(Trial.around(route: "request_id: \(word.rawValue)"))
            #expect(trial.errors == [] && trial.draft?.routes.first?.requestID == word)
        }
        #expect(Trial(Trial.around()).draft?.routes.first?.requestID == .pass)
    }

    @Test(arguments: [
        ("request_id: send, headers: {set: {X-Request-ID: a}}", "", "which 'request_id' writes"),
        ("request_id: echo, headers: {remove: [x-request-id]}", "", "which 'request_id' writes"),
        ("headers: {set: {TraceParent: a}}", "tracing: on", "which 'tracing' writes"),
        ("headers: {set: {tracestate: a=b}}", "tracing: on", "which 'tracing' writes"),
    ])
    func aFieldHasOneWriter(_ route: String, _ top: String, _ message: String) {
        let errors = Trial(Trial.around(route: route, top: top)).errors
        #expect(errors.count == 1 && errors.first?.contains(message) == true, "\(errors)")
    }

    @Test(arguments: [
        ("headers: {set: {X-Request-ID: a}}", ""), ("headers: {remove: [traceparent, tracestate]}", "tracing: on"),
        ("headers: {set: {traceparent: a}}", ""),
    ])
    func aFieldThatNobodyWritesMayBeEdited(_ route: String, _ top: String) {
        #expect(Trial(Trial.around(route: route, top: top)).errors == [])
    }

    @Test func anEndpointIsWhereSpansGo() throws {
        let trial = Trial(
            Trial.around(
                top: "tracing: {endpoint: \"https://c.example:4318\", headers: {X-Key: env:KEY}, service: edge}"))
        #expect(trial.errors == [])
        let tracing = try #require(trial.draft?.tracing)
        #expect(tracing.ratio == 10_000 && tracing.service == "edge")
        #expect(tracing.export?.url == "https://c.example:4318/v1/traces")
        #expect(tracing.export?.headers.map(\.name) == ["X-Key"])
        #expect(trial.draft?.secrets.contains { $0.owner == "tracing" && $0.key == "headers.X-Key" } == true)
        #expect(Trial(Trial.around(top: "tracing: on")).draft?.tracing?.export == nil)
    }

    @Test(arguments: [
        ("https://c.example", "https://c.example/v1/traces"), ("https://c.example/", "https://c.example/v1/traces"),
        ("https://c.example/otlp/traces", "https://c.example/otlp/traces"),
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
    ])
    func aPathIsMeantWhereNoneIsSaid(_ endpoint: String, _ url: String) {
        let trial = Trial(Trial.around(top: "tracing: {endpoint: \"\(endpoint)\"}"))
        #expect(trial.errors == [] && trial.draft?.tracing?.export?.url == url)
    }

    @Test(arguments: [
        ("endpoint: \"http://c.example:4318\"", "clear text"), ("endpoint: \"https://c.example/?a=b\"", "query"),
        ("endpoint: c.example", "'endpoint"), ("headers: {X-Key: env:K}", "goes only with 'endpoint'"),
        ("network: {timeout: 1s}", "goes only with 'endpoint'"), ("service: a", "goes only with 'endpoint'"),
        ("endpoint: \"https://c.example\", headers: {Content-Type: env:K}", "gateway itself"),
        ("endpoint: \"https://c.example\", headers: {Host: env:K}", "gateway itself"),
    ])
    func anEndpointThatCannotBeMeantIsRefused(_ tracing: String, _ message: String) {
        let trial = Trial(Trial.around(top: "tracing: {\(tracing)}"))
        #expect(trial.errors.contains { $0.contains(message) }, "\(trial.errors)")
    }

    @Test func clearTextIsAllowedWhereItIsAskedFor() {
        let tracing = "tracing: {endpoint: \"http://c.example:4318\", network: {allow_cleartext: true}}"
        #expect(Trial(Trial.around(top: tracing)).errors == [])
    }
}
