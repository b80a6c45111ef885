import Testing

@testable import Admin
@testable import DataPath
@testable import Gateway
@testable import Telemetry

@Suite struct TrafficHistoryTests {
    private func traffic(_ counts: [String: UInt64]) -> GatewayTraffic {
        let routes = counts.sorted { $0.key < $1.key }.map { name, count in
            var buckets = [UInt64](repeating: 0, count: 17)
            buckets[1] = count
            return RouteTraffic(
                name: name, answers: [], durations: DurationDistribution(buckets: buckets, sum: count * 700_000),
                replaysAccepted: 0,
                replaysRefused: 0)
        }
        return GatewayTraffic(routes: routes, unrouted: [], callers: 0, lookups: [], glitches: [])
    }

    @Test func ratesComeFromDifferences() {
        let history = TrafficHistory()
        history.note(traffic(["a": 1000]), at: 100 * second)
        #expect(history.trend(of: "a").perSecond == nil)
        history.note(traffic(["a": 1100]), at: 110 * second)
        #expect(history.trend(of: "a").perSecond == 10)
        #expect(
            history.trend(of: "a").readings == [
                RouteTrend.Reading(at: 110 * second, span: 10 * second, requests: 100, p99: 995_000)
            ])
        #expect(history.trend(of: "b") == RouteTrend())
    }

    @Test func looksInQuickSuccessionCountOnce() {
        let history = TrafficHistory()
        history.note(traffic(["a": 0]), at: 0)
        history.note(traffic(["a": 5]), at: 4 * second)
        #expect(history.trend(of: "a").readings.isEmpty)
        history.note(traffic(["a": 10]), at: 5 * second)
        #expect(history.trend(of: "a").perSecond == 2)
    }

    @Test func theRateIsOfTheLastMinute() {
        let history = TrafficHistory()
        for step in 0...30 {
            history.note(traffic(["a": step < 20 ? 0 : UInt64(step - 19) * 60]), at: UInt64(step) * 10 * second)
        }
        #expect(history.trend(of: "a").perSecond == 6)
    }

    @Test func aLongPauseIsOneReading() {
        let history = TrafficHistory()
        history.note(traffic(["a": 0]), at: 0)
        history.note(traffic(["a": 7200]), at: 3600 * second)
        #expect(history.trend(of: "a").perSecond == 2)
    }

    @Test func memoryIsBounded() {
        let history = TrafficHistory()
        let names = (0..<500).map { "route-\($0)" }
        for step in 0..<200 {
            history.note(
                traffic(Dictionary(uniqueKeysWithValues: names.map { ($0, UInt64(step)) })),
                at: UInt64(step) * 5 * second)
        }
        let kept = names.map { history.trend(of: $0).readings.count }
        #expect(kept.max() == TrafficHistory.maximumReadings)
        #expect(kept.count { $0 > 0 } == TrafficHistory.maximumRoutes)
    }

    @Test func whatIsTenMinutesAgoIsForgotten() {
        let history = TrafficHistory()
        for step in 0...90 {
            var traffic = traffic(["a": UInt64(step)])
            traffic.routes[0].answers = [
                .init(name: "200", count: UInt64(step)), .init(name: "503", count: step < 3 ? 0 : 7),
            ]
            history.note(traffic, at: UInt64(step) * 10 * second)
            let isLate = step >= 64
            #expect(history.trend(of: "a").failures == (step < 3 || isLate ? 0 : 7), "\(step)")
        }
        #expect(history.trend(of: "a").readings.first?.at == 300 * second)
    }

    @Test func routesOfAnEarlierConfigurationAreForgotten() {
        let history = TrafficHistory()
        history.note(traffic(["a": 0, "b": 0]), at: 0)
        history.note(traffic(["a": 1, "b": 1]), at: 5 * second)
        history.note(traffic(["b": 2]), at: 10 * second)
        #expect(history.trend(of: "a") == RouteTrend())
        #expect(history.trend(of: "b").readings.count == 2)
    }
}
