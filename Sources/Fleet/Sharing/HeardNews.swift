internal import Numbers

/// Sealed news that do something by themselves count once: whoever can publish can tell them again for as long as clocks may differ.
///
/// A reset that is told again would give a password another try, and what was forgotten or is missed has gateways bring back what they
/// have. All other news lead to a look at what stands on the server, compare a version or an identity, or wake who waits anyway: told
/// twice, they do nothing. What is remembered is the message as it was opened, since one sealed text has more than one spelling.
///
/// A restart forgets what was heard. The server keeps no news for who was not there, so what was sealed before this gateway began to listen
/// is told again: it does not count. A sender whose clock is behind is not heard in the first moments, as any news may be lost; one whose
/// clock is ahead, by the two minutes that are allowed, could have its reset told again for that long after a restart.
final class HeardNews {
    private let since: WallTime
    private var heard: [String: WallTime] = [:]
    /// Resets and losses are rare. Beyond this many within the time, further ones do not count: none is ever forgotten too early.
    static let most = 4096
    /// Fewer than these are not swept.
    static let few = 64
    // Twice as many as were left by the last sweep: each message is looked at twice at most on the whole, and what no longer counts does
    // not stay until the table is full, which takes days.
    private var sweepsAt = HeardNews.few

    /// How many messages are remembered.
    var count: Int { heard.count }

    /// - Parameter since: when this gateway begins to listen.
    init(since: WallTime) { self.since = since }

    /// - Parameter moment: when the news were sealed, by the sender's clock.
    func counts(_ news: FleetNews, sealedAt moment: WallTime, at now: WallTime) -> Bool {
        guard news.actsByItself else { return true }
        guard moment >= since else { return false }
        let name = "\(moment.milliseconds) \(news.oldMessage)"
        guard heard[name] == nil else { return false }
        if heard.count >= sweepsAt {
            // News that were sealed longer ago than clocks may differ are not opened any more, so they need not be remembered.
            heard = heard.filter { now.left(at: $0.value) <= SealedEnvelope.tolerance }
            guard heard.count < Self.most else { return false }
            sweepsAt = min(Self.most, max(Self.few, 2 * heard.count))
        }
        heard[name] = moment
        return true
    }
}

extension FleetNews {
    fileprivate var actsByItself: Bool {
        switch self {
        case .reset, .rejected, .forgotten, .sessionMissed: true
        case .published, .withdrawn, .released, .spending, .session, .sessionEnded: false
        }
    }
}
