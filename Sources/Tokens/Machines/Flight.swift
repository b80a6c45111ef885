/// The state that an outcome must still agree with when it lands. Nothing read before an `await` is trusted after it.
public struct Standing: Hashable, Sendable {
    /// The identity as it was configured.
    public var digest: IdentityDigest
    /// Rises when the value behind the identity's secret reference changes.
    public var secretVersion: UInt64
    /// Rises on purge, logout, reset and reload.
    public var epoch: UInt64

    /// Memberwise.
    public init(digest: IdentityDigest, secretVersion: UInt64, epoch: UInt64) {
        self.digest = digest
        self.secretVersion = secretVersion
        self.epoch = epoch
    }
}

/// Names one flight. Whoever runs the grant hands it back with the outcome.
public struct FlightToken: Hashable, Sendable {
    /// Unique within its machine.
    let id: UInt64
    /// The state that the flight began with.
    public let standing: Standing
}

/// A grant under way for an access key.
public struct Flight: Equatable, Sendable {
    /// The cause of a flight.
    public enum Reason: Equatable, Sendable {
        /// A caller asked and there was no token.
        case missed
        /// An upstream refused the served token, or none was sent; the challenge is in the same report.
        case challenged
        /// The challenge asks for more than the served token is.
        case steppedUp
        /// First use past the refresh point, or the timer of `startup: wait | required`.
        case refreshAhead
        /// The end of a backoff or of a negative time.
        case retry
        /// `startup: wait | required`.
        case startup
        /// The flight before was cut off by a new epoch or a new secret.
        case restarted
    }

    /// Comes back with the outcome.
    public let token: FlightToken
    /// The first cause; who joins later does not change it.
    public let reason: Reason
    /// The target where the served token was refused, if that is the reason.
    let refusedAt: RequestTarget?
    /// The level of the challenge that it answers; nil where there is none, or where it is not known yet.
    let level: Int?
    /// All that it asks for.
    public let scopes: ScopeSet
    /// The scopes that somebody who was challenged for them waits for: the token must have them, whoever brings it.
    var owed: ScopeSet
    /// Somebody waits whose challenge was to a token of this key: none that was there before the challenge is an answer to it.
    var answersChallenge: Bool
    /// The start of the flight.
    let startedAt: Instant
    /// Callers are told "timed out" then; the grant may go on to `abandonedAt`.
    let waitersUntil: Instant
    /// The outcome is discarded if it comes later, and another flight may start.
    public let abandonedAt: Instant
}

/// The token that a flight brought. The bytes stay with the keeper.
public struct Grant: Equatable, Sendable {
    /// From `GenerationCounter`.
    public var generation: UInt64
    /// The access token's life.
    public var lifetime: Lifetime
    /// The level of the challenge that produced it; nil where the scheme has none.
    public var level: Int?
    /// The scopes that the issuer names, or those that were asked for where it names none (RFC 6749 §5.1).
    public var granted: ScopeSet
    /// The scopes that the flight asked for; empty where another process asked.
    public var asked: ScopeSet
    /// A refresh token was replaced with it: that must be committed before this is used.
    var rotated: Bool
    /// Another gateway obtained it, some time ago: that an upstream refuses it says nothing of what the issuer gives now.
    var isShared: Bool

    /// Memberwise.
    public init(
        generation: UInt64, lifetime: Lifetime, level: Int? = nil, granted: ScopeSet = [], asked: ScopeSet = [],
        rotated: Bool = false, isShared: Bool = false
    ) {
        self.generation = generation
        self.lifetime = lifetime
        self.level = level
        self.granted = granted
        self.asked = asked
        self.rotated = rotated
        self.isShared = isShared
    }
}

/// Hands out generations: 64 bits, process-wide, never reused. 0 means "no token was sent".
public struct GenerationCounter: Sendable {
    private var last: UInt64

    /// - Parameter last: the highest generation in use.
    public init(after last: UInt64 = 0) { self.last = last }

    /// The generation after the last.
    public mutating func next() -> UInt64 {
        last += 1
        return last
    }
}
