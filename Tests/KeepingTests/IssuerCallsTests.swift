import TLS
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Tokens

@Suite struct IssuerCallsTests {
    private static let second: UInt64 = 1_000_000_000
    private static let origin = "http://issuer:9100"

    private static func line(_ limit: Int) -> IssuerCalls.Line {
        let network = IssuerNetwork(
            minimumVersion: .v1_2, legacyTLS: false, timeout: second, connections: limit, patience: second, resolve: [:]
        )
        return IssuerCalls.Line(issuer: IssuerKey(origin: origin, network: network), limit: limit)
    }

    private static func answer(_ status: Int, _ headers: [(name: String, value: String)] = []) -> IssuerAnswer {
        IssuerAnswer(status: status, headers: headers, body: [], sentAt: 0, overTLS: true)
    }

    @Test func whoeverCameFirstGetsTheNextPlace() {
        var calls = IssuerCalls(seed: 1)
        let line = Self.line(2)
        let waits = (0..<5).map { _ in Wait<Bool>() }
        let entered = waits.map { calls.enter(line, $0) }
        #expect(entered == [true, true, false, false, false])
        calls.giveUp(waits[2], in: line)
        #expect(calls.leave(line) === waits[3])
        #expect(calls.leave(line) === waits[4])
        #expect(calls.leave(line) === nil)
        #expect(!calls.isIdle)
        #expect(calls.leave(line) === nil)
        #expect(calls.isIdle, "nothing is kept of an issuer that nobody calls")
    }

    @Test func callsThatAreAllowedDifferentNumbersDoNotWaitForEachOther() {
        var calls = IssuerCalls(seed: 1)
        #expect(calls.enter(Self.line(1), Wait()) == true)
        #expect(calls.enter(Self.line(1), Wait()) == false)
        #expect(calls.enter(Self.line(60), Wait()) == true)
    }

    @Test func anIssuerThatKeepsFailingIsLeftAlone() throws {
        var calls = IssuerCalls(seed: 1)
        let url = try #require(IssuerURL(Self.origin + "/token"))
        var pauses: [UInt64?] = []
        for _ in 0..<5 {
            try calls.ask(url.origin, at: Self.second)
            pauses.append(calls.answered(Self.answer(503), to: url, at: Self.second, wall: 0))
        }
        let pause = try #require(pauses.last ?? nil)
        #expect(pauses.dropLast().allSatisfy { $0 == nil })
        #expect(throws: IssuerFault.self) { try calls.ask(url.origin, at: Self.second) }
        try calls.ask(url.origin, at: Self.second + pause)
        // A call that found no room here says nothing of the issuer: the next one finds out.
        #expect(
            calls.failed(IssuerFault(.overloaded, provablyUnsent: true), url.origin, at: Self.second + pause) == nil)
        try calls.ask(url.origin, at: Self.second + pause)
        #expect(calls.answered(Self.answer(200), to: url, at: Self.second + pause, wall: 0) == nil)
        #expect(calls.statuses(at: 99 * Self.second).map(\.breaker) == [.closed])
    }

    @Test func breakersAreBounded() throws {
        var calls = IssuerCalls(seed: 1)
        for number in 0..<IssuerCalls.most { try calls.ask("http://i\(number)", at: Self.second) }
        #expect(calls.statuses(at: Self.second).count == IssuerCalls.most)
        // Those that stand open are not forgotten; of all others the next call knows nothing.
        for _ in 0..<5 { _ = calls.failed(IssuerFault(.closed, provablyUnsent: false), "http://i7", at: Self.second) }
        try calls.ask("http://new", at: Self.second)
        #expect(calls.statuses(at: Self.second).map(\.issuer) == ["http://i7", "http://new"])
    }

    @Test func anIssuersClockIsLearnedFromItsAnswers() throws {
        var calls = IssuerCalls(seed: 1)
        let url = try #require(IssuerURL("https://issuer:9100/token"))
        let date = Self.answer(200, [("Date", "Thu, 01 Jan 1970 00:10:00 GMT")])
        _ = calls.answered(date, to: url, at: Self.second, wall: 500_000)
        #expect(calls.skew(of: Origin(scheme: "https", host: "issuer", port: 9100)).seconds == 100)
        #expect(calls.skew(of: Origin(scheme: "https", host: "other", port: 9100)).seconds == 0)
    }

    /// A call counts that was begun before its issuer was forgotten.
    @Test func failuresCountAlsoForAnIssuerThatWasForgotten() throws {
        var calls = IssuerCalls(seed: 1)
        let url = try #require(IssuerURL(Self.origin + "/token"))
        var pauses = (0..<5).map { _ in calls.answered(Self.answer(503), to: url, at: Self.second, wall: 0) }
        #expect(pauses.last.map { $0 != nil } == true && pauses.dropLast().allSatisfy { $0 == nil })
        #expect(throws: IssuerFault.self) { try calls.ask(url.origin, at: Self.second) }
        pauses = (0..<5).map { _ in
            calls.failed(IssuerFault(.closed, provablyUnsent: false), "http://other", at: Self.second)
        }
        #expect(throws: IssuerFault.self) { try calls.ask("http://other", at: Self.second) }
    }

    /// Everything that is remembered stands open: a new issuer is not called, and nothing of the others is forgotten for it.
    @Test func issuersThatAreLeftAloneAreNotForgottenForANewOne() throws {
        var calls = IssuerCalls(seed: 1)
        for number in 0..<IssuerCalls.most {
            for _ in 0..<5 {
                _ = calls.failed(IssuerFault(.closed, provablyUnsent: false), "http://i\(number)", at: Self.second)
            }
        }
        let fault = #expect(throws: IssuerFault.self) { try calls.ask("http://new", at: Self.second) }
        #expect(fault == IssuerFault(.overloaded, provablyUnsent: true))
        #expect(calls.statuses(at: Self.second).count == IssuerCalls.most)
    }

    @Test func clocksAreBounded() throws {
        var calls = IssuerCalls(seed: 1)
        let date = Self.answer(200, [("Date", "Thu, 01 Jan 1970 00:10:00 GMT")])
        for number in 0...IssuerCalls.most {
            let url = try #require(IssuerURL("https://i\(number)/token"))
            _ = calls.answered(date, to: url, at: Self.second, wall: 500_000)
        }
        let last = ByteString("i\(IssuerCalls.most)")
        #expect(calls.skew(of: Origin(scheme: "https", host: last, port: 443)).seconds == 100)
        #expect(calls.skew(of: Origin(scheme: "https", host: "i0", port: 443)).seconds == 0)
    }
}
