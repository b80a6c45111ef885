/// Where a challenge was met.
public struct Place: Hashable, Sendable {
    /// Number of the route.
    public var route: Int
    /// Hash of the path. Two paths that share one share a window, which costs the second of them a while.
    public var path: Int

    public init(route: Int = 0, path: Int = 0) {
        self.route = route
        self.path = path
    }
}

/// Rule 3: where a token that was just granted has been refused, a 401 gets the final answer for a while without another grant.
///
/// The while begins at a second and doubles, up to `negative_for`, as long as it goes on like this. It holds for the path, since most often it
/// is one URL that refuses, or one moment in which the token was revoked again. A route is held where three of its paths in a row have refused
/// a token of their own each: then its upstream refuses whatever the issuer grants. Other routes of the same key are never held.
struct RegrantWindows: Equatable, Sendable {
    private var paths: [Place: Window] = [:]
    private var routes: [Int: Window] = [:]
    /// The latest, at most three a route, of different paths and generations.
    private var refusals: [Refusal] = []

    private struct Window: Equatable, Sendable {
        var until: Instant
        var span: Nanoseconds
        /// Challenges that ask for more are no refusals and pass, but not for ever.
        var stepUpsLeft = 3
    }

    private struct Refusal: Equatable, Sendable {
        let place: Place
        let generation: UInt64
        let at: Instant
    }

    static let first: Nanoseconds = .seconds(1)
    static let pathLimit = 16
    private static let refusalsOfARoute = 3

    func holds(_ place: Place, at now: Instant) -> Bool {
        now < paths[place]?.until ?? 0 || now < routes[place.route]?.until ?? 0
    }

    /// - Returns: whether a challenge that asks for more may pass.
    mutating func pass(at place: Place, now: Instant) -> Bool {
        guard holds(place, at: now) else { return true }
        let isPath = now < paths[place]?.until ?? 0
        guard let left = isPath ? paths[place]?.stepUpsLeft : routes[place.route]?.stepUpsLeft, left > 0 else {
            return false
        }
        if isPath { paths[place]?.stepUpsLeft -= 1 } else { routes[place.route]?.stepUpsLeft -= 1 }
        return true
    }

    /// A replay was refused with the token that was granted for it.
    /// - Parameter limit: the longest window.
    mutating func refused(_ generation: UInt64, at place: Place, limit: Nanoseconds, now: Instant) {
        paths = paths.filter { now < $0.value.until.saturatingAdd(limit) }
        routes = routes.filter { now < $0.value.until.saturatingAdd(limit) }
        if paths[place] == nil, paths.count >= Self.pathLimit,
            let oldest = paths.min(by: { $0.value.until < $1.value.until })
        {
            paths[oldest.key] = nil
        }
        paths[place] = Self.prolonged(paths[place], limit: limit, now: now)
        note(Refusal(place: place, generation: generation, at: now), limit: limit)
        guard refusals.count(where: { $0.place.route == place.route }) == Self.refusalsOfARoute else { return }
        routes[place.route] = Self.prolonged(routes[place.route], limit: limit, now: now)
    }

    private mutating func note(_ refusal: Refusal, limit: Nanoseconds) {
        // Long enough to see that it goes on while the route is held for as long as it ever is.
        let memory = limit.saturatingAdd(limit).saturatingAdd(limit)
        refusals.removeAll { $0.place == refusal.place || $0.at.saturatingAdd(memory) <= refusal.at }
        let isRoutes: (Refusal) -> Bool = { $0.place.route == refusal.place.route }
        // Many requests that carried the same token are one refusal.
        guard !refusals.contains(where: { isRoutes($0) && $0.generation == refusal.generation }) else { return }
        if refusals.count(where: isRoutes) == Self.refusalsOfARoute, let first = refusals.firstIndex(where: isRoutes) {
            refusals.remove(at: first)
        }
        refusals.append(refusal)
    }

    /// One that is open is not prolonged: nothing new is known.
    private static func prolonged(_ window: Window?, limit: Nanoseconds, now: Instant) -> Window {
        guard let window else { return Window(until: now.saturatingAdd(min(first, limit)), span: min(first, limit)) }
        guard window.until <= now else { return window }
        let span = min(window.span.saturatingAdd(window.span), limit)
        return Window(until: now.saturatingAdd(span), span: span)
    }

    /// Nothing is held any more.
    func isOver(at now: Instant) -> Bool {
        paths.values.allSatisfy { $0.until <= now } && routes.values.allSatisfy { $0.until <= now }
    }
}
