internal import Handshakes
internal import Reactor
internal import Telemetry
package import TokenStore
internal import Tokens
internal import World

/// The rows that the keeper writes to the store and reads back at boot (docs/design/store.md#rows). The machine decides the order
/// in which they are written (docs/design/tokens.md#rule-4).
extension Keeper {
    var wall: Int64 { executor.loop.kernel.wallMilliseconds() }
    var moment: Moment { Moment(now: now, wall: wall) }

    // MARK: - Commits

    func commit(_ token: KeptToken, generation: UInt64) {
        guard !token.isRetired else { return settleCommit(of: token, generation, succeeded: true) }
        guard store != nil, let landing = token.landing, landing.generation == generation,
            let grant = token.machine.landingGrant
        else { return settleCommit(of: token, generation, succeeded: health.state == .none) }
        // Said once, at the start.
        guard !health.isLocked else { return settleCommit(of: token, generation, succeeded: true) }
        let left = Int64(clamping: (grant.lifetime.expiresAt - min(now, grant.lifetime.expiresAt)) / 1_000_000)
        let row = AccessRow(landing.bytes, grant, wallExpiry: wall + left)
        token.mayBeStored = false
        // A lost letter is met by the machine's own deadline: the token is then published as after a failed commit.
        commit([
            .put(
                StoredRow(
                    kind: RowKind.access, key: KeyCodec.encode(token.key), value: row.encoded(),
                    expiresWall: row.wallExpiry))
        ]) { keeper, isStored in
            if isStored { token.storedGeneration = generation }
            keeper.settleCommit(of: token, generation, succeeded: isStored)
            keeper.lighten(token)
        }
    }

    private func settleCommit(of token: KeptToken, _ generation: UInt64, succeeded: Bool) {
        apply(token.machine.committed(generation: generation, succeeded: succeeded, at: now), to: token)
    }

    func note(_ result: Result<Void, StoreFault>) {
        switch health.note(result, isDegraded: store?.isDegraded == true) {
        case .works?:
            events.info("store works again")
            takeUpLate()
            putAgain()
            tokens.expectRows()
        case .degraded(let reason)?:
            events.error("store degraded", [LogField("reason", .name(reason))])
            watchStore()
        case nil: break
        }
    }

    /// Takes up the rows that a disk that was slow at boot could not give then. Younger things in memory win.
    func takeUpLate() {
        let isFirst = health.noteRead()
        if isFirst { attempts.ledger.restoreBegins() }
        let rows = store?.restore() ?? []
        if !rows.isEmpty {
            restore(rows)
            sweep(rows)
        }
        if isFirst { askAgain() }
    }

    /// Lets callers ask again for tokens that were refused for want of a store, and tells operators of the logins that it did not have.
    func askAgain() {
        for token in tokens.all.inOrder {
            apply(token.machine.settingsChanged(to: token.identity.policy.access, at: now), to: token)
            if token.probation?.state == .quarantined { reload(token) }
        }
        watchLogins()
    }

    /// Commits what nobody waits for.
    func keep(_ changes: [StoreChange]) {
        if !changes.isEmpty { commit(changes) { _, _ in } }
    }

    /// - Parameter then: called with whether it is on disk; not where the letter that says so is lost.
    func commit(_ changes: [StoreChange], then: @escaping @Sendable (isolated Keeper, _ isStored: Bool) -> Void) {
        store?.commit(changes) { result in
            self.post { keeper in
                keeper.note(result)
                then(keeper, (try? result.get()) != nil)
            }
        }
    }

    func deleteRow(of token: KeptToken) {
        token.storedGeneration = 0
        token.mayBeStored = false
        // A lookup that is under way would find the row that is deleted here.
        token.recall?.isVoid = true
        erase(kind: RowKind.access, key: KeyCodec.encode(token.key))
    }

    /// - Returns: false where it is not on disk; a gateway without a store has nothing to wait for.
    @discardableResult
    func write(_ changes: [StoreChange]) async -> Bool {
        guard let store else { return true }
        let result: Result<Void, StoreFault> = await withCheckedContinuation { continuation in
            store.commit(changes) { continuation.resume(returning: $0) }
        }
        note(result)
        return (try? result.get()) != nil
    }

    func storeDurable(_ key: DurableKey, _ material: LayerMaterial, of identity: KeptIdentity) async {
        guard identity.policy.access.persist else { return }
        await write([.put(StoredRow(RowKind.durable, KeyCodec.encode(key), material, at: moment))])
    }

    func deleteDurable(_ key: DurableKey) {
        erase(kind: RowKind.durable, key: KeyCodec.encode(key))
    }

    /// Nil where the identity keeps nothing on disk.
    func sessionRow(_ key: SessionKey, _ material: LayerMaterial, of identity: KeptIdentity) -> StoredRow? {
        guard identity.policy.access.persist else { return nil }
        return StoredRow(RowKind.session, KeyCodec.encode(key), material, at: moment)
    }

    func deleteSessionRow(_ key: SessionKey) {
        endInFleet(key)
        erase(kind: RowKind.session, key: KeyCodec.encode(key))
    }

    func storeTable(of route: KeptRoute) {
        guard let key = route.tableKey, route.identity?.policy.access.persist == true else { return }
        store?.put(
            StoredRow(kind: RowKind.learned, key: key, value: route.table.encode(), expiresWall: nil)
        ) { _ in }
    }

    /// - Returns: false where the disk did not take them.
    @discardableResult
    func storeAttempts(_ rows: [AttemptLedger.Row]) async -> Bool {
        let changes = attempts.changes(rows)
        // The key in memory is not the one that stands there, and must not take its place. An operator has said that the password may be sent.
        guard !changes.isEmpty, !health.isUnread else { return true }
        return await write(changes)
    }

    // MARK: - Boot

    /// Takes up what the store kept. What becomes of rows of identities that the configuration no longer has, `sweep` says.
    package func restore(_ rows: [StoredRow]) {
        var learned: [[UInt8]: StoredRow] = [:]
        for row in rows {
            switch row.kind {
            case RowKind.markKey: adoptMarkKey(row.value)
            case RowKind.learned: learned[row.key] = learned[row.key] ?? row
            default: restore(row, replacing: false)
            }
        }
        presumeFirsts()
        for route in routes {
            guard route.published != nil, let row = route.tableKey.flatMap({ learned[$0] }) else { continue }
            guard route.restore(row.value) else { continue }
            for realm in route.table.realms { _ = token(of: realm, on: route) }
            publishTable(of: route)
        }
    }

    /// - Parameter replacing: the store was another process's meanwhile: what it holds is younger than what is here.
    func restore(_ row: StoredRow, replacing: Bool) {
        // A row from before `persist: false` is not the newest: what has taken its place since was in memory only, and a refresh token that
        // is sent a second time ends the login.
        if let digest = row.nature?.digest, catalogue.isConfigured(digest), !catalogue.keepsRows(digest) { return }
        takeUp(row, replacing: replacing)
    }

    func takeUp(_ row: StoredRow, replacing: Bool) {
        switch row.kind {
        case RowKind.attempt, RowKind.history, RowKind.family: attempts.restore(row, replacing: replacing)
        case RowKind.durable: restoreDurable(row, replacing: replacing)
        case RowKind.session: restoreSession(row, replacing: replacing)
        case RowKind.version: restoreVersion(row, replacing: replacing)
        default: break
        }
    }

    /// A disk that was slow at boot gives its rows later: what was hashed with another key until then is forgotten, and read anew.
    private func adoptMarkKey(_ bytes: [UInt8]) {
        guard attempts.adopt(keyBytes: bytes) else { return }
        for identity in identities { identity.secretHashes = [:] }
    }

    private func restoreDurable(_ row: StoredRow, replacing: Bool) {
        guard let key = try? KeyCodec.durableKey(row.key) else { return }
        if replacing { sessions.parts[key] = nil }
        // The part that is there already is younger.
        guard sessions.parts[key] == nil, catalogue.identity(key.digest)?.issuer == key.issuer,
            let material = LayerRow(encoded: row.value)?.material(at: moment)
        else { return }
        sessions.parts[key] = material
    }

    private func restoreSession(_ row: StoredRow, replacing: Bool) {
        guard let key = try? KeyCodec.sessionKey(row.key) else { return }
        if replacing { sessions[key] = nil }
        guard sessions[key] == nil, let identity = catalogue.identity(key.digest), identity.issuer == key.issuer,
            var material = LayerRow(encoded: row.value)?.material(at: moment)
        else { return }
        if identity.namesFirstRefreshToken, let token = material.refreshToken {
            // A person brought the configured one, and only a person brings another; rows of before do not say so.
            material.isHuman = true
            attempts.families.found(token, under: key)
        }
        adoptSession(material, key)
    }

    /// True when the row's token is served now.
    func restoreAccess(_ row: StoredRow) -> Bool {
        guard let key = try? KeyCodec.accessKey(row.key), let token = tokens[key],
            let stored = AccessRow(encoded: row.value),
            let lifetime = token.identity.policy.lifetime.restored(
                wallExpiry: stored.wallExpiry, original: stored.original, wallNow: wall, now: now,
                jitter: random.jitter())
        else { return false }
        token.mayBeStored = false
        let generation = tokens.nextGeneration()
        token.landing = (generation, stored.line)
        apply(
            token.machine.adopted(
                Grant(generation: generation, lifetime: lifetime, level: stored.level, granted: stored.granted),
                from: .store,
                at: now), to: token)
        guard token.machine.heldGrant?.generation == generation else {
            token.landing = nil
            return false
        }
        token.storedGeneration = generation
        noteIdentity(of: token, stored.line)
        lighten(token)
        return true
    }
}
