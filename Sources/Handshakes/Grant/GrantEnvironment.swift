/// The environment of a flight: all that it may know, ask and leave behind, as the keeper offers it. These are the calls to its issuer, the
/// two layers below the access token, the secrets, and the account of password attempts. One environment serves one flight of one identity.
///
/// Where a scheme keeps what:
/// - A registration, key pair, client id or device id that outlives sessions is a *durable* part: `durable(_:unless:make:)`.
/// - A refresh token, user token or login is the *session*: `session(_:step:)`. A rotating refresh token goes into
///   `LayerMaterial.refreshToken`; it is on disk before `session` returns, hence before the access token that came with it can be used
///   (docs/design/tokens.md#rule-4).
/// - An access token is what `Handshake.acquire` returns; the keeper stores it.
///
/// Everything read before an `await` is read again after it (docs/design/tokens.md#rule-9).
public protocol GrantEnvironment: IssuerClient {
    // MARK: - Durable layer

    /// The part as it stands, or nil.
    func durable(_ part: DurablePart) async -> LayerMaterial?

    /// The part as it stands, or else as `make` makes it: once, however many flights of identities with the same registration ask, and on
    /// disk (or the store is degraded) before this returns. Followers get the leader's outcome, also a failure.
    ///
    /// - Parameters:
    ///   - refused: what an issuer has refused; it is dropped if it still stands. One that another flight has put there since is used.
    ///   - make: must not call `session`: sessions are waited for first, durable parts within their steps.
    func durable(
        _ part: DurablePart, unless refused: LayerMaterial?,
        make: () async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> LayerMaterial

    /// Replaces the part (a rotated registration access token). Returns once it is on disk, or the store is degraded. Throws when the
    /// flight's epoch has passed.
    func commit(_ part: DurablePart, _ material: LayerMaterial) async throws(GrantFailure)

    /// Drops the part if it still holds this material; one that another flight has put there since stays.
    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async

    // MARK: - Session layer

    /// The session as it stands, if it is live.
    func session() async -> LayerMaterial?

    /// Whether something is left of a login: a live session, or a refresh token that may bring one, as behind a purge.
    func hasLogin() async -> Bool

    /// A live session: the one that stands, or else one that `step` brings. The ladder (docs/design/tokens.md#rule-6) is walked here:
    /// `step` is called for the refresh token if there is one, then, where that failed in a way that says something about it, for the full
    /// grant.
    ///
    /// Steps of one issuer and subject take turns, over all identities. Flights that want the same session share one step and its outcome,
    /// unless `claim.isOwn`. The material is committed before this returns where its refresh token is a new one. A refresh token that the
    /// issuer refused (`.credentialRejected`, `.interactionRequired`) is dropped, in memory and in the store.
    ///
    /// Throws what the last step threw; `.interactionRequired` where there is no rung left; `.credentialRejected` without a step while
    /// the credential is quarantined; `.policyDenied` for the second refused session of one flight; `.timedOut` when the flight was given
    /// up meanwhile.
    func session(
        _ claim: SessionClaim,
        step: (SessionRung, LayerMaterial?) async throws(GrantFailure) -> LayerMaterial
    ) async throws(GrantFailure) -> SessionGrant

    // MARK: - Secrets

    /// Reads a secret by its configuration key: `password`, `client_secret`, `value`. One flight gets one version throughout,
    /// so that the mark of an attempt and the bytes sent belong together.
    func secret(_ name: String) async throws(GrantFailure) -> Secret

    /// Reads it again, after what was read before was refused: who rotates it may have done so meanwhile. No attempt may be open on it.
    func latestSecret(_ name: String) async throws(GrantFailure) -> Secret

    /// Runs the identity's program, and gives what it wrote: at most 64 KiB. Throws `.issuerUnavailable` where it fails: a program that does not
    /// work is an issuer that is down.
    func programAnswer() async throws(GrantFailure) -> Secret

    /// A new access token of another identity, for an exchange. Its failure is this flight's.
    func token(of identity: String) async throws(GrantFailure) -> Secret

    // MARK: - Attempts

    /// Returns once the mark is on disk; only then may the password, PIN or assertion leave. Only within a step of `session`, whose turn
    /// keeps two flights from spending at once. Throws `.quarantined` when no attempt is left.
    ///
    /// - Parameters:
    ///   - user: whose account the issuer would lock.
    ///   - secret: the configuration key of what is about to be sent.
    func spendAttempt(user: String, secret: String) async throws(GrantFailure)

    /// Says what became of an attempt. Called exactly once for each.
    /// - Parameter secret: as it was given to `spendAttempt`, where several are spent at once; nil: the one spent last.
    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async

    /// The token to send for a refresh token that the configuration names. Only within a step of `session`, whose turn keeps two flights
    /// from sending it at once.
    /// - Parameter held: what the session holds and the issuer has just refused; nil: it holds none.
    func standing(ofFirst refreshToken: Secret, beside held: Secret?) async -> FirstRefreshToken

    // MARK: - Time, threads, upstream and operators

    /// Nanoseconds of CLOCK_BOOTTIME.
    func now() async -> UInt64

    /// Returns after this many nanoseconds: to let others be through with what was in the way.
    func pause(_ span: UInt64) async

    /// Returns when it is this call's turn in what the issuer allows. Throws `.issuerUnavailable` where that would be too late.
    func turn(_ quota: CallQuota) async throws(GrantFailure)

    /// Runs what takes long, as the making of an RSA key, on a thread that holds up nobody.
    func aside(_ work: @escaping @Sendable () throws -> Secret) async throws(GrantFailure) -> Secret

    /// A request to the upstream that the token is for, as its route reaches it; to no other origin, and without a credential. For what a
    /// challenge leads to: without one there is nobody to ask.
    func askUpstream(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer

    /// Takes what the keeper has to know beyond the grant's outcome.
    func tell(_ news: GrantNews) async
}

extension GrantEnvironment {
    /// An environment that does not say otherwise has no program.
    public func programAnswer() async throws(GrantFailure) -> Secret { throw .internal(reason: "no program") }

    /// True where there is a live session; a keeper knows more.
    public func hasLogin() async -> Bool { await session() != nil }

    /// A secret that is sent as text.
    func text(_ name: String) async throws(GrantFailure) -> Secret {
        let secret = try await secret(name)
        guard secret.isText, !secret.isEmpty else {
            throw .secretUnusable(name: name, reason: "empty, not UTF-8, or with a control character")
        }
        return secret
    }

    /// The identifier of this device: a UUID that is made once and kept.
    /// - Parameter random: gives as many octets as it is asked for.
    func deviceID(_ random: @Sendable (Int) -> [UInt8]) async throws(GrantFailure) -> String {
        let now = await now()
        let kept = try await durable(.device, unless: nil) { () throws(GrantFailure) in
            LayerMaterial(bytes: Secret(UUIDText.version4(random(16))), obtainedAt: now, lifetime: nil)
        }
        return kept.bytes.text
    }

    /// Spends an attempt of the secret under `password`.
    public func spendAttempt(user: String) async throws(GrantFailure) {
        try await spendAttempt(user: user, secret: "password")
    }

    /// Settles the attempt that was spent last.
    public func settleAttempt(_ outcome: AttemptOutcome) async { await settleAttempt(outcome, secret: nil) }
}

/// The news that a running flight has for the keeper; the flight goes on.
public enum GrantNews: Sendable {
    /// An operator should look at it. Safe text, as in `GrantFailure`.
    case concern(String)
    /// The issuer has refused this refresh token for good: it has expired or was revoked, or it was used by somebody else, and the issuer
    /// takes a second use for theft.
    case refused(refreshToken: Secret)
    /// The issuer has said that it was too much.
    case throttled(CallQuota)
    /// The course of a recipe's run, for operators; the last one counts.
    case run(RunTrace)
}

/// A refresh token that the configuration names, as far as its use has replaced it. A spent one is never sent again: an issuer that
/// rotates takes that for theft and ends the login (RFC 9700 §4.14.2).
public enum FirstRefreshToken: Sendable, Equatable {
    /// Nothing has replaced it, as far as is known: it may be sent.
    case unspent
    /// Another refresh token stands in its place.
    case replaced(by: Secret)
    /// The token that had replaced it was refused, revoked or given up. Only another one helps.
    case spent
    /// A login is at hand that other settings have begun, perhaps with this one. An operator has to say that it was not.
    case uncertain
}

/// Names one durable thing of an identity; part of its row's key, so never renamed.
public struct DurablePart: Hashable, Sendable, ExpressibleByStringLiteral {
    /// The text in the row's key.
    public let name: String

    /// The literal becomes a part of stored keys.
    public init(stringLiteral name: String) { self.name = name }

    /// The outcome of a registration: a handle, a client id with its secret, a signed certificate.
    public static let registration: DurablePart = "registration"
    /// An identifier of this installation that is kept for ever.
    public static let device: DurablePart = "device"
}

/// A flight's wish for a session.
public struct SessionClaim: Sendable {
    /// The session that the issuer called dead at the step above it; nil at first.
    public var refused: LayerMaterial?
    /// Whether a full grant can be made without a person. Without it a missing or refused refresh token is `.interactionRequired`.
    public var canGrantFully = true
    /// Each step brings the access token of its own flight, as with OAuth refresh tokens: no other flight can use it, a live session
    /// spares no step, and flights take turns instead of sharing.
    public var isOwn = false
}

/// The start of a step of the session layer. Its second argument is the material that stands, also where it is no longer live:
/// for `refreshToken` it holds the refresh token to send.
public enum SessionRung: Sendable, Hashable { case refreshToken, fullGrant }

/// A session that a flight may use.
public struct SessionGrant: Sendable {
    /// The session's bytes and life.
    public var material: LayerMaterial
    /// The session was made for this claim: if it is refused, another one would be too.
    public var isFresh: Bool

    /// Memberwise.
    public init(material: LayerMaterial, isFresh: Bool) {
        self.material = material
        self.isFresh = isFresh
    }
}

/// The contents of a layer.
public struct LayerMaterial: Sendable, Equatable {
    /// The handshake's encoding; may be empty where the refresh token is all there is.
    public var bytes: Secret
    /// Sessions only: what a later step may renew it with, beyond its lifetime.
    public var refreshToken: Secret?
    /// Sessions only: a person's login brought it, and a purge or a changed configuration is no reason to ask for another.
    public var isHuman: Bool
    /// Nanoseconds of CLOCK_BOOTTIME, before the request that brought it was sent.
    public var obtainedAt: UInt64
    /// Nanoseconds; nil: until it is refused. Not of the refresh token.
    public var lifetime: UInt64?
    /// The life of the refresh token, where its issuer has said.
    public var refreshLife: RefreshLife?
    /// The refresh token that this step has sent and the issuer has replaced, where it was one of the configuration. Not kept.
    public var spent: Secret?

    /// - Parameters:
    ///   - obtainedAt: nanoseconds of `CLOCK_BOOTTIME`.
    ///   - lifetime: nanoseconds; nil where the issuer names none.
    public init(
        bytes: Secret, obtainedAt: UInt64, lifetime: UInt64?, refreshToken: Secret? = nil, isHuman: Bool = false,
        refreshLife: RefreshLife? = nil
    ) {
        self.bytes = bytes
        self.refreshToken = refreshToken
        self.isHuman = isHuman
        self.obtainedAt = obtainedAt
        self.lifetime = lifetime
        self.refreshLife = refreshLife
    }

    /// The rest of the refresh token's life, counted from another moment than `obtainedAt`.
    func refreshLife(from later: UInt64) -> RefreshLife? {
        refreshLife.map { life in
            let passed = later - min(later, obtainedAt)
            return RefreshLife(left: life.left - min(life.left, passed), whole: life.whole)
        }
    }

    /// - Parameter now: nanoseconds of `CLOCK_BOOTTIME`.
    public func isLive(at now: UInt64) -> Bool {
        guard let lifetime else { return true }
        // A start in the future can only come from a damaged row: what is left is then its whole life at most.
        guard now > obtainedAt else { return lifetime > 0 }
        return now - obtainedAt < lifetime
    }
}

/// The fate of a password that was marked as spent.
public enum AttemptOutcome: Sendable, Equatable {
    case accepted
    /// The issuer judged the password and refused it.
    case rejected
    /// The same, and how many more the issuer says it would judge.
    case rejectedLeaving(Int64)
    /// The password did not leave, or the answer proves that it was not judged (5xx, unknown path, client refused): the mark
    /// is taken back.
    case notSent
    /// The password may have been judged: the attempt stays spent.
    case unknown
}

/// The life of a refresh token, in nanoseconds.
public struct RefreshLife: Sendable, Equatable {
    /// From the material's `obtainedAt` on.
    public var left: UInt64
    /// From its issue to its end.
    public var whole: UInt64

    /// Nanoseconds each.
    public init(left: UInt64, whole: UInt64) {
        self.left = left
        self.whole = whole
    }
}
