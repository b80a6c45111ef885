internal import HTTP1

/// A caller's connection's knowledge of the one request that is on its way, from the request's first byte to the answer's last.
///
/// A structure of its own, since callers are idle most of the time: a connection borrows one from its loop's `ExchangePool` with the first
/// byte and gives it back with nothing left to read. As it is made, it is ready for the next request; nothing of the last one can stay.
struct CallerExchange: ~Copyable {
    var machine = Exchange()
    var record = ExchangeRecord()
    var correlation = Correlation()
    var route: RoutePlan?

    var request = CallerRequest()
    var caution = BodyCaution()
    var token = TokenWait()
    var answer = CallerAnswer()
    /// Nil for nearly all requests.
    private var rare: RareState?

    /// The upstream, where the caller chose it.
    var chosenUpstream: UpstreamGroup?
    /// The caller's own credential authenticates the connection that it goes out on.
    var bindsConnection = false
    var upstream: UpstreamConnection?

    /// How fast the bodies move.
    var pace = TransferPace()
    /// Until when no body has to move. Nanoseconds of the loop's clock.
    var idleUntil: UInt64 = 0
    var halfClosed = HalfClosed()

    /// Nothing has been looked at since it was made ready for the next request.
    var isReset = false
    /// While it waits in its pool.
    var next: UnsafeMutablePointer<CallerExchange>?

    /// A caller that has closed its side.
    struct HalfClosed {
        /// When the caller counts as gone; nil: it has not closed its side, or nobody has looked yet.
        var goneAt: UInt64?
        /// At the last look, some of its request was still on its way through us.
        var wasSending = false
    }

    /// The state that few requests have: one word to set and clear for all others, whatever there is of it.
    private final class RareState {
        var nonces: RequestNonces?
        var negotiation: UpstreamNegotiation?
        var concealment: AnswerConcealment?
        var tunnel: CallerConnection.TunnelState?
        var lostAt: UpstreamAddress?
        var hopIdentifier: UInt64?
    }

    @inline(__always) init() {}

    private mutating func rareState() -> RareState {
        if let rare { return rare }
        let made = RareState()
        rare = made
        return made
    }

    /// Nothing has happened to the request that sends it elsewhere than most.
    @inline(__always) var isPlain: Bool { rare == nil }

    /// The nonces that the request has met; nil until a server or a proxy asks for answers to them.
    var nonces: RequestNonces? {
        get { rare?.nonces }
        set { if newValue != nil || rare != nil { rareState().nonces = newValue } }
    }

    /// The authentication of the connection by the request that is on it; nil where its credential vouches for requests.
    var negotiation: UpstreamNegotiation? {
        get { rare?.negotiation }
        set { if newValue != nil || rare != nil { rareState().negotiation = newValue } }
    }

    /// The credentials that the answer must not show; nil where nothing is concealed.
    var concealment: AnswerConcealment? {
        get { rare?.concealment }
        set { if newValue != nil || rare != nil { rareState().concealment = newValue } }
    }

    /// The tunnel of an exchange that has left HTTP.
    var tunnel: CallerConnection.TunnelState? {
        get { rare?.tunnel }
        set { if newValue != nil || rare != nil { rareState().tunnel = newValue } }
    }

    /// Where a connection was lost under this request: it is not sent there again while there is another address.
    var lostAt: UpstreamAddress? {
        get { rare?.lostAt }
        set { if newValue != nil || rare != nil { rareState().lostAt = newValue } }
    }

    /// The name of this hop in `Forwarded`, where the request is signed with it (RFC 7239 §6.3).
    var hopIdentifier: UInt64? {
        get { rare?.hopIdentifier }
        set { if newValue != nil || rare != nil { rareState().hopIdentifier = newValue } }
    }

    /// A loss of its connection before an answer could be made good by sending the request again.
    var canBeRepeated: Bool { machine.idempotent && (request.framing == .none || request.retainsBody) }

    /// No other generation has come between the keeper's word and the request's way out.
    var sendsJustGranted: Bool {
        token.justGranted != 0 && machine.credential.sent?.generation == token.justGranted
    }

    /// Ready for another request.
    mutating func reset() {
        // In place: assigned, it would be made elsewhere and moved here.
        withUnsafeMutablePointer(to: &self) {
            _ = $0.deinitialize(count: 1).initializeMemory(as: CallerExchange.self, to: CallerExchange())
        }
    }
}
