/// Finds the earlier route that takes every request which a later one would take, without asking each earlier route.
///
/// The question whether one `Match` holds for all that another holds for, turned into a tree: listener, host, path by segments, headers in order; at its ends stand routes by
/// method. Only a host that is equal, absent or the pattern above, only a path that the asked one begins with, and only headers that it
/// has too can cover it, and these are few, however many routes there are. All of the tree is one flat table, because a path may have
/// more segments than a stack has room for.
struct RouteCover {
    private var steps: [Step: Int] = [:]
    private var ends: [Int: End] = [:]
    private var nodes = 1
    /// Places of the tree that were looked at, all questions together: what a test holds against the number of routes.
    private(set) var looks = 0

    private struct Step: Hashable {
        var from: Int
        var word: Word
    }

    private enum Word: Hashable {
        case listener(String)
        /// nil: any.
        case host(Match.Host?)
        /// With its slash.
        case segment(Substring)
        case anyPath
        /// The path up to here, and all below it.
        case prefix
        /// The rest behind the last slash.
        case exact(Substring)
        case header(NamedValue)
    }

    /// Routes that ask for the same but for the method, by position.
    private struct End {
        /// The first that takes all methods.
        var all: Int?
        /// Ascending.
        var byMethod: [String: [Member]] = [:]
    }

    private struct Member {
        var route: Int
        var methods: Set<String>
    }

    /// The first route on this listener that covers `match`.
    mutating func first(covering match: Match, on listener: String) -> Int? {
        guard let start = next(0, .listener(listener)) else { return nil }
        let headers = Self.sorted(match.headers)
        var best: Int?
        for host in Self.hosts(above: match.host) {
            guard let node = next(start, .host(host)) else { continue }
            for end in ends(above: match.path, from: node) {
                guard let found = first(with: headers, match.methods, from: end) else { continue }
                best = min(best ?? found, found)
            }
        }
        return best
    }

    /// - Parameter route: its position; later calls have greater ones. A route that is covered on this listener need not be told of: what it
    ///   covers is covered by the earlier one too.
    mutating func add(_ match: Match, at route: Int, on listener: String) {
        var node = made(made(0, .listener(listener)), .host(match.host))
        switch match.path {
        case nil: node = made(node, .anyPath)
        case .prefix(let path)?, .exact(let path)?:
            let (segments, rest) = Self.segments(path)
            for segment in segments { node = made(node, .segment(segment)) }
            node = made(node, rest.isEmpty ? .prefix : .exact(rest))
        }
        for header in Self.sorted(match.headers) { node = made(node, .header(header)) }
        var end = ends.removeValue(forKey: node) ?? End()
        if match.methods.isEmpty {
            end.all = end.all ?? route
        } else {
            let member = Member(route: route, methods: Set(match.methods))
            for method in member.methods { end.byMethod[method, default: []].append(member) }
        }
        ends[node] = end
    }

    // MARK: - Steps

    private mutating func next(_ node: Int, _ word: Word) -> Int? {
        looks += 1
        return steps[Step(from: node, word: word)]
    }

    private mutating func made(_ node: Int, _ word: Word) -> Int {
        let step = Step(from: node, word: word)
        if let known = steps[step] { return known }
        defer { nodes += 1 }
        steps[step] = nodes
        return nodes
    }

    private static func hosts(above host: Match.Host?) -> [Match.Host?] {
        guard let host else { return [nil] }
        guard case .exact(let name) = host, let dot = name.firstIndex(of: "."), dot != name.startIndex else {
            return [nil, host]
        }
        return [nil, host, .oneLabel(String(name[dot...]))]
    }

    private mutating func ends(above path: Match.Path?, from node: Int) -> [Int] {
        var found: [Int] = []
        if let any = next(node, .anyPath) { found.append(any) }
        guard case .prefix(let path)? = path else {
            guard case .exact(let path)? = path else { return found }
            return found + ends(of: path, from: node)
        }
        return found + ends(of: path, from: node)
    }

    private mutating func ends(of path: String, from node: Int) -> [Int] {
        var found: [Int] = []
        var node = node
        let (segments, rest) = Self.segments(path)
        for segment in segments {
            guard let below = next(node, .segment(segment)) else { return found }
            node = below
            if let end = next(node, .prefix) { found.append(end) }
        }
        if !rest.isEmpty, let end = next(node, .exact(rest)) { found.append(end) }
        return found
    }

    /// Each with its slash; the rest has none.
    private static func segments(_ path: String) -> (whole: [Substring], rest: Substring) {
        var whole: [Substring] = []
        var start = path.utf8.startIndex
        while let slash = path.utf8[start...].firstIndex(of: UInt8(ascii: "/")) {
            let end = path.utf8.index(after: slash)
            whole.append(path[start..<end])
            start = end
        }
        return (whole, path[start...])
    }

    /// A set in an order, so that one path of the tree stands for it.
    private static func sorted(_ headers: [NamedValue]) -> [NamedValue] {
        var sorted: [NamedValue] = []
        for header in headers.sorted(by: { ($0.name, $0.value) < ($1.name, $1.value) }) where header != sorted.last {
            sorted.append(header)
        }
        return sorted
    }

    // MARK: - Headers and methods

    /// Down every path of the tree that asks for no other headers than these.
    private mutating func first(with headers: [NamedValue], _ methods: [String], from node: Int) -> Int? {
        var best: Int?
        var open = [(node: node, from: 0)]
        while let (node, from) = open.popLast() {
            if let found = first(with: methods, at: node) { best = min(best ?? found, found) }
            for index in from..<headers.count {
                if let below = next(node, .header(headers[index])) { open.append((below, index + 1)) }
            }
        }
        return best
    }

    private mutating func first(with methods: [String], at node: Int) -> Int? {
        guard let end = ends[node] else { return nil }
        guard !methods.isEmpty else { return end.all }
        // Whoever takes all of them stands under each of them: under the rarest the fewest others do.
        let lists = methods.map { end.byMethod[$0] ?? [] }
        let rarest = lists.min { $0.count < $1.count } ?? []
        let member = rarest.first { member in
            looks += 1
            return methods.allSatisfy(member.methods.contains)
        }
        guard let member else { return end.all }
        return min(end.all ?? member.route, member.route)
    }
}
