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
        let sweep = orphans.sweep(
            rows, wall: wall, isConfigured: catalogue.isConfigured, keepsRows: catalogue.keepsRows
        ) { beginning(of: $0, in: nil) != nil }
        if !sweep.deletions.isEmpty || !orphans.isEmpty {
            events.info(
                "rows of identities that are not configured",
                [
                    LogField("dropped", .count(Int64(sweep.deletions.count))),
                    LogField("kept", .count(Int64(orphans.count))),
                ])
        }
        erase(sweep.deletions)
        keep(sweep.changes)
    }

    /// Keeps the material that a flight has still brought for an identity that a reload took away: its issuer has replaced the refresh
    /// token.
    func keepLate(_ key: SessionKey, _ material: LayerMaterial) {
        guard Orphans.disposition(of: material.nature, after: .digestChanged) == .orphan else { return }
        let row = StoredRow(RowKind.session, KeyCodec.encode(key), material, at: moment)
        keep(orphans.replace(row, wall: wall, isStored: catalogue.keepsRows(key.digest)))
    }

    /// After a reload: `identities` are the new ones. Call it before their tokens are asked for.
    func sweepMemory() {
        var sweep = OrphanRows.Sweep()
        let foreign = sessions.takeForeign(catalogue.isConfigured)
        for (key, material) in foreign.parts {
            let row = StoredRow(RowKind.durable, KeyCodec.encode(key), material, at: moment)
            orphans.leave(row, .durable, wall: wall, isStored: catalogue.keepsRows(key.digest), &sweep)
        }
        for session in foreign.sessions {
            let row = StoredRow(RowKind.session, KeyCodec.encode(session.key), session.material, at: moment)
            let isStored = catalogue.keepsRows(session.key.digest)
            orphans.leave(row, session.material.nature, wall: wall, isStored: isStored, &sweep)
        }
        leaveLocks(Set(foreign.sessions.map(\.key.digest)))
        var back: Set<IdentityDigest> = []
        for row in orphans.takeBack(catalogue.isConfigured) {
            guard let digest = row.nature?.digest else { continue }
            takeUp(row, replacing: false)
            if row.kind == RowKind.session { back.insert(digest) }
            if catalogue.keepsRows(digest) {
                sweep.changes.append(.put(row.expiring(row.lastingExpiry)))
            } else {
                sweep.deletions.append(.delete(kind: row.kind, key: row.key))
            }
        }
        for identity in identities where back.contains(identity.digest) { forgetAbsence(of: identity) }
        presumeFirsts()
        // By themselves: on a full disk they are made, and what stores something is not.
        erase(sweep.deletions)
        keep(sweep.changes)
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
