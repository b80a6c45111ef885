import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct TokenStubTests {
    private func route(_ keys: String, top: String = "") -> Trial {
        Trial("routes:\n  - {listen: \"127.0.0.1:1\", match: {path: /t}, \(keys)}\n" + top)
    }

    @Test func itsDefaultsAndValues() throws {
        let plain = try #require(route("token_stub: {}").result.configuration?.routes.first)
        #expect(plain.tokenStub == TokenStub(lifetime: .seconds(3600), grants: TokenStub.Grant.allCases))
        #expect(plain.to == nil && plain.use == .none)
        let own = try #require(
            route("token_stub: {lifetime: 90s, grants: password}").result.configuration?.routes.first)
        #expect(own.tokenStub == TokenStub(lifetime: .seconds(90), grants: [.password]))
    }

    @Test func onlyCallersOfTheDefaultsCount() throws {
        let trial = route(
            "token_stub: {}",
            top: "defaults: {route: {timeouts: {idle: 5s}, http: 2, callers: {allow: [10.0.0.0/8]}}}")
        #expect(trial.lines == [])
        let callers = try #require(trial.result.configuration?.routes.first?.callers)
        #expect(callers.allow != .local)
    }

    @Test(arguments: [
        ("token_stub: {}, to: \"https://u.example.com\"", "has 'to' beside 'token_stub'"),
        ("token_stub: {}, use: none", "has 'use' beside 'token_stub'"),
        ("token_stub: {}, scopes: [a]", "'scopes' of route '127.0.0.1:1/t' has no meaning beside 'token_stub'"),
        ("token_stub: {}, timeouts: {idle: 1s}", "'timeouts' of route"),
        ("token_stub: {grants: []}", "'grants' of route '127.0.0.1:1/t' is an empty list"),
        ("token_stub: {grants: [device_code]}", "one of client_credentials, password"),
        ("token_stub: {lifetime: 0s}", "lifetime"), ("token_stub: on", "token_stub"),
    ])
    func oneClearError(keys: String, words: String) {
        let errors = route(keys).errors
        #expect(errors.count == 1 && errors[0].contains(words), "\(errors)")
    }
}
