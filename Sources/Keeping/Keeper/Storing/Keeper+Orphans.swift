internal import Handshakes
internal import Telemetry
package import TokenStore
internal import Tokens

/// The store's rows of identities that the configuration does not have any more, or has changed (docs/design/tokens.md#rule-8): material
/// that a person or a registration brought is never used and kept for 30 days, the rest goes.
extension Keeper {
    /// At the start: judges every row by the identities that are there, and takes the orphans of which nothing is configured out of the
    /// way. Not for `check --live`, whose file may be another one than the gateway's.
    package func sweep(_ rows: [StoredRow]) {
        var changes: [StoreChange] = []
        var deletions: [StoreChange] = []
        var dropped: Int64 = 0
        for row in rows {
            guard let (digest, material) = row.nature else { continue }
            guard !catalogue.isConfigured(digest) else {
                // The identity came back: the days of its row are not counted any more.
                if material != .accessToken, row.expiresWall != row.lastingExpiry {
                    changes.append(.put(row.expiring(row.lastingExpiry)))
                }
                continue
            }
            switch Orphans.disposition(of: material, after: .digestChanged) {
            case .keep: break
            // The session may have begun with the refresh token that an identity names now.
            case .drop where beginning(of: row, in: nil) != nil: changes += orphans.add(row, wall: wall)
            case .drop:
                dropped += 1
                deletions.append(.delete(kind: row.kind, key: row.key))
            case .orphan: changes += orphans.add(row, wall: wall)
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

    /// Keeps the material that a flight has still brought for an identity that a reload took away: its issuer has replaced the refresh
    /// token.
    func keepLate(_ key: SessionKey, _ material: LayerMaterial) {
        guard Orphans.disposition(of: material.nature, after: .digestChanged) == .orphan else { return }
        keep(orphans.replace(row(RowKind.session, KeyCodec.encode(key), material), wall: wall))
    }

    /// After a reload: `identities` are the new ones. Call it before their tokens are asked for.
    func sweepMemory() {
        var changes: [StoreChange] = []
        var deletions: [StoreChange] = []
        for (key, material) in sessions.parts.inOrder where !catalogue.isConfigured(key.digest) {
            sessions.parts[key] = nil
            changes += orphans.add(row(RowKind.durable, KeyCodec.encode(key), material), wall: wall)
        }
        var left: Set<IdentityDigest> = []
        for session in sessions.inOrder(where: { !catalogue.isConfigured($0.key.digest) }) {
            let key = session.key
            sessions[key] = nil
            left.insert(key.digest)
            let row = row(RowKind.session, KeyCodec.encode(key), session.material)
            let isKept = Orphans.disposition(of: session.material.nature, after: .digestChanged) == .orphan
            if isKept {
                changes += orphans.add(row, wall: wall)
            } else {
                deletions.append(.delete(kind: row.kind, key: row.key))
            }
        }
        leaveLocks(left)
        var back: Set<IdentityDigest> = []
        for row in orphans.takeBack(catalogue.isConfigured) {
            if row.kind == RowKind.durable {
                restoreDurable(row)
            } else {
                restoreSession(row)
                row.nature.map { _ = back.insert($0.digest) }
            }
            changes.append(.put(row.expiring(row.lastingExpiry)))
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
}
