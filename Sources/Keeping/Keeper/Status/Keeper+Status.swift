internal import DataPath
internal import Handshakes
internal import HotCache
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The words to operators: log events as they happen, and the state of everything when asked.
extension Keeper {
    /// - Parameter cause: why a challenge is refused, where it says so itself.
    func log(_ event: AccessTokenMachine.Event, _ token: KeptToken, because cause: String? = nil) {
        audit(event, token)
        let identity = token.identity.logged
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
        case .challengeRefused:
            events.warn("challenge refused", place + (cause.map { [LogField("reason", .name($0))] } ?? []))
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
        let perUser = usersByKey()
        let tokenList = tokens.shared.values.map { TokenStatus($0, subjects: perUser[$0.slot] ?? 0, at: now) }
            .sorted {
                ($0.identity, $0.upstream, $0.realm, $0.scopes) < ($1.identity, $1.upstream, $1.realm, $1.scopes)
            }
        // A session may be there that would spare the password, and be of no use to callers who have met the refusal: operators are told what
        // callers are.
        let refused = Set(
            tokens.shared.values.filter { $0.machine.state(at: now) == .quarantined }
                .map { ObjectIdentifier($0.identity) })
        let identityList = identities.map { identity in
            var status = IdentityStatus(identity, at: now)
            let isHeldBack = heldBack(identity).map { $0 != .store } ?? false
            status.isQuarantined = isHeldBack || refused.contains(ObjectIdentifier(identity))
            status.lacksStore = lacksStore(identity)
            status.clockSkew = identity.issuer.map { _ in skew(of: identity).seconds }
            status.login = loginNeed(of: identity)
            status.facts = facts(of: identity).map { ($0.name, $0.value) }
            return status
        }
        return GatewayStatus(
            identities: identityList, tokens: tokenList, store: health.words, restoredTokens: health.restoredTokens,
            routes: routes.map {
                RouteStatus(name: $0.name, identity: $0.identity?.plan.name, upstream: $0.originText)
            },
            subjects: SubjectsStatus(users.subjects), storeCommits: health.commits, storeLookups: health.lookups,
            storeSize: measuredStore(), hotCache: HotCacheStatus(cache), issuers: issuers.statuses(at: now))
    }

    /// By the slot that stands for all of a key's users.
    private func usersByKey() -> [Slot: Int] {
        guard users.subjects.count > 0 else { return [:] }
        return tokens.all.reduce(into: [:]) { counts, token in
            if let subject = token.subject, subject.isAdmitted { counts[subject.space, default: 0] += 1 }
        }
    }

    // MARK: - The store's size

    /// The size that was found last; asks anew for the next look. Counting walks an index, a tenth of a second for a million rows, and
    /// lookups wait for it: so it is done when somebody looks, and takes at most a hundredth of the store's time.
    func measuredStore() -> StoreSizeStatus? {
        guard let store, !health.isLocked else { return nil }
        if health.size.isDue(at: now) {
            let began = now
            store.measure { result in
                // A lost letter ends the measuring for good, and costs two figures of a scrape.
                self.post { $0.health.size.ended(try? result.get(), since: began, at: $0.now) }
            }
        }
        return health.size.measured.map { StoreSizeStatus($0) }
    }
}
