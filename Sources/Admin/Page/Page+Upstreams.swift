internal import DataPath
internal import Keeping

/// Upstreams whose addresses are checked, and those that cannot be reached.
extension Page {
    static let maximumAddresses = 100

    var upstreams: HTML? {
        let found = facts.status.upstreams.filter { view.admits($0.tone) && view.finds($0) }
        guard !found.isEmpty else { return nil }
        var room = Self.maximumAddresses
        var rows: [HTML] = []
        for upstream in Self.troubleFirst(found, \.tone) {
            if let outage = upstream.outage, room > 0 { rows.append(row(on: outage, of: upstream)) }
            rows += upstream.addresses.prefix(max(room, 0)).map { row(on: $0, of: upstream) }
            room -= upstream.addresses.count + (upstream.outage == nil ? 0 : 1)
        }
        return """
            <section aria-labelledby="upstreams">
            <div class="title"><h2 id="upstreams">Upstreams</h2></div>
            <div class="card"><table>
            <thead><tr><th scope="col">Upstream</th><th scope="col">Address</th>\
            <th scope="col">State</th><th scope="col" class="n">Checks</th><th scope="col" class="n">Bad</th></tr></thead>
            <tbody>
            \(rows)</tbody>
            </table></div>
            \(leftOut(-room, "addresses"))</section>

            """
    }

    private func row(on outage: UpstreamHealthStatus.Outage, of upstream: UpstreamHealthStatus) -> HTML {
        """
        <tr><th scope="row"><b>\(shortened(shortOrigin(upstream.upstream), to: 120))</b></th>\
        <td class="void" data-name="Address">–</td><td data-name="State">\(span("chip bad", "cannot be reached")) \
        \(span("quiet", "for \(spelled(outage.ago)): " + sentence(outage.reason)))</td>\
        <td class="n void" data-name="Checks">–</td><td class="n void" data-name="Bad">–</td></tr>

        """
    }

    private func row(on address: UpstreamHealthStatus.Address, of upstream: UpstreamHealthStatus) -> HTML {
        let failure = address.lastFailure.map { failure -> HTML in
            let when = address.lastFailureAgo.map { "\(spelled($0)) ago: " } ?? ""
            return " \(span("quiet", when + sentence(failure)))"
        }
        return """
            <tr><th scope="row"><b>\(shortened(shortOrigin(upstream.upstream), to: 120))</b>\
            \(span("quiet", "asked for " + shortened(upstream.path ?? "", to: 120)))</th>\
            <td data-name="Address"><span>\(shortened(address.address, to: 120))</span></td><td data-name="State">\
            \(address.isHealthy ? span("chip good", "fit") : span("chip bad", "gets no requests"))\(failure)</td>\
            <td class="n" data-name="Checks">\(grouped(address.checks))</td>\
            <td class="n" data-name="Bad">\(grouped(address.failures))</td></tr>

            """
    }
}

extension PageView {
    func finds(_ upstream: UpstreamHealthStatus) -> Bool {
        finds([upstream.upstream, upstream.path, upstream.outage?.reason])
    }
}

extension UpstreamHealthStatus {
    /// How much it should worry.
    var tone: IdentityState.Tone {
        if outage != nil || !addresses.isEmpty && addresses.allSatisfy({ !$0.isHealthy }) { return .bad }
        return addresses.contains { !$0.isHealthy } ? .warn : .good
    }
}
