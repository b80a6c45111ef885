internal import Gateway
internal import Keeping
internal import Telemetry

/// Routes: how many requests, how they were answered, how long they took.
extension Page {
    mutating func writeRoutes() {
        let placed = Dictionary(facts.status.routes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        out.markup("<section aria-labelledby=\"routes\">\n<div class=\"title\"><h2 id=\"routes\">Routes</h2>")
        out.markup("<span class=\"legend\" aria-hidden=\"true\"><i class=\"k s2\"></i>2xx <i class=\"k s3\"></i>3xx ")
        out.markup(
            "<i class=\"k s4\"></i>4xx <i class=\"k s5\"></i>5xx</span></div>\n<div class=\"card\"><table>\n<thead><tr>"
        )
        out.markup(
            "<th scope=\"col\">Route</th><th scope=\"col\">Answers</th><th scope=\"col\" class=\"n\">Requests</th>")
        out.markup(
            "<th scope=\"col\" class=\"n\">A second</th><th scope=\"col\" class=\"n\">Median</th><th scope=\"col\" class=\"n\">p99</th></tr></thead>\n<tbody>\n"
        )
        for (route, trend) in zip(facts.traffic.routes, facts.trends).prefix(Self.maximumRoutes) {
            writeRoute(route, trend, placed[route.name])
        }
        if !facts.traffic.unrouted.isEmpty { writeUnrouted() }
        out.markup("</tbody>\n</table></div>\n")
        leftOut(facts.traffic.routes.count - Self.maximumRoutes, "routes")
        out.markup("</section>\n")
    }

    private mutating func writeRoute(_ route: RouteTraffic, _ trend: RouteTrend, _ placed: RouteStatus?) {
        out.markup("<tr><th scope=\"row\">")
        out.element("b", shortened(route.name, to: 80))
        out.markup("<span class=\"quiet\">")
        if let placed {
            out.text("→ " + shortened(Self.place(placed.upstream), to: 120))
            out.text(placed.identity.map { " as " + shortened($0, to: 80) } ?? ", no credential")
        } else {
            out.text("answered here")
        }
        out.markup("</span></th>")
        writeAnswers(route.answers, replays: (route.replaysAccepted, route.replaysRefused))
        cell("Requests", grouped(route.total))
        cell("A second", trend.perSecond.map(spelledRate) ?? "–", trend.readings.map { ($0.at, $0.perSecond) })
        cell("Median", route.durations.estimate(quantile: 0.5).map(spelledLatency) ?? "–")
        cell(
            "p99", route.durations.estimate(quantile: 0.99).map(spelledLatency) ?? "–",
            trend.readings.map { ($0.at, Double($0.p99 ?? 0)) })
        out.markup("</tr>\n")
    }

    private mutating func writeUnrouted() {
        out.markup(
            "<tr><th scope=\"row\"><b class=\"quiet\">no route</b><span class=\"quiet\">requests that matched none</span></th>"
        )
        writeAnswers(facts.traffic.unrouted, replays: (0, 0))
        cell("Requests", grouped(facts.traffic.unrouted.reduce(0) { $0 &+ $1.count }))
        cell("A second", "–")
        cell("Median", "–")
        cell("p99", "–")
        out.markup("</tr>\n")
    }

    private mutating func cell(_ name: StaticString, _ value: String, _ course: [(at: UInt64, value: Double)] = []) {
        out.markup("<td class=\"n\" data-name=\"")
        out.markup(name)
        out.markup("\">")
        writeSparkline(course)
        out.element("span", value)
        out.markup("</td>")
    }

    // MARK: - Answers

    private mutating func writeAnswers(
        _ answers: [GatewayTraffic.StatusCount], replays: (accepted: UInt64, refused: UInt64)
    ) {
        let classes = Self.classes(of: answers)
        let total = classes.reduce(0) { $0 + Double($1.count) }
        out.markup("<td class=\"answers\" data-name=\"Answers\">")
        if total > 0 {
            out.markup("<svg class=\"bar\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">")
            var start = 0.0
            for answer in classes {
                // Never too thin to be seen: one failure in a million is what the page is for.
                let width = max(Double(answer.count) / total * 1000, 8)
                out.markup("<rect height=\"10\"")
                out.attribute("class", "s\(answer.name.first.map(String.init) ?? "")")
                out.attribute("x", decimal(min(start, 1000 - width), places: 1))
                out.attribute("width", decimal(width, places: 1))
                out.markup("/>")
                start += width
            }
            out.markup("</svg>")
        }
        out.markup("<span class=\"classes\">")
        if classes.isEmpty { out.element("span", class: "quiet", "none yet") }
        for answer in classes {
            out.element(
                "span", class: "s\(answer.name.first.map(String.init) ?? "")",
                "\(grouped(answer.count)) × \(answer.name)")
        }
        if replays.accepted + replays.refused > 0 {
            out.element(
                "span", class: "quiet",
                "\(grouped(replays.accepted)) replayed"
                    + (replays.refused > 0 ? ", \(grouped(replays.refused)) refused again" : ""))
        }
        out.markup("</span></td>")
    }

    /// Status classes in order, without zeros.
    static func classes(of answers: [GatewayTraffic.StatusCount]) -> [(name: String, count: UInt64)] {
        ["1", "2", "3", "4", "5", "o"].compactMap { digit in
            let count = answers.filter { $0.code.hasPrefix(digit) }.reduce(0) { $0 &+ $1.count }
            return count == 0 ? nil : (name: digit == "o" ? "other" : "\(digit)xx", count: count)
        }
    }

    // MARK: - The course of the last minutes

    /// Nanoseconds that a sparkline reaches back at most; and at least, so that the first few readings are not stretched over it.
    static let courseLength: (most: UInt64, least: UInt64) = (600_000_000_000, 60_000_000_000)

    private mutating func writeSparkline(_ course: [(at: UInt64, value: Double)]) {
        let points = Self.points(of: course, at: facts.age)
        guard points.count > 2 else { return }
        out.markup(
            "<svg class=\"spark\" viewBox=\"0 0 120 24\" preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"area\""
        )
        let line = points.map { "\(decimal($0.x, places: 1)) \(decimal($0.y, places: 1))" }.joined(separator: "L")
        out.attribute(
            "d", "M\(decimal(points[0].x, places: 1)) 24L\(line)L\(decimal(points[points.count - 1].x, places: 1)) 24Z")
        out.markup("/><path")
        out.attribute("d", "M\(line)")
        out.markup("/></svg>")
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
