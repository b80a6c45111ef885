internal import Handshakes
internal import Tokens

extension AccessGrant {
    /// The seconds for which the token is good: as its issuer has stated, or else as the token itself does; nil where neither says.
    /// A token's `exp` is a time of the issuer's clock, which is corrected by what is known of that clock; and no token lives longer than
    /// from its `iat` to its `exp`, whatever the clocks say.
    func seconds(_ skew: ClockSkew, _ policy: LifetimePolicy, at moment: Moment) -> Int64? {
        let waited = Int64(clamping: (moment.now - min(moment.now, sentAt)) / 1_000_000_000)
        let own = secondsStated(skew, waited, wall: moment.wall / 1000)
        guard let end = notAfter else { return own }
        // Made from another token, and never good beyond it.
        let most = skew.remaining(until: end, wall: moment.wall / 1000).addingReportingOverflow(waited).partialValue
        return min(own ?? Int64(clamping: policy.defaultLifetime / 1_000_000_000), most)
    }

    private func secondsStated(_ skew: ClockSkew, _ waited: Int64, wall: Int64) -> Int64? {
        if let lifetime { return Int64(clamping: lifetime / 1_000_000_000) }
        guard let stated = statedTimes else { return nil }
        let left = skew.remaining(until: stated.expires, wall: wall)
        let whole = stated.issued.map { stated.expires.subtractingReportingOverflow($0) }
        let life = whole.flatMap { $0.overflow || $0.partialValue <= 0 ? nil : $0.partialValue }
        // Over by our clock on arrival: then it is our clock that is wrong.
        guard left > 0 else { return life }
        return min(left.addingReportingOverflow(waited).partialValue, life ?? .max)
    }
}
