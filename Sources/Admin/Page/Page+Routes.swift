internal import Gateway
internal import Keeping
internal import Telemetry

/// Routes, a line each: how many requests, how they were answered, how long they took.
extension Page {
    /// - Parameter shown: those that were asked for, in the order in which they are shown.
    func section(of shown: [RouteFacts]) -> HTML {
        let lines = shown.prefix(Self.maximumRoutes).map { line(on: $0, isOpen: unfolds(shown.count)) }
        let stray = view.isWhole && !facts.traffic.unrouted.isEmpty
        let none: HTML = "<p class=\"card quiet none\">No routes.</p>\n"
        return """
            <section aria-labelledby="routes">
            <div class="title"><h2 id="routes">Routes</h2>\
            <span class="legend" aria-hidden="true"><i class="k s2"></i>2xx <i class="k s3"></i>3xx \
            <i class="k s4"></i>4xx <i class="k s5"></i>5xx</span></div>
            \(lines.isEmpty && !stray ? nothingFound("route") ?? none : list(lines + (stray ? [unrouted] : [])))\
            \(leftOut(shown.count - Self.maximumRoutes, "routes"))</section>

            """
    }

    private func line(on route: RouteFacts, isOpen: Bool) -> HTML {
        let names = route.traffic.answering(route.target)
        let target = route.target.map {
            "→ " + shortened(shortOrigin($0.upstream), to: 120)
                + (names.isEmpty ? ", no credential" : " as " + shortened(names.joined(separator: " or "), to: 80))
        }
        let durations = route.traffic.durations
        let p99 = durations.estimate(quantile: 0.99).map(spelledLatency)
        let rate = route.trend.perSecond.map { "\(spelledRate($0)) a second" }
        return """
            <li><details class="line route \(route.tone.rawValue)"\(isOpen ? " open" : nil)><summary>\
            <h3>\(shortened(route.traffic.name, to: 80))</h3>\(span("sub", target ?? "answered here"))\
            <span class="mood">\(route.trouble.map { span("chip \(route.tone.rawValue)", $0) })</span>\
            <span class="rate">\(sparkline(route.trend.readings.map { ($0.at, $0.perSecond) }))\
            <span>\(rate ?? counted(Int(clamping: route.traffic.total), "request", "requests"))</span></span>\
            \(span("p99", p99.map { "p99 \($0)" } ?? "–"))\
            \(bar(of: route.traffic.answers))</summary>
            <div class="body">\(answers(of: route.traffic))
            <dl class="counts">\(figure("requests", grouped(route.traffic.total)))\
            \(figure("median", durations.estimate(quantile: 0.5).map(spelledLatency)))\
            \(figure("p99", p99, route.trend.readings.map { ($0.at, Double($0.p99 ?? 0)) }))</dl></div></details></li>

            """
    }

    private var unrouted: HTML {
        let answers = facts.traffic.unrouted
        let count = answers.reduce(0) { $0 &+ $1.count }
        return """
            <li><details class="line route quiet"><summary><h3 class="quiet">no route</h3>\
            \(span("sub", "requests that matched none"))<span class="mood"></span>\
            <span class="rate"><span>\(counted(Int(clamping: count), "request", "requests"))</span></span>\(span("p99", "–"))\
            \(bar(of: answers))</summary>
            <div class="body"><p class="classes">\(words(on: answers))</p></div></details></li>

            """
    }

    private func figure(_ name: String, _ value: String?, _ course: [(at: UInt64, value: Double)] = []) -> HTML {
        "<div><dt>\(name)</dt><dd>\(value ?? "–")\(sparkline(course))</dd></div>"
    }

    // MARK: - Answers

    private func answers(of route: RouteTraffic) -> HTML {
        var parts = words(on: route.answers)
        if route.replaysAccepted + route.replaysRefused > 0 {
            let refused = route.replaysRefused > 0 ? ", \(grouped(route.replaysRefused)) refused again" : ""
            parts.append(span("quiet", "\(grouped(route.replaysAccepted)) replayed\(refused)"))
        }
        return "<p class=\"classes\">\(parts)</p>"
    }

    private func words(on answers: [GatewayTraffic.NamedCount]) -> [HTML] {
        let classes = Self.classes(of: answers)
        if classes.isEmpty { return [span("quiet", "no answers yet")] }
        return classes.map { span("s\($0.name.prefix(1))", "\(grouped($0.count)) × \($0.name)") }
    }

    private func bar(of answers: [GatewayTraffic.NamedCount]) -> HTML {
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
        return """
            <svg class="bar" viewBox="0 0 1000 10" preserveAspectRatio="none" aria-hidden="true">\(bars)</svg>
            """
    }

    /// Status classes in order, without zeros.
    static func classes(of answers: [GatewayTraffic.NamedCount]) -> [(name: String, count: UInt64)] {
        ["1", "2", "3", "4", "5", "o"].compactMap { digit in
            let count = answers.filter { $0.name.hasPrefix(digit) }.reduce(0) { $0 &+ $1.count }
            return count == 0 ? nil : (name: digit == "o" ? "other" : "\(digit)xx", count: count)
        }
    }
}

extension PageView {
    func finds(_ route: RouteFacts) -> Bool {
        finds(
            [route.traffic.name, route.target?.upstream, route.trouble, route.identityState?.rawValue]
                + route.traffic.answering(route.target))
    }
}
