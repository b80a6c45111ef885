internal import DataPath
internal import Gateway
internal import Keeping

/// A route with what belongs to it.
struct RouteFacts: Sendable {
    var traffic: RouteTraffic
    var trend: RouteTrend
    /// Nil for what is answered here.
    var target: RouteStatus?
    /// The state of its identity, of a list the worst; nil where it adds no credential.
    var identityState: IdentityState?
    /// No connection can be made to its upstream now.
    var isCutOff: Bool

    /// How much it should worry: as much as its identity, and for what its answers were lately.
    var tone: IdentityState.Tone {
        if isCutOff || identityState?.tone == .bad { return .bad }
        if identityState?.tone == .warn || trend.failures > 0 { return .warn }
        return traffic.total == 0 ? .quiet : .good
    }

    /// What is wrong, in a word or two; nil where nothing is.
    var trouble: String? {
        if isCutOff { return "cannot be reached" }
        if let identityState, [.bad, .warn].contains(identityState.tone) { return identityState.rawValue }
        return trend.failures > 0 ? "\(grouped(trend.failures)) × 5xx lately" : nil
    }
}

extension SiteFacts {
    /// In the order of the configuration.
    func routeFacts(_ identities: [IdentityFacts]) -> [RouteFacts] {
        let targets = Dictionary(status.routes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        let states = Dictionary(identities.map { ($0.status.name, $0.state) }, uniquingKeysWith: { first, _ in first })
        let cutOff = Set(status.upstreams.filter { $0.outage != nil }.map { shortOrigin($0.upstream) })
        return zip(traffic.routes, trends).map { route, trend in
            let target = targets[route.name]
            let found = route.answering(target).compactMap { states[$0] }
            return RouteFacts(
                traffic: route, trend: trend, target: target,
                identityState: found.first { $0.tone == .bad } ?? found.first { $0.tone == .warn } ?? found.first,
                isCutOff: target.map { cutOff.contains(shortOrigin($0.upstream)) } ?? false)
        }
    }
}

extension RouteTraffic {
    /// The identities that may answer its upstream now.
    func answering(_ target: RouteStatus?) -> [String] {
        if list.isEmpty { return target?.identity.map { [$0] } ?? [] }
        return chosen.map { [$0] } ?? list
    }

    var total: UInt64 { answers.reduce(0) { $0 &+ $1.count } }
    /// Answers that say that a server failed.
    var failures: UInt64 { answers.reduce(0) { $1.name.hasPrefix("5") ? $0 &+ $1.count : $0 } }
}
