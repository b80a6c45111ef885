/// The failures of a route that are remembered.
public struct RouteFailures: Sendable, Equatable {
    /// The route's name; `-` stands for requests that no route took.
    public let route: String
    /// Each kind once, the last one first; never empty.
    public let kinds: [FailureKind]
}

/// Failed requests of a route with the same problem and status.
public struct FailureKind: Sendable, Equatable {
    /// The problem's word, as the access record has it; nil where the answer was the upstream's own, or there was none.
    public let problem: String?
    /// 0: the caller left before there was an answer.
    public let status: Int
    /// The side that ended the answer in its middle.
    public let incomplete: LogSide
    /// Since the gateway's start.
    public let count: UInt64
    /// Nanoseconds of the wall clock since 1970.
    public let firstAt: UInt64
    /// Nanoseconds of the wall clock since 1970.
    public let lastAt: UInt64
    /// At most `FailureMemory.maximumRequests`, the newest first.
    public let requests: [RequestFacts]
}

/// The facts of a failed request that an operator is told: times, and where it went. Nothing of what the caller sent but a method of the usual
/// ones.
public struct RequestFacts: Sendable, Equatable {
    /// Nanoseconds of the wall clock since 1970, at the end of the exchange.
    public let time: UInt64
    /// One of RFC 9110's and PATCH; nil for any other, which is text of the caller's.
    public let method: String?
    /// Nanoseconds that it waited for a token.
    public let tokenWait: UInt64
    /// Nanoseconds until the request was sent.
    public let connect: UInt64
    /// Nanoseconds until the upstream's answer began.
    public let firstByte: UInt64
    /// Nanoseconds of the whole exchange.
    public let total: UInt64
    /// How the token was come by.
    public let cache: AccessRecord.CacheState
    /// The request was sent a second time, with another credential.
    public let isReplayed: Bool
    private let address: LogAddress

    private static let methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"]

    init(_ record: borrowing AccessRecord) {
        time = record.time
        let octets = record.method
        method = Self.methods.first { $0.utf8.elementsEqual(octets) }
        (tokenWait, connect) = (record.tokenWait, record.connect)
        (firstByte, total) = (record.firstByte, record.total)
        cache = record.cache
        isReplayed = record.replayed
        address = record.upstream
    }

    /// The address that answered or was tried last, in its usual form; nil where no connection was tried.
    public var upstream: String? {
        guard address.family != .none else { return nil }
        var line = LogLine()
        address.write(to: &line)
        return String(decoding: line.bytes, as: UTF8.self)
    }
}

extension LogThread {
    /// The failures that are remembered, by route: the route that failed last comes first.
    public var rememberedFailures: [RouteFailures] {
        failures.all.sorted { ($0.value.first?.lastAt ?? 0, $1.key) > ($1.value.first?.lastAt ?? 0, $0.key) }.map {
            route, groups in
            RouteFailures(
                route: routes.name(of: route),
                kinds: groups.map { group in
                    FailureKind(
                        problem: group.kind.fault == 0 ? nil : faults.name(of: group.kind.fault),
                        status: Int(group.kind.status), incomplete: group.kind.incomplete,
                        count: group.count, firstAt: group.firstAt, lastAt: group.lastAt,
                        requests: group.requests)
                })
        }
    }
}
