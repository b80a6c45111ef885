import Testing

@testable import GSSAPI
@testable import Handshakes

@Suite struct KDCSilenceTests {
    private static let fault = GSSFault(.tooLate, "no answer of a KDC in time")

    private func rests(_ silence: KDCSilence, _ user: String?, at now: Int64 = 1, server: String = "s") -> Bool {
        silence.fault(at: server, of: user, now: now) != nil
    }

    @Test func oneUsersSilenceIsNotEverybodys() {
        var silence = KDCSilence()
        silence.note(Self.fault, at: "s", of: "anna", now: 0)
        #expect(rests(silence, "anna") && !rests(silence, "bert") && !rests(silence, nil))
        silence.note(Self.fault, at: "s", of: "anna", now: 1)
        #expect(!rests(silence, "bert") && !rests(silence, "anna", server: "t"))
        // Two spellings of one text are two users.
        silence.note(Self.fault, at: "t", of: "\u{E9}", now: 0)
        #expect(!rests(silence, "e\u{301}", server: "t"))
    }

    @Test func theSecondUsersIs() {
        var silence = KDCSilence()
        silence.note(Self.fault, at: "s", of: "anna", now: 0)
        silence.note(Self.fault, at: "s", of: "bert", now: 10_000)
        #expect(rests(silence, "zoe", at: 39_999) && rests(silence, nil, at: 39_999))
        #expect(!rests(silence, "zoe", at: 40_000) && !rests(silence, "anna", at: 40_000))
        // Long after the first one it is one user's again.
        silence.note(Self.fault, at: "s", of: "carl", now: 50_000)
        #expect(!rests(silence, "zoe", at: 50_001))
        silence.note(Self.fault, at: "s", of: nil, now: 50_000)
        #expect(rests(silence, "zoe", at: 50_001))
    }

    @Test func anAnswerEndsIt() {
        var silence = KDCSilence()
        for user in ["anna", "bert"] { silence.note(Self.fault, at: "s", of: user, now: 0) }
        silence.end(at: "s", of: "zoe")
        #expect(!rests(silence, "zoe") && rests(silence, "anna"))
        silence.end(at: "s", of: "anna")
        #expect(!rests(silence, "anna"))
    }

    @Test func theirNumberIsBounded() {
        var silence = KDCSilence()
        for number in 0..<5000 { silence.note(Self.fault, at: "s\(number)", of: nil, now: 0) }
        #expect(rests(silence, nil, server: "s4999") && !rests(silence, nil, server: "s0"))
    }
}
