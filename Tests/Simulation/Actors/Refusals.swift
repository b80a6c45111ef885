/// Requests whose credential an API has refused: the truth that answers to their callers are compared with.
struct Refusals {
    private var refusals: [String: (count: Int, at: UInt64)] = [:]
    /// When a gateway or a caller last had an API's refusal for good: from then on the gateway may hold grants back for a while.
    private var lastTold: [Route: [String: UInt64]] = [:]

    struct Route: Hashable {
        let gateway: Int
        let name: String
    }

    /// Nanoseconds for which refusals may keep a gateway from granting anew, at most.
    private static let hold: UInt64 = .seconds(45)
    /// Paths of a route that together hold all of it.
    private static let pathsThatHold = 3

    /// - Parameter time: when the refusal leaves the API. The second one of a request tells the gateway before any caller.
    mutating func note(_ id: String, _ path: String, of route: Route, at time: UInt64) {
        let count = (refusals[id]?.count ?? 0) + 1
        refusals[id] = (count, time)
        if count > 1 { told(path, of: route, at: time) }
    }

    /// When an API refused a request, where that was the first refusal of it.
    func first(of id: String) -> UInt64? {
        guard let refusal = refusals[id], refusal.count == 1 else { return nil }
        return refusal.at
    }

    /// A caller has the refusal, or what the gateway makes of it.
    mutating func told(_ path: String, of route: Route, at now: UInt64) { lastTold[route, default: [:]][path] = now }

    /// Whether what callers were told so far may keep a gateway from granting for a path.
    func mayHold(_ path: String, of route: Route, at now: UInt64) -> Bool {
        let told = (lastTold[route] ?? [:]).filter { $0.value + Self.hold > now }
        return told[path] != nil || told.count >= Self.pathsThatHold
    }
}
