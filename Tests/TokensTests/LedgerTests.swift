import Testing

@testable import Tokens

@Suite struct LedgerTests {
    let mark = AttemptMark(account: Account(issuer: issuer, user: "svc"), secretHash: "h1")
    let changed = AttemptMark(account: Account(issuer: issuer, user: "svc"), secretHash: "h2")
    let other = AttemptMark(account: Account(issuer: issuer, user: "jane"), secretHash: "h1")
    let once = AttemptLedger.Policy()

    @Test func rule5_ARejectedSecretIsNotSentAgainUntilItChanges() {
        var ledger = AttemptLedger()
        #expect(ledger.verdict(for: mark, once) == .allowed)
        #expect(ledger.spend(mark).bytes != nil)
        _ = ledger.rejected(mark)
        #expect(ledger.verdict(for: mark, once) == .spent)
        #expect(ledger.verdict(for: changed, once) == .allowed)
        #expect(ledger.verdict(for: other, once) == .allowed)
    }

    @Test func rule5_ATimeOutLeavesTheAttemptSpent() {
        var ledger = AttemptLedger()
        _ = ledger.spend(mark)
        #expect(ledger.verdict(for: mark, once) == .spent)
    }

    @Test func rule5_WhatTheIssuerDidNotJudgeIsGivenBack() {
        var ledger = AttemptLedger()
        _ = ledger.spend(mark)
        #expect(ledger.refunded(mark).bytes == nil)
        #expect(ledger.verdict(for: mark, once) == .allowed)
        #expect(ledger.refunded(mark).bytes == nil)
    }

    @Test func rule5_LoginAttemptsCount() {
        var ledger = AttemptLedger()
        let three = AttemptLedger.Policy(loginAttempts: 3)
        for _ in 0..<2 {
            _ = ledger.spend(mark)
            #expect(ledger.verdict(for: mark, three) == .allowed)
        }
        _ = ledger.spend(mark)
        #expect(ledger.verdict(for: mark, three) == .spent)
        #expect(ledger.verdict(for: mark, AttemptLedger.Policy(loginAttempts: 0)) == .spent)
    }

    @Test func rule5_TheMarkSurvivesARestart() {
        var ledger = AttemptLedger()
        let row = ledger.spend(mark)
        var next = AttemptLedger()
        next.restore(row.bytes ?? [])
        #expect(next.verdict(for: mark, once) == .spent)
        #expect(next.verdict(for: other, once) == .allowed)
    }

    @Test func rule5_ASuccessClearsTheWholeAccount() {
        var ledger = AttemptLedger()
        _ = ledger.spend(mark)
        _ = ledger.spend(changed)
        _ = ledger.spend(other)
        let cleared = ledger.succeeded(changed).map(\.mark)
        #expect(cleared == [mark, changed])
        #expect(ledger.verdict(for: mark, once) == .allowed)
        #expect(ledger.verdict(for: other, once) == .spent)
    }

    @Test(
        arguments: [
            (2, false, .allowed), (1, false, .lastAttempt), (0, false, .lastAttempt), (-1, false, .lastAttempt),
            (1, true, .allowed), (0, true, .lastAttempt),
        ] as [(Int64, Bool, AttemptLedger.Verdict)])
    func rule5_TheLastAttemptIsNotUsedUnlessAllowed(_ left: Int64, _ allowed: Bool, _ verdict: AttemptLedger.Verdict) {
        var ledger = AttemptLedger()
        _ = ledger.spend(mark)
        let row = ledger.rejected(mark, remaining: left)
        let policy = AttemptLedger.Policy(loginAttempts: 5, allowsLastAttempt: allowed)
        #expect(ledger.verdict(for: mark, policy) == verdict)
        // The counter is the account's, so a new secret meets it too.
        #expect(ledger.verdict(for: changed, policy) == verdict)
        var next = AttemptLedger()
        next.restore(row.bytes ?? [])
        #expect(next.verdict(for: mark, policy) == verdict)
    }

    /// What a process leaves to the next.
    private func restarted(_ ledger: inout AttemptLedger, _ rows: [AttemptLedger.Row]) -> AttemptLedger {
        var next = AttemptLedger()
        for row in rows { if let bytes = row.bytes { next.restore(bytes) } }
        for row in ledger.takeHistory() { if let bytes = row.bytes { next.restoreHistory(bytes) } }
        return next
    }

    @Test func rule5_WhatWasAcceptedHasOneMoreTryWhenAnAnswerWasLost() {
        var ledger = AttemptLedger()
        _ = ledger.spend(mark, once)
        _ = ledger.succeeded(mark)
        // Cut off, by a crash perhaps.
        ledger = restarted(&ledger, [ledger.spend(mark, once)])
        #expect(ledger.isUnanswered(mark) && ledger.isRetry(mark, once))
        #expect(ledger.verdict(for: mark, once) == .allowed)
        // The one more try is committed before it is sent, and counts in all.
        let row = ledger.spend(mark, once)
        var next = restarted(&ledger, [row])
        #expect(next.verdict(for: mark, once) == .spent && next.isUnanswered(mark))
        // Until an answer is seen.
        _ = next.succeeded(mark)
        _ = next.spend(mark, once)
        #expect(next.verdict(for: mark, once) == .allowed)
        _ = next.spend(mark, once)
        _ = next.refunded(mark)
        #expect(next.verdict(for: mark, once) == .allowed)
        _ = next.spend(mark, once)
        _ = next.rejected(mark)
        #expect(next.verdict(for: mark, once) == .spent && !next.isUnanswered(mark))
        // Another version of it was never accepted.
        _ = next.spend(changed, once)
        #expect(next.verdict(for: changed, once) == .spent)
    }

    @Test(arguments: [(1, AttemptLedger.Verdict.spent), (2, .allowed)] as [(Int64, AttemptLedger.Verdict)])
    func rule5_TheLastAttemptIsNoFurtherTry(_ left: Int64, _ verdict: AttemptLedger.Verdict) {
        var ledger = AttemptLedger()
        _ = ledger.succeeded(mark)
        _ = ledger.spend(changed, once)
        _ = ledger.rejected(changed, remaining: left)
        _ = ledger.spend(mark, once)
        let policy = AttemptLedger.Policy(loginAttempts: 1, allowsLastAttempt: true)
        #expect(ledger.verdict(for: mark, policy) == verdict)
    }

    @Test func rule5_WithoutASettingTheLastAttemptIsNotUsed() {
        var ledger = AttemptLedger()
        _ = ledger.rejected(changed, remaining: 1)
        #expect(ledger.verdict(for: mark, AttemptLedger.Policy(loginAttempts: 5)) == .lastAttempt)
    }

    /// The next process knows all that is known of a secret, each part by itself and all together.
    @Test(arguments: 0..<8)
    func rule5_TheHistoryOfASecretSurvivesARestart(_ bits: Int) throws {
        let history = AttemptLedger.History(
            wasAccepted: bits & 1 != 0, hasRetried: bits & 2 != 0, wasRejected: bits & 4 != 0)
        let row = AttemptLedger.encode(mark, history)
        var next = AttemptLedger()
        next.restoreHistory(row)
        #expect(next.histories == [mark: history])
        var odd = AttemptLedger()
        odd.restoreHistory(row + [0])
        #expect(odd.histories.isEmpty, "more follows than was written")
    }

    /// Issuers write what they like, so the count has all of its 64 bits.
    @Test(arguments: [0, 1, -1, 1 << 31, 1 << 32 + 5, .max, .min] as [Int64])
    func rule5_TheCountOfTheIssuerSurvivesARestart(_ remaining: Int64) {
        var ledger = AttemptLedger()
        let row = ledger.rejected(mark, remaining: remaining)
        var next = AttemptLedger()
        next.restore(row.bytes ?? [])
        #expect(next.entries[mark]?.remaining == remaining)
    }

    @Test func rule5_AResetForgetsWhatWasKnown() {
        var ledger = AttemptLedger()
        _ = ledger.succeeded(mark)
        _ = ledger.spend(mark, once)
        _ = ledger.spend(mark, once)
        _ = ledger.reset(mark.account)
        #expect(ledger.verdict(for: mark, once) == .allowed)
        #expect(ledger.takeHistory().allSatisfy { $0.bytes == nil } && ledger.takeHistory().isEmpty)
        ledger.restoreHistory([1, 6, 0])
        #expect(ledger.histories.isEmpty)
    }

    @Test func rule5_MarksThatCannotBeReadQuarantineUntilAReset() {
        for hostile in [nil, [], [1, 5, 0]] as [[UInt8]?] {
            var ledger = AttemptLedger()
            if let hostile { ledger.restore(hostile) } else { ledger.restoreUnreadable() }
            #expect(ledger.verdict(for: mark, once) == .unreadable)
            _ = ledger.reset(mark.account)
            #expect(ledger.verdict(for: mark, once) == .allowed)
            #expect(ledger.verdict(for: other, once) == .unreadable)
        }
    }
}

@Suite struct LadderTests {
    @Test func rule6_OneRungDownAFailureNeverUp() {
        var ladder = GrantLadder([.fullGrant, .cached, .refreshToken])
        #expect(ladder.rung == .cached)
        #expect(ladder.failed(.credentialRejected) == .refreshToken)
        #expect(ladder.failed(.credentialRejected) == .fullGrant)
        #expect(ladder.failed(.credentialRejected) == nil)
        #expect(ladder.failed(.credentialRejected) == nil)
    }

    /// No way is cheaper than itself.
    @Test func rule6_EveryWayIsCheaperThanThoseAfterItAlone() {
        let rungs: [GrantLadder.Rung] = [.cached, .refreshToken, .fullGrant]
        for (place, rung) in rungs.enumerated() {
            for (otherPlace, other) in rungs.enumerated() { #expect((rung < other) == (place < otherPlace)) }
        }
    }

    @Test(arguments: [GrantFailure.issuerUnavailable(retryAfter: nil), .timedOut, .notPermitted(retryAfter: nil)])
    func rule6_AnIssuerThatCannotAnswerEndsTheFlightWithoutCostingAnAttempt(_ failure: GrantFailure) {
        var ladder = GrantLadder([.refreshToken, .fullGrant])
        #expect(ladder.failed(failure) == nil)
        #expect(ladder.rung == nil)
    }

    @Test func rule8_WhatHumansAndDevicesMadeIsOrphanedTheRestGoes() {
        let table = Material.allCases.map { material in
            IdentityChange.allCases.map { Orphans.disposition(of: material, after: $0) }
        }
        #expect(
            table == [
                [.orphan, .keep, .keep, .keep, .drop],
                [.orphan, .keep, .keep, .keep, .drop],
                [.drop, .keep, .keep, .drop, .drop],
                [.drop, .keep, .keep, .drop, .drop],
            ])
    }
}
