internal import DataPath
internal import Tokens

/// An access key and its token.
public struct TokenStatus: Sendable {
    /// The identity's name in the configuration.
    public var identity: String
    /// The upstream that the token goes to.
    public var upstream: String
    /// The challenge's realm; empty where there is none.
    public var realm: String
    /// The scopes that were asked for, parted by spaces.
    public var scopes: String
    /// The state of the key, which it has without a token too.
    public var state: IdentityState
    /// The authentication level (OAM); nil where the scheme has none.
    public var level: Int?
    /// Nanoseconds; nil where there is no token, or one that never expires.
    public var age: UInt64?
    /// Nanoseconds until the renewal begins.
    public var refreshIn: UInt64?
    /// Nanoseconds until the end that the issuer gave.
    public var expiresIn: UInt64?
    /// Grants of the key since the start.
    public var grants: UInt64
    /// Why the last grant failed; one safe sentence.
    public var lastFailure: String?
    /// Requests that wait for the token now.
    public var waiting: Int
    /// The scopes that were granted, where they are not those that were asked for.
    public var granted: String?
    /// End users with a token of this key in memory; nil where the token is everybody's.
    public var subjects: Int?
    /// Nanoseconds until the keeper tries again by itself, or may be asked to, after a failure; nil where nothing is waited for.
    public var retryIn: UInt64?
    /// Since `lastFailure`, in nanoseconds.
    public var lastFailureAgo: UInt64?
    /// A reload has left the key behind: it serves requests that began before, and goes within a minute and a half.
    public var isOfEarlierSettings = false
}

extension TokenStatus {
    /// - Parameters:
    ///   - subjects: end users with a token of this key in memory, where users have tokens of their own.
    ///   - now: nanoseconds of `CLOCK_BOOTTIME`.
    init(_ token: KeptToken, subjects: Int, at now: UInt64) {
        let held = token.machine.heldGrant
        let left: (UInt64) -> UInt64? = { $0 == .max ? nil : $0 - min(now, $0) }
        self.init(
            identity: token.identity.plan.name, upstream: token.key.origin.description,
            realm: token.key.realm.description, scopes: token.key.scopes.description,
            state: IdentityState(token, at: now), level: held?.level,
            age: held.map { now - min(now, $0.lifetime.sentAt) },
            refreshIn: held.flatMap { left($0.lifetime.refreshAt) },
            expiresIn: held.flatMap { left($0.lifetime.expiresAt) },
            grants: token.grants, lastFailure: token.failureWords, waiting: token.tickets.count,
            granted: held.flatMap { $0.granted == token.key.scopes ? nil : $0.granted.description },
            subjects: token.identity.isPerKey ? subjects : nil,
            retryIn: token.machine.pausedUntil.map { $0 - min(now, $0) },
            lastFailureAgo: token.failedAt.map { now - min(now, $0) }, isOfEarlierSettings: token.isRetired)
    }
}
