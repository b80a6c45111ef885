/// The target of a request that was challenged.
public struct RequestTarget: Hashable, Sendable {
    /// Number of the route.
    var route: Int
    /// Hash of the path. Two paths that share one share a window, which costs the second of them a while.
    public var path: Int

    /// Memberwise.
    public init(route: Int = 0, path: Int = 0) {
        self.route = route
        self.path = path
    }
}

/// Where a token that was just granted has been refused, a 401 gets the final answer for a while without another grant
/// (docs/design/tokens.md#rule-3).
///
/// The while is a `GrowingWindow`. It holds for the path, since most often it is one URL that refuses, or one moment in which the token was
/// revoked again. A route is held where three of its paths have refused a token of their own each: then its upstream may refuse whatever the
/// issuer grants. Other routes of the same key are never held.
///
/// Whether it does, or a few paths do and the rest is healthy, cannot be told from refusals alone; and a grant helps every path of the key,
/// whichever of them asked for it. So a held route lets those pass of which it is not known that a grant would be in vain:
/// - a path that has taken the key's token while the route was watched, and is refused now: that is what a revocation looks like, and neither
///   a path that always refuses nor one that asks for no token can look like it;
/// - a path that has refused no token of its own yet, as long as few such (`trials`) have passed in vain. One that is a success costs nothing.
///
/// Neither passes within a second of the last token that was granted in vain. So a revocation shuts a healthy path for a second at most,
/// however long others have refused. An upstream that refuses everything never brings the first and spends the second at one a second: it
/// costs three grants, four trials, and one for each of the growing windows, whatever its paths; at one request a second or more that is less
/// than 20 in 150 requests. What is left are paths that nobody has asked for lately, beside an endless stream of other new ones that refuse:
/// they may have to wait for the window's end, since nothing tells the ones from the others.
struct RegrantWindows: Equatable, Sendable {
    private var paths: [RequestTarget: GrowingWindow] = [:]
    private var routes: [Int: Door] = [:]
    /// The latest, at most eight a route, each of another generation.
    private var refusals: [Refusal] = []

    private struct Door: Equatable, Sendable {
        var window: GrowingWindow
        /// When a token was last refused here right after its grant.
        var refusedAt: Instant
        var trialsLeft = RegrantWindows.trials
        /// When the last trial was in vain, or one came back.
        var triedAt: Instant
    }

    private struct Refusal: Equatable, Sendable {
        let route: Int
        let generation: UInt64
        let at: Instant
        /// Different ones, so many that three refusals can be told to be of different paths.
        var paths: [Int]
    }

    static let pathLimit = 16
    static let trials = 4
    private static let refusalsThatHold = 3
    private static let refusalLimit = 8

    /// - Parameter hadTaken: the path has taken a token of the key since the route has been watched.
    func holds(_ target: RequestTarget, hadTaken: Bool = false, at now: Instant) -> Bool {
        if paths[target]?.isOpen(at: now) ?? false { return true }
        guard let door = routes[target.route], door.window.isOpen(at: now) else { return false }
        if now < door.refusedAt.saturatingAdd(GrowingWindow.first) { return true }
        return !hadTaken && (paths[target] != nil || door.trialsLeft == 0)
    }

    /// - Returns: whether a challenge that asks for more may pass.
    mutating func pass(at target: RequestTarget, hadTaken: Bool = false, now: Instant) -> Bool {
        guard holds(target, hadTaken: hadTaken, at: now) else { return true }
        let isPath = paths[target]?.isOpen(at: now) ?? false
        guard let left = isPath ? paths[target]?.stepUpsLeft : routes[target.route]?.window.stepUpsLeft, left > 0 else {
            return false
        }
        if isPath { paths[target]?.stepUpsLeft -= 1 } else { routes[target.route]?.window.stepUpsLeft -= 1 }
        return true
    }

    /// A replay, or a request that waited with it, was refused with the token that was granted for it.
    /// - Parameter limit: the longest window.
    /// - Returns: whether it is news to the route: many requests that carried the same token are one refusal.
    mutating func refused(_ generation: UInt64, at target: RequestTarget, limit: Nanoseconds, now: Instant) -> Bool {
        routes = routes.filter { !$0.value.window.isForgotten(at: now, limit: limit) }
        // A held route keeps its paths from showing that they still refuse; they are no new ones for that.
        paths = paths.filter { routes[$0.key.route] != nil || !$0.value.isForgotten(at: now, limit: limit) }
        let isFirstOfPath = paths[target] == nil
        if isFirstOfPath, paths.count >= Self.pathLimit,
            let oldest = paths.min(by: { $0.value.until < $1.value.until })
        {
            paths[oldest.key] = nil
        }
        paths[target] = GrowingWindow(after: paths[target], generation, limit: limit, now: now)
        let isNews = note(generation, at: target, limit: limit, now: now)
        hold(target.route, generation, isTrial: isFirstOfPath, isNews: isNews, limit: limit, now: now)
        return isNews
    }

    /// How long after the last refusal something of it is known. Nanoseconds.
    static func memory(limit: Nanoseconds) -> Nanoseconds {
        // Long enough to see that it goes on while the route is held for as long as it ever is.
        limit.saturatingAdd(limit).saturatingAdd(limit)
    }

    private mutating func note(_ generation: UInt64, at target: RequestTarget, limit: Nanoseconds, now: Instant) -> Bool
    {
        let memory = Self.memory(limit: limit)
        refusals.removeAll { $0.at.saturatingAdd(memory) <= now }
        if let known = refusals.firstIndex(where: { $0.route == target.route && $0.generation == generation }) {
            // Whichever of a burst is told first must not decide.
            if refusals[known].paths.count < Self.refusalsThatHold, !refusals[known].paths.contains(target.path) {
                refusals[known].paths.append(target.path)
            }
            return false
        }
        if refusals.count(where: { $0.route == target.route }) == Self.refusalLimit,
            let oldest = refusals.firstIndex(where: { $0.route == target.route })
        {
            refusals.remove(at: oldest)
        }
        refusals.append(Refusal(route: target.route, generation: generation, at: now, paths: [target.path]))
        return true
    }

    private mutating func hold(
        _ route: Int, _ generation: UInt64, isTrial: Bool, isNews: Bool, limit: Nanoseconds, now: Instant
    ) {
        let sets = refusals.filter { $0.route == route }.map(\.paths)
        guard Self.differ(sets[...], count: Self.refusalsThatHold, beside: []) else { return }
        guard var door = routes[route] else {
            routes[route] = Door(
                window: GrowingWindow(after: nil, generation, limit: limit, now: now), refusedAt: now, triedAt: now)
            return
        }
        guard isNews else { return }
        if !door.window.isOpen(at: now) {
            door.window = GrowingWindow(after: door.window, generation, limit: limit, now: now)
            // A few in vain long ago are no reason to shut new paths out for ever, where others go on refusing.
            if door.trialsLeft < Self.trials, door.triedAt.saturatingAdd(Self.memory(limit: limit)) <= now {
                door.trialsLeft += 1
                door.triedAt = now
            }
        } else if isTrial, door.trialsLeft > 0 {
            door.trialsLeft -= 1
            door.triedAt = now
        }
        door.refusedAt = now
        routes[route] = door
    }

    /// Whether `count` of the sets have a path each that none of the others of them is taken for.
    private static func differ(_ sets: ArraySlice<[Int]>, count: Int, beside taken: [Int]) -> Bool {
        guard count > 0 else { return true }
        return sets.indices.contains { index in
            sets[index].contains { path in
                !taken.contains(path) && differ(sets[(index + 1)...], count: count - 1, beside: taken + [path])
            }
        }
    }
}
