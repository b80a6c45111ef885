internal import DataPath
internal import HotCache
internal import Keeping
internal import Tokens

/// Everything that a configuration takes over from the one that runs, because it has an identity of its own and must not be lost by
/// being compiled anew. Empty at start.
///
/// The parts are compared by what they are, never by position: a route that moves in the file keeps what it learned, an upstream its
/// connections, a token its slot.
struct Predecessor: Sendable {
    var edition: Int
    var limits: DataLimits?
    var listeners: [ListenerPlan]
    var upstreams: [UpstreamPlan]
    /// The choices of routes with several identities.
    var choices: [SchemeChoice] = []
    /// Numbers of the upstreams of the running edition and of every earlier one that still has exchanges.
    var upstreamNumbers: Set<Int>
    /// Where the numbers of new routes begin: none is ever given out twice.
    var nextRoute: Int
    /// Read here are only members that nothing changes but a reload.
    var routes: [KeptRoute]
    /// The slot of a key: the one it has, or a new one; nil when there is none left.
    var slot: @Sendable (AccessKey) -> Slot?

    /// Nothing runs yet, so the cache may be written here.
    static func none(_ cache: HotCache) -> Predecessor {
        Predecessor(
            edition: 0, limits: nil, listeners: [], upstreams: [], choices: [], upstreamNumbers: [], nextRoute: 0,
            routes: [],
            slot: { _ in cache.allocateSlot() })
    }
}

/// Gives routes the numbers by which loops and keeper speak of them.
struct RouteNumbers {
    /// By name. More than one only of a route that reloads have changed and taken back.
    private var earlier: [String: [KeptRoute]]
    private(set) var next: Int

    init(after routes: [KeptRoute], next: Int) {
        earlier = Dictionary(grouping: routes, by: \.name)
        self.next = next
    }

    /// The number of the route of old that is the same, and that route; a new one where there is none. Each is given once, since a file may
    /// hold two equal routes.
    mutating func number(of route: KeptRoute) -> (Int, KeptRoute?) {
        if let position = earlier[route.name]?.firstIndex(where: { $0.isSame(as: route) }),
            let same = earlier[route.name]?.remove(at: position)
        {
            return (same.number, same)
        }
        defer { next += 1 }
        return (next, nil)
    }
}

extension KeptRoute {
    /// Whether what was learned of one holds for the other: the same place upstream, asked for with the same kind of token.
    func isSame(as other: KeptRoute) -> Bool {
        name == other.name && origin == other.origin && pathPrefix == other.pathPrefix && scopes == other.scopes
            && audience == other.audience && resource == other.resource && realm == other.realm
            && bindsToURL == other.bindsToURL && identity?.digest == other.identity?.digest
            && identity?.policy.kind == other.identity?.policy.kind
    }
}
