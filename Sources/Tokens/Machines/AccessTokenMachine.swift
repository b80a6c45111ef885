public import HotCache

/// The life of the tokens of one access key: one flight at a time, whatever asks for it.
///
/// Events in, actions out, in the order they must be done. The machine holds no token bytes; the keeper does, beside it.
public struct AccessTokenMachine: Sendable {
    /// Replaced by a reload.
    var policy: AccessTokenPolicy
    /// The state that outcomes of flights must agree with from now on.
    var standing: Standing

    /// The token that is, or may again be, served.
    var held: Held?
    var flight: Flight?
    /// The scopes that every flight asks for: the configured ones, and those that challenges asked for beyond them and that were granted.
    public var scopes: ScopeSet = []
    /// The loops that wait for the flight or the landing.
    var waiters: LoopSet = []
    /// A grant that waits for its commit.
    var landing: Landing?
    /// Standing refusal: nothing happens by itself any more.
    var blocked: GrantFailure?
    /// The last issuer failure and until when it is obeyed.
    var pause: Pause?
    var windows = RegrantWindows()
    /// Routes where a token that was just granted for more was not enough: the same scopes are not asked for again, and few levels.
    var futile: [Int: GrowingWindow] = [:]
    var backoff: Backoff
    var lastFlight: UInt64 = 0
    var timer: Instant?
    /// The flight that runs was begun because its predecessor's secret was an old one.
    var followedSecret = false
    /// Another process of ours grants, as while the store is handed over in an upgrade.
    var isSuspended = false
    /// A renewal was asked for meanwhile: a loop asks once a generation.
    var missedRenewal = false
    /// Outcomes of epochs before it came out of a logout: their refresh tokens are revoked, not kept.
    var logoutEpoch: UInt64 = 0

    struct Held: Equatable, Sendable {
        var grant: Grant
        /// An upstream refused it and its replacement is under way: not served meanwhile.
        var isRefused = false
        /// The target where the token's predecessor was refused, if that is why the token was granted.
        var predecessorRefusedAt: RequestTarget?
        /// The time when the token was taken over from its flight.
        var since: Instant = 0
        /// Served past its expiry because its issuer fails.
        var inGrace = false
    }

    struct Landing: Equatable, Sendable {
        var grant: Grant
        var reason: Flight.Reason
        /// The demand that its flight was to meet.
        var asked: Demand
        /// The target where the served token was refused, if that is the flight's reason.
        var refusedAt: RequestTarget?
        var deadline: Instant
    }

    struct Pause: Equatable, Sendable {
        var until: Instant
        var failure: GrantFailure
        /// A caller asked, or a token is still served that needs a successor: one try is made at the end.
        var isWanted: Bool
    }

    /// - Parameter seed: of the jitter.
    public init(policy: AccessTokenPolicy, standing: Standing, seed: UInt64) {
        self.policy = policy
        self.standing = standing
        backoff = Backoff(seed: seed)
    }

    /// How long after a grant those who waited for it are told of, at most, that were sent at once and refused.
    static let burst: Nanoseconds = .seconds(5)
    /// How long an access token waits for its own commit.
    static let commitWait: Nanoseconds = .milliseconds(100)
    /// How long a token waits for the commit of the refresh token that came with it, before the store counts as degraded.
    static let rotationWait: Nanoseconds = .seconds(5)

    // MARK: - Vocabulary

    /// The keeper's orders, to be carried out in this order.
    public enum Action: Equatable, Sendable {
        case startFlight(Flight)
        /// Its outcome will be discarded; a step that was not sent yet need not be.
        case abandonFlight(FlightToken)
        /// Seal and commit the row of this grant, then report `committed`. The rotated refresh token goes first or along.
        case commit(generation: UInt64)
        case publish(RecordFields)
        case unpublish
        case answer(LoopSet, Outcome)
        /// The flight under way brings less than this challenge asks for: report it again when the machine is busy no more.
        case postpone
        /// Where the key's token is taken on this route is to be remembered until then, and told with the challenges (`hadTaken`).
        case watch(route: Int, until: Instant)
        /// A cold key of a challenge-driven identity: the loop's parked requests go to the scout machine.
        case scout(LoopSet)
        /// Replaces the earlier time.
        case schedule(Instant)
        case cancelTimer
        case deleteRow
        /// An outcome that came too late. A rotated refresh token in it is committed, or revoked after a logout.
        case discard(FlightToken, revokeRefreshToken: Bool)
        case report(Event)
    }

    /// News for the operator.
    public enum Event: Equatable, Sendable {
        case tokenAcquired, tokenRefreshed, renewalFailed(GrantFailure), acquisitionFailed(GrantFailure)
        case challengeAnswered, challengeRefused
        case credentialQuarantined, loginNeeded, storeDegraded
    }

    /// The key's state for `/status` and the metrics.
    public enum State: Equatable, Sendable {
        case empty, acquiring, fresh, refreshAhead, renewalFailing, expiredGrace
        case negative(until: Instant), quarantined, loginNeeded
    }

    /// - Parameter now: of `CLOCK_BOOTTIME`.
    public func state(at now: Instant) -> State {
        if let held, !held.isRefused, now < servedUntil(held) {
            if held.inGrace, now >= held.grant.lifetime.stopServingAt { return .expiredGrace }
            if let pause, pause.isWanted || now < pause.until { return .renewalFailing }
            return now >= held.grant.lifetime.refreshAt ? .refreshAhead : .fresh
        }
        if let blocked { return blocked == .interactionRequired ? .loginNeeded : .quarantined }
        if flight != nil || landing != nil { return .acquiring }
        if let pause, now < pause.until { return .negative(until: pause.until) }
        return .empty
    }

    /// The generation that is served now, or nil.
    public func servedGeneration(at now: Instant) -> UInt64? {
        servable(at: now)?.grant.generation
    }

    /// The token that is held, for listings and for the superset rule.
    public var heldGrant: Grant? { held?.grant }

    /// The token that is held was refused, and a flight is to replace it.
    public var isRefused: Bool { held?.isRefused == true }

    /// Until when a failure keeps the keeper from trying again; nil where none does.
    public var pausedUntil: Instant? { pause?.until }

    /// The token that waits for its commit.
    public var landingGrant: Grant? { landing?.grant }
}

/// The message to a loop. Each waiting loop gets it once.
public enum Outcome: Equatable, Sendable {
    /// Load the slot again. `justGranted` is handed back with a refusal of the replay.
    case ready(generation: UInt64, justGranted: Bool)
    /// 503, or 504 for `timedOut`; `retryAfter` is what is left of the wait.
    case failed(GrantFailure, retryAfter: Nanoseconds?)
    /// The upstream refuses what we have and no new credential is to be had for it (502).
    case final
    /// The key is gone: resolve the route again.
    case moved
}

/// A loop's report that an upstream challenged.
public struct ChallengeReport: Equatable, Sendable {
    /// The generation that was sent, 0 for none.
    public var generation: UInt64
    /// The exchange has had its one replay.
    var isReplay: Bool
    /// The replay went out with the very token that the outcome which set it off had named as just granted.
    var justGranted: Bool
    /// The level or scopes that the challenge asks for.
    var demand: Demand
    /// The route and path that were challenged.
    public var target: RequestTarget
    /// The path has taken a token of the key since its route has been watched.
    var hadTaken: Bool
    /// The scopes that others who wait want beside it: asked for along with it where a flight starts, so that one serves them all.
    var along: ScopeSet

    /// Memberwise; `generation` 0 means that no token was sent.
    public init(
        generation: UInt64, isReplay: Bool = false, justGranted: Bool = false, demand: Demand = .token,
        target: RequestTarget = RequestTarget(), hadTaken: Bool = false, along: ScopeSet = []
    ) {
        self.generation = generation
        self.isReplay = isReplay
        self.justGranted = justGranted
        self.demand = demand
        self.target = target
        self.hadTaken = hadTaken
        self.along = along
    }
}

/// The part of `token:` and of the scheme that the machine obeys.
public struct AccessTokenPolicy: Equatable, Sendable {
    /// `on_issuer_failure`: what is served while the issuer fails.
    public enum OnIssuerFailure: Equatable, Sendable {
        case serveValid
        case fail
        case serveExpired(Nanoseconds)
    }

    /// `connectivity`: whether the issuer may be asked. `auto` lets other rules decide.
    public enum Connectivity: Equatable, Sendable {
        case auto, online, offline
    }

    /// `on_issuer_failure`.
    public var onIssuerFailure: OnIssuerFailure
    /// `negative_for`: how long waiters get the last failure without another try, in nanoseconds.
    public var negativeFor: Nanoseconds
    /// `acquire_timeout`: how long a caller waits for a flight, in nanoseconds.
    public var acquireTimeout: Nanoseconds
    /// How long a flight may take where what it asks has a time of its own, in nanoseconds; three times `acquireTimeout` where that is longer.
    public var flightTime: Nanoseconds = 0
    /// Values of secrets stand in a token as they were when it was obtained: a changed one is renewed at once.
    public var holdsSecrets = false
    /// `persist`: whether the store keeps the access token.
    public var persist: Bool
    /// `startup: wait | required`: renewed by timer, not only by use.
    public var renewsByTimer: Bool
    /// Challenge-driven without `probe`: no grant without a real challenge.
    public var needsChallenge: Bool
    /// False for `static`, `basic` and `client_certificate`: the secret is the token.
    public var canRegrant: Bool
    /// `connectivity`.
    public var connectivity: Connectivity
    /// `allowed_scopes`: those that may be asked for besides the configured ones.
    public var allowedScopes: ScopeSet

    /// Memberwise; the defaults are those of the configuration.
    public init(
        onIssuerFailure: OnIssuerFailure = .serveValid, negativeFor: Nanoseconds = .seconds(30),
        acquireTimeout: Nanoseconds = .seconds(10), persist: Bool = true, renewsByTimer: Bool = false,
        needsChallenge: Bool = false, canRegrant: Bool = true, connectivity: Connectivity = .auto,
        allowedScopes: ScopeSet = []
    ) {
        self.onIssuerFailure = onIssuerFailure
        self.negativeFor = negativeFor
        self.acquireTimeout = acquireTimeout
        self.persist = persist
        self.renewsByTimer = renewsByTimer
        self.needsChallenge = needsChallenge
        self.canRegrant = canRegrant
        self.connectivity = connectivity
        self.allowedScopes = allowedScopes
    }
}

/// Where a token comes from that no flight brought.
public enum TokenSource: Equatable, Sendable {
    case store
    /// `static` and `basic`.
    case configuration
}

/// Why the epoch rose.
public enum EpochCause: Equatable, Sendable {
    case purge, logout, reset, reload
}
