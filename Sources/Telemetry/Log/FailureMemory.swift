import Synchronization

/// The last failed requests of each route, for an operator who asks why they failed: each kind of failure once, with its number and its last
/// requests.
///
/// The log thread fills it with the access records of failed requests, so that a data loop does nothing for it. A caller's path does not come
/// in, nor anything of a head. Bounded: `maximumRoutes` routes, `maximumKinds` kinds for each and `maximumRequests` requests of a kind, about
/// 600 KiB when all of it is full.
public final class FailureMemory: Sendable {
    /// Routes past this number take the place of the one that has failed least recently.
    public static let maximumRoutes = 128
    /// Kinds past this number take the place of another one.
    public static let maximumKinds = 8
    /// Requests that are remembered of a kind.
    public static let maximumRequests = 4

    /// Failures of a route that have the same answer to the question why.
    struct Group: Sendable, Equatable {
        let kind: Kind
        var count: UInt64 = 0
        /// Nanoseconds of the wall clock since 1970.
        var firstAt: UInt64
        var lastAt: UInt64 = 0
        /// The newest first.
        var requests: [RequestFacts] = []
    }

    /// Numbers of the log's name tables.
    struct Kind: Sendable, Hashable {
        /// 0: no problem of ours; the upstream answered so itself, or the answer was cut.
        var fault: UInt16
        /// 0: the caller left before there was a status.
        var status: UInt16
        var incomplete: LogSide

        var isFailure: Bool { fault != 0 || incomplete != .none || status >= 400 || status == 0 }
    }

    // Uncontended: the log thread and an operator who asks. A failure is never a cache hit.
    private let groups = Mutex<[UInt16: [Group]]>([:])

    init() {}

    // MARK: - The log thread

    /// Takes up a record if its request failed.
    func note(_ record: borrowing AccessRecord) {
        let (route, kind) = (
            record.route, Kind(fault: record.fault, status: record.status, incomplete: record.incomplete)
        )
        guard kind.isFailure else { return }
        let request = RequestFacts(record)
        groups.withLock { groups in
            if groups[route] == nil, groups.count >= Self.maximumRoutes,
                let oldest = groups.min(by: { Self.lastFailure($0.value) < Self.lastFailure($1.value) })
            {
                groups[oldest.key] = nil
            }
            Self.add(request, of: kind, to: &groups[route, default: []])
        }
    }

    private static func lastFailure(_ groups: [Group]) -> UInt64 { groups.map(\.lastAt).max() ?? 0 }

    private static func add(_ request: RequestFacts, of kind: Kind, to groups: inout [Group]) {
        var group = Group(kind: kind, firstAt: request.time)
        if let index = groups.firstIndex(where: { $0.kind == kind }) {
            group = groups.remove(at: index)
        } else if groups.count >= maximumKinds {
            // The upstream's own answers go first: callers can bring about many kinds of them, and would so drive out the problems.
            let own = groups.lastIndex { $0.kind.fault == 0 && $0.kind.incomplete == .none }
            groups.remove(at: own ?? groups.count - 1)
        }
        group.count &+= 1
        group.lastAt = request.time
        if group.requests.count >= maximumRequests { group.requests.removeLast() }
        group.requests.insert(request, at: 0)
        groups.insert(group, at: 0)
    }

    // MARK: - Any thread

    /// The kinds of failure of each route, by the route's number; the last one first.
    var all: [UInt16: [Group]] { groups.withLock { $0 } }
}
