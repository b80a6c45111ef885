internal import Handshakes
internal import Tokens

extension AccessGrant {
    /// The seconds for which the token is good: as its issuer has stated, or else as the token itself does; nil where neither says.
    /// A token's `exp` is a time of the issuer's clock, which is corrected by what is known of that clock; and no token lives longer than
    /// from its `iat` to its `exp`, whatever the clocks say.
    func seconds(_ skew: ClockSkew, _ policy: LifetimePolicy, at moment: Moment) -> Int64? {
        let waited = waited(until: moment)
        let own = secondsStated(skew, waited, wall: moment.wall / 1000)
        guard let left = secondsOfOrigin(skew, at: moment) else { return own }
        // One is the least that counts as stated: what has ended is not landed at all.
        let most = max(left, 1).addingReportingOverflow(waited)
        let life = own ?? Int64(clamping: policy.defaultLifetime / 1_000_000_000)
        return most.overflow ? life : min(life, most.partialValue)
    }

    /// Whether the token that this one was made from has ended meanwhile. Then nobody may have it, however long its issuer lets it live.
    func hasLostItsOrigin(_ skew: ClockSkew, at moment: Moment) -> Bool {
        secondsOfOrigin(skew, at: moment).map { $0 <= 0 } ?? false
    }

    /// The whole seconds that are left of the token that this one was made from, a begun one not counted; nil where it was made from none.
    private func secondsOfOrigin(_ skew: ClockSkew, at moment: Moment) -> Int64? {
        notAfter.map { skew.remaining(until: $0, wall: moment.wall / 1000 + (moment.wall % 1000 > 0 ? 1 : 0)) }
    }

    private func waited(until moment: Moment) -> Int64 {
        Int64(clamping: (moment.now - min(moment.now, sentAt)) / 1_000_000_000)
    }

    private func secondsStated(_ skew: ClockSkew, _ waited: Int64, wall: Int64) -> Int64? {
        // Less than a second is short, and not unsaid.
        if let lifetime { return Int64(clamping: lifetime > 0 ? max(lifetime / 1_000_000_000, 1) : 0) }
        guard let stated = statedTimes else { return nil }
        let left = skew.remaining(until: stated.expires, wall: wall)
        let whole = stated.issued.map { stated.expires.subtractingReportingOverflow($0) }
        let life = whole.flatMap { $0.overflow || $0.partialValue <= 0 ? nil : $0.partialValue }
        // Over by our clock on arrival: then it is our clock that is wrong.
        guard left > 0 else { return life }
        return min(left.addingReportingOverflow(waited).partialValue, life ?? .max)
    }
}
