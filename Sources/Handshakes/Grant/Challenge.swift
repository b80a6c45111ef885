/// A scheme's verdict on an answer of the upstream.
public enum ChallengeVerdict: Sendable, Equatable {
    /// Not ours: the answer is delivered.
    case none
    case challenged(Challenge)
    /// The credential is to be made with this nonce. Whether what was sent before has been judged is told by what it had answered.
    case nonce(ServerNonce, Challenge)
    /// The server could not take it at this moment, whatever the credential: to be sent again after a pause.
    case conflict
    /// Addressed to the scheme but not usable: delivered as received, and counted.
    case unusable(reason: String)
    /// Proves that gateway or upstream is set up wrongly: the caller gets 502 instead of the answer.
    case misconfigured(reason: String)
}

/// A challenge, reduced to what a grant needs. It never says where secrets go: issuers' addresses come from configuration alone.
public struct Challenge: Sendable, Equatable {
    /// OAM: name of the WebGate, or the whole realm where it has another shape. Otherwise empty.
    public var realm: String
    /// OAM: authentication level asked for, 0–9999.
    public var level: Int?
    /// Opaque, single use, bound to one request; never logged and never kept.
    public var context: Secret
    /// Absolute URL of the refused request, as the upstream sees it.
    public var resource: String
    /// With `token_scope: url`, the URL (without query) that the token is good for: one more member of the access key. It comes
    /// from our own request, never from the challenge, so that an upstream cannot choose a cache entry.
    public var boundURL: String?
    /// Scopes asked for, already limited to those that a challenge may ask for.
    public var scopes: [String]
    /// RFC 6750 §3.1 code, if it is one of the registered words.
    public var error: String?
    /// `error`, where only the server's nonce is missing (RFC 9449 §9).
    public static let wantsNonce = "use_dpop_nonce"
    /// The resource wants its user authenticated in another way (RFC 9470); nil: it does not say so.
    public var stepUp: StepUpWish?
    /// Where the resource describes itself (RFC 9728 §5.1), as received; only where it may be asked. It is followed to the upstream's own
    /// origin and nowhere else.
    public var resourceMetadata: String?
    /// Recipe: values out of the challenge, by name. As opaque as `context`.
    public var taken: [String: Secret] = [:]
    /// Recipe: method of the refused request.
    public var method = ""

    /// Memberwise; what has a default is absent without it.
    public init(
        realm: String = "", level: Int? = nil, context: Secret = Secret([]), resource: String, boundURL: String? = nil,
        scopes: [String] = [], error: String? = nil
    ) {
        self.realm = realm
        self.level = level
        self.context = context
        self.resource = resource
        self.boundURL = boundURL
        self.scopes = scopes
        self.error = error
    }
}

extension Array<UInt8> {
    /// The bytes as text that two different arrays never share: UTF-8 where they are, Latin-1 otherwise. For names that become part
    /// of a key.
    var losslessText: String {
        if let text = String(validating: self, as: UTF8.self) { return text }
        // Marked, because valid UTF-8 could spell the same characters.
        return "latin1:" + String(String.UnicodeScalarView(map { Unicode.Scalar($0) }))
    }
}
