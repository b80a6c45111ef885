/// When a token is renewed, when it stops being served, and when its issuer lets it die.
public struct Lifetime: Equatable, Sendable {
    /// From before the token request was sent: the issuer's clock cannot have started earlier.
    public var sentAt: Instant
    /// From then on a hit starts the renewal.
    public var refreshAt: Instant
    /// From then on the token is served only where `serve_expired_for` allows it.
    public var stopServingAt: Instant
    /// The end by what the issuer said.
    public var expiresAt: Instant
    /// The whole life as first known; a restored token keeps it.
    public var original: Nanoseconds

    /// Memberwise; the order of the moments is not checked.
    public init(
        sentAt: Instant, refreshAt: Instant, stopServingAt: Instant, expiresAt: Instant, original: Nanoseconds
    ) {
        self.sentAt = sentAt
        self.refreshAt = refreshAt
        self.stopServingAt = stopServingAt
        self.expiresAt = expiresAt
        self.original = original
    }
}

/// How far ahead of expiry a token is renewed.
public enum RefreshAhead: Equatable, Sendable {
    /// Hundredths of the life; never less than 10 s where the life allows it.
    case percent(UInt8)
    case duration(Nanoseconds)
}

/// Computes lifetimes from what an issuer says, however odd.
public struct LifetimePolicy: Equatable, Sendable {
    /// A longer life is cut to this; an issuer that says "for ever" is asked again once a year.
    public static let longest: Nanoseconds = .seconds(366 * 86_400)
    static let leastAhead: Nanoseconds = .seconds(10)
    static let stopMargin: Nanoseconds = .seconds(5)

    /// `refresh_ahead`.
    var refreshAhead: RefreshAhead
    /// The life of a token whose issuer states none, or none above zero.
    public var defaultLifetime: Nanoseconds

    /// Memberwise; the defaults are those of the configuration.
    public init(refreshAhead: RefreshAhead = .percent(20), defaultLifetime: Nanoseconds = .seconds(300)) {
        self.refreshAhead = refreshAhead
        self.defaultLifetime = defaultLifetime
    }

    /// - Parameters:
    ///   - sentAt: when the token request was about to be sent.
    ///   - expiresIn: seconds, as the issuer wrote them; nil, zero and negative mean the default.
    ///   - jitter: 0 renews at the stated point, `UInt32.max` a tenth of the margin earlier.
    public func lifetime(sentAt: Instant, expiresIn: Int64?, jitter: UInt32) -> Lifetime {
        var life = min(max(defaultLifetime, 1), Self.longest)
        if let expiresIn, expiresIn > 0 { life = min(.seconds(UInt64(expiresIn)), Self.longest) }
        return lifetime(sentAt: sentAt, expiresAt: sentAt.saturatingAdd(life), original: life, jitter: jitter)
    }

    /// A token out of the store: what remains is at most its original life, whatever the wall clock says now.
    /// - Parameters:
    ///   - wallExpiry: milliseconds since 1970, as stored.
    ///   - wallNow: milliseconds since 1970.
    /// - Returns: nil if nothing remains.
    public func restored(
        wallExpiry: Int64, original: Nanoseconds, wallNow: Int64, now: Instant, jitter: UInt32
    ) -> Lifetime? {
        let (left, overflow) = wallExpiry.subtractingReportingOverflow(wallNow)
        guard original > 0, !(overflow && wallExpiry < 0), overflow || left > 0 else { return nil }
        let life = min(original, Self.longest)
        let remaining = overflow ? life : min(.milliseconds(UInt64(left)), life)
        let expiresAt = now.saturatingAdd(remaining)
        // With a boot clock that is younger than the token, its start lies before zero: the thresholds count from the end.
        return lifetime(
            sentAt: expiresAt.saturatingSubtract(life), expiresAt: expiresAt, original: life, jitter: jitter)
    }

    private func lifetime(sentAt: Instant, expiresAt: Instant, original life: Nanoseconds, jitter: UInt32) -> Lifetime {
        let wanted =
            switch refreshAhead {
            case .percent(let percent): max(life / 100 * UInt64(min(percent, 100)), Self.leastAhead)
            case .duration(let duration): duration
            }
        let half = life / 2
        let ahead = min(wanted, half)
        let early = (ahead / 10).multipliedFullWidth(by: UInt64(jitter) << 32).high
        let stop = min(Self.stopMargin, life / 20)
        return Lifetime(
            sentAt: sentAt,
            refreshAt: expiresAt.saturatingSubtract(min(ahead + early, half)),
            stopServingAt: expiresAt.saturatingSubtract(stop),
            expiresAt: expiresAt, original: life)
    }
}
