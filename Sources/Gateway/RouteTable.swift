internal import HTTP1

/// The routes of one listener, found without asking each: by the first segment of their path, or by their host.
///
/// The index only leaves out routes that cannot match; those that are left are asked in the order of the file, so the first that matches
/// wins as it would in a list. Each route stands in one bucket: under its path or its host, whichever fewer others share, or among those
/// that every request has to ask (a pattern, neither path nor host).
struct RouteTable: Sendable {
    let routes: [RoutePlan]
    /// Empty: so few routes that asking each is as fast.
    private var byPath = Buckets()
    private var byHost = Buckets()
    private var unkeyed: [Int32] = []

    /// Ascending positions of routes by hash; equal buckets are no equal keys.
    fileprivate struct Buckets {
        /// Where each bucket begins in `members`, and behind the last where it ends; empty without members.
        var starts: [Int32] = []
        var members: [Int32] = []
    }

    /// As many are compared sooner than hashed.
    static let listed = 4
}

// MARK: - Making

extension RouteTable {
    init(_ routes: [RoutePlan]) {
        self.init(routes: routes)
        guard routes.count > Self.listed else { return }
        let keys = routes.map { (path: $0.matches.path.segmentHash, host: $0.matches.host.hash) }
        var sharedPaths: [UInt32: Int] = [:]
        var sharedHosts: [UInt32: Int] = [:]
        for key in keys {
            if let path = key.path { sharedPaths[path, default: 0] += 1 }
            if let host = key.host { sharedHosts[host, default: 0] += 1 }
        }
        var paths: [(hash: UInt32, index: Int32)] = []
        var hosts: [(hash: UInt32, index: Int32)] = []
        for (index, key) in keys.enumerated() {
            switch (key.path, key.host) {
            case (let path?, let host?) where sharedHosts[host, default: 0] < sharedPaths[path, default: 0]:
                hosts.append((host, Int32(index)))
            case (let path?, _): paths.append((path, Int32(index)))
            case (nil, let host?): hosts.append((host, Int32(index)))
            case (nil, nil): unkeyed.append(Int32(index))
            }
        }
        byPath = Buckets(paths)
        byHost = Buckets(hosts)
    }
}

extension RouteTable.Buckets {
    init(_ entries: [(hash: UInt32, index: Int32)]) {
        guard !entries.isEmpty else { return }
        var count = 8
        while count < 2 * entries.count { count *= 2 }
        var lists = [[Int32]](repeating: [], count: count)
        for entry in entries { lists[Int(entry.hash) & (count - 1)].append(entry.index) }
        for list in lists {
            starts.append(Int32(members.count))
            members += list
        }
        starts.append(Int32(members.count))
    }

    /// Where the routes of this hash stand in `members`.
    func range(_ hash: UInt32) -> Range<Int> {
        let bucket = Int(hash) & (starts.count - 2)
        return Int(starts[bucket])..<Int(starts[bucket + 1])
    }
}

extension RouteMatch.Path {
    fileprivate var segmentHash: UInt32? {
        switch self {
        case .any: nil
        case .exact(let path): firstSegmentHash(path.span)
        // `/` alone is the beginning of every path.
        case .prefix(let path): path.count > 1 ? firstSegmentHash(path.span) : nil
        }
    }
}

extension RouteMatch.Host {
    fileprivate var hash: UInt32? {
        guard case .exact(let host) = self else { return nil }
        return host.withUnsafeBytes { hostHash($0) }
    }
}

/// The same for names that are equal in any case.
private func hostHash(_ name: UnsafeRawBufferPointer) -> UInt32 {
    var hash: UInt32 = 0x811C_9DC5
    for octet in name { hash = (hash ^ UInt32(octet &- 0x41 < 26 ? octet | 0x20 : octet)) &* 0x0100_0193 }
    return hash
}

// MARK: - Finding

extension RouteTable {
    /// The first route that takes the request. Allocates nothing.
    /// - Parameter bytes: what `head` was parsed from.
    func first(for head: borrowing RequestHead, in bytes: UnsafeRawBufferPointer) -> RoutePlan? {
        guard !byPath.starts.isEmpty || !byHost.starts.isEmpty else {
            for route in routes where route.matches.mismatch(head, in: bytes) == nil { return route }
            return nil
        }
        var path = 0..<0
        if !byPath.starts.isEmpty, let hash = firstSegmentHash(bytes[head.path].octets) { path = byPath.range(hash) }
        var host = 0..<0
        if !byHost.starts.isEmpty { host = byHost.range(hostHash(hostName(of: head, in: bytes))) }
        var rest = 0..<unkeyed.count
        while true {
            let one = path.isEmpty ? Int32.max : byPath.members[path.lowerBound]
            let other = host.isEmpty ? Int32.max : byHost.members[host.lowerBound]
            let open = rest.isEmpty ? Int32.max : unkeyed[rest.lowerBound]
            let next = min(one, other, open)
            guard next != .max else { return nil }
            if next == one {
                path = (path.lowerBound + 1)..<path.upperBound
            } else if next == other {
                host = (host.lowerBound + 1)..<host.upperBound
            } else {
                rest = (rest.lowerBound + 1)..<rest.upperBound
            }
            let route = routes[Int(next)]
            if route.matches.mismatch(head, in: bytes) == nil { return route }
        }
    }
}
