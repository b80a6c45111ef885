package import Telemetry

/// The families and cells of a configuration's metrics, by name.
package struct MetricPlan: Sendable {
    package private(set) var schema = MetricSchema()
    /// By route; the last row counts requests that found no route.
    package var requests: [MetricRow] = []
    /// Answers that ended in their middle, by side (`LogSide`), and answers of our own, by problem (`Fault.Kind`); as `requests`.
    var incomplete: [MetricRow] = []
    var problems: [MetricRow] = []
    /// Of all routes together, by problem.
    var allProblems: MetricRow
    package var durations: [MetricHistogram] = []
    package var upstreamDurations: [MetricHistogram] = []
    package var replays: [(accepted: MetricCell, refused: MetricCell)] = []
    /// By route; nil for a route that conceals nothing.
    var concealed: [MetricCell?] = []
    package var lookups: [MetricCell] = []
    package var callers: MetricCell
    /// By identity.
    package var waiters: [MetricCell] = []
    package var waits: [MetricHistogram] = []
    package var glitches: [MetricCell] = []
    /// By upstream.
    var upstreams: [UpstreamCells] = []

    /// - Parameter concealing: indices of the routes that keep their credential out of answers.
    package init(
        routes: [String], identities: [String] = [], upstreams: [String] = [], concealing: Set<Int> = []
    ) throws(MetricFault) {
        let requestFamily = try schema.family(
            "cardea_requests_total", help: "Requests by route and status.", kind: .counter, labels: ["route", "code"],
            omitsZeros: true)
        let incompleteFamily = try schema.family(
            "cardea_incomplete_answers_total", help: "Answers that ended in their middle, by whose doing that was.",
            kind: .counter, labels: ["route", "side"], omitsZeros: true)
        let problemFamily = try schema.family(
            "cardea_problems_total", help: "Answers of the gateway's own, by problem.", kind: .counter,
            labels: ["route", "problem"], omitsZeros: true)
        // A series that begins with its first count shows no increase: what happens once is seen only in one that was there at 0. There are
        // too many problems of too many routes for that.
        let allProblemsFamily = try schema.family(
            "cardea_problem_answers_total",
            help: "Answers of the gateway's own on all routes, by problem; each problem is there from the start, at 0.",
            kind: .counter, labels: ["problem"])
        allProblems = try schema.row(allProblemsFamily, columns: Self.problemWords)
        let durationFamily = try schema.family(
            "cardea_request_duration_seconds", help: "Time from a request's first byte to its answer's last.",
            kind: .histogram, labels: ["route"])
        let upstreamFamily = try schema.family(
            "cardea_upstream_duration_seconds",
            help: "Time from the sending of a request to the first byte of the upstream's answer, the last try's.",
            kind: .histogram, labels: ["route"], omitsZeros: true)
        let replayFamily = try schema.family(
            "cardea_replays_total", help: "Requests sent a second time after a challenge.", kind: .counter,
            labels: ["route", "result"])
        let lookupFamily = try schema.family(
            "cardea_token_lookups_total", help: "Where requests found their token.", kind: .counter, labels: ["result"])
        let callerFamily = try schema.family(
            "cardea_caller_connections", help: "Connections of callers now.", kind: .gauge)
        let glitchFamily = try schema.family(
            "cardea_glitches_total", help: "Odd events that were dealt with.", kind: .counter, labels: ["kind"])
        for route in routes + ["-"] {
            requests.append(try schema.row(requestFamily, [route], columns: StatusColumns.labels))
            incomplete.append(try schema.row(incompleteFamily, [route], columns: Self.sides))
            problems.append(try schema.row(problemFamily, [route], columns: Self.problemWords))
        }
        for route in routes {
            durations.append(try schema.histogram(durationFamily, [route]))
            upstreamDurations.append(try schema.histogram(upstreamFamily, [route]))
            replays.append(
                (
                    try schema.series(replayFamily, [route, "accepted"]),
                    try schema.series(replayFamily, [route, "refused"])
                ))
        }
        let concealedFamily = try schema.family(
            "cardea_concealed_total",
            help: "Places in answers where a route with 'answers: conceal' kept its credential from the caller.",
            kind: .counter, labels: ["route"])
        for (index, route) in routes.enumerated() {
            concealed.append(concealing.contains(index) ? try schema.series(concealedFamily, [route]) : nil)
        }
        for state in AccessRecord.CacheState.allCases {
            lookups.append(try schema.series(lookupFamily, ["\(state.word)"]))
        }
        callers = try schema.series(callerFamily)
        let waiterFamily = try schema.family(
            "cardea_waiters", help: "Requests that wait for a token now.", kind: .gauge, labels: ["identity"])
        let waitFamily = try schema.family(
            "cardea_token_wait_duration_seconds",
            help: "Time that requests waited for a token that was not at hand, whatever came of it.", kind: .histogram,
            labels: ["identity"])
        for identity in identities {
            waiters.append(try schema.series(waiterFamily, [identity]))
            waits.append(try schema.histogram(waitFamily, [identity]))
        }
        self.upstreams = try UpstreamCells.make(upstreams, in: &schema)
        for kind in Glitch.allCases { glitches.append(try schema.series(glitchFamily, [kind.rawValue])) }
    }

    private static let sides = LogSide.allCases.map { "\($0.word)" }
    private static let problemWords = Fault.Kind.allCases.map(\.word)
}

/// Odd but survivable events, which show a hostile or broken peer.
package enum Glitch: String, CaseIterable, Sendable {
    case unusableChallenge = "unusable_challenge"
    case loginRedirect = "login_redirect"
    case weakerScheme = "weaker_scheme"
    case weakerSchemeRefused = "weaker_scheme_refused"
    case acceptFailed = "accept_failed"
    case connectionLimit = "connection_limit"
    case arrivalLimit = "arrival_limit"
    case streamLimit = "stream_limit"
    case slowArrival = "slow_arrival"
    case slowHead = "slow_head"
    case slowTransfer = "slow_transfer"
    case proxyHeader = "proxy_header"
    case notRedirected = "not_redirected"
    case unmatchedConnection = "unmatched_connection"
    case unprovenUpstream = "unproven_upstream"
    case clearTextOnTLS = "clear_text_on_tls"
    case handshakeFailed = "handshake_failed"
}

/// The counters of one loop.
///
/// A class: as a value it would be copied out of its owner for every count, a dozen references each time.
package final class LoopMetrics: Sendable {
    let plan: MetricPlan
    let block: MetricBlock

    init(plan: MetricPlan, block: MetricBlock) {
        self.plan = plan
        self.block = block
    }

    func finished(route: Int?, status: Int, nanoseconds: UInt64, cache: AccessRecord.CacheState) {
        block.add(plan.requests[route ?? plan.requests.count - 1][StatusColumns.column(of: status)])
        block.add(plan.lookups[Int(cache.rawValue)])
        if let route { block.observe(plan.durations[route], nanoseconds: nanoseconds) }
    }

    func upstreamAnswered(route: Int, nanoseconds: UInt64) {
        block.observe(plan.upstreamDurations[route], nanoseconds: nanoseconds)
    }

    /// An answer ended in its middle.
    func cut(route: Int?, by side: LogSide) {
        block.add(plan.incomplete[route ?? plan.incomplete.count - 1][Int(side.rawValue)])
    }

    /// - Parameter count: places in an answer.
    func concealed(route: Int, _ count: UInt64) {
        if let cell = plan.concealed[route] { block.add(cell, count) }
    }

    /// An answer was our own.
    func answered(route: Int? = nil, _ problem: Fault.Kind) {
        guard let column = Fault.Kind.allCases.firstIndex(of: problem) else { return }
        block.add(plan.problems[route ?? plan.problems.count - 1][column])
        block.add(plan.allProblems[column])
    }

    func replayed(route: Int?, refused: Bool) {
        guard let route else { return }
        block.add(refused ? plan.replays[route].refused : plan.replays[route].accepted)
    }

    func glitch(_ glitch: Glitch) {
        guard let index = Glitch.allCases.firstIndex(of: glitch) else { return }
        block.add(plan.glitches[index])
    }

    func waitBegan(identity: Int) { block.add(plan.waiters[identity]) }
    func waitEnded(identity: Int, nanoseconds: UInt64) {
        block.subtract(plan.waiters[identity])
        block.observe(plan.waits[identity], nanoseconds: nanoseconds)
    }
    func upstream(_ index: Int) -> UpstreamMetrics? {
        index < plan.upstreams.count ? UpstreamMetrics(cells: plan.upstreams[index], block: block) : nil
    }

    func callerOpened() { block.add(plan.callers) }
    func callerClosed() { block.subtract(plan.callers) }
}
