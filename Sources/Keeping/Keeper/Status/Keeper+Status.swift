internal import DataPath
internal import Handshakes
internal import HotCache
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The words to operators: log events as they happen, and the state of everything when asked.
extension Keeper {
    func log(_ event: AccessTokenMachine.Event, _ token: KeptToken) {
        let identity = LogField("identity", .name(token.identity.plan.name))
        let place =
            [
                identity, LogField("upstream", .name(token.key.origin.description)),
                LogField("realm", .name(token.key.realm.description)),
            ] + pseudonym(of: token)
        let reason = LogField("reason", .name(token.failureWords ?? "unknown"))
        switch event {
        case .tokenAcquired: events.info("token acquired", place + granted(token))
        case .tokenRefreshed: events.info("token refreshed", place + granted(token))
        case .renewalFailed: events.warn("renewal failed", place + [reason])
        case .acquisitionFailed: events.warn("token cannot be had", place + [reason])
        case .challengeAnswered: events.info("challenge answered", place)
        case .challengeRefused: events.warn("challenge refused", place)
        case .credentialQuarantined:
            events.error(
                "credential quarantined",
                [
                    identity, LogField("reason", .name(token.identity.lastFailure ?? "rejected")),
                    LogField("advice", .name("change the secret, or run: cardea reset \(token.identity.plan.name)")),
                ])
        case .loginNeeded: events.warn("login needed", [identity])
        case .storeDegraded: noteSlowStore()
        }
    }

    func noteSlowStore() {
        guard health.noteSlow() else { return }
        events.warn("store degraded", [LogField("reason", .name("it does not answer in time"))])
    }

    /// The granted scopes, and the time until the token expires, as far as the token has them.
    private func granted(_ token: KeptToken) -> [LogField] {
        guard let held = token.machine.heldGrant else { return [] }
        var fields: [LogField] = []
        if !held.granted.description.isEmpty { fields.append(LogField("scopes", .name(held.granted.description))) }
        let expiresAt = held.lifetime.expiresAt
        if expiresAt != .max {
            fields.append(
                LogField("expires_in_seconds", .count(Int64((expiresAt - min(now, expiresAt)) / 1_000_000_000))))
        }
        return fields
    }

    /// Identities that must have a token before the gateway is ready, and have none.
    package func awaited(strictly: Bool) -> [String] {
        // Tokens of users do not count: who they are is not known before they come.
        let awaitsURL = identities.contains { $0.bindsToURL && $0.policy.startup != .lazy }
        let counted = awaitsURL ? tokens.all.filter(\.isOfURL) : []
        let served = Set(
            (counted + tokens.shared.values).filter { $0.machine.servedGeneration(at: now) != nil }
                .map { ObjectIdentifier($0.identity) })
        return identities.filter { identity in
            guard identity.policy.startup == .required || (identity.policy.startup == .wait && !strictly) else {
                return false
            }
            return !served.contains(ObjectIdentifier(identity))
        }.map(\.plan.name)
    }

    package func status() -> GatewayStatus {
        let now = self.now
        var tokenList: [TokenStatus] = []
        let perUser = usersByKey()
        for token in tokens.shared.values {
            let held = token.machine.heldGrant
            tokenList.append(
                TokenStatus(
                    identity: token.identity.plan.name, upstream: token.key.origin.description,
                    realm: token.key.realm.description, scopes: token.key.scopes.description,
                    state: state(of: token, at: now), level: held?.level,
                    age: held.map { now - min(now, $0.lifetime.sentAt) },
                    refreshIn: held.flatMap {
                        $0.lifetime.refreshAt == .max ? nil : $0.lifetime.refreshAt - min(now, $0.lifetime.refreshAt)
                    },
                    expiresIn: held.flatMap {
                        $0.lifetime.expiresAt == .max ? nil : $0.lifetime.expiresAt - min(now, $0.lifetime.expiresAt)
                    },
                    grants: token.grants, lastFailure: token.failureWords, waiting: token.tickets.count,
                    granted: held.flatMap { $0.granted == token.key.scopes ? nil : $0.granted.description },
                    subjects: token.identity.isPerKey ? perUser[token.slot] ?? 0 : nil,
                    retryIn: token.machine.pausedUntil.map { $0 - min(now, $0) },
                    lastFailureAgo: token.failedAt.map { now - min(now, $0) }))
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
                }, isQuarantined: isQuarantined(identity), lacksStore: lacksStore(identity),
                narrowerGrants: identity.narrowerGrants,
                borrowings: identity.borrowings, refreshTokensRefused: identity.refreshTokensRefused,
                grantTimes: identity.grantTimes, negativeHits: identity.negativeHits,
                clockSkew: identity.issuer.map { _ in skew(of: identity).seconds }, login: loginNeed(of: identity),
                logins: loginResults(of: identity),
                facts: facts(of: identity).map { ($0.name, $0.value) }, lastFailure: identity.lastFailure,
                lastTrouble: identity.lastTrouble.map { TroubleStatus($0, at: now) },
                lastFailureAgo: identity.lastFailure.map { _ in now - min(now, identity.lastFailureAt) }
            )
        }
        return GatewayStatus(
            identities: identityList, tokens: tokenList, store: health.words, restoredTokens: health.restoredTokens,
            routes: routes.map {
                RouteStatus(name: $0.name, identity: $0.identity?.plan.name, upstream: $0.originText)
            },
            subjects: SubjectsStatus(
                inMemory: users.subjects.count, limit: users.subjects.limits.subjects, refused: users.subjects.refused,
                evicted: users.subjects.evicted), storeCommits: health.commits, storeLookups: health.lookups,
            storeSize: measuredStore(), hotCache: HotCacheStatus(cache), issuers: issuers.statuses(at: now))
    }

    private func isQuarantined(_ identity: KeptIdentity) -> Bool {
        switch heldBack(identity) {
        case .rejected?, .unanswered?: true
        case .store?, nil: false
        }
    }

    /// By the slot that stands for all of a key's users.
    private func usersByKey() -> [Slot: Int] {
        guard users.subjects.count > 0 else { return [:] }
        return tokens.all.reduce(into: [:]) { counts, token in
            if let subject = token.subject, subject.isAdmitted { counts[subject.space, default: 0] += 1 }
        }
    }

    private func state(of token: KeptToken, at now: UInt64) -> IdentityState {
        if let probation = token.probation {
            switch probation.state {
            case .unproven: return .unproven
            case .proven: return .fresh
            case .quarantined: return .quarantined
            }
        }
        switch token.machine.state(at: now) {
        case .empty: return .idle
        case .acquiring: return .acquiring
        case .fresh: return .fresh
        case .refreshAhead: return .refreshDue
        case .renewalFailing: return .renewalFailing
        case .expiredGrace: return .expiredServed
        case .negative: return .negative
        case .quarantined: return .quarantined
        case .loginNeeded: return .loginNeeded
        }
    }
}

extension Keeper {
    /// The size that was found last; asks anew for the next look. Counting walks an index, a tenth of a second for a million rows, and
    /// lookups wait for it: so it is done when somebody looks, and takes at most a hundredth of the store's time.
    func measuredStore() -> StoreSizeStatus? {
        guard let store, !health.isLocked else { return nil }
        if !health.size.isMeasuring, now >= health.size.nextAt {
            health.size.isMeasuring = true
            let began = now
            store.measure { result in
                // A lost letter ends the measuring for good, and costs two figures of a scrape.
                self.post { keeper in
                    keeper.health.size.isMeasuring = false
                    keeper.health.size.nextAt = keeper.now + max(Keeper.measuringPause, 100 * (keeper.now - began))
                    if case .success(let size) = result { keeper.health.size.measured = size }
                }
            }
        }
        return health.size.measured.map { size in
            StoreSizeStatus(
                databaseBytes: size.databaseBytes, logBytes: size.logBytes,
                rows: RowKind.names.map { ($0.name, size.rows[$0.kind] ?? 0) })
        }
    }

    private static var measuringPause: UInt64 { 1_000_000_000 }
}
