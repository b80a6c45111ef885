import Testing

@testable import DataPath
@testable import Handshakes

/// The nonces that a request answers; only one kind of refusal judges its credential (docs/design/challenges.md#nonces).
@Suite struct RequestNoncesTests {
    private func answer(_ nonce: ServerNonce) throws -> NonceAnswer {
        NonceAnswer(nonce: nonce, count: try #require(nonce.use()), proof: nil)
    }

    @Test func onlyAnAnswerToItsOwnChallengeIsJudged() throws {
        let older = ServerNonce(isStale: false)
        let own = ServerNonce(isStale: false)
        let nonces = RequestNonces()
        #expect(!nonces.isJudged && !nonces.isBare)
        nonces.sent(answering: nil, at: nil)
        #expect(!nonces.isJudged && nonces.isBare)
        // The first use of a nonce that came to another request is no judgement: it may be older than it seems.
        nonces.sent(answering: try answer(older), at: nil)
        #expect(!nonces.isJudged && !nonces.isBare)
        nonces.refused(with: own, at: nil)
        #expect(nonces.own === own && nonces.answered == nil && !nonces.isJudged)
        nonces.sent(answering: try answer(own), at: nil)
        #expect(nonces.isJudged)
        nonces.lost()
        #expect(nonces.own == nil && nonces.answered == nil && !nonces.isJudged)
    }

    /// The nonce is everybody's then.
    @Test func onceTakenItIsNotItsOwn() throws {
        let own = ServerNonce(isStale: false)
        let nonces = RequestNonces()
        nonces.refused(with: own, at: nil)
        nonces.sent(answering: try answer(own), at: nil)
        nonces.taken()
        #expect(nonces.own == nil && nonces.answered != nil && !nonces.isJudged)
    }

    /// A server that did not give the nonce refuses it, and not the credential.
    @Test func anotherServerDoesNotJudge() throws {
        let (server, another) = (Server(), Server())
        let place = ObjectIdentifier(server)
        let own = ServerNonce(isStale: false)
        for (address, isJudged) in [(place, true), (ObjectIdentifier(another), false), (nil, true)] {
            let nonces = RequestNonces()
            nonces.refused(with: own, at: place)
            nonces.sent(answering: try answer(own), at: address)
            #expect(nonces.isJudged == isJudged)
        }
    }

    private final class Server {}
}

@Suite struct UpstreamNoncesTests {
    private let origin = "https://a.example"

    private func identity() throws -> IdentityPlan {
        IdentityPlan(
            index: 0, name: "a", handshake: try BasicHandshake(username: "u"), acquireTimeout: 1, reportsSuccess: true,
            resourceFromCaller: false, isTokenless: false, statuses: nil)
    }

    private func known(_ nonce: ServerNonce = ServerNonce(isStale: false)) throws -> KnownNonce {
        KnownNonce(nonce, of: try identity(), generation: 1)
    }

    /// The first answer as another user, or with another secret, is to be one that is judged.
    @Test func aNonceServesItsIdentityAndSecret() throws {
        let identity = try identity()
        let known = KnownNonce(ServerNonce(isStale: false), of: identity, generation: 7)
        #expect(known.serves(identity) && known.serves(identity, generation: 7))
        let other = try self.identity()
        #expect(!known.serves(identity, generation: 8) && !known.serves(other, generation: 7) && !known.serves(other))
    }

    @Test func theLastOneIsAnsweredUntilItIsForgotten() throws {
        var nonces = UpstreamNonces()
        let (first, second) = (try known(), try known())
        #expect(nonces.lastAnswered(at: origin) == nil)
        nonces.noteAnswered(first, at: origin)
        nonces.noteAnswered(second, at: origin)
        // A refusal of an older one that came late takes nothing away.
        nonces.forget(first.nonce, at: origin)
        #expect(nonces.lastAnswered(at: origin) === second && nonces.lastAnswered(at: "https://b.example") == nil)
        nonces.forget(second.nonce, at: origin)
        #expect(nonces.lastAnswered(at: origin) == nil)
    }

    @Test func aSilentEndIsDoubted() throws {
        var nonces = UpstreamNonces()
        let origin = "https://a.example"
        #expect(!nonces.doubtSilence(at: origin, isRepeatable: true) && !nonces.endSilently(at: origin))
        for _ in 0..<3 {
            nonces.noteSilentEnd(at: origin)
            #expect(nonces.endSilently(at: origin))
            #expect(nonces.doubtSilence(at: origin, isRepeatable: true) && !nonces.endSilently(at: origin))
        }
    }

    @Test func whereARequestIsLostWithItsConnectionASilentEndIsDoubtedEverySecondTime() throws {
        var nonces = UpstreamNonces()
        let origin = "https://a.example"
        for isDoubted in [true, false, true] {
            nonces.noteSilentEnd(at: origin)
            #expect(nonces.doubtSilence(at: origin, isRepeatable: false) == isDoubted)
            #expect(!nonces.endSilently(at: origin))
        }
        nonces.noteSilentEnd(at: origin)
        nonces.noteAnswered(try known(), at: origin)
        #expect(nonces.endSilently(at: origin) && nonces.doubtSilence(at: origin, isRepeatable: false))
    }

    @Test func theirNumberIsBounded() throws {
        var nonces = UpstreamNonces()
        for number in 0..<256 {
            nonces.noteAnswered(try known(), at: "\(number)")
            nonces.noteSilentEnd(at: "\(number)")
        }
        let again = try known()
        nonces.noteAnswered(again, at: "0")
        #expect(nonces.lastAnswered(at: "0") === again && nonces.lastAnswered(at: "255") != nil)
        #expect(nonces.endSilently(at: "0") && !nonces.endSilently(at: "256"))
        nonces.noteAnswered(again, at: "256")
        nonces.noteSilentEnd(at: "256")
        #expect(nonces.lastAnswered(at: "256") === again && nonces.lastAnswered(at: "0") == nil)
        #expect(nonces.endSilently(at: "256") && !nonces.endSilently(at: "0"))
    }
}
