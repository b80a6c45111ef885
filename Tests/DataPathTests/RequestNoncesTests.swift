import Testing

@testable import DataPath
@testable import Handshakes

/// The nonces that a request answers; only one kind of refusal judges its credential (docs/design/challenges.md#nonces).
@Suite struct RequestNoncesTests {
    private func answer(_ nonce: ServerNonce) throws -> NonceAnswer {
        NonceAnswer(nonce: nonce, count: try #require(nonce.use()), proof: nil)
    }

    @Test func onlyTheFirstAnswerToItsOwnChallengeIsJudged() throws {
        let older = ServerNonce(isStale: false)
        let own = ServerNonce(isStale: false)
        var nonces = RequestNonces()
        #expect(!nonces.isJudged && !nonces.isBare)
        nonces.sent(answering: nil)
        #expect(!nonces.isJudged && nonces.isBare)
        // The first use of a nonce that came to another request is no judgement: it may be older than it seems.
        nonces.sent(answering: try answer(older))
        #expect(!nonces.isJudged && !nonces.isBare)
        nonces.refused(with: own)
        #expect(nonces.own === own && nonces.answered == nil && !nonces.isJudged)
        nonces.sent(answering: try answer(own))
        #expect(nonces.isJudged)
        nonces.sent(answering: try answer(own))
        #expect(!nonces.isJudged)
    }

    /// Also where somebody else was quicker.
    @Test func theSecondUseOfItsOwnIsNot() throws {
        let own = ServerNonce(isStale: false)
        var nonces = RequestNonces()
        nonces.refused(with: own)
        _ = own.use()
        nonces.sent(answering: try answer(own))
        #expect(own.uses == 2 && !nonces.isJudged)
    }
}

@Suite struct UpstreamNoncesTests {
    private let origin = "https://a.example"

    @Test func theLastOneIsAnsweredUntilItIsForgotten() {
        var nonces = UpstreamNonces()
        let first = ServerNonce(isStale: false)
        let second = ServerNonce(isStale: false)
        #expect(nonces.lastAnswered(at: origin) == nil)
        nonces.noteAnswered(first, at: origin)
        nonces.noteAnswered(second, at: origin)
        nonces.noteAnswered(second, at: origin)
        // A refusal of an older one that came late takes nothing away.
        nonces.forget(first, at: origin)
        #expect(nonces.lastAnswered(at: origin) === second && nonces.lastAnswered(at: "https://b.example") == nil)
        nonces.forget(second, at: origin)
        #expect(nonces.lastAnswered(at: origin) == nil)
    }

    @Test func theirNumberIsBounded() {
        var nonces = UpstreamNonces()
        for number in 0..<256 { nonces.noteAnswered(ServerNonce(isStale: false), at: "\(number)") }
        let again = ServerNonce(isStale: false)
        nonces.noteAnswered(again, at: "0")
        #expect(nonces.lastAnswered(at: "0") === again && nonces.lastAnswered(at: "255") != nil)
        nonces.noteAnswered(again, at: "256")
        #expect(nonces.lastAnswered(at: "256") === again && nonces.lastAnswered(at: "0") == nil)
    }
}
