internal import Handshakes
internal import HotCache
internal import Numbers
internal import Reactor
internal import TLS
internal import Telemetry
package import TokenStore
internal import Tokens
internal import World

/// The rows that the keeper writes to the store and reads back at boot (docs/design/store.md#rows). The machine decides the order
/// in which they are written (docs/design/tokens.md#rule-4).
extension Keeper {
    var wall: Int64 { executor.loop.kernel.wallMilliseconds() }

    // MARK: - Commits

    func commit(_ token: KeptToken, generation: UInt64) {
        guard !token.isRetired else { return settleCommit(of: token, generation, succeeded: true) }
        guard let store, let landing = token.landing, landing.generation == generation,
            let grant = token.machine.landingGrant
        else { return settleCommit(of: token, generation, succeeded: health.state == .none) }
        // Said once, at the start.
        guard !health.isLocked else { return settleCommit(of: token, generation, succeeded: true) }
        let left = Int64(clamping: (grant.lifetime.expiresAt - min(now, grant.lifetime.expiresAt)) / 1_000_000)
        let row = AccessRow(
            line: landing.bytes, wallExpiry: wall + left, original: grant.lifetime.original, level: grant.level,
            granted: grant.granted)
        token.mayBeStored = false
        store.put(
            StoredRow(
                kind: RowKind.access, key: KeyCodec.encode(token.key), value: row.encoded(), expiresWall: row.wallExpiry
            )
        ) { result in
            // A lost letter is met by the machine's own deadline: the token is then published as after a failed commit.
            self.post { $0.committed(token, generation, result) }
        }
    }

    private func committed(_ token: KeptToken, _ generation: UInt64, _ result: Result<Void, StoreFault>) {
        note(result)
        var succeeded = false
        if case .success = result {
            succeeded = true
            token.storedGeneration = generation
        }
        settleCommit(of: token, generation, succeeded: succeeded)
        lighten(token)
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
            for token in tokens.all where token.identity.policy.access.persist && token.machine.heldGrant == nil {
                token.mayBeStored = true
            }
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

    /// Lets callers ask again for tokens that were refused for want of a store.
    func askAgain() {
        for token in tokens.all.inOrder {
            apply(token.machine.settingsChanged(to: token.identity.policy.access, at: now), to: token)
            if token.probation?.state == .quarantined { reload(token) }
        }
    }

    /// Commits what nobody waits for.
    func keep(_ changes: [StoreChange]) {
        guard !changes.isEmpty, let store else { return }
        store.commit(changes) { result in self.post { $0.note(result) } }
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
    private func write(_ changes: [StoreChange]) async -> Bool {
        guard let store else { return true }
        let result: Result<Void, StoreFault> = await withCheckedContinuation { continuation in
            store.commit(changes) { continuation.resume(returning: $0) }
        }
        note(result)
        if case .success = result { return true }
        return false
    }

    func storeDurable(_ key: DurableKey, _ material: LayerMaterial, of identity: KeptIdentity) async {
        guard identity.policy.access.persist else { return }
        await write([.put(row(RowKind.durable, KeyCodec.encode(key), material))])
    }

    func deleteDurable(_ key: DurableKey) {
        erase(kind: RowKind.durable, key: KeyCodec.encode(key))
    }

    /// Nil where the identity keeps nothing on disk.
    func sessionRow(_ key: SessionKey, _ material: LayerMaterial, of identity: KeptIdentity) -> StoredRow? {
        guard identity.policy.access.persist else { return nil }
        return row(RowKind.session, KeyCodec.encode(key), material)
    }

    func deleteSessionRow(_ key: SessionKey) {
        endInFleet(key)
        erase(kind: RowKind.session, key: KeyCodec.encode(key))
    }

    func row(_ kind: UInt8, _ key: [UInt8], _ material: LayerMaterial) -> StoredRow {
        let left = material.lifetime.map { life in
            let passed = TimeSpan(nanoseconds: now - min(now, material.obtainedAt))
            return (TimeSpan(nanoseconds: life) - passed).milliseconds
        }
        let refreshEnd = material.refreshLife.map { life in
            let passed = now - min(now, material.obtainedAt)
            return (
                wall: wall + Int64(clamping: (life.left - min(life.left, passed)) / 1_000_000), whole: life.whole
            )
        }
        let row = LayerRow(
            material: material.bytes, refreshToken: material.refreshToken, isHuman: material.isHuman,
            wallExpiry: left.map { wall + $0 }, original: material.lifetime, refreshEnd: refreshEnd)
        // A refresh token outlives the session that it renews; how long, only its issuer knows.
        return StoredRow(
            kind: kind, key: key, value: row.encoded(),
            expiresWall: material.refreshToken == nil ? row.wallExpiry : nil)
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
            case RowKind.attempt, RowKind.history, RowKind.family: attempts.restore(row)
            case RowKind.markKey: adoptMarkKey(row.value)
            case RowKind.durable: restoreDurable(row)
            case RowKind.session: restoreSession(row)
            case RowKind.version: restoreVersion(row)
            case RowKind.learned: learned[row.key] = learned[row.key] ?? row
            default: break
            }
        }
        presumeFirsts()
        for route in routes {
            guard route.published != nil, let row = route.tableKey.flatMap({ learned[$0] }) else { continue }
            guard var table = try? LearnedTable(decoding: row.value, binding: route.bindsToURL ? .url : .realm) else {
                continue
            }
            // Rows of before have the URLs too.
            if route.bindsToURL { table.forgetRealms() }
            route.table = table
            for realm in table.realms { _ = token(of: realm, on: route) }
            publishTable(of: route)
        }
    }

    /// A disk that was slow at boot gives its rows later: what was hashed with another key until then is forgotten, and read anew.
    private func adoptMarkKey(_ bytes: [UInt8]) {
        guard attempts.adopt(keyBytes: bytes) else { return }
        for identity in identities { identity.secretHashes = [:] }
    }

    func restoreDurable(_ row: StoredRow) {
        guard let key = try? KeyCodec.durableKey(row.key), let stored = LayerRow(encoded: row.value) else { return }
        guard catalogue.identity(key.digest)?.issuer == key.issuer else { return }
        // The part that is there already is younger.
        if sessions.parts[key] == nil, let material = material(of: stored) { sessions.parts[key] = material }
    }

    func restoreSession(_ row: StoredRow) {
        guard let key = try? KeyCodec.sessionKey(row.key), let stored = LayerRow(encoded: row.value) else { return }
        guard let identity = catalogue.identity(key.digest), identity.issuer == key.issuer else { return }
        guard sessions[key] == nil, var material = material(of: stored) else { return }
        if identity.namesFirstRefreshToken, let token = material.refreshToken {
            // A person brought the configured one, and only a person brings another; rows of before do not say so.
            material.isHuman = true
            attempts.families.found(token, under: key)
        }
        adoptSession(material, key)
    }

    /// Nil when nothing is left of it.
    private func material(of stored: LayerRow) -> LayerMaterial? {
        var lifetime: UInt64?
        if let expiry = stored.wallExpiry {
            guard expiry > wall || stored.refreshToken != nil else { return nil }
            let left = WallTime(milliseconds: expiry).left(at: WallTime(milliseconds: wall))
            lifetime = min(left.nanoseconds, stored.original ?? .max)
        }
        let refreshLife = stored.refreshEnd.map { end in
            let left = WallTime(milliseconds: end.wall).left(at: WallTime(milliseconds: wall))
            return RefreshLife(left: min(left.nanoseconds, end.whole), whole: end.whole)
        }
        return LayerMaterial(
            bytes: stored.material, obtainedAt: now, lifetime: lifetime, refreshToken: stored.refreshToken,
            isHuman: stored.isHuman, refreshLife: refreshLife)
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
