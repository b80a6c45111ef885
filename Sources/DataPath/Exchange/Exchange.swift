internal import HotCache

/// A request of a caller on its way to an answer: a pure machine. Events go in, one action comes out; it holds no socket, no clock and
/// no bytes. `CallerConnection` is its interpreter, `RequestPhases.swift` says in which order things happen and why.
///
/// ```
/// idle ──routed──▶ waiting ──granted──▶ connecting ──connected──▶ asking ──answered──▶ relaying ──completed──▶ idle
///                     ▲                    ▲   ▲                     │
///                     │                    │   └──── lost (pooled) ──┤
///                     └── (cold: parked) ──┴──── verdict ── parked ◀─┘ challenged
/// ```
///
/// A credential that authenticates a connection is waited for when there is one: `connecting ──connected──▶ waiting ──granted──▶ connecting`.
package struct Exchange: ~Copyable {
    private(set) var phase = Phase.idle
    /// How the request carries, or does not carry, a credential.
    private(set) var credential = Credential.none
    /// The one replay of this request has been used.
    private(set) var replayed = false
    /// The one retry on a fresh connection has been used.
    private(set) var retried = false
    /// The one retry at another address has been used, for this request and its replay together.
    private(set) var moved = false
    /// The identity was chosen by an answer to this very request: a credential that is refused then is not followed by another identity's.
    private var hasChosen = false
    /// How often the upstream has given the request back without a look at it.
    private var refusals = 0
    /// How often the token left the cache while the request waited for its connection.
    private var withdrawals = 0
    /// The request cannot be sent again, or has been: whatever the keeper says of its challenge, the held answer is the last.
    private(set) var isFinal = false
    /// How often the upstream could not take it at that moment.
    private(set) var conflicts = 0
    /// The one request that only the server's nonce was missing from has been sent again.
    private(set) var renonced = false
    /// A connection was lost under such a request, which has to be given another nonce.
    private var lostNonce = false
    /// The credential authenticates the connection that the request goes out on, and is obtained when there is one: another connection wants
    /// another credential.
    private var isBound = false
    /// The number of times that a request is sent again after conflicts, at most: over some three seconds.
    static let mostConflicts = 6
    /// The number of times that a request asks for another token because the one it had left the cache before it could be sent, at most.
    /// Each may have been refused elsewhere: in a burst on a path that refuses every token two are withdrawn, and the third stays, since
    /// the keeper makes no more grants for that path (docs/design/tokens.md#rule-3).
    static let mostWithdrawals = 2
    /// The number of times that a request is sent again after the upstream has given it back unprocessed (RFC 9113 §8.7), at most. A new
    /// connection takes many requests before it is known how many the server wants at once, and the next one may be as new.
    static let mostRefusals = 3

    var replay = ReplayPolicy.never
    var body = RequestBody.none
    /// The method may be sent twice without harm (RFC 9110 §9.2.2).
    var idempotent = false

    enum Phase: UInt8, Sendable { case idle, waiting, connecting, asking, parked, pausing, relaying }

    enum Credential: Equatable, Sendable {
        /// The route uses no identity, or one whose certificate the TLS layer shows.
        case none
        /// Sent without one: the scout of a cold key, or a path learned as open.
        case bare(scout: Bool)
        /// Bytes that the keeper handed to this request alone.
        case carried(slot: Slot, generation: UInt64)
        /// Obtained for the connection, once there is one.
        case awaitsConnection
        /// The token of `slot`, in the generation that was spliced in.
        case token(slot: Slot, generation: UInt64)

        /// The slot and the generation of the token that was sent, for the keeper to compare.
        var sent: (slot: Slot, generation: UInt64)? {
            switch self {
            case .none, .bare, .awaitsConnection: nil
            case .carried(let slot, let generation), .token(let slot, let generation): (slot, generation)
            }
        }
    }

    package enum ReplayPolicy: Sendable { case never, once }

    enum RequestBody: Sendable {
        case none
        /// Everything that was received of it is still at hand.
        case retained
        /// Some of it has been forwarded and is gone: the request cannot be sent again.
        case lost
    }

    enum Event: Sendable {
        /// The route is known and the desk was asked for a token.
        case routed(Lookup)
        /// A wait for a token ended.
        case granted(Credential)
        // Faults stand behind a reference: with one in it, every event and action would be handed on as seven words.
        indirect case refused(Fault)
        case connected
        /// The token left the hot cache between the lookup and the connection; nothing has been sent.
        case withdrawn(slot: Slot)
        /// The final answer's head arrived.
        case answered(Judgement)
        /// The keeper's word on a challenge that was reported.
        case verdict(Verdict)
        /// The pause after a conflict is over.
        case rested
        /// The upstream's connection failed before the answer's head was complete.
        /// - elsewhere: another address of the upstream may be had.
        indirect case lost(Fault, pooled: Bool, elsewhere: Bool = false)
        /// The probe that was sent in the request's place has shown what it could; the request itself goes out.
        case probed
        case completed
    }

    enum Lookup: Equatable, Sendable {
        case unneeded
        case ready(slot: Slot, generation: UInt64)
        case open
        /// No token that may be served: one is to be had from the keeper.
        case missing(slot: Slot)
        /// Which realm guards this path is not known yet.
        case cold
        /// The credential authenticates a connection.
        case bound
    }

    enum Judgement: Equatable, Sendable {
        case answer
        case challenge
        /// Neither the request nor the credential is to blame.
        case conflict
        /// The credential lacked the server's nonce, which has come with this answer (RFC 9449 §9, RFC 7616 §3.3).
        case nonce
        /// The answer carries the server's token of a negotiation, to which the keeper's is the next, or which proves who the server is.
        case negotiation
        /// Another identity of the route answers what the answer offers; the exchange is on its plan already.
        case offer
        /// The answer shows that the identity cannot work as configured.
        indirect case misconfigured(Fault)
    }

    enum Verdict: Sendable {
        case replay(Credential)
        /// The next token of a negotiation: the request goes out again, on the same connection.
        case proceed(Credential)
        /// There is nothing better to send: the upstream's refusal stands.
        case final
        /// The held answer goes to the caller as received.
        case pass
        indirect case fault(Fault)
    }

    enum Action: Equatable, Sendable {
        case none
        case askToken(slot: Slot)
        case parkCold
        /// Get a connection, from the pool unless `fresh`.
        case connect(fresh: Bool)
        case send
        case relay
        /// Tell the keeper of the challenge and hold the answer until its verdict.
        case reportAndPark
        /// Hold the answer for a moment, then send the request again; which conflict it is, from 0.
        case pause(Int)
        /// The scout met no challenge: tell the keeper, relay.
        case reportOpenAndRelay
        /// The held answer goes to the caller after all, or a fault in its place: the route's `final` decides.
        case refuseFinally
        /// The request begins anew with another identity's credential.
        case seekToken
        indirect case fault(Fault)
        case finish
    }

    /// Whether another identity may answer what the upstream offers.
    var mayAnswerOffer: Bool { !hasChosen && !replayed && replay == .once && body != .lost }

    /// Another identity answers.
    /// - Parameter again: the request may go out once more, by that identity's own rules.
    mutating func choose(again: Bool) {
        hasChosen = true
        replayed = !again
        // The former identity's business, as a loss is.
        isBound = false
        loseNonce()
    }

    /// Whether a request that lacked a nonce is sent again with it.
    var mayAnswerNonce: Bool { !renonced && replay == .once && body != .lost }

    // MARK: - Behaviour

    /// The way of a hit stands here alone, and is a part of its callers, who all name their event: that costs a hit some hundred instructions
    /// less.
    @inline(__always) mutating func on(_ event: Event) -> Action {
        switch (phase, event) {
        case (.idle, .routed(let lookup)):
            return routed(lookup)

        case (.connecting, .connected):
            phase = isBound && credential == .awaitsConnection ? .waiting : .asking
            return phase == .asking ? .send : .parkCold

        case (.asking, .answered(let judgement)):
            return answered(judgement)

        case (.relaying, .completed):
            phase = .idle
            return .finish

        default:
            return onRarer(event)
        }
    }

    @inline(never) private mutating func onRarer(_ event: Event) -> Action {
        switch (phase, event) {
        case (.waiting, .granted(let credential)):
            self.credential = credential
            phase = .connecting
            return .connect(fresh: false)

        // The upstream's challenge is for a person: the caller cannot answer it, however often its request may be sent.
        case (.parked, .verdict(.fault(let fault))) where isFinal && fault.kind == .interactionRequired:
            return end(with: fault)

        case (.parked, .refused) where isFinal, (.parked, .verdict) where isFinal:
            return giveHeldAnswer()

        case (.waiting, .refused(let fault)), (.parked, .refused(let fault)):
            return end(with: fault)

        case (.asking, .withdrawn(let slot)):
            guard withdrawals < Self.mostWithdrawals else {
                return end(
                    with: Fault(.issuerUnavailable, retryAfter: 1, detail: "tokens expire before they can be used"))
            }
            withdrawals += 1
            loseNonce()
            phase = .waiting
            return .askToken(slot: slot)

        case (.connecting, .lost(let fault, _, _)), (.waiting, .lost(let fault, _, _)):
            return lostBeforeRequest(fault)

        case (.asking, .lost(let fault, _, _))
        where fault.retry == .unsent && body != .lost && refusals < Self.mostRefusals:
            refusals += 1
            loseNonce()
            return connectAnew()

        case (.asking, .lost(let fault, let pooled, let elsewhere)):
            // A pooled connection that dies without a byte was, most often, closed by the server while it was idle: the request was
            // not seen. A new one that dies so took the request, and its server is likely gone: at the same address that says enough,
            // at another one the request may still be served, once, so that one which kills servers does not meet them all.
            guard !retried, pooled || elsewhere && !moved, mayRepeat(after: fault) else { return end(with: fault) }
            retried = true
            if !pooled { moved = true }
            loseNonce()
            return connectAnew()

        case (.parked, .verdict(let verdict)):
            return follow(verdict)

        case (.pausing, .rested):
            retried = false
            if isBound { credential = .awaitsConnection }
            phase = .connecting
            return .connect(fresh: false)

        case (.asking, .probed), (.relaying, .probed):
            phase = .connecting
            return .connect(fresh: false)

        default:
            // An event that outlived its phase: a verdict for a request whose caller is gone, a second loss.
            return .none
        }
    }

    private mutating func giveHeldAnswer() -> Action {
        phase = .relaying
        return replayed ? .refuseFinally : .relay
    }

    private mutating func follow(_ verdict: Verdict) -> Action {
        switch verdict {
        case .replay(let credential):
            self.credential = credential
            replayed = true
            retried = false
            phase = .connecting
            return .connect(fresh: false)
        case .proceed(let credential):
            self.credential = credential
            phase = .connecting
            return .connect(fresh: false)
        case .final:
            phase = .relaying
            return .refuseFinally
        case .pass:
            phase = .relaying
            return .relay
        case .fault(let fault):
            return end(with: fault)
        }
    }

    /// A connection was lost while its request waited for it, or for the credential that is made for it.
    private mutating func lostBeforeRequest(_ fault: Fault) -> Action {
        // A loss before there was a connection means that nobody can be reached.
        let hadConnection = isBound && (phase == .waiting || credential != .awaitsConnection)
        guard hadConnection else { return phase == .waiting ? .none : end(with: fault) }
        // A server that ends each connection in that time is not tried for ever.
        guard !retried else { return end(with: fault) }
        retried = true
        return connectAnew()
    }

    /// The generation that was spliced into the head; the lookup's may have been replaced since.
    mutating func spliced(generation: UInt64) {
        if case .token(let slot, _) = credential { credential = .token(slot: slot, generation: generation) }
    }

    /// The server may count the answer that was lost or not, so that the next number is right or wrong; another nonce has none. Once, since a
    /// server that loses connections would have the request sent for ever.
    mutating func loseNonce() {
        guard renonced, !lostNonce else { return }
        (renonced, lostNonce) = (false, true)
    }

    /// The nonce was answered where its server may not have known it.
    mutating func answerNonceAgain() { renonced = false }

    /// Most often unseen is not surely unseen: of what may have been seen only idempotent requests are sent again (RFC 9110 §9.2.2), and
    /// none with a credential on trial, which may have been judged.
    private func mayRepeat(after fault: Fault) -> Bool {
        guard body != .lost else { return false }
        switch fault.retry {
        // A request that was given back unseen is counted by `refusals`, and has had its turns.
        case .never, .unsent: return false
        case .ifRepeatable:
            // An answer to a nonce on the nonce's own connection is sent once more, or a server that ends its connections without a word
            // would never be answered.
            if case .carried = credential, !renonced, !isBound { return false }
            return idempotent
        }
    }

    /// The credential that was obtained for a connection is lost with it.
    private mutating func connectAnew() -> Action {
        if isBound { credential = .awaitsConnection }
        phase = .connecting
        return .connect(fresh: true)
    }

    private mutating func routed(_ lookup: Lookup) -> Action {
        switch lookup {
        case .unneeded:
            credential = .none
        case .open:
            credential = .bare(scout: false)
        case .ready(let slot, let generation):
            credential = .token(slot: slot, generation: generation)
        case .bound:
            isBound = true
            credential = .awaitsConnection
        case .missing(let slot):
            phase = .waiting
            return .askToken(slot: slot)
        case .cold:
            phase = .waiting
            return .parkCold
        }
        phase = .connecting
        return .connect(fresh: false)
    }

    private mutating func answered(_ judgement: Judgement) -> Action {
        switch judgement {
        case .misconfigured(let fault):
            return end(with: fault)
        case .answer:
            phase = .relaying
            return credential == .bare(scout: true) ? .reportOpenAndRelay : .relay
        case .conflict:
            guard replay == .once, body != .lost, conflicts < Self.mostConflicts else {
                phase = .relaying
                return .relay
            }
            conflicts += 1
            phase = .pausing
            return .pause(conflicts - 1)
        case .nonce where renonced:
            phase = .relaying
            return .refuseFinally
        case .nonce:
            guard mayAnswerNonce else {
                phase = .relaying
                return .relay
            }
            // Not the replay: the credential was not judged, and the keeper has no part in it.
            renonced = true
            retried = false
            phase = .connecting
            return .connect(fresh: false)
        case .negotiation:
            phase = .parked
            return .reportAndPark
        case .offer:
            retried = false
            phase = .idle
            return .seekToken
        case .challenge where credential == .none:
            // The credential that was refused stands in the connection, and there is nothing else to send.
            phase = .relaying
            return .refuseFinally
        case .challenge:
            // Also where the caller is refused anyway: his next request, sent at once, must not meet the token that was refused.
            isFinal = replayed || replay != .once || body == .lost
            phase = .parked
            return .reportAndPark
        }
    }

    private mutating func end(with fault: Fault) -> Action {
        phase = .relaying
        return .fault(fault)
    }
}
