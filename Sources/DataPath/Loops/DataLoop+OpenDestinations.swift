internal import HTTP1
internal import TLS

extension DataLoop {
    /// Destinations of callers' choice that have connections, a loop.
    static let destinationLimit = 256

    /// The route and the connections to where the caller wanted to go: nothing is edited but what every hop edits.
    /// - Returns: nil when too many such destinations are in use.
    func openDestination(to destination: Destination, resembling model: RoutePlan?) -> OpenDestination? {
        if let known = openDestinations[destination] { return known }
        if openDestinations.count >= Self.destinationLimit {
            guard let unused = openDestinations.filter({ $0.value.group.isUnused }).keys.min() else { return nil }
            openDestinations[unused] = nil
        }
        let upstream = UpstreamPlan(
            index: -1, origin: "http://\(destination.host):\(destination.port)", host: destination.host,
            port: destination.port, usesTLS: false, isOpenOnly: true, serverName: destination.host, endpoints: [],
            trust: nil, minimumVersion: .v1_2, legacyTLS: false, clientKeys: nil,
            connectTimeout: model?.upstream.connectTimeout ?? 5_000_000_000,
            idleTimeout: model?.upstream.idleTimeout ?? 60_000_000_000)
        var edits = RequestEdits()
        edits.via = viaMark
        edits.dropsPlaceholders = model?.edits.dropsPlaceholders ?? false
        let route = RoutePlan(
            index: -1, number: -1, edition: plan.edition, name: "-", logName: 0, matches: RouteMatch(),
            admission: Admission(), upstream: upstream, pathPrefix: "",
            edits: edits, answerEdits: ResponseEdits(), identity: nil, injection: nil, forwarding: .untouched,
            answerNotes: [], slot: nil, learned: nil, strictPaths: false, replay: .never,
            replayMethods: [], replayBody: 0, largeBody: .send, passesFinalRefusal: true,
            answerTimeout: model?.answerTimeout ?? 60_000_000_000, idleTimeout: model?.idleTimeout ?? 60_000_000_000,
            halfClosedTimeout: model?.halfClosedTimeout ?? 1_000_000_000, placeholders: model?.placeholders?.elsewhere)
        let open = OpenDestination(route: route, group: makeGroup(upstream))
        openDestinations[destination] = open
        return open
    }
}

/// An upstream of a caller's choice, which no route names. Requests hold the group for as long as they are on their way there.
struct OpenDestination {
    let route: RoutePlan
    let group: UpstreamGroup
}
