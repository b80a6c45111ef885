internal import DataPath
public import Telemetry

/// The counts of all loops, in the terms of the configuration.
public struct GatewayTraffic: Sendable {
    /// In the order of the configuration.
    public var routes: [RouteTraffic]
    /// Requests that found no route.
    public var unrouted: [NamedCount]
    /// Connections of callers now.
    public var callers: Int
    /// Where requests found their token, in the words of the access log.
    public var lookups: [NamedCount]
    /// Odd events that were dealt with.
    public var glitches: [NamedCount]

    /// A count with the word of a metric's label.
    public struct NamedCount: Sendable, Equatable {
        /// The label's value.
        public var name: String
        /// Since the start of the process.
        public var count: UInt64
    }
}

/// Counts and durations of one route since the start of the process.
public struct RouteTraffic: Sendable {
    /// The name in the configuration.
    public var name: String
    /// The names of its identities where it has a list, in its order; else empty.
    public var list: [String] = []
    /// The identity of the list that a challenge of the upstream has chosen.
    public var chosen: String?
    /// Without zeros.
    public var answers: [GatewayTraffic.NamedCount]
    /// From the first byte of a request to the end of its exchange.
    public var durations: DurationDistribution
    /// Replays that the upstream took.
    public var replaysAccepted: UInt64
    /// Replays that the upstream refused again.
    public var replaysRefused: UInt64
}

extension Gateway {
    /// - Parameter snapshot: of this gateway's `metrics`.
    public func traffic(in snapshot: MetricSnapshot) -> GatewayTraffic {
        var traffic = GatewayTraffic(plan.metrics, names: plan.routes.map(\.name), snapshot)
        for (index, route) in plan.routes.enumerated() {
            guard let choice = route.choice else { continue }
            traffic.routes[index].list = choice.members.map(\.identity)
            traffic.routes[index].chosen = choice.position.map { choice.members[$0].identity }
        }
        return traffic
    }
}

extension GatewayTraffic {
    /// - Parameter names: of the routes that the plan was made for.
    init(_ cells: MetricPlan, names: [String], _ snapshot: MetricSnapshot) {
        let answers = cells.requests.map { row in
            StatusColumns.labels.indices.map { column in
                NamedCount(name: StatusColumns.labels[column], count: snapshot.value(row[column]))
            }.filter { $0.count > 0 }
        }
        routes = names.enumerated().map { index, name in
            RouteTraffic(
                name: name, answers: answers[index], durations: snapshot.distribution(cells.durations[index]),
                replaysAccepted: snapshot.value(cells.replays[index].accepted),
                replaysRefused: snapshot.value(cells.replays[index].refused))
        }
        unrouted = answers.last ?? []
        callers = Int(Int64(bitPattern: snapshot.value(cells.callers)))
        lookups = zip(AccessRecord.CacheState.allCases, cells.lookups).map { state, cell in
            NamedCount(name: "\(state.word)", count: snapshot.value(cell))
        }
        glitches = zip(Glitch.allCases, cells.glitches).map { glitch, cell in
            NamedCount(name: glitch.rawValue, count: snapshot.value(cell))
        }
    }
}
