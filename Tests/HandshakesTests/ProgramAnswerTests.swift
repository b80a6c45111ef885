import Testing

@testable import Handshakes

@Suite struct ProgramAnswerTests {
    @Test(arguments: [
        ("1970-01-01T00:00:00Z", 0), ("2026-11-29T04:05:06Z", 1_795_925_106),
        ("2026-11-29t04:05:06.999999999z", 1_795_925_106),
        ("2026-11-29T05:05:06+01:00", 1_795_925_106), ("2026-11-28T20:05:06.5-08:00", 1_795_925_106),
        ("2026-11-28T24:00:00Z", 1_795_910_400), ("9999-12-31T23:59:60Z", 253_402_300_800),
        ("2024-02-29T00:00:00Z", 1_709_164_800),
    ])
    func `a time is read as it is meant`(_ text: String, _ seconds: Int64) {
        #expect(InternetTime.seconds(text.utf8) == seconds)
    }

    @Test(arguments: [
        "", "2026-11-29", "2026-11-29T04:05:06", "2026-11-29 04:05:06Z", "2026-13-29T04:05:06Z", "2026-00-29T04:05:06Z",
        "2026-11-32T04:05:06Z", "2026-11-31T04:05:06Z", "2026-02-29T04:05:06Z", "2024-02-30T04:05:06Z",
        "2026-11-29T25:05:06Z", "2026-11-29T04:60:06Z", "2026-11-29T04:05:61Z",
        "2026-11-29T04:05:06.Z", "2026-11-29T04:05:06+0100", "2026-11-29T04:05:06+24:00", "2026-11-29T04:05:06+01:60",
        "2026-11-29T04:05:06+01:0x", "2026-11-29T04:05:06ZZ", "-026-11-29T04:05:06Z", "２026-11-29T04:05:06Z",
        "2026-11-29T04:05:06.00000000000000000000000000000000000000Z",
    ])
    func `anything else is no time`(_ text: String) {
        #expect(InternetTime.seconds(text.utf8) == nil)
    }

    /// Each answer that can be cut out of a good one is either as good or a failure without a trace of the token.
    @Test func `no part of an answer tells its token`() throws {
        let token = "token-that-nobody-may-see"
        let whole = Array(#"{"token": "\#(token)", "expires_at": "2999-01-01T00:00:00Z", "n": [1, {"a": null}]}"#.utf8)
        for end in whole.indices {
            for flipped in [whole[..<end], whole[..<end] + [whole[end] ^ 0x20] + whole[(end + 1)...]] {
                do throws(GrantFailure) {
                    _ = try ProgramAnswer(Secret(Array(flipped)), begun: 1_795_925_106).token()
                } catch {
                    #expect(!"\(error)".contains(token) && !"\(error)".contains("nobody"))
                }
            }
        }
    }

    @Test func `a life is counted from the start of the program`() throws {
        let answer = Secret(#"{"token": "t", "expires_at": "1970-01-01T00:01:40Z"}"#)
        #expect(try ProgramAnswer(answer, begun: 40).token().lifetime == 60_000_000_000)
        #expect(throws: GrantFailure.self) { try ProgramAnswer(answer, begun: 100).token() }
    }
}
