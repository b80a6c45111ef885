internal import DataPath
internal import Telemetry
internal import Tokens

/// Which tokens an operator wants forgotten and had anew.
public enum PurgeScope: Sendable, Equatable {
    /// All of an identity, with the session that they were had with; a person's login stays.
    case identity(String)
    /// The tokens that requests of one route use, whoever else uses them.
    case route(String)
    case everything
}

/// The outcome of a purge.
public struct PurgeReport: Codable, Sendable, Equatable {
    /// The names of the identities whose tokens the purge covered.
    public var identities: [String]
    /// How many were held in memory; rows of the store go with them and are not counted.
    public var tokens: Int
}

/// Purges (docs/design/tokens.md#rule-9): what is held goes, from memory and from the store, and no outcome that was under way is
/// published. Refusals stay.
extension Keeper {
    /// Nil when there is no such identity or route.
    package func purge(_ scope: PurgeScope) -> PurgeReport? {
        beginErasures()
        let report: PurgeReport?
        switch scope {
        case .identity(let name):
            report = catalogue.identity(named: name).map { purge(catalogue.same(as: $0) + formerly(name)) }
        case .route(let name):
            // A route with a list of identities is one for each of them.
            let reports = routes.filter { $0.name == name }.map { purge($0) }
            report =
                reports.isEmpty
                ? nil
                : PurgeReport(
                    identities: reports.flatMap(\.identities), tokens: reports.reduce(0) { $0 + $1.tokens })
        case .everything: report = purge(identities + formerly())
        }
        if let report {
            audit(scope, report)
            events.info(
                "tokens purged",
                [
                    LogField("identities", .name(report.identities.joined(separator: ", "))),
                    LogField("tokens", .count(Int64(report.tokens))),
                ])
        }
        return report
    }

    /// Identities of earlier settings, which a reload may bring back with the tokens that they have.
    private func formerly(_ name: String? = nil) -> [KeptIdentity] {
        catalogue.retiredIdentities.filter { name == nil || $0.plan.name == name }
    }

    private func purge(_ chosen: [KeptIdentity]) -> PurgeReport {
        let digests = Set(chosen.map(\.digest))
        let count = tokens.all.count { digests.contains($0.key.digest) && $0.isHeld }
        var names: [String] = []
        for identity in chosen {
            raiseEpoch(of: identity, cause: .purge)
            if !names.contains(identity.plan.name) { names.append(identity.plan.name) }
        }
        return PurgeReport(identities: names, tokens: count)
    }

    /// The epoch of the whole identity rises, for it only ever rises; its other tokens are not told, so that their flights go on.
    private func purge(_ route: KeptRoute) -> PurgeReport {
        guard let identity = route.identity, let whole = route.key(of: "") else {
            return PurgeReport(identities: [], tokens: 0)
        }
        let realm = route.realm
        let isOfRoute: @Sendable (AccessKey) -> Bool = { key in
            var wanted = whole
            // Which realm, the upstream says where the route does not; for whom, the caller.
            wanted.realm = realm ?? key.realm
            wanted.subject = key.subject
            return key == wanted
        }
        for one in catalogue.same(as: identity) {
            one.epoch += 1
            forgetCredentials(of: one)
        }
        let chosen = tokens.all.filter { isOfRoute($0.key) }.inOrder
        let count = chosen.count { $0.isHeld }
        withdrawFromFleet(chosen)
        for token in chosen {
            apply(token.machine.epochRose(to: token.identity.epoch, cause: .purge, at: now), to: token)
            reloadFixed(token)
        }
        dropAbsent(of: identity, where: isOfRoute)
        return PurgeReport(identities: catalogue.same(as: identity).map(\.plan.name), tokens: count)
    }
}

extension KeptToken {
    fileprivate var isHeld: Bool { machine.heldGrant != nil || line != nil }
}
