internal import DataPath
internal import Fleet
internal import Handshakes
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The sessions that a gateway of a fleet may start from, where the server does not have the newest one that is known: whoever writes
/// to it can delete a session or put an older one back, it may have to make room, and it may come up empty.
extension Keeper {
    func sessionName(_ key: SessionKey, _ tier: any SharedTier) -> SharedName {
        let name = tier.name(of: key)
        fleet.sessions.met(name, key, beside: sessions, at: wall)
        return name
    }

    func lost(_ key: SessionKey, _ identity: KeptIdentity) -> Handshakes.GrantFailure {
        let name = identity.plan.name
        let advice =
            "start the gateway that has it, or bring a new login: cardea login \(name), or another refresh_token and then "
            + "cardea reset \(name), which also has what this gateway holds sent"
        if fleet.sessions.noteLost(key) {
            events.error(
                "the shared store has lost the newest refresh token",
                [
                    LogField("identity", .name(name)), LogField("server", .name(fleet.address)),
                    LogField("advice", .name(advice)),
                ])
        }
        return withheld(
            "it has lost the newest refresh token of this login, and what this gateway has may be spent; \(advice)")
    }

    /// Settles for what this gateway has, whatever was known to be newer: an operator says so.
    func settleForHeld(of identity: KeptIdentity) {
        for key in sessionKeys(of: identity) where fleet.sessions.versions.settleFor(held: key) {
            storeVersion(of: key)
        }
    }

    /// This gateway is connected again: what it has goes to a server that has forgotten it. What others have brought meanwhile, and the server
    /// may not give, they say when they hear how far this one is.
    func bringBack(_ session: KeptSession, _ identity: KeptIdentity, _ tier: any SharedTier) async {
        let key = session.key
        guard let version = fleet.sessions.versions.offered(key),
            await offer(session.material, key, as: version) == false, session.material.refreshToken != nil
        else { return }
        tier.tell(.session(sessionName(key, tier), version: version))
        if !sessions.isStepUnderWay(key) { await freshen(key, of: identity) }
    }

    /// Fetches the logins that others have and that cannot be had anew without a person, before anybody asks for them: with a login
    /// comes the mark that a first refresh token is spent, which outlives a change of settings.
    func fetchLogins() async {
        for identity in identities where identity.policy.isIrreplaceable && identity.policy.sharesTokens {
            guard let key = identity.sessionKey(subject: nil), sessions[key] == nil else { continue }
            await freshen(key, of: identity)
        }
    }

    // MARK: - Ends

    /// Ends the session for the whole fleet: it is dead to its issuer or was forgotten here, and no gateway is to use it.
    func endInFleet(_ key: SessionKey) {
        guard let tier = fleet.tier else { return }
        let version = fleet.sessions.versions.held(of: key) ?? .none
        tier.endSession(sessionName(key, tier), version: version)
        noteEnded(key, version)
    }

    /// Another gateway says so, or the server. One that is newer than what has ended goes on.
    func sessionEnded(_ key: SessionKey, _ version: SessionVersion) {
        guard version >= fleet.sessions.versions.newest(of: key) else { return }
        guard let session = sessions[key] else { return noteEnded(key, version) }
        guard sessions.locks[key.lock] != nil, !sessions.isStepUnderWay(key) else { return }
        sessions[key] = nil
        erase(kind: RowKind.session, key: KeyCodec.encode(key))
        noteEnded(key, version)
        session.material.refreshToken.map { endFamily(of: $0) }
        sessions.void(key, generation: tokens.nextGeneration())
        watchLogins()
    }

    /// The identity is not shared any more. A session of the fleet is renewed by those who take turns at it: whoever sends its refresh token
    /// without a turn has its issuer take it for theft, which ends the login of all.
    func leaveToFleet(_ key: SessionKey) {
        guard let held = fleet.sessions.versions.held(of: key), !sessions.isStepUnderWay(key) else { return }
        let token = sessions[key]?.material.refreshToken
        sessions[key] = nil
        // Without a moment it is an end that nobody is told of.
        fleet.sessions.versions.ended(held, of: key, at: 0)
        erase(kind: RowKind.version, key: KeyCodec.encode(key))
        token.map { endFamily(of: $0) }
        sessions.void(key, generation: tokens.nextGeneration())
    }

    private func noteEnded(_ key: SessionKey, _ version: SessionVersion) {
        if fleet.sessions.noteEnded(key, version, at: wall) { storeVersion(of: key) }
    }

    // MARK: - Store

    /// A session goes to disk with its version: after a restart, beside a server that has forgotten, the newest is to win.
    /// - Parameter material: which it goes with; nil: what is held.
    func versionRows(of key: SessionKey, beside material: LayerMaterial? = nil) -> [StoreChange] {
        guard let known = fleet.sessions.versions[key] else { return [] }
        // Beside a refresh token and after an end it counts for as long as a value of before may be put back: how many are kept is bounded.
        let isLasting = known.held == nil || (material ?? sessions[key]?.material)?.refreshToken != nil
        return [
            .put(
                StoredRow(
                    kind: RowKind.version, key: KeyCodec.encode(key), value: known.octets,
                    expiresWall: isLasting ? nil : wall + Orphans.keptForMilliseconds))
        ]
    }

    func storeVersion(of key: SessionKey) {
        let gone = fleet.sessions.versions.takeDropped()
        erase(gone.map { .delete(kind: RowKind.version, key: KeyCodec.encode($0)) })
        guard catalogue.identityOrRetired(key.digest)?.policy.access.persist == true else { return }
        keep(versionRows(of: key))
    }

    func restoreVersion(_ row: StoredRow, replacing: Bool) {
        guard fleet.tier != nil, let key = try? KeyCodec.sessionKey(row.key) else { return }
        fleet.sessions.versions.restore(row.value, of: key, replacing: replacing)
        // A row of a release that forgot the version with the session, or of an identity that keeps its sessions nowhere now: it has ended
        // here, and the others may have it still.
        if catalogue.isConfigured(key.digest), sessions[key] == nil, let held = fleet.sessions.versions.held(of: key) {
            fleet.sessions.versions.ended(held, of: key, at: 0)
        }
    }
}
