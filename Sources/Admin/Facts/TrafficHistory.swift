internal import DataPath
internal import Gateway
internal import Synchronization
internal import Telemetry

/// How a route's traffic went lately.
struct RouteTrend: Sendable, Equatable {
    /// The traffic between two readings.
    struct Reading: Sendable, Equatable {
        /// The gateway's age at its end, nanoseconds.
        var at: UInt64
        /// Nanoseconds since the reading before.
        var span: UInt64
        var requests: UInt64
        /// Nanoseconds; nil when there were no requests.
        var p99: UInt64?
        /// Answers of 500 and above.
        var failures: UInt64 = 0

        var perSecond: Double { span == 0 ? 0 : Double(requests) * 1e9 / Double(span) }
    }

    /// Oldest first.
    var readings: [Reading] = []

    /// Over the last minute, or since the reading before if that is longer ago; nil before the second reading.
    var perSecond: Double? {
        var span: UInt64 = 0
        var requests: UInt64 = 0
        for reading in readings.reversed() {
            guard span == 0 || span + reading.span <= 60_000_000_000 else { break }
            span += reading.span
            requests += reading.requests
        }
        return span == 0 ? nil : Double(requests) * 1e9 / Double(span)
    }

    /// Answers of 500 and above, as far back as the readings reach.
    var failures: UInt64 { readings.reduce(0) { $0 &+ $1.failures } }
}

/// Remembers the traffic at earlier looks at it, so that a page without a script shows a course and not only sums.
///
/// There is no timer behind it: an open page and a scraping monitor come by often enough, and a gateway that nobody looks at pays nothing.
final class TrafficHistory: Sendable {
    /// Nanoseconds between two readings at least.
    static let step: UInt64 = 5_000_000_000
    static let maximumReadings = 120
    /// Nanoseconds after which a reading is forgotten.
    static let memory: UInt64 = 600_000_000_000
    /// Routes past these have no course: it bounds the memory to a MiB and a half, a third of which a monitor that comes by every fifteen
    /// seconds fills.
    static let maximumRoutes = 256

    private struct State: Sendable {
        var readAt: UInt64?
        var seen: [String: (durations: DurationDistribution, failures: UInt64)] = [:]
        var trends: [String: RouteTrend] = [:]
    }

    // Uncontended: everyone who looks comes through the keeper's loop. The lock only says so to the compiler.
    private let state = Mutex(State())

    func note(_ traffic: GatewayTraffic, at age: UInt64) {
        state.withLock { state in
            let before = state.readAt
            if let before, age < before + Self.step { return }
            state.readAt = age
            let routes = traffic.routes.prefix(Self.maximumRoutes)
            for route in routes {
                let earlier = state.seen[route.name]
                let failures = route.failures
                state.seen[route.name] = (route.durations, failures)
                guard let before, let earlier else { continue }
                let added = route.durations.since(earlier.durations)
                var trend = state.trends[route.name] ?? RouteTrend()
                trend.readings.removeAll { $0.at + Self.memory < age }
                if trend.readings.count == Self.maximumReadings { trend.readings.removeFirst() }
                trend.readings.append(
                    RouteTrend.Reading(
                        at: age, span: age - before, requests: added.count, p99: added.estimate(quantile: 0.99),
                        failures: failures - min(failures, earlier.failures)))
                state.trends[route.name] = trend
            }
            // A reload may have taken routes away.
            if state.seen.count > routes.count {
                let names = Set(routes.map(\.name))
                state.seen = state.seen.filter { names.contains($0.key) }
                state.trends = state.trends.filter { names.contains($0.key) }
            }
        }
    }

    func trend(of route: String) -> RouteTrend { state.withLock { $0.trends[route] ?? RouteTrend() } }
}
