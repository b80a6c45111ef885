import Synchronization
import Testing

@testable import Handshakes

/// An issuer that takes two seconds for each answer.
private struct SlowIssuer: IssuerClient {
    let inner: ScriptedIssuer
    let environment: WatchedEnvironment

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        environment.pass(seconds: 2)
        return try await inner.send(call)
    }
}

/// The course of a run as operators see it, and the attempts that an issuer says are left.
@Suite struct RecipeTraceTests {
    private static let login = """
        secrets: { password: { value: env:P, to: https://sso.example.com } }
        attempts: { json: /left }
        steps:
          - name: login
            layer: session
            post: https://sso.example.com/login
            json: { password: "{secret.password}" }
            take: { user: { json: /user } }
          - name: access
            get: https://sso.example.com/access/{login.user}
            take: { token: { json: /token } }
        token: "{access.token}"
        """

    private let wanted = Wanted(upstreamOrigin: "https://u.example.com")

    private func handshake(_ lines: String = login) throws -> RecipeHandshake {
        RecipeHandshake(try readRecipe(lines), identity: "a")
    }

    @Test func `a run tells each step with its time, and no value`() async throws {
        let environment = WatchedEnvironment()
        let issuer = ScriptedIssuer([.ok(#"{"user":"u-77"}"#), .ok(#"{"token":"t.1"}"#)])
        _ = environment.over(SlowIssuer(inner: issuer, environment: environment))
        _ = try await handshake().acquire(wanted, environment: environment)
        let run = try #require(environment.seen.runs.last)
        #expect(run.steps.map(\.name) == ["login", "access"] && run.steps.map(\.layer) == ["session", "access"])
        #expect(run.steps.map(\.duration) == [2_000_000_000, 2_000_000_000])
        #expect(run.steps.map(\.status) == [200, 200] && run.steps.map(\.outcome) == ["good", "good"])
        #expect(run.steps[0].taken == [RunTrace.Value(name: "user", length: 4)])
        #expect(run.steps[1].request == "GET https://sso.example.com/access/{login.user}")
    }

    @Test func `a step whose secret is quarantined is told as not sent`() async throws {
        let environment = WatchedEnvironment()
        environment.inner.state.withLock { $0.isQuarantined = true }
        let issuer = ScriptedIssuer([])
        let failed = await failure {
            _ = try await handshake().acquire(wanted, environment: environment.over(issuer))
        }
        #expect(failed == .quarantined && issuer.sent.isEmpty)
        let step = try #require(environment.seen.runs.last?.steps.first)
        #expect(step.outcome.hasPrefix("not sent: credential quarantined") && step.status == nil)
    }

    @Test(arguments: [
        (#"{"left":2}"#, AttemptOutcome.rejectedLeaving(2)), (#"{"left":"1"}"#, .rejectedLeaving(1)),
        (#"{"left":-3}"#, .rejectedLeaving(0)), (#"{"left":"many"}"#, .rejectedLeaving(0)),
        (#"{"left":99999999999999999999}"#, .rejectedLeaving(.max)), ("{}", .rejected), ("<html>", .rejected),
    ])
    func `an issuer that says how many attempts are left is heard`(_ body: String, _ outcome: AttemptOutcome)
        async throws
    {
        let environment = WatchedEnvironment().over(ScriptedIssuer([.status(401, body)]))
        let failed = await failure { _ = try await handshake().acquire(wanted, environment: environment) }
        #expect(failed == .credentialRejected(reason: "login: status 401"))
        #expect(environment.inner.outcomes == [outcome])
    }

    @Test func `an answer of another status is no challenge`() throws {
        let lines = """
            challenge: { status: [401], scheme: Gate }
            steps:
              - { name: s, post: "https://s.example.com/", form: { p: "{request.path}" }, take: { t: { json: /t } } }
            token: "{s.t}"
            """
        let handshake = try handshake(lines)
        let line = [bytes("Gate")]
        #expect(
            handshake.judge(status: 403, wwwAuthenticate: line, location: nil, requestURL: "https://u.example.com/")
                == .none)
        guard
            case .challenged = handshake.judge(
                status: 401, wwwAuthenticate: line, location: nil, requestURL: "https://u.example.com/")
        else { return _ = Issue.record("no challenge") }
    }

    @Test(arguments: [
        ("https://u.example.com", "p=%2F"), ("https://u.example.com/a%20b?c", "p=%2Fa%2520b"),
        ("https://u.example.com?c", "p=%2F"),
    ])
    func `a request without a path has the path of the root`(_ url: String, _ body: String) async throws {
        let lines = """
            challenge: { scheme: Gate }
            steps:
              - { name: s, post: "https://s.example.com/", form: { p: "{request.path}" }, take: { t: { json: /t } } }
            token: "{s.t}"
            """
        let issuer = ScriptedIssuer([.ok(#"{"t":"t.1"}"#)])
        var asked = wanted
        asked.challenge = Challenge(resource: url)
        _ = try await handshake(lines).acquire(asked, environment: WatchedEnvironment().over(issuer))
        #expect(issuer.sent[0].body == body)
    }
}
