internal import Handshakes
internal import HotCache
internal import Reactor
internal import TLS
internal import Telemetry
internal import TokenStore
internal import Tokens

/// What the keeper writes to the store and reads back at boot. The order of rule 4 is the machine's; here are the rows.
extension Keeper {
    /// The kinds of rows. Numbers are the file's format: never reuse one.
    enum RowKind {
        static let access: UInt8 = 1
        static let session: UInt8 = 2
        static let durable: UInt8 = 3
        static let learned: UInt8 = 4
        static let attempt: UInt8 = 5
    }

    private var wall: Int64 { executor.loop.kernel.wallMilliseconds() }

    // MARK: - Commits

    func commit(_ token: KeptToken, generation: UInt64) {
        guard let store, let landing = token.landing, landing.generation == generation,
            let grant = token.machine.landingGrant
        else { return settleCommit(of: token, generation, succeeded: storeState == .none) }
        let left = Int64(clamping: (grant.lifetime.expiresAt - min(now, grant.lifetime.expiresAt)) / 1_000_000)
        let row = AccessRow(
            line: landing.bytes, wallExpiry: wall + left, original: grant.lifetime.original, level: grant.level,
            granted: grant.granted)
        let loop = self.loop
        store.put(
            StoredRow(
                kind: RowKind.access, key: KeyCodec.encode(token.key), value: row.encoded(), expiresWall: row.wallExpiry
            )
        ) { result in
            // A lost letter is met by the machine's own deadline: the token is then published as after a failed commit.
            _ = loop.post { self.assumeIsolated { $0.committed(token, generation, result) } }
        }
    }

    private func committed(_ token: KeptToken, _ generation: UInt64, _ result: Result<Void, StoreFault>) {
        note(result)
        var succeeded = false
        if case .success = result { succeeded = true }
        settleCommit(of: token, generation, succeeded: succeeded)
        flushOrders()
    }

    private func settleCommit(of token: KeptToken, _ generation: UInt64, succeeded: Bool) {
        apply(token.machine.committed(generation: generation, succeeded: succeeded, at: now), to: token)
    }

    private func note(_ result: Result<Void, StoreFault>) {
        switch (result, storeState) {
        case (.success, .degraded):
            storeState = .serving
            events.info("store works again")
            // What a disk that was slow at boot could not give then. Younger things in memory win.
            if let rows = store?.restore(), !rows.isEmpty { restore(rows) }
        case (.failure(let fault), .serving):
            storeState = .degraded("\(fault)")
            events.error("store degraded", [LogField("reason", .name("\(fault)"))])
        default: break
        }
    }

    func deleteRow(of token: KeptToken) {
        store?.delete(kind: RowKind.access, key: KeyCodec.encode(token.key)) { _ in }
    }

    private func write(_ rows: [StoredRow], deleting: [StoredRow] = []) async {
        guard let store else { return }
        let result: Result<Void, StoreFault> = await withCheckedContinuation { continuation in
            let changes = rows.map { StoreChange.put($0) } + deleting.map { .delete(kind: $0.kind, key: $0.key) }
            store.commit(changes) { continuation.resume(returning: $0) }
        }
        note(result)
    }

    func storeLayer(_ layer: Layer, _ material: LayerMaterial, of identity: KeptIdentity) async {
        guard identity.policy.access.persist, let (kind, key) = rowKey(of: layer, identity) else { return }
        let left = material.lifetime.map {
            Int64(clamping: (material.obtainedAt &+ $0 - min(now, material.obtainedAt &+ $0)) / 1_000_000)
        }
        let row = LayerRow(material: material.bytes, wallExpiry: left.map { wall + $0 }, original: material.lifetime)
        await write([StoredRow(kind: kind, key: key, value: row.encoded(), expiresWall: row.wallExpiry)])
    }

    func deleteLayer(_ layer: Layer, of identity: KeptIdentity) {
        guard let (kind, key) = rowKey(of: layer, identity) else { return }
        store?.delete(kind: kind, key: key) { _ in }
    }

    private func rowKey(of layer: Layer, _ identity: KeptIdentity) -> (UInt8, [UInt8])? {
        guard let issuer = identity.issuer else { return nil }
        switch layer {
        case .durable: return (RowKind.durable, KeyCodec.encode(DurableKey(digest: identity.digest, issuer: issuer)))
        case .session:
            return (
                RowKind.session,
                KeyCodec.encode(SessionKey(digest: identity.digest, issuer: issuer, subject: identity.account?.user))
            )
        }
    }

    func storeTable(of route: KeptRoute) {
        guard let identity = route.identity, identity.policy.access.persist else { return }
        store?.put(
            StoredRow(
                kind: RowKind.learned, key: tableKey(of: route, identity), value: route.table.encode(), expiresWall: nil
            )
        ) { _ in }
    }

    /// A table belongs to what was learned, not to the route's name: upstream, identity and the slice of the key that the route fixes.
    private func tableKey(of route: KeptRoute, _ identity: KeptIdentity) -> [UInt8] {
        route.key(of: Realm(ByteString(route.bindsToURL ? "url" : "realm"))).map(KeyCodec.encode)
            ?? identity.digest.bytes
    }

    func storeAttempts(_ rows: [AttemptLedger.Row]) async {
        var puts: [StoredRow] = []
        var deletes: [StoredRow] = []
        for row in rows {
            let key = AttemptRow.key(of: row.mark)
            if let bytes = row.bytes {
                puts.append(StoredRow(kind: RowKind.attempt, key: key, value: bytes, expiresWall: nil))
            } else {
                deletes.append(StoredRow(kind: RowKind.attempt, key: key, value: [], expiresWall: nil))
            }
        }
        guard !puts.isEmpty || !deletes.isEmpty else { return }
        await write(puts, deleting: deletes)
    }

    // MARK: - Boot

    /// Takes up what the store kept. Rows of identities that the configuration no longer has stay where they are until they expire.
    func restore(_ rows: [StoredRow]) {
        for row in rows {
            switch row.kind {
            case RowKind.attempt: attempts.restore(row.value)
            case RowKind.durable: restoreLayer(row, .durable)
            case RowKind.session: restoreLayer(row, .session)
            default: break
            }
        }
        for route in routes {
            guard let identity = route.identity, route.published != nil else { continue }
            let key = tableKey(of: route, identity)
            guard let row = rows.first(where: { $0.kind == RowKind.learned && $0.key == key }) else { continue }
            guard let table = try? LearnedTable(decoding: row.value, binding: route.bindsToURL ? .url : .realm) else {
                continue
            }
            route.table = table
            for realm in table.realms { _ = token(of: realm, on: route) }
            publishTable(of: route)
        }
        // Access tokens last: the tables and the configuration have made the keys that they may belong to.
        for row in rows where row.kind == RowKind.access { restoreAccess(row) }
        flushOrders()
    }

    private func restoreLayer(_ row: StoredRow, _ layer: Layer) {
        guard let identity = identities.first(where: { rowKey(of: layer, $0)?.1 == row.key }),
            let stored = LayerRow(encoded: row.value)
        else { return }
        var lifetime: UInt64?
        if let expiry = stored.wallExpiry {
            guard expiry > wall else { return }
            lifetime = min(UInt64(expiry - wall) * 1_000_000, stored.original ?? .max)
        }
        let material = LayerMaterial(bytes: stored.material, obtainedAt: now, lifetime: lifetime)
        // What is there already is younger.
        switch layer {
        case .durable: identity.durable = identity.durable ?? material
        case .session: identity.session = identity.session ?? material
        }
    }

    private func restoreAccess(_ row: StoredRow) {
        guard let key = try? KeyCodec.accessKey(row.key), let token = tokens[key],
            let stored = AccessRow(encoded: row.value),
            let lifetime = token.identity.policy.lifetime.restored(
                wallExpiry: stored.wallExpiry, original: stored.original, wallNow: wall, now: now,
                jitter: UInt32.random(in: 0 ... .max))
        else { return }
        let generation = generations.next()
        token.landing = (generation, stored.line)
        apply(
            token.machine.adopted(
                Grant(generation: generation, lifetime: lifetime, level: stored.level, granted: stored.granted),
                from: .store,
                at: now), to: token)
        restoredTokens += 1
    }
}
