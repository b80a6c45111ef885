internal import Fleet

/// How far sessions have come that this gateway has not met, by the names that news give them.
///
/// Others may have made many steps with a session before it is needed here for the first time. What the shared server gives then counts only
/// where news have told of nothing newer, since whoever writes to the server can put an older one back. Most news of a large fleet are of
/// sessions that nobody asks for here, so that the latest are remembered, at least half of `most`.
struct HeardSessions {
    struct Heard: Equatable {
        var version: SessionVersion
        /// This version has ended.
        var isOver: Bool
    }

    /// Sessions, of about 150 octets each.
    static let most = 8192

    private var latest: [SharedName: Heard] = [:]
    /// Heard of before those; given up when there are as many of the others.
    private var former: [SharedName: Heard] = [:]

    var count: Int { latest.count + former.count }

    /// News older than what was heard change nothing. For one version the end counts, as nothing but a newer one comes after it.
    mutating func note(_ version: SessionVersion, of name: SharedName, isOver: Bool) {
        if let known = latest[name] ?? former[name],
            version < known.version || version == known.version && known.isOver
        {
            return
        }
        former[name] = nil
        if latest.count >= Self.most / 2 {
            former = latest
            latest = [:]
        }
        latest[name] = Heard(version: version, isOver: isOver)
    }

    /// The session is met now, and what is known of it stands elsewhere from here on.
    mutating func take(_ name: SharedName) -> Heard? {
        latest.removeValue(forKey: name) ?? former.removeValue(forKey: name)
    }
}
