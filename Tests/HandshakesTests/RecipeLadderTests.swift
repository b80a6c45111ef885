import Configuration
import Synchronization
import Testing

@testable import Handshakes

/// The recipe of an identity with these lines, read as a file is.
func readRecipe(_ lines: String) throws -> Recipe {
    let block = lines.split(separator: "\n").map { "      \($0)" }.joined(separator: "\n")
    let text = """
        identities:
          a:
            recipe:
        \(block)
        routes: [{ listen: "127.0.0.1:8080", to: "https://u.example.com", use: a }]
        store: { path: /t, key: env:K }
        """
    let result = Configuration.load(.text(text)) { _ in nil }
    #expect(result.errors.map(\.description) == [])
    return try #require(result.configuration?.identities.first?.scheme as? RecipeScheme).recipe
}

/// Which layers of a recipe are made, kept and made anew, and in which turn.
@Suite struct RecipeLadderTests {
    /// The one value is kept for good and costs a password; the other is had for one token.
    private static let durableOnly = """
        secrets: { password: { value: env:P, to: https://sso.example.com } }
        steps:
          - name: device
            layer: durable
            post: https://sso.example.com/device
            form: { key: "{secret.password}" }
            take: { id: { json: /id } }
          - name: access
            post: https://sso.example.com/access
            form: { id: "{device.id}" }
            take: { token: { json: /token } }
        token: "{access.token}"
        """

    private let wanted = Wanted(upstreamOrigin: "https://u.example.com")
    private let device = ScriptedIssuer.Line.ok(#"{"id":"d1"}"#)
    private let access = ScriptedIssuer.Line.ok(#"{"token":"t.1"}"#)

    private func handshake(_ lines: String) throws -> RecipeHandshake {
        RecipeHandshake(try readRecipe(lines), identity: "a")
    }

    /// The three layers of `RecipeGrantTests`, after one grant whose every layer is kept.
    private func granted() async throws -> MemoryEnvironment {
        let environment = MemoryEnvironment()
        let issuer = ScriptedIssuer([
            .ok(#"{"device":{"id":"d1"}}"#), .ok(#"{"token":"u1","expires_in":60}"#), access,
        ])
        _ = try await RecipeGrantTests.handshake().acquire(
            Wanted(challenge: try RecipeGrantTests.challenge(), upstreamOrigin: "https://u.example.com"),
            environment: environment.over(issuer))
        return environment
    }

    private let three: [ScriptedIssuer.Line] = [
        .ok(#"{"device":{"id":"d2"}}"#), .ok(#"{"token":"u2","expires_in":60}"#), .ok(#"{"token":"t.2"}"#),
    ]

    // MARK: - Without a session

    @Test func aRegistrationWithASecretIsBookedAndKept() async throws {
        let journal = Journal()
        let environment = MemoryEnvironment(password: "p&", journal: journal)
        let handshake = try handshake(Self.durableOnly)
        let issuer = ScriptedIssuer([device, access, access], journal: journal)
        for _ in 0..<2 {
            #expect(try await handshake.acquire(wanted, environment: environment.over(issuer)).token.text == "t.1")
        }
        #expect(issuer.sent.map(\.body) == ["key=p%26", "id=d1", "id=d1"])
        #expect(
            journal.all.filter { !$0.hasSuffix("session") } == [
                "spend recipe env:P", "send device", "settle accepted", "commit recipe", "send access", "send access",
            ])
        #expect(environment.outcomes == [.accepted])
    }

    @Test func aRefusedRegistrationIsMadeAnewOnce() async throws {
        let environment = MemoryEnvironment()
        let handshake = try handshake(Self.durableOnly)
        _ = try await handshake.acquire(wanted, environment: environment.over(ScriptedIssuer([device, access])))
        let issuer = ScriptedIssuer([.status(401), .ok(#"{"id":"d2"}"#), access])
        #expect(try await handshake.acquire(wanted, environment: environment.over(issuer)).token.text == "t.1")
        #expect(issuer.sent.map(\.body) == ["id=d1", "key=pa%22ss%5Cw%C3%B6rd", "id=d2"])
        let twice = ScriptedIssuer([.status(401), device, .status(401)])
        #expect(
            await failure { _ = try await handshake.acquire(wanted, environment: environment.over(twice)) }
                == .issuerAnswerInvalid(reason: "access: status 401, although it was made anew"))
        #expect(twice.isFinished)
        #expect(environment.state.withLock { $0.durables.isEmpty }, "the next flight registers anew")
    }

    @Test func aRefusalWithNothingKeptIsADenial() async throws {
        let handshake = try handshake(
            """
            steps: [{ name: access, get: "https://sso.example.com/", take: { token: { json: /token } } }]
            token: "{access.token}"
            """)
        let issuer = ScriptedIssuer([.status(401)])
        #expect(
            await failure { _ = try await handshake.acquire(wanted, environment: MemoryEnvironment().over(issuer)) }
                == .policyDenied(reason: "access: status 401"))
        #expect(issuer.isFinished)
    }

    // MARK: - Refusals of the lower layers

    @Test func aRefusedSessionWithNothingBelowIsADenial() async throws {
        let handshake = try handshake(
            """
            steps:
              - { name: login, layer: session, get: "https://sso.example.com/l", take: { id: { json: /id } } }
              - { name: access, get: "https://sso.example.com/{login.id}", take: { token: { json: /token } } }
            token: "{access.token}"
            """)
        let issuer = ScriptedIssuer([.status(401)])
        let environment = MemoryEnvironment()
        #expect(
            await failure { _ = try await handshake.acquire(wanted, environment: environment.over(issuer)) }
                == .policyDenied(reason: "login: status 401"))
        #expect(environment.heldSession == nil)
    }

    /// The lines of the issuer, why there is no token, and what was sent.
    @Test(arguments: [
        (
            [ScriptedIssuer.Line.status(401)],
            GrantFailure.policyDenied(reason: "a step of the durable layer was refused"), ["device"]
        ),
        (
            [.ok(#"{"device":{"id":"d1"}}"#), .status(401, #"{"unknown_device":true}"#)],
            .issuerAnswerInvalid(reason: "login: status 401, although it was made anew"), ["device", "login"]
        ),
    ])
    func aNewRegistrationThatIsRefusedEndsTheFlight(
        lines: [ScriptedIssuer.Line], why: GrantFailure, steps: [String]
    ) async throws {
        let issuer = ScriptedIssuer(lines)
        let handshake = try RecipeGrantTests.handshake()
        let wanted = Wanted(challenge: try RecipeGrantTests.challenge(), upstreamOrigin: "https://u.example.com")
        let environment = MemoryEnvironment()
        #expect(
            await failure { _ = try await handshake.acquire(wanted, environment: environment.over(issuer)) } == why)
        #expect(issuer.steps == steps)
        #expect(environment.isBalanced && environment.heldSession == nil)
    }

    // MARK: - What is kept and gone

    @Test func aRegistrationThatWasPurgedBringsANewSession() async throws {
        let environment = try await granted()
        environment.state.withLock { $0.durables = [:] }
        let issuer = ScriptedIssuer(three)
        let wanted = Wanted(challenge: try RecipeGrantTests.challenge(), upstreamOrigin: "https://u.example.com")
        let grant = try await RecipeGrantTests.handshake().acquire(wanted, environment: environment.over(issuer))
        #expect(grant.token.text == "t.2")
        #expect(issuer.steps == ["device", "login", "access"])
        #expect(issuer.sent[2].header("X-User") == "u2")
    }

    @Test func aSessionThatIsGoneWhenItIsNeededSendsNothingMore() async throws {
        let environment = MemoryEnvironment()
        environment.state.withLock { $0.forgetsCommits = true }
        let issuer = ScriptedIssuer(three)
        let wanted = Wanted(challenge: try RecipeGrantTests.challenge(), upstreamOrigin: "https://u.example.com")
        #expect(
            await failure {
                _ = try await RecipeGrantTests.handshake().acquire(wanted, environment: environment.over(issuer))
            } == .issuerAnswerInvalid(reason: "what was kept was purged meanwhile, although it was made anew"))
        #expect(issuer.steps == ["device", "login"])
    }

    @Test func aSessionOfAnotherTimeIsAsGoodAsRefused() async throws {
        let environment = MemoryEnvironment(session: "of another time")
        let issuer = ScriptedIssuer(three)
        let wanted = Wanted(challenge: try RecipeGrantTests.challenge(), upstreamOrigin: "https://u.example.com")
        let grant = try await RecipeGrantTests.handshake().acquire(wanted, environment: environment.over(issuer))
        #expect(grant.token.text == "t.2" && issuer.isFinished)
        #expect(environment.journal.all.contains("session refused"))
    }

    /// A kept value that is not there is not sent as an empty one.
    @Test func aKeptValueThatIsMissingIsNotSent() async throws {
        let environment = MemoryEnvironment()
        let other = RecipeMaterial.encode(["another step": ["id": Secret("d1")]])
        environment.state.withLock {
            $0.durables["recipe"] = LayerMaterial(bytes: other, obtainedAt: 1, lifetime: nil)
        }
        let issuer = ScriptedIssuer(three)
        let wanted = Wanted(challenge: try RecipeGrantTests.challenge(), upstreamOrigin: "https://u.example.com")
        #expect(
            await failure {
                _ = try await RecipeGrantTests.handshake().acquire(wanted, environment: environment.over(issuer))
            } == .configuration(reason: "login: body: device.id is not there"))
        #expect(issuer.sent.isEmpty && environment.outcomes.isEmpty)
    }

    // MARK: - Secrets

    @Test func anEmptySecretIsNotSent() async throws {
        let environment = MemoryEnvironment(password: "")
        let issuer = ScriptedIssuer([device, access])
        #expect(
            await failure {
                _ = try await handshake(Self.durableOnly).acquire(wanted, environment: environment.over(issuer))
            } == .secretUnreadable(name: "password", reason: "empty"))
        #expect(issuer.sent.isEmpty && environment.outcomes.isEmpty)
    }

    /// The file's check is not the only one: a secret without a place goes nowhere.
    @Test func aSecretStaysWithItsIssuer() async throws {
        var recipe = try readRecipe(Self.durableOnly)
        recipe.secrets[0].to = []
        let issuer = ScriptedIssuer([device, access])
        let environment = MemoryEnvironment()
        #expect(
            await failure {
                _ = try await RecipeHandshake(recipe, identity: "a").acquire(
                    wanted, environment: environment.over(issuer))
            } == .configuration(reason: "device: secret password must not go to https://sso.example.com"))
        #expect(issuer.sent.isEmpty && environment.outcomes.isEmpty)
    }

    // MARK: - Trials

    @Test func aTrialWithoutAChallengeOpensTheKeptLayersOnly() async throws {
        let issuer = ScriptedIssuer(three)
        let environment = MemoryEnvironment()
        let trial = try await RecipeGrantTests.handshake().tryOut(
            Wanted(upstreamOrigin: "https://u.example.com"), environment: environment.over(issuer))
        #expect(issuer.steps == ["device", "login"])
        #expect(
            trial?.text == "session layer opened; tokens need a challenge of the upstream and were not tried")
        #expect(environment.heldSession != nil)
    }

    @Test func aTrialOpensARegistrationWhereThereIsNoSession() async throws {
        let issuer = ScriptedIssuer([device])
        let environment = MemoryEnvironment()
        let handshake = try handshake("challenge: { scheme: In-House }\n" + Self.durableOnly)
        let trial = try await handshake.tryOut(
            Wanted(upstreamOrigin: "https://u.example.com"), environment: environment.over(issuer))
        #expect(trial?.isGood == true && issuer.steps == ["device"])
        #expect(environment.outcomes == [.accepted])
        #expect(environment.state.withLock { $0.durables["recipe"] } != nil)
    }

    @Test func aTrialWithNothingToKeepAsksNobody() async throws {
        let handshake = try handshake(
            """
            challenge: { scheme: In-House }
            steps: [{ name: access, get: "https://sso.example.com/", take: { token: { json: /token } } }]
            token: "{access.token}"
            """)
        let issuer = ScriptedIssuer([access])
        let environment = MemoryEnvironment().over(issuer)
        let trial = try await handshake.tryOut(wanted, environment: environment)
        #expect(trial?.text.hasPrefix("nothing is kept below the access layer; ") == true)
        #expect(await failure { _ = try await handshake.acquire(wanted, environment: environment) } == .challengeNeeded)
        #expect(issuer.sent.isEmpty)
    }

    @Test func aTrialOfTokensHadAheadIsOneToken() async throws {
        let issuer = ScriptedIssuer([device, access])
        let trial = try await handshake(Self.durableOnly).tryOut(
            wanted, environment: MemoryEnvironment().over(issuer))
        #expect(trial == nil && issuer.steps == ["device", "access"])
    }
}
