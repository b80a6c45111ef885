internal import HTTP1

/// The request of an exchange: what its head says, how much of it has come, and where its parts lie in the caller's block.
struct CallerRequest: ~Copyable {
    var headLength = 0
    /// How far the search for the head's end has come.
    var searched = 0
    var method = CallerConnection.Method.other
    var minorVersion: UInt8 = 1
    var keepsAlive = true
    /// The caller said that this request is its last one.
    var asksToClose = false
    var expectsContinue = false
    var isComplete = false
    /// The body's bytes stay in the block: the request may be sent again.
    var retainsBody = false
    /// The request asks to leave HTTP, and may.
    var upgrades = false
    /// A CONNECT, or a redirected connection that is not for us: nothing of HTTP is sent to the other side.
    var opensTunnel = false
    var framing = RequestFraming.none
    var body = BodyReader.none
    var bodyAt = 0
    /// Bytes of the body so far.
    var bodyBytes: UInt64 = 0
    /// Where the request says for whom it is, on routes with a token for each; of a caller's token, the token itself.
    var subjectAt = ByteRange(0..<0)
    /// The body, where the credential covers it.
    var signed: SignedBody?
    /// A token request that is answered here.
    var tokenForm: TokenForm?

    @inline(__always) init() {}

    /// The length of a body that its caller sends in chunks, where it is known before the head goes out: some servers take no other.
    var gatheredLength: UInt64? {
        guard let gathered, !gathered.hasTrailers else { return nil }
        return gathered.length
    }

    var isSentInChunks: Bool { framing == .chunked && gatheredLength == nil }

    /// The body, where the credential contains its digest.
    var passing: PassingBody? { if case .passing(let body) = signed { body } else { nil } }
    var gathered: GatheredBody? { if case .whole(let body) = signed { body } else { nil } }
}
