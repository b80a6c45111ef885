package import DataPath
package import Handshakes
package import HotCache
internal import Telemetry
package import TokenStore
package import Tokens

/// The things that the keeper takes up when its loop begins to run.
package struct KeeperSeeds: @unchecked Sendable {
    /// The rows that were read from the store.
    var rows: [StoredRow] = []
    /// Keys that the configuration alone determines.
    var keys: [(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted)] = []
    /// The store has login marks that cannot be opened.
    var marksUnreadable = false
    /// Asks once more for a store that is not this process's, or whose disk has not said yet whose it is; blocks as in `StoreHealth`.
    var reopen: (@Sendable () -> StoreOpening)?
    var fleet: KeptFleet

    package init(
        rows: [StoredRow] = [], keys: [(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted)] = [],
        marksUnreadable: Bool = false, reopen: (@Sendable () -> StoreOpening)? = nil, fleet: KeptFleet? = nil
    ) {
        self.rows = rows
        self.keys = keys
        self.marksUnreadable = marksUnreadable
        self.reopen = reopen
        self.fleet = fleet ?? KeptFleet()
    }
}

/// The keeper's first turn: what is known already, then what nobody has to ask for.
extension Keeper {
    package func takeUp(_ seeds: KeeperSeeds, for loops: [LoopBound<DataLoop>]) {
        fleet = seeds.fleet
        if seeds.marksUnreadable || health.isUnread { attempts.ledger.restoreUnreadable() }
        for seed in seeds.keys { adopt(key: seed.key, slot: seed.slot, identity: seed.identity, wanted: seed.wanted) }
        connect(loops)
        restore(seeds.rows)
        recallKnown()
        sweep(seeds.rows)
        dropForeignRows(after: seeds.rows)
        if store != nil { expireRows() }
        health.reopen = seeds.reopen
        if health.isLocked { awaitOwnership() }
        if health.isDegraded { watchStore() }
        watchLogins()
        warmUp()
    }

    /// Once a day: rows of users who do not come back must not pile up until the next start.
    private func expireRows() {
        later(86_400_000_000_000) { keeper in
            keeper.store?.commit([.deleteExpired(before: keeper.wall)]) { _ in }
            keeper.expireRows()
        }
    }

    /// Gets the tokens that nobody has to ask for: fixed credentials, and identities that start with `wait` or `required`.
    func warmUp() { warmUp(tokens.all.inOrder, routes) }

    func warmUp(_ tokens: [KeptToken], _ routes: [KeptRoute]) {
        // The entry that stands for all URLs of a route is no token.
        for token in tokens where !token.identity.bindsToURL || token.isOfURL {
            switch token.identity.policy.kind {
            case .fixed, .basic: loadFixed(token)
            case .proactive, .challengeDriven:
                if token.identity.policy.startup != .lazy { apply(token.machine.startupRequested(at: now), to: token) }
            }
        }
        for route in routes {
            // A challenge-driven identity has no key before its first challenge: the probe brings both.
            guard let identity = route.identity, identity.policy.startup != .lazy, let path = identity.probe,
                route.table.boundRealm == nil
            else { continue }
            start { await $0.learn(route, from: path, identity) }
        }
    }

    /// Probes until the upstream has challenged once, so that the route knows its realm before anybody asks.
    private func learn(_ route: KeptRoute, from path: String, _ identity: KeptIdentity) async {
        // A reload may have taken the route away, before and while it was probed.
        guard handOver.mayGrant, catalogue.routesByNumber[route.number] === route else { return }
        do throws(Handshakes.GrantFailure) {
            guard let challenge = try await probe(path, on: route, identity),
                catalogue.routesByNumber[route.number] === route
            else { return }
            if route.bindsToURL { return warmUp(path, challenge, on: route, identity) }
            let realm = route.realm ?? Realm(ByteString(challenge.realm))
            let entry = LearnedEntry(path: Array(path.utf8), method: Array("GET".utf8))
            if route.table.learnChallenge(of: realm, at: entry) == .learned { publishTable(of: route) }
            guard let token = token(of: realm, on: route) else { return }
            token.challenge = challenge
            apply(token.machine.startupRequested(at: now), to: token)
        } catch {
            events.warn("probe failed", [identity.logged, LogField("reason", .name("\(error)"))])
            later(2_000_000_000) { $0.start { await $0.learn(route, from: path, identity) } }
        }
    }
}
