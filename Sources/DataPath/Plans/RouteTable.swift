internal import HTTP1

/// The routes of one listener, found without asking each: the first in the order of the file that matches wins, as it would in a list.
///
/// An object, so that looking a route up counts no reference to each of its lists.
package final class RouteTable: Sendable {
    let routes: [RoutePlan]
    let index: RouteIndex
    /// The routes as a less exact server would read their paths; nil where such a reading leads to no route that differs.
    package let lenient: LenientRoutes?

    init(_ routes: [RoutePlan]) {
        self.routes = routes
        index = RouteIndex(routes.map(\.matches))
        lenient = LenientRoutes(routes)
    }

    /// The first route that takes the request. Allocates nothing.
    /// - Parameters:
    ///   - bytes: what `head` was parsed from.
    ///   - port: of the server that a proxy's caller names; nil where callers name us.
    func first(for head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer, port: UInt16? = nil) -> RoutePlan? {
        guard !index.members.isEmpty else {
            for route in routes where route.matches.mismatch(head, in: bytes, port: port) == nil { return route }
            return nil
        }
        var candidates = index.candidates(host: hostName(of: head, in: bytes), path: bytes[head.path].octets)
        while let next = candidates.next(in: index.members) {
            let route = routes[next]
            if route.matches.mismatch(head, in: bytes, port: port) == nil { return route }
        }
        return nil
    }
}
