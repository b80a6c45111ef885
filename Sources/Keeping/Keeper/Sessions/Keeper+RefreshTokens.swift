internal import Handshakes
internal import TokenStore
internal import Tokens

/// Refresh tokens that the configuration names are sent until their use has replaced them, and never again
/// (docs/design/tokens.md#rule-5-refresh): an issuer takes a second use for theft. The mark is on disk with the token that has taken the
/// place.
extension Keeper {
    func standing(ofFirst token: Secret, beside held: Secret?, environment: KeeperEnvironment) -> FirstRefreshToken {
        guard let key = environment.sessionKey else { return .unspent }
        presume(token, of: key)
        return attempts.standing(ofFirst: token, in: key.lock, beside: held, orphans.rows)
    }

    func refused(refreshToken: Secret, of identity: KeptIdentity) {
        identity.refreshTokensRefused += 1
        warn(
            "the issuer refuses the refresh token: it has expired or was revoked, or somebody else has used it",
            of: identity)
        guard let first = attempts.families.refused(refreshToken) else { return endFamily(of: refreshToken) }
        keep([.delete(kind: RowKind.family, key: first.bytes)])
    }

    /// Notes that the refresh token that a step has brought takes the place of the one that it has sent.
    /// - Parameter sent: the refresh token of the configuration, where the step has sent that one: a family begins.
    /// - Returns: what goes to disk with the session that it is brought for.
    func noteSpent(
        by material: LayerMaterial, first sent: Secret?, for key: SessionKey, of identity: KeptIdentity
    ) -> [StoreChange] {
        guard let spent = material.spent, let next = material.refreshToken else { return [] }
        // A server that did not rotate until now replaces the first itself, which a session has held since.
        let hash = attempts.hash(spent)
        if spent == sent || hash == identity.secretHashes["refresh_token"] {
            attempts.families.begin(with: spent, hash: ByteString(hash), in: key.lock)
        }
        guard let first = attempts.families.replaced(spent, by: next) else { return [] }
        // The copies go from the disk whichever identity has sent the token: another identity holds them, and keeps them there.
        let copies = dropCopies(of: spent, but: key)
        if identity.policy.access.persist { attempts.families.keep(first) }
        if attempts.families[first]?.isKept != true { keepForOthers(first, than: identity) }
        return (attempts.families[first]?.isKept == true ? attempts.familyRows(of: first) : []) + copies
    }

    /// Its own identity keeps nothing on disk; another one that names the same first token may.
    private func keepForOthers(_ first: ByteString, than identity: KeptIdentity) {
        let others = identities.filter { other in
            other !== identity && other.namesFirstRefreshToken && other.policy.access.persist
                && other.sessionKey(subject: nil)?.lock == attempts.families[first]?.lock
        }
        if others.contains(where: { $0.secretHashes["refresh_token"] == first.bytes }) {
            return attempts.families.keep(first)
        }
        for other in others where other.secretHashes["refresh_token"] == nil {
            start { keeper in
                guard let token = try? await keeper.secret("refresh_token", of: other),
                    ByteString(keeper.attempts.hash(token)) == first
                else { return }
                keeper.attempts.families.keep(first)
                keeper.keep(keeper.attempts.familyRows(of: first))
            }
        }
    }

    /// Another gateway of the fleet has brought what takes the place of `held`.
    func noteSpentElsewhere(
        _ held: Secret?, for material: LayerMaterial, _ key: SessionKey, _ identity: KeptIdentity
    ) -> [StoreChange] {
        guard let held, held != material.refreshToken, attempts.families.holds(held) else { return [] }
        var replacing = material
        replacing.spent = held
        return noteSpent(by: replacing, first: nil, for: key, of: identity)
    }

    /// The refresh token is dead: what the configuration names stays spent, with nothing in its place.
    func endFamily(of token: Secret) {
        guard let first = attempts.families.ended(token), !health.isUnread else { return }
        keep(attempts.familyRows(of: first))
    }

    // MARK: - Unknown beginnings

    /// Sessions were taken up from the store. Where one holds another token than the first that its identity names, the first is spent: a
    /// release without marks has sent it.
    func presumeFirsts() {
        for key in attempts.families.strays.keys.inOrder {
            guard let identity = catalogue.identityOrRetired(key.digest), identity.namesFirstRefreshToken else {
                continue
            }
            start { keeper in
                // A secret that cannot be read now is looked at when it can be.
                guard let first = try? await keeper.secret("refresh_token", of: identity) else { return }
                keeper.presume(first, of: key)
            }
        }
    }

    private func presume(_ first: Secret, of key: SessionKey) {
        let hash = ByteString(attempts.hash(first))
        guard attempts.families.presume(first, hash: hash, of: key),
            catalogue.identityOrRetired(key.digest)?.policy.access.persist == true
        else { return }
        attempts.families.keep(hash)
        keep(attempts.familyRows(of: hash))
    }

    /// - Parameter lock: whose; nil: that of any configured identity which names a first token.
    func beginning(of row: StoredRow, in lock: SessionLockKey?) -> Secret? {
        guard let (found, token) = attempts.families.beginning(of: row) else { return nil }
        if let lock { return found == lock ? token : nil }
        let isNamed = identities.contains { identity in
            identity.namesFirstRefreshToken && identity.sessionKey(subject: nil)?.lock == found
        }
        return isNamed ? token : nil
    }

    /// An operator says that the first token may be sent.
    func overruleDoubt(of identity: KeptIdentity) {
        guard identity.namesFirstRefreshToken, let lock = identity.sessionKey(subject: nil)?.lock,
            orphans.rows.contains(where: { beginning(of: $0, in: lock) != nil })
        else { return }
        attempts.families.overruled.insert(lock)
    }

    // MARK: - Rows

    /// Another identity that names the same first token, or this one before its settings changed, may hold what was just spent.
    private func dropCopies(of spent: Secret, but key: SessionKey) -> [StoreChange] {
        var changes: [StoreChange] = []
        for other in sessions.inOrder(where: { $0.key != key && $0.material.refreshToken == spent }).map(\.key) {
            sessions[other] = nil
            endInFleet(other)
            sessions.void(other, generation: tokens.nextGeneration())
            changes.append(.delete(kind: RowKind.session, key: KeyCodec.encode(other)))
        }
        return changes + orphans.dropCopies(of: spent)
    }
}
