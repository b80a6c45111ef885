internal import HTTP1
internal import Handshakes
internal import HotCache
internal import Telemetry

/// All that a caller's connection knows of the one request that is on its way, from the request's first byte to the answer's last.
///
/// A structure of its own, since callers are idle most of the time: a connection borrows one from its loop's `ExchangePool` with the first
/// byte and gives it back with nothing left to read. As it is made, it is ready for the next request; nothing of the last one can stay.
struct CallerExchange: ~Copyable {
    var machine = Exchange()
    var record = ExchangeRecord()
    var route: RoutePlan?

    // The request.
    var headLength = 0
    /// How far the search for the head's end has come.
    var searched = 0
    var method = CallerConnection.Method.other
    var minorVersion: UInt8 = 1
    var keepsAlive = true
    /// The caller said that this request is its last one.
    var asksToClose = false
    var expectsContinue = false
    var requestComplete = false
    /// The body's bytes stay in the block: the request may be sent again.
    var retainsBody = false
    var requestFraming = RequestFraming.none
    var requestBody = BodyReader.none
    var bodyAt = 0
    /// Bytes of the request's body so far.
    var bodyBytes: UInt64 = 0
    var caution = BodyCaution()
    /// The body, where the credential contains its digest.
    var gathered: GatheredBody?
    /// A token request that is answered here.
    var tokenForm: TokenForm?

    /// The request asks to leave HTTP, and may.
    var upgrades = false
    /// A CONNECT, or a redirected connection that is not for us: nothing of HTTP is sent to the other side.
    var opensTunnel = false
    /// The tunnel of an exchange that has left HTTP.
    var tunnel: CallerConnection.TunnelState?
    /// The upstream, where the caller chose it.
    var chosenUpstream: UpstreamGroup?

    // The credential.
    /// The caller's own credential authenticates the connection that it goes out on.
    var bindsConnection = false
    /// A challenge is held in the upstream's block until the keeper's verdict.
    var ticket: UInt64 = 0
    /// The ticket under which this request became the scout, while the keeper waits for what it finds.
    var scoutTicket: UInt64 = 0
    /// The identity that this request is counted as a waiter of.
    var countedAt: Int?
    /// The slot whose token this request waits for.
    var waitsFor: Slot?
    /// Among those that wait for it.
    var waitingIndex: Int?
    /// Where the request says for whom it is, on routes with a token for each; of a caller's token, the token itself.
    var subjectAt = ByteRange(0..<0)
    /// The generation that was granted because this request waited; 0 for none.
    var justGranted: UInt64 = 0
    /// Nothing has taken that one's place between the keeper's word and the request's way out.
    var sendsJustGranted: Bool { justGranted != 0 && machine.credential.sent?.generation == justGranted }
    /// A credential that the keeper handed to this request alone.
    var carried: Secret?

    // The answer.
    var upstream: UpstreamConnection?
    /// Where a connection was lost under this request: it is not sent there again while there is another place.
    var lostAt: UpstreamAddress?
    var upstreamAddress: LogAddress?
    var answerBody = BodyReader.none
    var answerFraming = BodyFraming.none
    var answerHeadFraming = BodyFraming.none
    var answerHeadLength = 0
    var answerStatus = 0
    var interimAnswers = 0
    var answerBegun = false
    var answerPersistent = false
    var usedHTTP2 = false
    /// The answer is held until its body has been seen.
    var look: AnswerLook?

    /// How fast the bodies move, and until when none has to.
    var pace = TransferPace()
    var idleUntil: UInt64 = 0

    /// When a caller that has closed its side counts as gone; nil: it has not, or nobody has looked yet.
    var goneAt: UInt64?
    /// At the last look at such a caller, some of its request was still on its way through us.
    var wasSending = false

    /// Nothing has been looked at since it was made ready for the next request.
    var isReset = false

    /// While it waits in its pool.
    var next: UnsafeMutablePointer<CallerExchange>?

    @inline(__always) init() {}

    /// A loss of its connection before an answer could be made good by sending the request again.
    var canBeRepeated: Bool { machine.idempotent && (requestFraming == .none || retainsBody) }

    /// Ready for another request.
    mutating func reset() {
        // In place: assigned, it would be made elsewhere and moved here.
        withUnsafeMutablePointer(to: &self) {
            _ = $0.deinitialize(count: 1).initializeMemory(as: CallerExchange.self, to: CallerExchange())
        }
    }
}
