internal import Fleet

/// Flights that wait for another gateway's news, or for the first connection to the server.
struct NewsWaits: Sendable {
    /// By the name that the news are of; nil: the first connection.
    private var waits: [SharedName?: [Wait<Void>]] = [:]

    mutating func add(_ wait: Wait<Void>, for name: SharedName?) { waits[name, default: []].append(wait) }

    /// `wait` waits no more.
    mutating func giveUp(_ wait: Wait<Void>, for name: SharedName?) {
        waits[name]?.removeAll { $0 === wait }
        if waits[name]?.isEmpty == true { waits[name] = nil }
    }

    /// - Returns: who is to be told.
    mutating func came(_ name: SharedName?) -> [Wait<Void>] { waits.removeValue(forKey: name) ?? [] }
}
