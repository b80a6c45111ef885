internal import Handshakes
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The store's rows of identities that the configuration does not have any more, or has changed (docs/design/tokens.md#rule-8): material
/// that a person or a registration brought is never used and kept for 30 days, the rest goes.
extension Keeper {
    /// At the start: judges every row by the identities that are there, and takes the orphans of which nothing is configured out of the
    /// way. Not for `check --live`, whose file may be another one than the gateway's.
    func sweep(_ rows: [StoredRow]) {
        var changes: [StoreChange] = []
        var deletions: [StoreChange] = []
        var dropped: Int64 = 0
        for row in rows {
            guard let (digest, material) = nature(of: row) else { continue }
            guard !catalogue.isConfigured(digest) else {
                // It came back: its days are not counted any more.
                if material != .accessToken, row.expiresWall != lastingExpiry(of: row) {
                    changes.append(.put(row.expiring(lastingExpiry(of: row))))
                }
                continue
            }
            switch Orphans.disposition(of: material, after: .digestChanged) {
            case .keep: break
            // What it began with may be what an identity names now.
            case .drop where beginning(of: row, in: nil) != nil: changes += orphaned(row)
            case .drop:
                dropped += 1
                deletions.append(.delete(kind: row.kind, key: row.key))
            case .orphan: changes += orphaned(row)
            }
        }
        if dropped > 0 || !orphans.isEmpty {
            events.info(
                "rows of identities that are not configured",
                [LogField("dropped", .count(dropped)), LogField("kept", .count(Int64(orphans.count)))])
        }
        erase(deletions)
        keep(changes)
    }

    /// What a flight of an identity that a reload took away has still brought: its issuer has replaced the refresh token.
    func keepLate(_ key: SessionKey, _ material: LayerMaterial) {
        guard Orphans.disposition(of: nature(of: material), after: .digestChanged) == .orphan else { return }
        let row = row(RowKind.session, KeyCodec.encode(key), material)
        orphans.removeAll { $0.kind == row.kind && $0.key == row.key }
        keep(orphaned(row))
    }

    /// After a reload: `identities` are the new ones. Call it before their tokens are asked for.
    func sweepMemory() {
        var changes: [StoreChange] = []
        var deletions: [StoreChange] = []
        for (key, material) in durables where !catalogue.isConfigured(key.digest) {
            durables[key] = nil
            changes += orphaned(row(RowKind.durable, KeyCodec.encode(key), material))
        }
        var left: Set<IdentityDigest> = []
        for (key, session) in sessions where !catalogue.isConfigured(key.digest) {
            sessions[key] = nil
            left.insert(key.digest)
            let row = row(RowKind.session, KeyCodec.encode(key), session.material)
            let isKept = Orphans.disposition(of: nature(of: session.material), after: .digestChanged) == .orphan
            if isKept { changes += orphaned(row) } else { deletions.append(.delete(kind: row.kind, key: row.key)) }
        }
        leaveLanes(left)
        let returned = orphans.filter { orphan in nature(of: orphan).map { catalogue.isConfigured($0.digest) } ?? false
        }
        orphans.removeAll { returned.contains($0) }
        var back: Set<IdentityDigest> = []
        for row in returned {
            if row.kind == RowKind.durable {
                restoreDurable(row)
            } else {
                restoreSession(row)
                nature(of: row).map { _ = back.insert($0.digest) }
            }
            changes.append(.put(row.expiring(lastingExpiry(of: row))))
        }
        for identity in identities where back.contains(identity.digest) { forgetAbsence(of: identity) }
        presumeFirsts()
        // By themselves: on a full disk they are made, and what stores something is not.
        erase(deletions)
        keep(changes)
    }

    /// The identity's session was away, and is back. An exchange that had begun before may have asked for a token in between: that a person
    /// must log in was true then.
    private func forgetAbsence(of identity: KeptIdentity) {
        identity.recovered(at: now)
        liftSessionRefusals(of: identity)
        for token in tokens.of(identity) {
            token.lastFailure = nil
            apply(token.machine.settingsChanged(to: identity.policy.access, at: now), to: token)
        }
    }

    /// Keeps the row for its 30 days, which begin when it is first found without an identity.
    private func orphaned(_ row: StoredRow) -> [StoreChange] {
        let limit = wall + Orphans.keptForMilliseconds
        if let expiry = row.expiresWall, expiry <= limit {
            if orphans.count < Self.mostOrphans { orphans.append(row) }
            return []
        }
        let kept = row.expiring(limit)
        if orphans.count < Self.mostOrphans { orphans.append(kept) }
        return [.put(kept)]
    }

    /// Orphans beyond this many stay in the store and come back with the next start.
    private static let mostOrphans = 1024

    // MARK: - Judging rows

    private func nature(of row: StoredRow) -> (digest: IdentityDigest, material: Material)? {
        switch row.kind {
        case RowKind.durable: (try? KeyCodec.durableKey(row.key)).map { ($0.digest, .durable) }
        case RowKind.session:
            LayerRow(encoded: row.value).flatMap { stored in
                (try? KeyCodec.sessionKey(row.key)).map {
                    ($0.digest, stored.isHuman && stored.refreshToken != nil ? .humanRefreshToken : .session)
                }
            }
        // What was learned with a token serves nobody without it.
        case RowKind.access, RowKind.learned:
            (try? KeyCodec.accessKey(row.key)).map { ($0.digest, .accessToken) }
        default: nil
        }
    }

    private func nature(of material: LayerMaterial) -> Material {
        material.isHuman && material.refreshToken != nil ? .humanRefreshToken : .session
    }

    /// When the row would end if its identity were never missed.
    private func lastingExpiry(of row: StoredRow) -> Int64? {
        guard let stored = LayerRow(encoded: row.value), stored.refreshToken == nil else { return nil }
        return stored.wallExpiry
    }
}

extension StoredRow {
    fileprivate func expiring(_ wall: Int64?) -> StoredRow {
        StoredRow(kind: kind, key: key, value: value, expiresWall: wall)
    }
}
