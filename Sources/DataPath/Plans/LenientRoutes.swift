package import HTTP1

/// The routes of one listener as they stand for a server that reads paths less exactly than we do: one that takes `;…` from segments, has no
/// case, or answers `/admin` as `/admin/`.
///
/// A request whose path leads to one route as received, and to another as such a server reads it, would get from the first what is the
/// second's to give. It is refused where the two differ in `use`, `callers`, `subject` or `to`.
package final class LenientRoutes: Sendable {
    private let routes: [RoutePlan]
    /// The matches of `routes`, with their paths as `writeLenientPath` writes them.
    private let matches: [RouteMatch]
    private let index: RouteIndex
    /// A bit for each length, modulo 64, that a path has to which only the slash at a route's end is missing.
    private let lengths: UInt64
    /// The same for paths that have a slash more than a route that is one path alone.
    private let slashedLengths: UInt64
    /// Some route's own path is written otherwise, so that any request may mean it.
    private let concernsAll: Bool

    /// Nil where no second reading could lead to a route that differs.
    init?(_ routes: [RoutePlan]) {
        guard let first = routes.first, routes.contains(where: { $0.standing != first.standing }),
            routes.contains(where: { $0.matches.path.octets != nil })
        else { return nil }
        self.routes = routes
        matches = routes.map { route in
            var match = route.matches
            match.path = match.path.lenient
            return match
        }
        index = RouteIndex(matches)
        var lengths: UInt64 = 0
        var slashedLengths: UInt64 = 0
        var concernsAll = false
        for (route, match) in zip(routes, matches) {
            if route.matches.path.octets != match.path.octets { concernsAll = true }
            switch match.path {
            case .prefix(let path): lengths |= 1 << UInt64((path.count &- 1) & 63)
            case .exact(let path): slashedLengths |= 1 << UInt64((path.count &+ 1) & 63)
            case .any: break
            }
        }
        self.lengths = lengths
        self.slashedLengths = slashedLengths
        self.concernsAll = concernsAll
    }

    /// Whether a second reading may lead elsewhere. Most paths are known not to by one look at their octets.
    private func mayDiffer(_ path: Span<UInt8>) -> Bool {
        guard !path.isEmpty, path[0] == 0x2F else { return false }
        if concernsAll || hasLenientReading(path) { return true }
        var end = path.count
        for index in path.indices where path[unchecked: index] == 0x3F {
            end = index
            break
        }
        return (path[end - 1] == 0x2F ? slashedLengths : lengths) & (1 << UInt64(end & 63)) != 0
    }

    /// The route to which the second reading leads, where that is not the same to give: the request must be refused. Allocates nothing.
    /// - Parameters:
    ///   - taken: the route that takes the request as received.
    ///   - bytes: what `head` was parsed from.
    ///   - port: as in the first reading.
    ///   - scratch: of no use afterwards; larger than any path.
    package func other(
        than taken: RoutePlan, for head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer,
        port: UInt16? = nil, scratch: UnsafeMutableRawBufferPointer
    ) -> RoutePlan? {
        // A path that is written out in full is meant as it is.
        guard taken.readsPathsTwice else { return nil }
        let target = bytes[head.path].octets
        guard mayDiffer(target) else { return nil }
        if case .prefix(let own) = taken.matches.path, own.count > 1, pathMatches(target, exact: own.span) {
            return nil
        }
        var cursor = OutputCursor(scratch)
        let reading = writeLenientPath(target, into: &cursor)
        if reading.isAmbiguous { return routes.first { $0.standing != taken.standing } }
        let path = cursor.written(in: scratch)
        guard let found = first(for: head, in: bytes, port: port, path: path),
            routes[found].standing != taken.standing
        else { return nil }
        // Told apart on purpose, by case alone.
        if let own = routes.firstIndex(where: { $0 === taken }), matches[own].path.isSame(as: matches[found].path) {
            return nil
        }
        return routes[found]
    }

    private func first(
        for head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer, port: UInt16?,
        path: UnsafeRawBufferPointer
    ) -> Int? {
        guard !index.members.isEmpty else {
            for position in matches.indices where isMatch(position, head, bytes, port, path) {
                return position
            }
            return nil
        }
        var candidates = index.candidates(host: hostName(of: head, in: bytes), path: path.octets)
        while let next = candidates.next(in: index.members) {
            if isMatch(next, head, bytes, port, path) { return next }
        }
        return nil
    }

    private func isMatch(
        _ position: Int, _ head: borrowing RequestHead, _ bytes: UnsafeRawBufferPointer, _ port: UInt16?,
        _ path: UnsafeRawBufferPointer
    ) -> Bool {
        if matches[position].mismatch(head, in: bytes, port: port, path: path) == nil { return true }
        guard case .exact = matches[position].path, path.count > 1 else { return false }
        // A slash at the end, sent or not, makes no other path to many servers.
        return matches[position].mismatch(head, in: bytes, port: port, path: .init(rebasing: path.dropLast())) == nil
    }
}

extension RouteMatch.Path {
    /// Nil for a path that takes every request, such as `/`.
    fileprivate var octets: [UInt8]? {
        switch self {
        case .any: nil
        case .exact(let path): path
        case .prefix(let path): path.count > 1 ? path : nil
        }
    }

    fileprivate var lenient: RouteMatch.Path {
        switch self {
        case .any: .any
        case .prefix(let path): .prefix(Self.written(path))
        case .exact(let path): .exact(Self.written(path))
        }
    }

    /// Without a slash that it does not have.
    private static func written(_ path: [UInt8]) -> [UInt8] {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: path.count + 1, alignment: 1)
        defer { memory.deallocate() }
        var cursor = OutputCursor(memory)
        let reading = writeLenientPath(path.span, into: &cursor)
        return Array(cursor.written(in: memory).dropLast(reading.addsSlash ? 1 : 0))
    }

    fileprivate func isSame(as other: RouteMatch.Path) -> Bool {
        switch (self, other) {
        case (.any, .any): true
        case (.exact(let path), .exact(let other)), (.prefix(let path), .prefix(let other)): path == other
        default: false
        }
    }
}
