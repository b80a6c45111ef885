internal import HTTP1

/// Which routes of a list a request has to ask, by the beginning of their path or by their host.
///
/// The index only leaves out routes that cannot match; those that are left come in the order of the list. Each route stands in one
/// bucket: under its path or its host, whichever fewer others share, or among those that every request has to ask (a pattern, neither
/// path nor host). A path counts with as many segments as it has, up to a bound: a thousand services below one `/api/` are told apart
/// by the next segment.
struct RouteIndex: Sendable {
    /// Positions of routes, ascending within each bucket: those that every request asks first, then all buckets. Empty: so few routes
    /// that asking each is as fast.
    let members: [Int32]
    private let unkeyed: Int
    private let byPath: Buckets
    private let byHost: Buckets
    /// Segments of the longest path that a bucket is for.
    private let depth: Int

    /// By hash; equal buckets are no equal keys.
    fileprivate struct Buckets {
        /// Where each bucket begins in `members`, and behind the last where it ends; empty without members.
        var starts: [Int32] = []
    }

    /// The length up to which comparing all routes of a list is faster than hashing.
    static let listed = 4
    /// Segments of a path that are told apart. Each that some route has costs every longer path a look.
    static let deepest = 4

    init(_ matches: [RouteMatch]) {
        var members: [Int32] = []
        var depth = 0
        guard matches.count > Self.listed else {
            self.members = members
            unkeyed = 0
            byPath = Buckets()
            byHost = Buckets()
            self.depth = depth
            return
        }
        let keys = matches.map { (path: $0.path.key, host: $0.host.hash) }
        var sharedPaths: [UInt32: Int] = [:]
        var sharedHosts: [UInt32: Int] = [:]
        for key in keys {
            if let path = key.path { sharedPaths[path.hash, default: 0] += 1 }
            if let host = key.host { sharedHosts[host, default: 0] += 1 }
        }
        var paths: [(hash: UInt32, index: Int32)] = []
        var hosts: [(hash: UInt32, index: Int32)] = []
        for (index, key) in keys.enumerated() {
            switch (key.path, key.host) {
            case (let path?, let host?) where sharedHosts[host, default: 0] < sharedPaths[path.hash, default: 0]:
                hosts.append((host, Int32(index)))
            case (let path?, _):
                paths.append((path.hash, Int32(index)))
                depth = max(depth, path.depth)
            case (nil, let host?): hosts.append((host, Int32(index)))
            case (nil, nil): members.append(Int32(index))
            }
        }
        unkeyed = members.count
        byPath = Buckets(paths, in: &members)
        byHost = Buckets(hosts, in: &members)
        self.members = members
        self.depth = depth
    }
}

// MARK: - Making

extension RouteIndex.Buckets {
    init(_ entries: [(hash: UInt32, index: Int32)], in members: inout [Int32]) {
        guard !entries.isEmpty else { return }
        var count = 8
        while count < 2 * entries.count { count *= 2 }
        var lists = [[Int32]](repeating: [], count: count)
        for entry in entries { lists[Int(entry.hash) & (count - 1)].append(entry.index) }
        starts.reserveCapacity(count + 1)
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
    /// The number of as many segments as are told apart, and how many these are.
    fileprivate var key: (hash: UInt32, depth: Int)? {
        switch self {
        case .any: nil
        case .exact(let path): Self.key(path.span)
        // `/` alone is the beginning of every path.
        case .prefix(let path): path.count > 1 ? Self.key(path.span) : nil
        }
    }

    private static func key(_ path: Span<UInt8>) -> (hash: UInt32, depth: Int)? {
        var hashes = SegmentHashes()
        var key: (hash: UInt32, depth: Int)?
        for depth in 1...RouteIndex.deepest {
            guard let hash = hashes.next(in: path) else { break }
            key = (hash, depth)
        }
        return key
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

extension RouteIndex {
    /// Buckets that a request has to ask, each with what is left of it.
    struct Candidates: ~Copyable {
        // Room for a bucket of each depth, that of the host, and that of the routes that every request asks.
        private var left = InlineArray<6, Range<Int>>(repeating: 0..<0)
        private var count = 0

        fileprivate mutating func add(_ bucket: Range<Int>) {
            guard !bucket.isEmpty else { return }
            left[count] = bucket
            count += 1
        }

        /// The earliest route that is left.
        mutating func next(in members: borrowing [Int32]) -> Int? {
            guard count > 0 else { return nil }
            var first = 0
            for other in 1..<max(count, 1)
            where members[left[other].lowerBound] < members[left[first].lowerBound] { first = other }
            let member = Int(members[left[first].lowerBound])
            left[first] = (left[first].lowerBound + 1)..<left[first].upperBound
            if left[first].isEmpty {
                count -= 1
                left[first] = left[count]
            }
            return member
        }
    }

    /// - Parameter path: as the paths of the routes are written.
    func candidates(host: UnsafeRawBufferPointer, path: Span<UInt8>) -> Candidates {
        var candidates = Candidates()
        candidates.add(0..<unkeyed)
        if !byHost.starts.isEmpty { candidates.add(byHost.range(hostHash(host))) }
        var hashes = SegmentHashes()
        for _ in 0..<depth {
            guard let hash = hashes.next(in: path) else { break }
            candidates.add(byPath.range(hash))
        }
        return candidates
    }
}
