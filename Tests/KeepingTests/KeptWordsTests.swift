import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// The words in which failures and refusals reach who asked.
@Suite struct KeptWordsTests {
    /// Who waited for another flight's login is told the same as the flight itself, and its token waits as long.
    @Test(arguments: [
        Tokens.GrantFailure.issuerUnavailable(retryAfter: .seconds(7)), .issuerUnavailable(retryAfter: nil),
        .issuerAnswerInvalid, .timedOut, .configuration, .policyDenied, .credentialRejected, .interactionRequired,
    ])
    func aFailureThatIsHandedOnIsTheSame(_ failure: Tokens.GrantFailure) {
        #expect(Tokens.GrantFailure(Handshakes.GrantFailure(failure)) == failure)
    }

    @Test func whoMayNotGrantComesAgain() {
        let told = Handshakes.GrantFailure(Tokens.GrantFailure.notPermitted(retryAfter: .seconds(3)))
        #expect(told == .issuerUnavailable(retryAfterSeconds: 3, reason: "the login was interrupted"))
        for failure in [Handshakes.GrantFailure.challengeNeeded, .storeUnusable] {
            #expect(Tokens.GrantFailure(failure) == .notPermitted(retryAfter: .seconds(1)))
        }
        #expect(Tokens.GrantFailure(Handshakes.GrantFailure.internal(reason: "x")) == .issuerAnswerInvalid)
    }

    /// Nobody is told that an issuer has refused what it has not answered, or what cannot be read.
    @Test func aQuarantineSaysWhatIsKnownOfIt() {
        let rejected = HeldBack.rejected.fault(of: "svc")
        #expect(rejected.kind == .quarantined && rejected.detail?.contains("cardea reset svc") == true)
        let unanswered = HeldBack.unanswered.fault(of: "svc")
        #expect(unanswered.kind == .quarantined && unanswered.detail?.contains("nobody knows whether") == true)
        #expect(unanswered.detail?.contains("account is locked") == true && unanswered.detail != rejected.detail)
        let store = HeldBack.store.fault(of: "svc")
        #expect(store.kind == .storeUnusable && store.retryAfter == 1)
        #expect(HeldBack.unanswered.failure == .unanswered && HeldBack.store.failure == .storeUnusable)
    }

    /// The addresses in a failure's words can be told from their ports.
    @Test(arguments: [
        ("http://[2001:db8::1]:8080/token", "[2001:db8::1]:8080"),
        ("https://idp.example.com/token", "idp.example.com:443"),
    ])
    func theServerOfAFailureIsNamed(_ url: String, _ server: String) throws {
        let trail = IssuerTrail()
        #expect(IssuerTrail.words("refused", asking: trail.server) == "refused")
        trail.asks(try #require(IssuerURL(url)))
        #expect(IssuerTrail.words("refused", asking: trail.server) == "refused (at \(server))")
    }
}
