internal import Handshakes
internal import HotCache
internal import Reactor
internal import Telemetry
internal import Tokens

/// What operators are told: log events as they happen, and the state of everything when asked.
extension Keeper {
    func log(_ event: AccessTokenMachine.Event, _ token: KeptToken) {
        let identity = LogField("identity", .name(token.identity.plan.name))
        let upstream = LogField("upstream", .name(token.key.origin.description))
        let realm = LogField("realm", .name(token.key.realm.description))
        let reason = LogField("reason", .name(token.lastFailure ?? "unknown"))
        switch event {
        case .tokenAcquired: events.info("token acquired", [identity, upstream, realm])
        case .tokenRefreshed: events.info("token refreshed", [identity, upstream, realm])
        case .renewalFailed: events.warn("renewal failed", [identity, upstream, realm, reason])
        case .acquisitionFailed: events.warn("token cannot be had", [identity, upstream, realm, reason])
        case .challengeAnswered: events.info("challenge answered", [identity, upstream, realm])
        case .challengeRefused: events.warn("challenge refused", [identity, upstream, realm])
        case .credentialQuarantined:
            events.error(
                "credential quarantined",
                [
                    identity, LogField("reason", .name(token.identity.lastFailure ?? "rejected")),
                    LogField("advice", .name("change the secret, or run: cardea reset \(token.identity.plan.name)")),
                ])
        case .loginNeeded: events.warn("login needed", [identity])
        case .storeDegraded: events.warn("store degraded", [identity])
        }
    }

    /// Identities that must have a token before the gateway is ready, and have none.
    func awaited(strictly: Bool) -> [String] {
        identities.filter { identity in
            guard identity.policy.startup == .required || (identity.policy.startup == .wait && !strictly) else {
                return false
            }
            return !tokens.values.contains { $0.identity === identity && $0.machine.servedGeneration(at: now) != nil }
        }.map(\.plan.name)
    }

    func status() -> GatewayStatus {
        let now = self.now
        var tokenList: [TokenStatus] = []
        for token in tokens.values {
            let held = token.machine.heldGrant
            tokenList.append(
                TokenStatus(
                    identity: token.identity.plan.name, upstream: token.key.origin.description,
                    realm: token.key.realm.description, scopes: token.key.scopes.description,
                    state: word(of: token, at: now), level: held?.level,
                    age: held.map { now - min(now, $0.lifetime.sentAt) },
                    refreshIn: held.flatMap {
                        $0.lifetime.refreshAt == .max ? nil : $0.lifetime.refreshAt - min(now, $0.lifetime.refreshAt)
                    },
                    expiresIn: held.flatMap {
                        $0.lifetime.expiresAt == .max ? nil : $0.lifetime.expiresAt - min(now, $0.lifetime.expiresAt)
                    },
                    grants: token.grants, lastFailure: token.lastFailure, waiting: token.tickets.count))
        }
        tokenList.sort {
            ($0.identity, $0.upstream, $0.realm, $0.scopes) < ($1.identity, $1.upstream, $1.realm, $1.scopes)
        }
        let identityList = identities.map { identity in
            IdentityStatus(
                name: identity.plan.name, scheme: identity.plan.handshake.scheme, grants: identity.grants,
                failures: identity.failures.values.reduce(0, +),
                failureReasons: Handshakes.GrantFailure.Reason.allCases.map {
                    ($0.rawValue, identity.failures[$0] ?? 0)
                }, isQuarantined: attemptsRefused(identity), lastFailure: identity.lastFailure
            )
        }
        let storeWord =
            switch storeState {
            case .none: "memory only"
            case .serving: "serving"
            case .degraded(let reason): "degraded: \(reason)"
            case .locked(let reason), .refused(let reason): "not used: \(reason)"
            }
        return GatewayStatus(
            identities: identityList, tokens: tokenList, store: storeWord, restoredTokens: restoredTokens,
            routes: routes.map { RouteStatus(name: $0.name, identity: $0.identity?.plan.name, upstream: $0.originText) }
        )
    }

    private func word(of token: KeptToken, at now: UInt64) -> String {
        if let probation = token.probation {
            switch probation.state {
            case .unproven: return "unproven"
            case .proven: return "fresh"
            case .quarantined: return "quarantined"
            }
        }
        switch token.machine.state(at: now) {
        case .empty: return "empty"
        case .acquiring: return "acquiring"
        case .fresh: return "fresh"
        case .refreshAhead: return "refresh due"
        case .renewalFailing: return "renewal fails"
        case .expiredGrace: return "expired, served"
        case .negative: return "waiting after failure"
        case .quarantined: return "quarantined"
        case .loginNeeded: return "login needed"
        }
    }
}
