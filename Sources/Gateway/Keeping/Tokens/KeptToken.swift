internal import Fleet
internal import Handshakes
internal import HotCache
internal import Reactor
internal import TLS
internal import Telemetry
internal import Tokens

/// One access key's token, as the keeper holds it: the machine, the bytes that it decides over, and who waits for them.
/// Touched on the keeper's loop only, hence safe to hand through its tasks.
final class KeptToken: @unchecked Sendable {
    let key: AccessKey
    let slot: Slot
    let identity: KeptIdentity
    var machine: AccessTokenMachine

    /// The ready field line of the served token and of one that waits for its commit, with their generations.
    var line: (generation: UInt64, bytes: Secret)?
    var landing: (generation: UInt64, bytes: Secret)?
    /// The generation whose row is in the store; 0 for none. Its bytes may be in the hot cache alone.
    var storedGeneration: UInt64 = 0
    /// An earlier life of the gateway may have left a row, and nobody has looked yet.
    var mayBeStored = false
    var recall: KeptRecall?
    /// Under which the fleet knows it, and the value that is or was served, where there is a fleet.
    var sharedName: SharedName?
    var sharedIdentity: String?
    /// The challenge that the next flight answers. Single-use, never stored.
    var challenge: Handshakes.Challenge?
    /// The one that the flight under way answers.
    var answering: Handshakes.Challenge?
    /// The route whose request met it.
    weak var challengedRoute: KeptRoute?
    /// The route that the token was first made for: where a probe goes.
    weak var route: KeptRoute?
    /// Scopes, audience and resource as configured, for the request to the issuer.
    let wanted: Wanted
    /// Challenges that ask for more than the flight under way brings, as they came; looked at again when it is over. Few: each is a request
    /// that waits, but for one whose answer has gone to its caller.
    var postponed: [ChallengeOfRequest] = []

    /// Requests that the keeper answers one by one; loops that wait with the slot stand in the machine.
    var tickets: [Ticket] = []
    /// For `basic`: its secret has to succeed once before it is published.
    var probation: BasicProbation?
    /// In a fleet, the turn in which that is tried; and one is being waited for.
    var trial: FleetHold?
    var seeksTrial = false
    /// When it was last seen to be used: by a request that needed the keeper's word, or by hits since the look before.
    var usedAt: UInt64 = 0
    /// Of its slot, at the last look.
    var stamps: UInt64 = 0
    /// While it runs.
    var flightTask: Task<Void, Never>?
    /// Begun so far.
    var flights: UInt64 = 0
    /// Under which the flight claims a session.
    var claimant: SessionMachine.Claimant?
    var alarm: Alarm?
    /// Of an end user: what it has beyond the token.
    var subject: KeptSubject?
    var grants: UInt64 = 0
    /// The generation of the wider token that it was last served from, under a number of its own.
    var borrowed: UInt64 = 0
    /// Its last grant had fewer scopes than were asked for.
    var isNarrower = false
    /// No configured route leads to it; it serves exchanges that began when one did, and is not stored.
    var isRetired = false
    var lastFailure: String? {
        didSet {
            (failedAt, failurePlace) = (nil, nil)
            toldFailure = lastFailure
        }
    }
    /// As callers may see it.
    fileprivate(set) var toldFailure: String?
    private(set) var failedAt: UInt64?
    /// The server that was asked last before it.
    private(set) var failurePlace: String?
    /// Where the last failure was a secret of ours and not the issuer.
    var secretFault: Fault.Kind?
    /// When a fixed credential's secret was last read.
    var loadedAt: UInt64 = 0
    var isLoading = false
    /// What waits for the reading to end, whatever it brings.
    var onLoaded: [(isolated Keeper) -> Void] = []

    init(key: AccessKey, slot: Slot, identity: KeptIdentity, machine: AccessTokenMachine, wanted: Wanted) {
        self.key = key
        self.slot = slot
        self.identity = identity
        self.machine = machine
        self.wanted = wanted
    }

    fileprivate func note(_ place: String?, at now: UInt64) { (failedAt, failurePlace) = (now, place) }
}

extension KeptToken {
    /// - Parameter place: the server that was asked last, `host:port`; nil where none was.
    func failed(_ failure: Handshakes.GrantFailure, asking place: String?, at now: UInt64) {
        failed("\(failure)", asking: place, at: now)
        toldFailure = failure.toldToCallers
        secretFault = Fault.Kind(secret: failure)
    }

    func failed(_ reason: String, asking place: String?, at now: UInt64) {
        lastFailure = reason
        note(place, at: now)
    }

    /// For operators, who have to know which server is meant.
    var failureWords: String? { lastFailure.map { IssuerTrail.words($0, asking: failurePlace) } }

    /// A request found no token: what has failed before may be its answer.
    func noteMiss(at now: UInt64) {
        usedAt = now
        switch machine.state(at: now) {
        case .negative, .quarantined, .loginNeeded: identity.negativeHits += 1
        case .empty, .acquiring, .fresh, .refreshAhead, .renewalFailing, .expiredGrace: break
        }
    }
}

/// An identity as the keeper holds it.
/// Touched on the keeper's loop only.
final class KeptIdentity: @unchecked Sendable {
    private(set) var plan: IdentityPlan
    let digest: IdentityDigest
    private(set) var policy: IdentityPolicy
    /// Whose account is locked when a password is wrong; nil for schemes without one.
    let account: Account?
    /// Where its session and durable material come from; nil for schemes that have none.
    let issuer: Origin?

    var epoch: UInt64 = 1
    /// The epoch that the last logout began.
    var logoutEpoch: UInt64 = 0
    /// The epoch that the last login of a person began.
    var loginEpoch: UInt64 = 0
    /// What a person's login brought, on its way to the disk.
    var keeping: Task<Void, Never>?
    /// As it was last told to operators.
    var toldLogin: LoginNeed.Word?
    /// Rises when a secret's value changes.
    var secretVersion: UInt64 = 1
    var secretHashes: [String: [UInt8]] = [:]
    var secretsCheckedAt: UInt64 = 0
    /// What a token for another identity's exchange is good for.
    var scopes: [String] = []
    /// Path that is asked to get a challenge when no caller's request brings one.
    var probe: String?
    /// The mark of a refusal on its way to the store: the caller hears of the refusal after it, so that a crash cannot come between.
    var marking: Task<Void, Never>?
    /// Version of the secrets of which a refusal is being booked.
    var refusedVersion: UInt64?
    /// What the last run of a recipe did.
    var lastRun: RunTrace?
    /// Nil when it has worked since.
    private(set) var lastFailure: String?
    private(set) var lastFailureAt: UInt64 = 0
    private(set) var lastTrouble: Trouble?
    /// What its issuer would say to some resources, and when it was asked.
    var preview: (at: UInt64, facts: [IdentityFact])?
    /// What was denied a short time ago, by resource; bounded.
    var denials: [String: (until: UInt64, reason: String)] = [:]
    var grants: UInt64 = 0
    /// Grants with fewer scopes than were asked for, and tokens that another key's wider one stood in for.
    var narrowerGrants: UInt64 = 0
    var borrowings: UInt64 = 0
    /// From a grant's start to its end, good or bad.
    var grantTimes = DurationDistribution()
    /// Misses that a failure or refusal that stands has answered without a grant.
    var negativeHits: UInt64 = 0
    /// Refresh tokens that the issuer would not take.
    var refreshTokensRefused: UInt64 = 0
    /// Logins of a person that ended, by the word for how.
    var logins: [String: UInt64] = [:]
    /// Each end user has a token of it.
    var isPerUser = false
    /// Each URL has a token of it (`token_scope: url`).
    var bindsToURL = false
    /// Its tokens are kept under keys that requests bring.
    var isPerKey: Bool { isPerUser || bindsToURL }
    private(set) var failures: [Handshakes.GrantFailure.Reason: UInt64] = [:]

    /// - Parameters:
    ///   - user: it was about one end user's token: what the issuer refuses him says nothing of the identity.
    ///   - place: the server that was asked last, `host:port`; nil where none was.
    func note(
        _ failure: Handshakes.GrantFailure, ofUser user: Bool = false, asking place: String?, at now: UInt64
    ) {
        if case .policyDenied = failure, user {
        } else {
            failed(IssuerTrail.words("\(failure)", asking: place), at: now)
        }
        failures[failure.word, default: 0] += 1
    }

    func noteRefusal(byUpstream reason: String, at now: UInt64) {
        failed(reason, at: now)
        failures[.credentialRejected, default: 0] += 1
    }

    init(plan: IdentityPlan, digest: IdentityDigest, policy: IdentityPolicy, account: Account?, issuer: Origin?) {
        self.plan = plan
        self.digest = digest
        self.policy = policy
        self.account = account
        self.issuer = issuer
    }

    private func failed(_ reason: String, at now: UInt64) {
        lastFailure = reason
        lastFailureAt = now
        if lastTrouble == nil || lastTrouble?.overAt != nil { lastTrouble = Trouble(reason: reason, began: now) }
        lastTrouble?.reason = reason
        lastTrouble?.failures += 1
    }

    /// It has worked, or an operator says that it may.
    func recovered(at now: UInt64) {
        lastFailure = nil
        if lastTrouble?.overAt == nil { lastTrouble?.overAt = now }
    }

    /// Failures with no success between them.
    struct Trouble {
        /// Of the last of them.
        var reason: String
        let began: UInt64
        var failures: UInt64 = 0
        var overAt: UInt64?

        init(reason: String, began: UInt64) {
            self.reason = reason
            self.began = began
        }
    }

    /// Whether the other is the same one to its issuer, whatever it is called.
    func isSame(as other: KeptIdentity) -> Bool {
        digest == other.digest && account == other.account && issuer == other.issuer
            && policy.kind == other.policy.kind
    }

    /// Takes name, policy, network and the places of secrets. Material, marks and epoch stay.
    func take(_ next: KeptIdentity) {
        plan = next.plan
        policy = next.policy
        probe = next.probe
        scopes = next.scopes
        isPerUser = next.isPerUser
        bindsToURL = next.bindsToURL
    }

    /// The configuration gives the refresh token that its logins begin with.
    var namesFirstRefreshToken: Bool { policy.secrets["refresh_token"] != nil }

    var standing: Standing { Standing(digest: digest, secretVersion: secretVersion, epoch: epoch) }
}

/// What the keeper needs to know of an identity's configuration beyond its handshake.
struct IdentityPolicy: Sendable {
    var access: AccessTokenPolicy
    var lifetime: LifetimePolicy
    var attempts: AttemptLedger.Policy
    var secrets: [String: SecretSource]
    var network: IssuerNetwork
    var kind: CredentialKind
    /// The identity must have a token before the gateway is ready.
    var startup: Startup
    /// The keys in `secrets` that each have a mark of attempts of their own; nil: the password, or else all together.
    var attemptSecrets: [String]?
    /// Those of them whose marks are not on the identity's own account.
    var attemptAccounts: [String: Account] = [:]
    /// `basic`: different paths that must refuse a proven secret until it is held back.
    var refusalsUntilClosed = BasicProbation.pathLimit
    /// What it obtained does not come back with it, after another configuration had taken its place.
    var forgetsWhenReplaced = false
    /// What it obtains may leave this process: for the store, and for the gateways of a fleet.
    var isShared = false
    /// Its login cannot be had anew without a person: one who logs in, or who has put a refresh token into the configuration.
    var isIrreplaceable = false
    /// Tokens and sessions are good only with a key of this gateway's own (DPoP). The key never leaves it, so another gateway has no use
    /// for them; what is bound to no key, as the registration of a client, is shared all the same.
    var isBoundHere = false

    var sharesTokens: Bool { isShared && !isBoundHere }

    /// Whether refusing what it sends may lock an account: its steps book their attempts themselves.
    var sendsPassword: Bool { attemptSecrets.map { !$0.isEmpty } ?? (secrets["password"] != nil) }

    enum Startup: Sendable { case lazy, wait, required }
}

/// Reads a secret anew each time; the value is wiped by its owner.
typealias SecretSource = @Sendable () throws -> Secret

/// How calls to an identity's issuer are made.
struct IssuerNetwork: Sendable {
    var trust: TrustAnchors?
    var minimumVersion: TLSVersion
    var legacyTLS: Bool
    var clientKeys: ClientKeys?
    var proxy: ProxyPlan?
    var serverName: String?
    /// Nanoseconds for one call, connect included.
    var timeout: UInt64
    /// Calls to the issuer at the same time.
    var connections: Int
    /// Nanoseconds that one more waits for its turn.
    var patience: UInt64
    /// Addresses to use instead of resolving, by host.
    var resolve: [String: [SocketAddress]]
    /// Where to connect whatever the host, as a route's `to.addresses` says.
    var pinned: [UpstreamEndpoint] = []
}

extension KeptToken {
    /// Whose it is, where each end user has one; nil also where each URL has one.
    var user: ByteString? { identity.bindsToURL ? nil : key.subject }

    var isOfURL: Bool { identity.bindsToURL && key.subject != nil }
}
