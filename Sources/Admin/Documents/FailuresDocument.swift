internal import DataPath
internal import Gateway
internal import Telemetry

/// The body of `GET /failures`: why the last requests failed, by route. In JSON the names are in snake_case; spans are in seconds.
///
/// There is nothing in it that a caller sent: no query, no header field, no path.
public struct FailuresDocument: AdminDocument, Sendable, Equatable {
    /// Since when failures are remembered: the start of the gateway, as RFC 3339 has it. What was before is in the log alone.
    public var since: String
    /// Seconds since then.
    public var sinceSeconds: Double
    /// The route that failed last comes first; routes without a failure are left out.
    public var routes: [Route]

    /// A route's failures.
    public struct Route: Codable, Sendable, Equatable {
        /// The name in the configuration; `-` for requests that no route took.
        public var route: String
        /// The identity that the route has now; nil where it adds no credential.
        public var identity: String?
        /// Each kind of failure once, the last one first, at most `FailureMemory.maximumKinds`.
        public var kinds: [Kind]
    }

    /// Failures with the same problem and status.
    public struct Kind: Codable, Sendable, Equatable {
        /// The word of the problem; nil where the answer was the upstream's own, or there was none.
        public var problem: String?
        /// nil: the caller left before there was an answer.
        public var status: Int?
        /// The side that ended the answer in its middle; nil where it was whole.
        public var incomplete: String?
        /// The failure in a few words.
        public var title: String
        /// The cause as the gateway saw it.
        public var meaning: String
        /// What there is to do.
        public var advice: String
        /// Where to read on: a page of the documentation, with its section.
        public var read: String?
        /// Since the gateway's start.
        public var count: UInt64
        /// Since the first of them.
        public var firstSecondsAgo: Double
        /// Since the last of them.
        public var lastSecondsAgo: Double
        /// The last few, the newest first.
        public var requests: [Request]
    }

    /// A failed request.
    public struct Request: Codable, Sendable, Equatable {
        /// Its end, as the log has it.
        public var time: String
        /// nil for a method that is none of the usual ones.
        public var method: String?
        /// Of the whole exchange.
        public var seconds: Double
        /// Until there was a token.
        public var tokenSeconds: Double
        /// From the token until the request was sent.
        public var connectSeconds: Double
        /// From the sending to the first byte of the answer.
        public var firstByteSeconds: Double
        /// How the token was come by; nil where it did not come to that.
        public var cache: String?
        /// It was sent a second time, with another credential.
        public var replayed: Bool
        /// The address that answered or was tried last.
        public var upstream: String?
    }
}

// MARK: - Making

extension FailuresDocument {
    /// - Parameter route: the only route that is asked for; nil for all.
    init(_ report: FailureReport, of route: String?) {
        since = logTime(report.since)
        sinceSeconds = Self.seconds(report.now, after: report.since)
        routes = report.routes.filter { route == nil || $0.route == route }.map { failures in
            Route(
                route: failures.route, identity: report.identities[failures.route],
                kinds: failures.kinds.map { Kind($0, now: report.now) })
        }
    }

    fileprivate static func seconds(_ now: UInt64, after moment: UInt64) -> Double { seconds(now - min(now, moment)) }

    /// In steps of a millisecond.
    fileprivate static func seconds(_ nanoseconds: UInt64) -> Double { Double(nanoseconds / 1_000_000) / 1000 }
}

extension FailuresDocument.Kind {
    init(_ failure: FailureKind, now: UInt64) {
        problem = failure.problem
        status = failure.status == 0 ? nil : failure.status
        incomplete = failure.incomplete == .none ? nil : "\(failure.incomplete.word)"
        count = failure.count
        firstSecondsAgo = FailuresDocument.seconds(now, after: failure.firstAt)
        lastSecondsAgo = FailuresDocument.seconds(now, after: failure.lastAt)
        requests = failure.requests.map(FailuresDocument.Request.init)
        if let kind = failure.problem.flatMap(Fault.Kind.init(word:)) {
            (title, meaning, advice) = (kind.outcome.title, kind.meaning, kind.advice)
            let (page, section) = kind.incident.map { (Self.incidents, $0) } ?? (Self.problems, kind.word)
            read = "\(page)#\(section)"
        } else if failure.incomplete != .none {
            (title, meaning, advice) = Self.cut(by: failure.incomplete)
        } else if failure.status == 0 {
            title = "The caller left"
            meaning = "The caller closed its connection before there was an answer."
            advice =
                "See below where the time went: the token, the connection or the upstream. The caller may wait too short a time."
        } else {
            title = "The upstream's own answer"
            meaning = "The gateway passed the upstream's answer on. On a route with token_stub, the stub gave it."
            advice =
                "Look into the upstream's log at this time. 'cardea explain METHOD URL' shows what the gateway sends it, and as whom."
        }
    }

    private static let incidents = "docs/how-to/incident.md"
    private static let problems = "docs/reference/problems.md"

    private static func cut(by side: LogSide) -> (String, String, String) {
        let title = "The answer ended in its middle"
        return switch side {
        case .caller:
            (
                title, "The caller closed its connection while the answer was on its way.",
                "Ask the caller why; else nothing."
            )
        case .upstream:
            (
                title, "The upstream ended its answer before its announced end, or broke the protocol in it.",
                "Look into the upstream's log at this time."
            )
        case .gateway, .none:
            (
                title, "The gateway gave the answer up: its time was over, or the process was stopped.",
                "Look at the log around this time, and at the route's timeouts."
            )
        }
    }
}

extension FailuresDocument.Request {
    init(_ facts: RequestFacts) {
        time = logTime(facts.time)
        method = facts.method
        seconds = FailuresDocument.seconds(facts.total)
        tokenSeconds = FailuresDocument.seconds(facts.tokenWait)
        connectSeconds = FailuresDocument.seconds(facts.connect)
        firstByteSeconds = FailuresDocument.seconds(facts.firstByte)
        cache = facts.cache == .none ? nil : "\(facts.cache.word)"
        replayed = facts.isReplayed
        upstream = facts.upstream
    }
}
