internal import DataPath
internal import Gateway
internal import Keeping

/// Upstreams whose addresses are checked, and those that cannot be reached.
extension Page {
    static let maximumAddresses = 100

    mutating func writeUpstreams() {
        guard !facts.status.upstreams.isEmpty else { return }
        out.markup(
            "<section aria-labelledby=\"upstreams\">\n<div class=\"title\"><h2 id=\"upstreams\">Upstreams</h2></div>\n")
        out.markup(
            "<div class=\"card\"><table>\n<thead><tr><th scope=\"col\">Upstream</th><th scope=\"col\">Address</th>")
        out.markup(
            "<th scope=\"col\">State</th><th scope=\"col\" class=\"n\">Checks</th><th scope=\"col\" class=\"n\">Bad</th></tr></thead>\n<tbody>\n"
        )
        var room = Self.maximumAddresses
        for upstream in facts.status.upstreams {
            if let outage = upstream.outage, room > 0 { writeOutage(outage, of: upstream) }
            for address in upstream.addresses.prefix(max(room, 0)) { writeAddress(address, of: upstream) }
            room -= upstream.addresses.count + (upstream.outage == nil ? 0 : 1)
        }
        out.markup("</tbody>\n</table></div>\n")
        leftOut(-room, "addresses")
        out.markup("</section>\n")
    }

    private mutating func writeOutage(_ outage: UpstreamHealthStatus.Outage, of upstream: UpstreamHealthStatus) {
        out.markup("<tr><th scope=\"row\">")
        out.element("b", shortened(Self.place(upstream.upstream), to: 120))
        out.markup("</th><td data-name=\"Address\">–</td><td data-name=\"State\">")
        out.element("span", class: "chip bad", "cannot be reached")
        out.markup(" ")
        out.element("span", class: "quiet", "for \(spelled(outage.ago)): " + sentence(outage.reason))
        out.markup("</td><td class=\"n\" data-name=\"Checks\">–</td><td class=\"n\" data-name=\"Bad\">–</td></tr>\n")
    }

    private mutating func writeAddress(_ address: UpstreamHealthStatus.Address, of upstream: UpstreamHealthStatus) {
        out.markup("<tr><th scope=\"row\">")
        out.element("b", shortened(Self.place(upstream.upstream), to: 120))
        out.element("span", class: "quiet", "asked for " + shortened(upstream.path ?? "", to: 120))
        out.markup("</th><td data-name=\"Address\">")
        out.element("span", shortened(address.address, to: 120))
        out.markup("</td><td data-name=\"State\">")
        out.element(
            "span", class: address.isHealthy ? "chip good" : "chip bad", address.isHealthy ? "fit" : "gets no requests")
        if let failure = address.lastFailure {
            out.markup(" ")
            let when = address.lastFailureAgo.map { "\(spelled($0)) ago: " } ?? ""
            out.element("span", class: "quiet", when + sentence(failure))
        }
        out.markup("</td><td class=\"n\" data-name=\"Checks\">")
        out.text(grouped(address.checks))
        out.markup("</td><td class=\"n\" data-name=\"Bad\">")
        out.text(grouped(address.failures))
        out.markup("</td></tr>\n")
    }
}
