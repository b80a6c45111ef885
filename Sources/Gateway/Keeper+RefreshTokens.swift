internal import Handshakes
internal import Telemetry
internal import TokenStore
internal import Tokens

/// Refresh tokens that the configuration names are sent until their use has replaced them, and never again (design §3.3 rule 5, for what an
/// issuer takes for theft instead of a wrong password). The mark is on disk with the token that has taken the place.
extension Keeper {
    func standing(ofFirst token: Secret, beside held: Secret?, ledger: KeeperLedger) -> FirstRefreshToken {
        guard let lane = ledger.sessionKey?.lane else { return .unspent }
        let standing = families.standing(of: ByteString(hash(token)), in: lane)
        // Of a session whose beginning is not known here, as one that a fleet's other gateway began, it may well be this token.
        if let held, standing == .unspent, !families.holds(held), !families.hasEnded(held) {
            return .replaced(by: held)
        }
        return standing
    }

    func refused(refreshToken: Secret, of identity: KeptIdentity) {
        identity.refreshTokensRefused += 1
        warn(
            "the issuer refuses the refresh token: it has expired or was revoked, or somebody else has used it",
            of: identity)
        endFamily(of: refreshToken)
    }

    /// What a step has brought takes the place of what it has sent.
    /// - Parameter sent: the refresh token of the configuration, where the step has sent that one: a family begins.
    /// - Returns: what goes to disk with the session that it is brought for.
    func noteSpent(
        by material: LayerMaterial, first sent: Secret?, for key: SessionKey, of identity: KeptIdentity
    ) -> [StoreChange] {
        guard let spent = material.spent, let next = material.refreshToken else { return [] }
        if spent == sent { families.begin(with: spent, hash: ByteString(hash(spent)), in: key.lane) }
        guard let first = families.replaced(spent, by: next) else { return [] }
        let copies = dropCopies(of: spent, but: key)
        guard identity.policy.access.persist else { return [] }
        return familyRows(of: first) + copies
    }

    /// Another gateway of the fleet has brought what takes the place of `held`.
    func noteSpentElsewhere(
        _ held: Secret?, for material: LayerMaterial, _ key: SessionKey, _ identity: KeptIdentity
    ) -> [StoreChange] {
        guard let held, held != material.refreshToken, families.holds(held) else { return [] }
        var replacing = material
        replacing.spent = held
        return noteSpent(by: replacing, first: nil, for: key, of: identity)
    }

    /// The refresh token is dead: what the configuration names stays spent, with nothing in its place.
    func endFamily(of token: Secret) {
        guard let first = families.ended(token), !isUnread else { return }
        keep(familyRows(of: first))
    }

    /// Another identity that names the same first token, or this one before its settings changed, may hold what was just spent.
    private func dropCopies(of spent: Secret, but key: SessionKey) -> [StoreChange] {
        var changes: [StoreChange] = []
        for (other, session) in sessions where other != key && session.material.refreshToken == spent {
            sessions[other] = nil
            endInFleet(other)
            lanes[other.lane]?.machine.adopted(
                other, SessionMachine.Session(generation: generations.next(), stopServingAt: 0, hasRefreshToken: false))
            changes.append(.delete(kind: RowKind.session, key: KeyCodec.encode(other)))
        }
        orphans.removeAll { row in
            guard row.kind == RowKind.session, LayerRow(encoded: row.value)?.refreshToken == spent else { return false }
            changes.append(.delete(kind: row.kind, key: row.key))
            return true
        }
        return changes
    }

    /// With the key of the hash, without which it says nothing after a restart.
    private func familyRows(of first: ByteString) -> [StoreChange] {
        guard let family = families.families[first] else { return [] }
        let row = StoredRow(
            kind: RowKind.family, key: first.bytes,
            value: FamilyRow(lane: family.lane, current: family.current).encoded())
        return [.put(row), .put(Self.markKeyRow(markKeyBytes))]
    }

    func restoreFamily(_ row: StoredRow, replacing: Bool = false) {
        guard let stored = FamilyRow(encoded: row.value) else { return }
        families.restore(
            RefreshTokenFamilies.Family(lane: stored.lane, current: stored.current), under: ByteString(row.key),
            replacing: replacing)
    }
}
