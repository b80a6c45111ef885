import Testing

@testable import Configuration
@testable import Handshakes

@Suite struct SubjectTests {
    private static let name = "subject: {from_header: X-User}"
    private static let token = "subject: from_caller_token"

    private func errors(_ identity: String, _ route: String, top: String = "") -> [String] {
        Trial(Trial.around(identity: identity, route: "callers: local, " + route, top: top)).errors
    }

    private func oauth(_ more: String) -> String { "oauth2: {\(Trial.oauth2), \(more)}" }

    @Test func whatUsesASubject() {
        #expect(errors(oauth("grant: token_exchange"), Self.token) == [])
        #expect(errors(oauth("grant: jwt_bearer, key: env:K"), Self.name) == [])
        #expect(errors(oauth("grant: jwt_bearer, key: env:K, claims: {sub: \"u:{subject}\"}"), Self.name) == [])
        #expect(
            errors(oauth("grant: jwt_bearer, key: env:K, claims: {sub: svc, on_behalf: \"{subject}\"}"), Self.name)
                == [])
        #expect(errors(oauth("extra: {act_as: \"{subject}\"}"), Self.name) == [])
        #expect(
            errors(
                oauth("grant: token_exchange, subject_token: env:T, extra: {requested_subject: \"{subject}\"}"),
                Self.name)
                == [])
    }

    @Test(arguments: [
        ("static: {value: env:V}", name), ("basic: {username: u, password: env:P}", name),
        ("oauth2: {\(Trial.oauth2)}", name), ("oauth2: {\(Trial.oauth2)}", token),
        ("oauth2: {\(Trial.oauth2), grant: password, username: u, password: env:P}", name),
        ("oauth2: {\(Trial.oauth2), grant: refresh_token, refresh_token: env:R}", name),
        ("oauth2: {\(Trial.oauth2), grant: saml2_bearer, assertion: env:A}", name),
        ("oauth2: {\(Trial.oauth2), grant: jwt_bearer, assertion: env:A}", name),
        ("oauth2: {\(Trial.oauth2), grant: jwt_bearer, key: env:K, claims: {sub: fixed}}", name),
        ("oauth2: {\(Trial.oauth2), grant: jwt_bearer, key: env:K}", token),
        ("oauth2: {\(Trial.oauth2), grant: token_exchange}", name),
        ("oauth2: {\(Trial.oauth2), grant: token_exchange, subject_token: env:T}", token),
        ("oauth2: {\(Trial.oauth2), extra: {act_as: \"{subject}\"}}", token),
        ("oam_webgate: {\(Trial.webgate)}", name),
    ])
    func whatDoesNot(identity: String, subject: String) {
        let found = errors(identity, subject)
        #expect(found.count == 1 && found[0].contains("is not used by identity 'a'"), "\(found)")
    }

    @Test func itsPlaceIsTold() {
        let trial = Trial(Trial.around(route: "callers: local, " + Self.name))
        #expect(trial.result.errors.first.map { [$0.mark.line, $0.mark.column] } == [4, 85])
    }

    @Test func whoMayNameOneIsSaid() {
        let trial = Trial(Trial.around(identity: oauth("extra: {act_as: \"{subject}\"}"), route: Self.name))
        #expect(trial.errors.count == 1 && trial.errors[0].contains("needs 'callers'"))
    }

    @Test(arguments: ["Authorization", "cookie", "Host", "Connection", "Content-Length"])
    func headersThatNameNobody(name: String) {
        let found = errors(oauth("extra: {act_as: \"{subject}\"}"), "subject: {from_header: \(name)}")
        #expect(found.count == 1 && found[0].contains("cannot be '\(name)'"), "\(found)")
    }

    @Test func aCertificateHasToBeAskedFor() {
        let found = errors(oauth("extra: {act_as: \"{subject}\"}"), "subject: from_client_certificate")
        #expect(found.count == 1 && found[0].contains("client_ca"))
    }

    @Test func thePlaceholderNeedsASubject() {
        #expect(errors(oauth("extra: {act_as: \"{subject}\"}"), "name: x").count == 1)
        #expect(errors(oauth("grant: jwt_bearer, key: env:K, claims: {x: \"{subject}\"}"), "name: x").count == 1)
        let exchange = errors(oauth("grant: token_exchange"), "name: x")
        #expect(exchange.count == 1 && exchange[0].contains("from_caller_token"))
    }

    @Test func nobodyWaitsForATokenOfEverybody() {
        let found = errors(oauth("extra: {act_as: \"{subject}\"}") + ", token: {startup: wait}", Self.name)
        #expect(found.count == 1 && found[0].contains("'startup' must be lazy"))
    }

    @Test func theCallersTokenGoesNowhereElse() {
        let keeps = "inject: {caller_value: {keep_as: X-Theirs}}"
        #expect(errors(oauth("grant: token_exchange"), Self.token + ", " + keeps).count == 1)
        let own = "inject: {caller_value: {keep_as: X-User}}"
        #expect(errors(oauth("extra: {act_as: \"{subject}\"}"), Self.name + ", " + own).count == 1)
    }

    @Test func anExchangeNeedsATokenFromSomewhere() {
        let text = """
            identities:
              a: {\(oauth("grant: token_exchange"))}
            routes:
              - {listen: "127.0.0.1:8080", to: "https://u.example.com", use: none}
            """
        #expect(Trial(text).errors.count == 1)
        let circle = """
            identities:
              a: {\(oauth("grant: token_exchange"))}
              b: {\(oauth("grant: token_exchange, subject_token: {identity: a}"))}
            routes:
              - {listen: "127.0.0.1:8080", to: "https://u.example.com", use: a, callers: local, \(Self.token)}
              - {listen: "127.0.0.1:8081", to: "https://u.example.com", use: b}
            """
        #expect(Trial(circle).errors.count == 1)
    }
}
