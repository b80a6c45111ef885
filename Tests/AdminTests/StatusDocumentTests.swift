import FoundationEssentials
import Testing

@testable import Admin
@testable import Gateway
@testable import Keeping

@Suite struct StatusDocumentTests {
    @Test func saysTheFacts() throws {
        let document = try #require(StatusDocument(parsing: StatusDocument(try sampleFacts()).encoded()))
        #expect(document.ready && document.version == "1.0.0")
        #expect(document.store == StatusDocument.Store(state: "serving", detail: "serving", restoredTokens: 5))
        #expect(
            document.identities.map(\.state) == [
                "refresh_due", "renewal_failing", "acquiring", "login_needed", "quarantined", "fresh", "idle",
            ])
        #expect(document.identities[4].advice == "cardea reset payroll")
        #expect(document.identities[3].advice == "cardea login tv")
        #expect(document.identities[2].waiting == 17)
        #expect(
            document.tokens[0].ageSeconds == 604 && document.tokens[0].expiresInSeconds == 296
                && document.tokens[0].level == 2)
        #expect(document.tokens[6].ageSeconds == 273_000 && document.tokens[6].expiresInSeconds == nil)
        #expect(document.routes[0].answers["200"] == 48_213 && document.routes[0].requests == 49_154)
        #expect(document.routes[0].identity == "hr" && document.routes[2].identity == nil)
        #expect(document.routes[1].replaysAccepted == 0 && document.routes[0].replaysRefused == 2)
        #expect(document.tokenLookups["hit"] == 58_000)
        #expect(document.unrouted == ["404": 12])
        #expect(document.callerConnections == 64 && document.tokensLeftOut == 0)
    }

    @Test func namesAreInSnakeCase() throws {
        let text = StatusDocument(try sampleFacts()).encoded()
        for name in [
            "\"uptime_seconds\":273600", "\"expires_in_seconds\":296", "\"last_failure\":", "\"p99_seconds\":",
            "\"requests_per_second\":",
        ] {
            #expect(text.contains(name), "\(name)")
        }
    }

    @Test(arguments: hostileTexts.indices)
    func hostileTextSurvives(index: Int) throws {
        let text = hostileTexts[index]
        let made = StatusDocument(try facts(saying: text))
        let encoded = made.encoded()
        #expect(!encoded.utf8.dropLast().contains { $0 < 0x20 })
        let read = try #require(StatusDocument(parsing: encoded))
        #expect(read == made)
        #expect(read.identities[4].name == text)
        #expect(read.tokens[0].realm.unicodeScalars.count <= 513)
    }

    @Test(arguments: hostileTexts.indices)
    func hostileReadinessSurvives(index: Int) throws {
        let facts = try facts(saying: hostileTexts[index])
        let made = ReadinessDocument(Gateway.Readiness(isReady: false, reasons: facts.reasons), facts.status)
        #expect(try snakeCase().decode(ReadinessDocument.self, from: Data(made.encoded().utf8)) == made)
    }

    @Test func theUrgentTokensAreKept() {
        var tokens = (0..<100).map { token("a", age: 1, expires: UInt64(1000 - $0)) }
        tokens[3].lastFailure = "x"
        tokens[5].waiting = 1
        let shown = mostTelling(tokens, limit: 4)
        #expect(shown.map(\.expiresIn) == [3, 5, 98, 99].map { tokens[$0].expiresIn })
        #expect(mostTelling(tokens, limit: 0).isEmpty)
    }

    // MARK: - States

    @Test(
        arguments: [
            ([.fresh], false, nil, .fresh), ([.fresh, .renewalFailing], false, "x", .renewalFailing),
            ([.fresh, .quarantined], false, nil, .quarantined), ([.fresh], true, nil, .quarantined),
            ([], false, nil, .idle), ([.idle], false, "secret unreadable", .failed), ([.idle], false, nil, .idle),
            ([.negative], false, "x", .negative), ([.expiredServed], false, "x", .expiredServed),
            ([], true, nil, .quarantined),
        ] as [([IdentityState], Bool, String?, IdentityState)])
    func anIdentityIsAsBadAsItsWorstToken(
        states: [IdentityState], isQuarantined: Bool, failure: String?, state: IdentityState
    ) {
        let facts = IdentityFacts(
            identity("a", isQuarantined: isQuarantined, failure), tokens: states.map { token("a", state: $0) })
        #expect(facts.state == state)
    }

    @Test(arguments: [
        ("serving", StoreState.serving), ("memory only", .memory), ("degraded: disk full", .degraded),
        ("not used: locked", .refused), ("", .memory),
    ])
    func storeWords(word: String, state: StoreState) { #expect(StoreState(word: word) == state) }

    // MARK: - Words

    @Test(
        arguments: [
            (0, "0 s"), (999_999_999, "0 s"), (second, "1 s"), (59_000_000_000, "59 s"), (60_000_000_000, "1 m"),
            (110_000_000_000, "1 m 50 s"),
            (3_600_000_000_000, "1 h"), (273_600_000_000_000, "3 d 4 h"), (UInt64.max, "213503 d 23 h"),
        ] as [(UInt64, String)])
    func spans(nanoseconds: UInt64, text: String) { #expect(spelled(nanoseconds) == text) }

    @Test(
        arguments: [
            (0, "0.00 ms"), (420_000, "0.42 ms"), (994_000, "0.99 ms"), (999_999, "1.0 ms"),
            (4_250_000, "4.3 ms"),
            (9_999_999, "10 ms"), (48_000_000, "48 ms"), (999_900_000, "1.0 s"), (9_999_000_000, "10 s"),
            (1_300_000_000, "1.3 s"), (60_000_000_000, "60 s"),
        ] as [(UInt64, String)])
    func latencies(nanoseconds: UInt64, text: String) { #expect(spelledLatency(nanoseconds) == text) }

    @Test(
        arguments: [
            (0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678"),
            (UInt64.max, "18,446,744,073,709,551,615"),
        ] as [(UInt64, String)])
    func counts(count: UInt64, text: String) { #expect(grouped(count) == text) }

    @Test(
        arguments: [
            (0.0, "0"), (0.01, "<0.1"), (0.3, "0.3"), (9.96, "10.0"), (17.4, "17"), (1204, "1,204"), (.infinity, "∞"),
            (1e300, "∞"),
        ] as [(Double, String)])
    func rates(perSecond: Double, text: String) { #expect(spelledRate(perSecond) == text) }

    @Test(arguments: [
        ("hr", "hr"), ("a b", "'a b'"), ("a'b", "'a'\\''b'"), ("$(x)", "'$(x)'"), ("-f", "'-f'"), ("", "''"),
        ("ü", "'ü'"),
    ])
    func shellWords(name: String, word: String) { #expect(shellWord(name) == word) }

    @Test(arguments: [("upstream said no", "Upstream said no."), ("Done.", "Done."), ("", ""), ("ß", "SS.")])
    func sentences(reason: String, text: String) { #expect(sentence(reason) == text) }
}
