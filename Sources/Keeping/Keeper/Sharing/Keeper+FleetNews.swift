package import Fleet
internal import Handshakes
internal import Telemetry
internal import Tokens

/// News of other gateways, and the state of the shared server. News may be lost: whatever they say is looked up again before it matters.
extension Keeper {
    package func heard(_ news: FleetNews) {
        guard let tier = fleet.tier else { return }
        switch news {
        case .published(let name, let identity):
            wake(name)
            renewal(name) { $0.sharedIdentity != identity }
        case .withdrawn(let name, let identity):
            wake(name)
            renewal(name) { $0.sharedIdentity == identity }
        case .released(let name): wake(name)
        case .spending(let lock, let owner, let isOver):
            if isOver { fleet.spending.ended(lock, owner) } else { fleet.spending.began(lock, owner, at: now) }
        case .session(let name, let version):
            wake(name)
            lookForLogins(name, tier)
            if let version { perform(fleet.sessions.moved(name, to: version, at: wall, catalogue, sessions), name) }
        case .sessionEnded(let name, let version): perform(fleet.sessions.ended(name, version), name)
        case .sessionMissed(let name): perform(fleet.sessions.missed(name, sessions), name)
        case .rejected(let account): rejected(account, tier)
        case .reset(let account): resetElsewhere(account, tier)
        case .forgotten: start { await $0.bringBack() }
        }
    }

    private func wake(_ name: SharedName?) {
        for wait in fleet.waits.came(name) { wait.give(()) }
    }

    /// Another token is to be had, or this one is dead: a background flight finds out which, while the one that is held is served.
    private func renewal(_ name: SharedName, if isDue: (KeptToken) -> Bool) {
        guard let token = fleet.token(name, in: tokens), isDue(token),
            token.flightTask == nil || token.machine.state(at: now) != .acquiring,
            let generation = token.machine.servedGeneration(at: now)
        else { return }
        apply(token.machine.refreshDue(generation: generation, at: now), to: token)
    }

    private func perform(_ answer: FleetSessions.Answer, _ name: SharedName) {
        switch answer {
        case .nothing: break
        case .look(let key):
            guard let identity = catalogue.identityOrRetired(key.digest) else { return }
            start { await $0.freshen(key, of: identity) }
        case .follow(let key):
            guard let identity = catalogue.identityOrRetired(key.digest) else { return }
            // A refresh token is fetched at once: should the server lose it and that gateway end, it is still here.
            start { keeper in
                // A step that is under way here brings something newer still, and a login is on its way to the disk.
                if !keeper.sessions.isStepUnderWay(key), identity.keeping == nil {
                    await keeper.freshen(key, of: identity)
                }
                if !keeper.fleet.sessions.versions.holdsNewest(of: key) { keeper.storeVersion(of: key) }
            }
        case .offer(let key, let version):
            guard let session = sessions[key] else { return }
            start { await $0.offer(session.material, key, as: version) }
        case .end(let version): fleet.tier?.endSession(name, version: version)
        case .drop(let key, let version): sessionEnded(key, version)
        }
    }

    // MARK: - The server

    package func fleetChanged(_ fault: SharedFault?) {
        guard fleet.tier != nil else { return }
        defer { wake(nil) }
        if let fault { return noteFleet(fault, isLost: true) }
        let server = LogField("server", .name(fleet.address))
        switch fleet.server.connected() {
        case .worksAgain?: events.info("shared store works again", [server])
        case .connected?:
            events.info("shared store connected", [server, LogField("format", .name(fleet.format.rawValue))])
            if fleet.format != .new {
                events.warn(
                    "versions and ends in the shared store can be forged by whoever writes to it, until store.shared.format is new",
                    [server])
            }
        case nil: break
        }
        // A server that was away may have lost the leases, the sessions and the marks: what this gateway knows of them goes back first.
        start { await $0.bringBack() }
    }

    func noteFleet(_ fault: SharedFault, isLost: Bool = false) {
        guard let reason = fleet.server.failed(fault, at: now, isLost: isLost) else { return }
        events.error(
            "shared store degraded", [LogField("server", .name(fleet.address)), LogField("reason", .name(reason))])
    }

    private func bringBack() async {
        guard let tier = fleet.tier else { return }
        for hold in fleet.holds { tier.renew(hold.lease) { _ in } }
        for session in sessions.inOrder() {
            let key = session.key
            guard let identity = catalogue.identityOrRetired(key.digest), identity.policy.sharesTokens,
                sessions[key]?.generation == session.generation
            else { continue }
            await bringBack(session, identity, tier)
            // A session that gateways of the old format may have written is looked up: the lookup puts it into the new format too.
            if fleet.format == .both {
                let name = sessionName(key, tier)
                let _: Result<SharedSession?, SharedFault> = await ask { tier.session(name, completion: $0) }
            }
        }
        for (key, version) in fleet.sessions.versions.ended.inOrder(of: { KeyCodec.encode($0.key) }) {
            tier.endSession(sessionName(key, tier), version: version)
        }
        // A key that tokens are bound to is this gateway's alone.
        let own = ByteString(DurablePart.proofKey.name)
        for key in sessions.parts.inOrder.map(\.key)
        where key.part != own && catalogue.identityOrRetired(key.digest)?.policy.isShared == true {
            await offerDurable(key, tier)
        }
        lookForLogins(nil, tier)
        await fetchLogins()
        for identity in identities where identity.account != nil && attemptsRefused(identity) {
            await tellRejected(identity)
        }
    }
}
