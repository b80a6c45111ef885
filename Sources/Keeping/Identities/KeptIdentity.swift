package import DataPath
package import Handshakes
internal import Telemetry
package import Tokens

/// An identity as the keeper holds it.
/// Touched on the keeper's loop only.
package final class KeptIdentity: @unchecked Sendable {
    package private(set) var plan: IdentityPlan
    package let digest: IdentityDigest
    package private(set) var policy: IdentityPolicy
    /// The account that is locked when a password is wrong; nil for schemes without one.
    package let account: Account?
    /// Where its session and durable material come from; nil for schemes that have none.
    package let issuer: Origin?

    var epoch: UInt64 = 1
    /// The epoch that the last logout began.
    var logoutEpoch: UInt64 = 0
    /// The epoch that the last login of a person began.
    var loginEpoch: UInt64 = 0
    /// The task that brings a person's login to the disk; nil where none is on its way.
    var keeping: Task<Void, Never>?
    /// The need of a login, as operators were told it last.
    var toldLogin: LoginNeed.Word?
    /// Rises when a secret's value changes.
    var secretVersion: UInt64 = 1
    var secretHashes: [String: [UInt8]] = [:]
    /// The values of now, of a `static` or `basic` identity alone: its token is made of them, and is in memory all the same.
    var latestSecrets: [String: Secret] = [:]
    var secretsCheckedAt: UInt64 = 0
    /// The scopes of a token for another identity's exchange; a person's login asks for them too.
    package var scopes: [String] = []
    /// Path that is asked to get a challenge when no caller's request brings one.
    package var probe: String?
    /// The mark of a refusal on its way to the store: the caller hears of the refusal after it, so that a crash cannot come between.
    var marking: Task<Void, Never>?
    /// Version of the secrets of which a refusal is being booked.
    var refusedVersion: UInt64?
    /// The trace of the last run of a recipe.
    package var lastRun: RunTrace?
    /// Nil when it has worked since.
    private(set) var lastFailure: String?
    private(set) var lastFailureAt: UInt64 = 0
    /// What was said when a credential was refused; nil when it has worked since.
    private var lastRefusal: String?
    private(set) var lastTrouble: Trouble?
    /// A preview of the issuer's decisions on some resources, and when it was asked for.
    var preview: (at: UInt64, facts: [IdentityFact])?
    /// Denials of a short time ago, by resource; bounded.
    var denials: [ByteString: (until: UInt64, reason: String)] = [:]
    private(set) var grants: UInt64 = 0
    /// The last day, for operators.
    private(set) var day = IdentityDay()
    /// When a reload brought it; 0 where the process began with it.
    var arrivedAt: UInt64 = 0
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
    package var isPerUser = false
    /// Each URL has a token of it (`token_scope: url`).
    package var bindsToURL = false
    /// Its tokens are kept under keys that requests bring.
    var isPerKey: Bool { isPerUser || bindsToURL }
    private(set) var failures: [Handshakes.GrantFailure.Reason: UInt64] = [:]

    /// - Parameters:
    ///   - user: it was about one end user's token: what the issuer refuses him says nothing of the identity.
    ///   - server: the one that was asked last, `host:port`; nil where none was.
    func note(
        _ failure: Handshakes.GrantFailure, ofUser user: Bool = false, asking server: String?, at now: UInt64
    ) {
        switch failure {
        case .policyDenied where user: break
        // Nobody was asked this time, and why the credential is held back is what the issuer said when it was.
        case .quarantined: failed(lastRefusal ?? "\(failure)", at: now)
        default:
            heed(failure, asking: server)
            failed(IssuerTrail.words("\(failure)", asking: server), at: now)
        }
        failures[failure.word, default: 0] += 1
        day.note(.failure, at: now)
    }

    /// What an issuer says when it refuses a credential is known before the refusal is booked and counted: others may ask meanwhile.
    func heed(_ failure: Handshakes.GrantFailure, asking server: String?) {
        if case .credentialRejected = failure { lastRefusal = IssuerTrail.words("\(failure)", asking: server) }
    }

    func noteGrant(at now: UInt64) {
        grants += 1
        day.note(.grant, at: now)
    }

    /// A request goes out again with a credential of it.
    func noteReplay(at now: UInt64) { day.note(.replay, at: now) }

    func noteRefusal(byUpstream reason: String, at now: UInt64) {
        failed(reason, at: now)
        failures[.credentialRejected, default: 0] += 1
        day.note(.failure, at: now)
    }

    package init(plan: IdentityPlan, digest: IdentityDigest, policy: IdentityPolicy, account: Account?, issuer: Origin?)
    {
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

    /// Ends the trouble: the identity has worked, has its session back, or may try again by the word of an operator.
    func recovered(at now: UInt64) {
        lastFailure = nil
        lastRefusal = nil
        if lastTrouble?.overAt == nil { lastTrouble?.overAt = now }
    }

    /// Failures with no success between them.
    struct Trouble {
        /// The reason of the last of these failures.
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

    /// The identity's name, as the log has it.
    var logged: LogField { LogField("identity", .name(plan.name)) }

    /// Nil for identities that need no person.
    var interactive: (any InteractiveHandshake)? {
        (plan.handshake as? any InteractiveHandshake).flatMap { $0.needsPerson ? $0 : nil }
    }

    /// The configuration gives the refresh token that its logins begin with.
    var namesFirstRefreshToken: Bool { policy.secrets["refresh_token"] != nil }

    package var standing: Standing { Standing(digest: digest, secretVersion: secretVersion, epoch: epoch) }
}
