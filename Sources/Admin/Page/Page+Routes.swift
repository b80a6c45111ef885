internal import Gateway
internal import Keeping
internal import Telemetry

/// Routes: how many requests, how they were answered, how long they took.
extension Page {
    var routes: HTML {
        let placed = Dictionary(facts.status.routes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let rows = zip(facts.traffic.routes, facts.trends).prefix(Self.maximumRoutes).map {
            row(of: $0, $1, placed[$0.name])
        }
        return """
            <section aria-labelledby="routes">
            <div class="title"><h2 id="routes">Routes</h2>\
            <span class="legend" aria-hidden="true"><i class="k s2"></i>2xx <i class="k s3"></i>3xx \
            <i class="k s4"></i>4xx <i class="k s5"></i>5xx</span></div>
            <div class="card"><table>
            <thead><tr>\
            <th scope="col">Route</th><th scope="col">Answers</th><th scope="col" class="n">Requests</th>\
            <th scope="col" class="n">A second</th><th scope="col" class="n">Median</th><th scope="col" class="n">p99</th></tr></thead>
            <tbody>
            \(rows)\(facts.traffic.unrouted.isEmpty ? nil : unrouted)</tbody>
            </table></div>
            \(leftOut(facts.traffic.routes.count - Self.maximumRoutes, "routes"))</section>

            """
    }

    private func row(of route: RouteTraffic, _ trend: RouteTrend, _ placed: RouteStatus?) -> HTML {
        let target = placed.map {
            "→ " + shortened(Self.shortOrigin($0.upstream), to: 120)
                + ($0.identity.map { " as " + shortened($0, to: 80) } ?? ", no credential")
        }
        let (median, p99) = (route.durations.estimate(quantile: 0.5), route.durations.estimate(quantile: 0.99))
        return """
            <tr><th scope="row"><b>\(shortened(route.name, to: 80))</b>\(span("quiet", target ?? "answered here"))</th>\
            \(answers(route.answers, replays: (route.replaysAccepted, route.replaysRefused)))\
            \(cell("Requests", grouped(route.total)))\
            \(cell("A second", trend.perSecond.map(spelledRate), trend.readings.map { ($0.at, $0.perSecond) }))\
            \(cell("Median", median.map(spelledLatency)))\
            \(cell("p99", p99.map(spelledLatency), trend.readings.map { ($0.at, Double($0.p99 ?? 0)) }))</tr>

            """
    }

    private var unrouted: HTML {
        """
        <tr><th scope="row"><b class="quiet">no route</b><span class="quiet">requests that matched none</span></th>\
        \(answers(facts.traffic.unrouted, replays: (0, 0)))\
        \(cell("Requests", grouped(facts.traffic.unrouted.reduce(0) { $0 &+ $1.count })))\
        \(cell("A second", nil))\(cell("Median", nil))\(cell("p99", nil))</tr>

        """
    }

    private func cell(_ name: String, _ value: String?, _ course: [(at: UInt64, value: Double)] = []) -> HTML {
        "<td class=\"n\" data-name=\"\(name)\">\(sparkline(course))<span>\(value ?? "–")</span></td>"
    }

    // MARK: - Answers

    private func answers(
        _ answers: [GatewayTraffic.NamedCount], replays: (accepted: UInt64, refused: UInt64)
    ) -> HTML {
        let classes = Self.classes(of: answers)
        let total = classes.reduce(0) { $0 + Double($1.count) }
        var start = 0.0
        let bars = classes.map { answer -> HTML in
            // Never too thin to be seen: one failure in a million is what the page is for.
            let width = max(Double(answer.count) / total * 1000, 8)
            defer { start += width }
            let x = decimal(min(start, 1000 - width), places: 1)
            return """
                <rect height="10" class="s\("\(answer.name.prefix(1))")" x="\(x)" width="\(decimal(width, places: 1))"/>
                """
        }
        let bar: HTML =
            "<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">\(bars)</svg>"
        var words = classes.map { span("s\($0.name.prefix(1))", "\(grouped($0.count)) × \($0.name)") }
        if classes.isEmpty { words.append(span("quiet", "none yet")) }
        if replays.accepted + replays.refused > 0 {
            let refused = replays.refused > 0 ? ", \(grouped(replays.refused)) refused again" : ""
            words.append(span("quiet", "\(grouped(replays.accepted)) replayed\(refused)"))
        }
        return """
            <td class="answers" data-name="Answers">\(classes.isEmpty ? nil : bar)<span class="classes">\(words)</span></td>
            """
    }

    /// Status classes in order, without zeros.
    static func classes(of answers: [GatewayTraffic.NamedCount]) -> [(name: String, count: UInt64)] {
        ["1", "2", "3", "4", "5", "o"].compactMap { digit in
            let count = answers.filter { $0.name.hasPrefix(digit) }.reduce(0) { $0 &+ $1.count }
            return count == 0 ? nil : (name: digit == "o" ? "other" : "\(digit)xx", count: count)
        }
    }

    // MARK: - The course of the last minutes

    /// Nanoseconds that a sparkline reaches back at most; and at least, so that the first few readings are not stretched over it.
    static let courseLength: (most: UInt64, least: UInt64) = (600_000_000_000, 60_000_000_000)

    private func sparkline(_ course: [(at: UInt64, value: Double)]) -> HTML? {
        let points = Self.points(of: course, at: facts.age).map {
            (x: decimal($0.x, places: 1), y: decimal($0.y, places: 1))
        }
        guard points.count > 2, let first = points.first, let last = points.last else { return nil }
        let line = points.map { "\($0.x) \($0.y)" }.joined(separator: "L")
        return """
            <svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">\
            <path class="area" d="M\(first.x) 24L\(line)L\(last.x) 24Z"/><path d="M\(line)"/></svg>
            """
    }

    /// In a box of 120 × 24 with the newest at the right; the highest value touches the top.
    static func points(of course: [(at: UInt64, value: Double)], at age: UInt64) -> [(x: Double, y: Double)] {
        let oldest = course.first.map { age - min($0.at, age) } ?? 0
        let length = min(max(oldest, courseLength.least), courseLength.most)
        let begin = age - min(length, age)
        let recent = course.filter { $0.at >= begin && $0.value.isFinite }
        let top = max(recent.map(\.value).max() ?? 0, .leastNormalMagnitude)
        return recent.map { reading in
            let passed = Double(age - min(reading.at, age)) / Double(length)
            return (x: 120 * (1 - passed), y: 22.5 - 21 * max(reading.value, 0) / top)
        }
    }
}

extension RouteTraffic {
    var total: UInt64 { answers.reduce(0) { $0 &+ $1.count } }
}
