import Testing

@testable import Handshakes

/// A keeper in miniature: its actor is the environment, and isolated methods meet the requirements.
private actor MiniatureKeeper: GrantEnvironment {
    func durable(_ part: DurablePart) async -> LayerMaterial? { nil }
    func commit(_ part: DurablePart, _ material: LayerMaterial) async throws(GrantFailure) {}
    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async {}
    func session() async -> LayerMaterial? { nil }

    nonisolated(nonsending) func durable(
        _ part: DurablePart, unless refused: LayerMaterial?,
        make: nonisolated(nonsending) () async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> LayerMaterial { try await make() }

    nonisolated(nonsending) func session(
        _ claim: SessionClaim,
        step: nonisolated(nonsending) (SessionRung, LayerMaterial?) async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> SessionGrant {
        SessionGrant(material: try await step(.fullGrant, nil), isFresh: true)
    }

    func secret(_ name: String) async throws(GrantFailure) -> Secret { Secret("s") }
    func spendAttempt(user: String, secret: String) async throws(GrantFailure) {}
    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async {}
    func now() async -> UInt64 { 1 }

    /// Runs where its caller runs, and says so.
    nonisolated(nonsending) func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        preconditionIsolated("the handshake left its caller's executor")
        return await answer()
    }

    private func answer() -> IssuerAnswer {
        IssuerAnswer(
            status: 200, headers: [], body: bytes(#"{"access_token":"a","token_type":"Bearer"}"#), sentAt: 1,
            overTLS: true)
    }

    func run(_ scheme: any Handshake) async throws -> AccessGrant {
        try await scheme.acquire(Wanted(upstreamOrigin: "https://a"), environment: self)
    }
}

@Suite struct IsolationTests {
    @Test func `a handshake stays on the executor of the keeper`() async throws {
        let keeper = MiniatureKeeper()
        let url = try #require(IssuerURL("https://idp.example.com/token"))
        let scheme = try OAuth2Handshake(OAuth2Settings(.tokenURL(url), clientID: "c"))
        let grant = try await keeper.run(scheme)
        #expect(grant.token.text == "a")
    }
}
