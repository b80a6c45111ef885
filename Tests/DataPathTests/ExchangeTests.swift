import HotCache
import Testing

@testable import DataPath

private let cache = HotCache(readers: 1, slots: 8, byteLimit: 4096)
private let slot = cache.allocateSlot() ?? .nowhere
private let other = cache.allocateSlot() ?? .nowhere
private let token = Exchange.Credential.token(slot: slot, generation: 7)
private let closed = Fault(.upstreamClosed, retry: .ifRepeatable)
private let refused = Fault(.upstreamRefused, retry: .unsent)
private let timeout = Fault(.tokenTimeout)

/// A request as the phases before the token leave it, and what happened to it since.
private struct Story: Sendable, CustomTestStringConvertible {
    var replay = Exchange.ReplayPolicy.once
    var body = Exchange.RequestBody.none
    var idempotent = true
    var events: [Exchange.Event] = []

    var testDescription: String { "\(replay), \(body), \(idempotent), after \(events.count) events" }

    func then(_ more: Exchange.Event...) -> Story {
        var story = self
        story.events += more
        return story
    }

    static let idle = Story()
    static let waiting = Story().then(.routed(.missing(slot: slot)))
    static let connecting = Story().then(.routed(.ready(slot: slot, generation: 7)))
    static let asking = connecting.then(.connected)
    static let parked = asking.then(.answered(.challenge))
    static let pausing = asking.then(.answered(.conflict))
    static let relaying = asking.then(.answered(.answer))
    static let scout = Story().then(.routed(.cold), .granted(.bare(scout: true)), .connected)

    static let replaying = parked.then(.verdict(.replay(token)))
    static let askingAgain = replaying.then(.connected)
    static let refusedAgain = askingAgain.then(.answered(.challenge))
    /// A request that cannot be sent again, challenged.
    static let final = asking.with(body: .lost).then(.answered(.challenge))

    /// The machine at the end of the story.
    func machine() -> Exchange {
        var exchange = Exchange()
        exchange.replay = replay
        exchange.body = body
        exchange.idempotent = idempotent
        for event in events { _ = exchange.on(event) }
        return exchange
    }

    func with(replay: Exchange.ReplayPolicy) -> Story { change { $0.replay = replay } }
    func with(body: Exchange.RequestBody) -> Story { change { $0.body = body } }
    func with(idempotent: Bool) -> Story { change { $0.idempotent = idempotent } }

    private func change(_ body: (inout Story) -> Void) -> Story {
        var story = self
        body(&story)
        return story
    }
}

private struct Row: Sendable, CustomTestStringConvertible {
    let name: String
    let before: Story
    let event: Exchange.Event
    let action: Exchange.Action
    let phase: Exchange.Phase

    init(
        _ name: String, _ before: Story, _ event: Exchange.Event, _ action: Exchange.Action, _ phase: Exchange.Phase
    ) {
        self.name = name
        self.before = before
        self.event = event
        self.action = action
        self.phase = phase
    }

    var testDescription: String { name }
}

@Suite struct ExchangeTests {
    @Test(arguments: [
        // Routed: where the credential comes from decides whether there is a wait.
        Row("no identity", .idle, .routed(.unneeded), .connect(fresh: false), .connecting),
        Row("open path", .idle, .routed(.open), .connect(fresh: false), .connecting),
        Row("hit", .idle, .routed(.ready(slot: slot, generation: 7)), .connect(fresh: false), .connecting),
        Row("miss", .idle, .routed(.missing(slot: slot)), .askToken(slot: slot), .waiting),
        Row("cold", .idle, .routed(.cold), .parkCold, .waiting),
        // Waiting.
        Row("granted", .waiting, .granted(token), .connect(fresh: false), .connecting),
        Row("refused", .waiting, .refused(timeout), .fault(timeout), .relaying),
        // Connecting: what cannot be reached has been tried at every address already.
        Row("connected", .connecting, .connected, .send, .asking),
        Row("unreachable", .connecting, .lost(refused, pooled: false), .fault(refused), .relaying),
        // Asking.
        Row("withdrawn", .asking, .withdrawn(slot: slot), .askToken(slot: slot), .waiting),
        Row("answer", .asking, .answered(.answer), .relay, .relaying),
        Row("misconfigured", .asking, .answered(.misconfigured(timeout)), .fault(timeout), .relaying),
        Row("challenge", .asking, .answered(.challenge), .reportAndPark, .parked),
        Row("challenge, body kept", .asking.with(body: .retained), .answered(.challenge), .reportAndPark, .parked),
        Row("challenge, body lost", .asking.with(body: .lost), .answered(.challenge), .reportAndPark, .parked),
        Row("challenge, never", .asking.with(replay: .never), .answered(.challenge), .reportAndPark, .parked),
        Row("a scout's answer", .scout, .answered(.answer), .reportOpenAndRelay, .relaying),
        Row("a scout's challenge", .scout, .answered(.challenge), .reportAndPark, .parked),
        Row(
            "a scout's challenge, body lost", .scout.with(body: .lost), .answered(.challenge), .reportAndPark,
            .parked),
        // Parked.
        Row("replay", .parked, .verdict(.replay(token)), .connect(fresh: false), .connecting),
        Row("final", .parked, .verdict(.final), .refuseFinally, .relaying),
        Row("pass", .parked, .verdict(.pass), .relay, .relaying),
        Row("no token", .parked, .verdict(.fault(timeout)), .fault(timeout), .relaying),
        Row("verdict late", .parked, .refused(timeout), .fault(timeout), .relaying),
        // What cannot be sent again waits for the keeper too, but gets its own answer whatever the word is.
        Row("not again: replay", .final, .verdict(.replay(token)), .relay, .relaying),
        Row("not again: final", .final, .verdict(.final), .relay, .relaying),
        Row("not again: no token", .final, .verdict(.fault(timeout)), .relay, .relaying),
        Row("not again: verdict late", .final, .refused(timeout), .relay, .relaying),
        // A conflict is nobody's refusal: it costs neither the token nor the replay.
        Row("conflict", .asking, .answered(.conflict), .pause(0), .pausing),
        Row("conflict, body lost", .asking.with(body: .lost), .answered(.conflict), .relay, .relaying),
        Row("conflict, never", .asking.with(replay: .never), .answered(.conflict), .relay, .relaying),
        Row("rested", .pausing, .rested, .connect(fresh: false), .connecting),
        Row(
            "challenged after it", .pausing.then(.rested, .connected), .answered(.challenge), .reportAndPark, .parked),
        Row("a conflict of the replay", .askingAgain, .answered(.conflict), .pause(0), .pausing),
        // Nor is a nonce that was missing, once.
        Row("nonce", .asking, .answered(.nonce), .connect(fresh: false), .connecting),
        Row("nonce, body lost", .asking.with(body: .lost), .answered(.nonce), .relay, .relaying),
        Row("nonce, never", .asking.with(replay: .never), .answered(.nonce), .relay, .relaying),
        Row(
            "lost with a nonce", .asking.then(.answered(.nonce), .connected), .lost(closed, pooled: true),
            .connect(fresh: true), .connecting),
        // Whether the server counts the answer that was lost nobody knows: it may ask for another one, once.
        Row(
            "a nonce after a loss",
            .asking.then(.answered(.nonce), .connected, .lost(closed, pooled: true), .connected), .answered(.nonce),
            .connect(fresh: false), .connecting),
        Row(
            "a nonce after two losses",
            .asking.then(
                .answered(.nonce), .connected, .lost(closed, pooled: true), .connected, .answered(.nonce), .connected,
                .lost(closed, pooled: true), .connected), .answered(.nonce), .refuseFinally, .relaying),
        Row("a nonce for the replay", .askingAgain, .answered(.nonce), .connect(fresh: false), .connecting),
        Row(
            "a second nonce", .asking.then(.answered(.nonce), .connected), .answered(.nonce), .refuseFinally,
            .relaying),
        Row(
            "challenged with the nonce", .asking.then(.answered(.nonce), .connected), .answered(.challenge),
            .reportAndPark, .parked),
        // One replay and no more.
        Row("refused again", .askingAgain, .answered(.challenge), .reportAndPark, .parked),
        Row("refused again: pass", .refusedAgain, .verdict(.pass), .refuseFinally, .relaying),
        Row("refused again: replay", .refusedAgain, .verdict(.replay(token)), .refuseFinally, .relaying),
        Row("refused again: no token", .refusedAgain, .verdict(.fault(timeout)), .refuseFinally, .relaying),
        Row("refused again: verdict late", .refusedAgain, .refused(timeout), .refuseFinally, .relaying),
        Row("accepted at last", .askingAgain, .answered(.answer), .relay, .relaying),
        Row("the replay's token left", .askingAgain, .withdrawn(slot: other), .askToken(slot: other), .waiting),
        // Relaying.
        Row("done", .relaying, .completed, .finish, .idle),
    ])
    private func answersAnEvent(_ row: Row) {
        var exchange = row.before.machine()
        #expect(exchange.on(row.event) == row.action)
        #expect(exchange.phase == row.phase)
    }

    @Test func aConflictWithoutEndIsRelayed() {
        var exchange = Story.asking.machine()
        for number in 0..<6 {
            #expect(exchange.on(.answered(.conflict)) == .pause(number))
            #expect(exchange.on(.rested) == .connect(fresh: false))
            _ = exchange.on(.connected)
        }
        #expect(exchange.on(.answered(.conflict)) == .relay && exchange.phase == .relaying)
    }

    struct Loss: Sendable {
        var pooled = true
        var elsewhere = false
        var idempotent = true
        var body = Exchange.RequestBody.none
        var fault = closed
        var retried: Bool
    }

    /// A pooled connection may have been closed by the server before the request came; only what may be repeated is.
    @Test(arguments: [
        Loss(retried: true),
        Loss(body: .retained, retried: true),
        Loss(body: .lost, retried: false),
        Loss(pooled: false, retried: false),
        // A new connection's server took the request and is gone: only another address may still serve it.
        Loss(pooled: false, elsewhere: true, retried: true),
        Loss(pooled: false, elsewhere: true, body: .retained, retried: true),
        Loss(pooled: false, elsewhere: true, body: .lost, retried: false),
        Loss(pooled: false, elsewhere: true, idempotent: false, retried: false),
        Loss(pooled: false, elsewhere: true, fault: Fault(.upstreamClosed), retried: false),
        Loss(idempotent: false, retried: false),
        Loss(idempotent: false, body: .retained, retried: false),
        Loss(fault: Fault(.upstreamClosed), retried: false),
    ])
    func retriesOnAFreshConnection(_ loss: Loss) {
        var exchange = Story.asking.with(idempotent: loss.idempotent).with(body: loss.body).machine()
        let action = exchange.on(.lost(loss.fault, pooled: loss.pooled, elsewhere: loss.elsewhere))
        #expect(action == (loss.retried ? .connect(fresh: true) : .fault(loss.fault)))
        #expect(exchange.phase == (loss.retried ? .connecting : .relaying))
        #expect(exchange.retried == loss.retried)
        guard loss.retried else { return }
        #expect(exchange.on(.connected) == .send)
        #expect(
            exchange.on(.lost(closed, pooled: true, elsewhere: true)) == .fault(closed), "the retry was the only one")
    }

    /// A server that gives a request back has not looked at it, whatever its method: it may go out again, but not for ever.
    @Test(arguments: [true, false])
    func sendsARequestThatWasGivenBackThreeTimesMore(pooled: Bool) {
        var exchange = Story.asking.with(idempotent: false).machine()
        for _ in 0..<3 {
            #expect(exchange.on(.lost(refused, pooled: pooled)) == .connect(fresh: true))
            #expect(exchange.retried == false, "the retry after a stale connection is still there")
            #expect(exchange.on(.connected) == .send)
        }
        #expect(exchange.on(.lost(refused, pooled: pooled, elsewhere: true)) == .fault(refused))
    }

    @Test func doesNotSendAgainWhatIsGone() {
        var exchange = Story.asking.with(body: .lost).machine()
        #expect(exchange.on(.lost(refused, pooled: true)) == .fault(refused))
    }

    /// A server that ends when it sees the request would otherwise be met by the replay and its retry too.
    @Test func movesElsewhereOnceInAll() {
        var exchange = Story.asking.machine()
        #expect(exchange.on(.lost(closed, pooled: false, elsewhere: true)) == .connect(fresh: true))
        _ = exchange.on(.connected)
        #expect(exchange.on(.answered(.challenge)) == .reportAndPark)
        #expect(exchange.on(.verdict(.replay(token))) == .connect(fresh: false))
        _ = exchange.on(.connected)
        #expect(exchange.on(.lost(closed, pooled: false, elsewhere: true)) == .fault(closed))
    }

    /// A secret on trial may have been judged.
    @Test(arguments: [true, false])
    func neverSendsASecretOnTrialAgain(pooled: Bool) {
        var exchange = Story.idle.with(idempotent: true).machine()
        _ = exchange.on(.routed(.missing(slot: slot)))
        _ = exchange.on(.granted(.carried(slot: slot, generation: 7)))
        _ = exchange.on(.connected)
        #expect(exchange.on(.lost(closed, pooled: pooled, elsewhere: true)) == .fault(closed))
    }

    /// The retry belongs to the sending, the replay to the request: a replay may meet a stale connection too.
    @Test func aReplayHasARetryOfItsOwn() {
        var exchange = Story.asking.machine()
        #expect(exchange.on(.lost(closed, pooled: true)) == .connect(fresh: true))
        _ = exchange.on(.connected)
        #expect(exchange.on(.answered(.challenge)) == .reportAndPark)
        #expect(exchange.on(.verdict(.replay(token))) == .connect(fresh: false))
        #expect(exchange.replayed && !exchange.retried)
        _ = exchange.on(.connected)
        #expect(exchange.on(.lost(closed, pooled: true)) == .connect(fresh: true))
        _ = exchange.on(.connected)
        #expect(exchange.on(.answered(.challenge)) == .reportAndPark && exchange.isFinal, "still the replay")
    }

    /// The tokens of others' requests may have been refused twice meanwhile; a third that is gone has expired.
    @Test func isWithdrawnTwice() {
        var exchange = Story.asking.machine()
        for _ in 1...Exchange.mostWithdrawals {
            #expect(exchange.on(.withdrawn(slot: slot)) == .askToken(slot: slot))
            _ = exchange.on(.granted(token))
            _ = exchange.on(.connected)
        }
        let action = exchange.on(.withdrawn(slot: slot))
        guard case .fault(let fault) = action else {
            Issue.record("\(action)")
            return
        }
        #expect(fault.kind == .issuerUnavailable && exchange.phase == .relaying)
    }

    /// Every event outside the phases that it is for: its exchange went on without it.
    @Test(arguments: [
        (Story.idle, Exchange.Phase.idle, ["routed"]),
        (.waiting, .waiting, ["granted", "refused"]),
        (.connecting, .connecting, ["connected", "lost"]),
        (.asking, .asking, ["withdrawn", "answered", "lost"]),
        (.parked, .parked, ["verdict", "refused"]),
        (.pausing, .pausing, ["rested"]),
        (.relaying, .relaying, ["completed"]),
    ])
    private func anEventThatOutlivedItsPhaseDoesNothing(story: Story, phase: Exchange.Phase, own: [String]) {
        let events: [(String, Exchange.Event)] = [
            ("routed", .routed(.unneeded)), ("granted", .granted(token)), ("refused", .refused(timeout)),
            ("connected", .connected), ("withdrawn", .withdrawn(slot: slot)), ("answered", .answered(.challenge)),
            ("verdict", .verdict(.replay(token))), ("lost", .lost(closed, pooled: true)), ("completed", .completed),
            ("rested", .rested),
        ]
        for (name, event) in events where !own.contains(name) {
            var exchange = story.machine()
            let credential = exchange.credential
            #expect(exchange.on(event) == .none, "\(name)")
            #expect(exchange.phase == phase && exchange.credential == credential && !exchange.replayed, "\(name)")
        }
    }

    @Test func knowsWhatItSends() {
        var exchange = Story.connecting.machine()
        #expect(exchange.credential.sent?.generation == 7)
        exchange.spliced(generation: 9)
        #expect(exchange.credential == .token(slot: slot, generation: 9))

        exchange = Story.scout.machine()
        exchange.spliced(generation: 9)
        #expect(exchange.credential == .bare(scout: true) && exchange.credential.sent == nil)

        exchange = Story.waiting.then(.granted(.carried(slot: slot, generation: 3))).machine()
        exchange.spliced(generation: 9)
        #expect(exchange.credential.sent?.generation == 3, "bytes that were handed over are of their own generation")

        exchange = Story.idle.then(.routed(.unneeded)).machine()
        #expect(exchange.credential == .none && exchange.credential.sent == nil)
    }

    @Test func startsAnew() {
        let exchange = Exchange()
        #expect(exchange.phase == .idle && exchange.credential == .none)
        #expect(!exchange.replayed && !exchange.retried && !exchange.idempotent)
        #expect(exchange.replay == .never && exchange.body == .none)
    }
}
