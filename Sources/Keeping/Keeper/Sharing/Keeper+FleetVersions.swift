internal import DataPath
internal import Fleet
internal import Handshakes
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens

/// The sessions that a gateway of a fleet may start from, where the server does not have the newest one that is known: whoever writes
/// to it can delete a session or put an older one back, it may have to make room, and it may come up empty.
extension Keeper {
    /// The soundness of what a step would start from.
    enum FleetGround {
        /// Nothing that is known to be newer is missing.
        case sound
        /// The server has not what this gateway knows; nothing newer is known, but others may know more.
        case missing
        /// Something newer than what this gateway has is known, and the server does not have it.
        case lost
    }

    /// For which whoever has a missing session puts it back: longer than a gateway needs to connect again. Nanoseconds.
    private static let recallTime: UInt64 = 1_500_000_000
    /// All gateways are asked for a session at most once in this time, whatever becomes of it. Nanoseconds.
    private static let recallInterval: UInt64 = 30_000_000_000

    func sessionName(_ key: SessionKey, _ fleet: KeptFleet) -> SharedName {
        let name = fleet.tier.name(.session, KeyCodec.encode(key))
        if fleet.sessionNames.count > 2 * (sessions.held.count + fleet.versions.count) + 1024 {
            fleet.sessionNames = fleet.sessionNames.filter {
                sessions[$0.value] != nil || fleet.versions[$0.value] != nil
            }
        }
        if fleet.sessionNames.updateValue(key, forKey: name) == nil, let heard = fleet.heard.take(name) {
            if heard.isOver {
                fleet.versions.ended(heard.version, of: key, at: wall)
            } else {
                _ = fleet.versions.saw(heard.version, of: key, at: wall)
            }
        }
        return name
    }

    /// - Parameter found: what the server has, and what was not taken.
    func ground(
        of key: SessionKey, beside found: SharedSession?, _ rung: SessionRung, _ identity: KeptIdentity,
        _ fleet: KeptFleet
    ) -> FleetGround {
        // A grant that any secret can make anew spends nothing.
        guard rung == .refreshToken || identity.policy.isIrreplaceable else { return .sound }
        let newest = fleet.versions.newest(of: key)
        let isHere = sessions.hasRefreshToken(key)
        if let found, found.version >= newest {
            // The refresh token of a session that has ended is not sent any more, and a session that could not be read may be newer
            // than the one here.
            let isHeld = (fleet.versions.held(of: key) ?? .none) == found.version && !found.value.isEmpty
            return rung == .refreshToken && !isHeld ? .lost : .sound
        }
        // A first refresh token that nobody is known to have sent.
        guard let known = fleet.versions[key] else { return .missing }
        if known.isEnded { return rung == .refreshToken ? .lost : .missing }
        return fleet.versions.holdsNewest(of: key) && (isHere || rung == .fullGrant) ? .missing : .lost
    }

    func mayRecall(_ key: SessionKey, _ fleet: KeptFleet) -> Bool {
        if let asked = fleet.recalls[key], now - min(asked, now) < Self.recallInterval { return false }
        if fleet.recalls.count > 1024 {
            fleet.recalls = fleet.recalls.filter { now - min($0.value, now) < Self.recallInterval }
        }
        fleet.recalls[key] = now
        return true
    }

    /// Asks all gateways for a session, this one too, and waits for as long as they need.
    func recall(_ key: SessionKey, _ name: SharedName, _ fleet: KeptFleet) async {
        fleet.tier.tell(.sessionMissed(name))
        await pause(Self.recallTime)
    }

    func lost(_ key: SessionKey, _ identity: KeptIdentity, _ fleet: KeptFleet) -> Handshakes.GrantFailure {
        let name = identity.plan.name
        let advice =
            "start the gateway that has it, or bring a new login: cardea login \(name), or another refresh_token and then "
            + "cardea reset \(name), which also has what this gateway holds sent"
        if fleet.versions.newest(of: key) != fleet.toldLost[key] {
            if fleet.toldLost.count > 1024 { fleet.toldLost = [:] }
            fleet.toldLost[key] = fleet.versions.newest(of: key)
            events.error(
                "the shared store has lost the newest refresh token",
                [
                    LogField("identity", .name(name)), LogField("server", .name(fleet.place)),
                    LogField("advice", .name(advice)),
                ])
        }
        return withheld(
            fleet,
            "it has lost the newest refresh token of this login, and what this gateway has may be spent; \(advice)")
    }

    /// Settles for what this gateway has, whatever was known to be newer: an operator says so.
    func settleForHeld(of identity: KeptIdentity) {
        guard let fleet else { return }
        for key in sessionKeys(of: identity) where fleet.versions.settleFor(held: key) {
            storeVersion(of: key, fleet)
        }
    }

    /// This gateway is connected again: what it has goes to a server that has forgotten it. What others have brought meanwhile, and the server
    /// may not give, they say when they hear how far this one is.
    func bringBack(_ session: KeptSession, _ key: SessionKey, _ identity: KeptIdentity, _ fleet: KeptFleet) async {
        guard let version = fleet.versions.offered(key),
            await offer(session.material, key, as: version, fleet) == false, session.material.refreshToken != nil
        else { return }
        fleet.tier.tell(.session(sessionName(key, fleet), version: version))
        if !sessions.isStepUnderWay(key) { await freshen(key, of: identity) }
    }

    /// Fetches the logins that others have and that cannot be had anew without a person, before anybody asks for them: with a login
    /// comes the mark that a first refresh token is spent, which outlives a change of settings.
    func fetchLogins(_ fleet: KeptFleet) async {
        for identity in identities where identity.policy.isIrreplaceable && identity.policy.sharesTokens {
            guard let key = identity.sessionKey(subject: nil), sessions[key] == nil else { continue }
            await freshen(key, of: identity)
        }
    }

    // MARK: - News

    /// Another gateway has brought a version. A refresh token is fetched at once: should the server lose it and that gateway end, it is still
    /// here.
    func sessionMoved(_ name: SharedName, _ version: SessionVersion, _ fleet: KeptFleet) {
        guard let key = fleet.sessionNames[name] else {
            return fleet.heard.note(version, of: name, isOver: false)
        }
        guard let identity = catalogue.identityOrRetired(key.digest) else { return }
        guard fleet.versions.saw(version, of: key, at: wall) else {
            // The gateway that tells an older version was away and starts from it, or was given it.
            return version < fleet.versions.newest(of: key) ? sessionMissed(name, fleet) : ()
        }
        guard identity.policy.isIrreplaceable || sessions.hasRefreshToken(key) else { return }
        start { keeper in
            // A step that is under way here brings something newer still, and a login is on its way to the disk.
            if !keeper.sessions.isStepUnderWay(key), identity.keeping == nil {
                await keeper.freshen(key, of: identity)
            }
            if !fleet.versions.holdsNewest(of: key) { keeper.storeVersion(of: key, fleet) }
        }
    }

    /// The server has not got what another gateway knows of.
    func sessionMissed(_ name: SharedName, _ fleet: KeptFleet) {
        guard let key = fleet.sessionNames[name] else { return }
        if let session = sessions[key], let version = fleet.versions.offered(key) {
            start { await $0.offer(session.material, key, as: version, fleet) }
        } else if let known = fleet.versions[key], known.isTold {
            fleet.tier.endSession(name, version: known.newest)
        }
    }

    /// Ends the session for the whole fleet: it is dead to its issuer or was forgotten here, and no gateway is to use it.
    func endInFleet(_ key: SessionKey) {
        guard let fleet else { return }
        let version = fleet.versions.held(of: key) ?? .none
        fleet.tier.endSession(sessionName(key, fleet), version: version)
        noteEnded(key, version, fleet)
    }

    /// Another gateway says so.
    func sessionEnded(_ name: SharedName, _ version: SessionVersion?, _ fleet: KeptFleet) {
        guard let key = fleet.sessionNames[name] else {
            if let version { fleet.heard.note(version, of: name, isOver: true) }
            return
        }
        guard let version else {
            // Nothing is erased for news that do not say which one it was: anybody can send those.
            if let identity = catalogue.identityOrRetired(key.digest) { start { await $0.freshen(key, of: identity) } }
            return
        }
        sessionEnded(key, version, fleet)
    }

    /// Another gateway says so, or the server. One that is newer than what has ended goes on.
    func sessionEnded(_ key: SessionKey, _ version: SessionVersion, _ fleet: KeptFleet) {
        guard version >= fleet.versions.newest(of: key) else { return }
        guard let session = sessions[key] else { return noteEnded(key, version, fleet) }
        guard sessions.locks[key.lock] != nil, !sessions.isStepUnderWay(key) else { return }
        sessions[key] = nil
        erase(kind: RowKind.session, key: KeyCodec.encode(key))
        noteEnded(key, version, fleet)
        session.material.refreshToken.map { endFamily(of: $0) }
        sessions.void(key, generation: tokens.nextGeneration())
        watchLogins()
    }

    private func noteEnded(_ key: SessionKey, _ version: SessionVersion, _ fleet: KeptFleet) {
        if let known = fleet.versions[key], known.isTold, known.newest >= version { return }
        fleet.versions.ended(version, of: key, at: wall)
        if fleet.versions[key] != nil { storeVersion(of: key, fleet) }
    }

    // MARK: - Store

    /// A session goes to disk with its version: after a restart, beside a server that has forgotten, the newest is to win.
    /// - Parameter material: which it goes with; nil: what is held.
    func versionRows(of key: SessionKey, beside material: LayerMaterial? = nil) -> [StoreChange] {
        guard let known = fleet?.versions[key] else { return [] }
        // Beside a refresh token and after an end it counts for as long as a value of before may be put back: how many are kept is bounded.
        let isLasting = known.held == nil || (material ?? sessions[key]?.material)?.refreshToken != nil
        return [
            .put(
                StoredRow(
                    kind: RowKind.version, key: KeyCodec.encode(key), value: known.octets,
                    expiresWall: isLasting ? nil : wall + Orphans.keptForMilliseconds))
        ]
    }

    private func storeVersion(of key: SessionKey, _ fleet: KeptFleet) {
        let gone = fleet.versions.takeDropped()
        erase(gone.map { .delete(kind: RowKind.version, key: KeyCodec.encode($0)) })
        guard catalogue.identityOrRetired(key.digest)?.policy.access.persist == true else { return }
        keep(versionRows(of: key))
    }

    func restoreVersion(_ row: StoredRow, replacing: Bool = false) {
        guard let fleet, let key = try? KeyCodec.sessionKey(row.key) else { return }
        fleet.versions.restore(row.value, of: key, replacing: replacing)
        // A row of a release that forgot the version with the session, or of an identity that keeps its sessions nowhere now: it has ended
        // here, and the others may have it still.
        if catalogue.isConfigured(key.digest), sessions[key] == nil, let held = fleet.versions.held(of: key) {
            fleet.versions.ended(held, of: key, at: 0)
        }
    }
}
