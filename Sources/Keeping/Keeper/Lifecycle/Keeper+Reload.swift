package import Handshakes
package import HotCache
package import Tokens

/// The routes and slots of the keeper that the next configuration may go on with.
package struct KeeperHoldings: @unchecked Sendable {
    package var routes: [KeptRoute]
    package var slots: [AccessKey: Slot]
}

/// The next configuration as the keeper takes it up: compiled beside it, with the numbers and slots of its predecessor.
package struct KeeperChange: @unchecked Sendable {
    var identities: [KeptIdentity]
    var routes: [KeptRoute]
    var keys: [(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted)]
    var subjects: SubjectBook.Limits

    package init(
        identities: [KeptIdentity], routes: [KeptRoute],
        keys: [(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted)], subjects: SubjectBook.Limits
    ) {
        self.identities = identities
        self.routes = routes
        self.keys = keys
        self.subjects = subjects
    }
}

/// A reload, as the keeper lives through it: identities and tokens that are the same go on as the same objects, with the same slots.
extension Keeper {
    /// Nothing that is told here is dropped until `take` or `keepAsIs`.
    package func holdings() -> KeeperHoldings {
        catalogue.isHeld = true
        return KeeperHoldings(routes: catalogue.reusableRoutes, slots: tokens.slots)
    }

    /// The reload failed: slots that were taken for it are free again.
    package func keepAsIs(giving slots: [Slot]) {
        for slot in slots { cache.releaseSlot(slot) }
        catalogue.isHeld = false
    }

    package func take(_ next: KeeperChange) {
        catalogue.isHeld = false
        users.limits = next.subjects
        let arrived = takeIdentities(next)
        let routes = catalogue.take(routes: next.routes, arrived)
        for route in routes.inheriting { publishTable(of: route) }
        var fresh: [KeptToken] = []
        for seed in next.keys where tokens[seed.key] == nil {
            guard let identity = arrived[ObjectIdentifier(seed.identity)] else { continue }
            fresh.append(adopt(key: seed.key, slot: seed.slot, identity: identity, wanted: seed.wanted))
        }
        retireTokens(keeping: Set(next.keys.map(\.key)))
        warmUp(fresh, routes.fresh)
        // Values may have changed with the places that they are read from, and a reload is how an operator says: look again.
        secretsMayHaveChanged()
        watchLogins()
        // An identity that the fleet shares from now on has the fleet's login.
        if fleet.tier != nil { start { await $0.fetchLogins() } }
        // The loops are given their next plan by another thread: what is ordered until here comes before it.
        resources.postman.deliver()
    }

    /// - Returns: what each of the compiled ones became: itself, or the one that was there.
    private func takeIdentities(_ next: KeeperChange) -> [ObjectIdentifier: KeptIdentity] {
        for identity in next.identities { identity.arrivedAt = now }
        let arrival = catalogue.take(identities: next.identities)
        for token in tokens.all.inOrder {
            let identity = ObjectIdentifier(token.identity)
            if arrival.changed.contains(identity) {
                apply(token.machine.settingsChanged(to: token.identity.policy.access, at: now), to: token)
            }
            // Tokens of an identity that is gone leave the store at once (docs/design/tokens.md#rule-8). In memory they serve the exchanges
            // that began with them.
            if arrival.gone.contains(identity) { deleteRow(of: token) }
        }
        sessions.match(catalogue)
        sweepMemory()
        for identity in arrival.withdrawn { withdraw(identity) }
        for identity in arrival.returned { raiseEpoch(of: identity, cause: .purge) }
        return arrival.identities
    }

    /// `persist: false` from now on: what stands on disk goes, and what the fleet has stays with the fleet.
    private func withdraw(_ identity: KeptIdentity) {
        let digest = identity.digest
        guard !catalogue.keepsRows(digest) else { return }
        for session in sessions.of(digest) {
            leaveToFleet(session.key)
            erase(kind: RowKind.session, key: KeyCodec.encode(session.key))
        }
        for key in sessions.parts.of(digest).keys.inOrder { deleteDurable(key) }
        for token in tokens.of(identity) where token.storedGeneration != 0 || token.mayBeStored { deleteRow(of: token) }
        // Memory does not know the tokens of users who have not been here since the start.
        eraseAccess { $0.digest == digest }
        for key in routes.filter({ $0.identity === identity }).compactMap(\.tableKey) {
            erase(kind: RowKind.learned, key: key)
        }
    }

    // MARK: - What no configuration names any more

    private func retireTokens(keeping fixed: Set<AccessKey>) {
        var named = fixed
        for route in routes where route.published != nil {
            for realm in route.table.realms { if let key = route.key(of: realm) { named.insert(key) } }
        }
        tokens.retire(keeping: named)
        if tokens.hasRetired || catalogue.hasRetired { dropRetired(after: Catalogue.patience) }
    }

    /// A single alarm serves all reloads: a later reload puts it off, which costs a little memory and no exchange.
    private func dropRetired(after patience: UInt64) {
        set(&catalogue.alarm, at: now + patience) { keeper in
            if keeper.catalogue.isHeld { return keeper.dropRetired(after: 1_000_000_000) }
            keeper.dropRetired()
        }
    }

    private func dropRetired() {
        for token in tokens.takeRetired() {
            releasePostponed(of: token)
            forget(token)
        }
        leaveLocks(Set(catalogue.retiredIdentities.map(\.digest)).filter { !catalogue.isConfigured($0) })
        for route in catalogue.takeRetired() { route.alarm.take()?.close() }
    }
}

extension IssuerNetwork {
    fileprivate func isSame(as other: IssuerNetwork) -> Bool {
        timeout == other.timeout && IssuerKey(origin: "", network: self) == IssuerKey(origin: "", network: other)
    }
}

extension IdentityPolicy {
    /// Whether an operator who changed it expects another try. Where secrets are read from is left out: their values tell.
    func differs(from other: IdentityPolicy) -> Bool {
        access != other.access || lifetime != other.lifetime || attempts != other.attempts
            || !network.isSame(as: other.network)
            || startup != other.startup
    }

    func isWithdrawn(by next: IdentityPolicy) -> Bool { isShared && !next.isShared }
}
