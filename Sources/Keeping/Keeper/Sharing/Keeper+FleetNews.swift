package import Fleet
internal import Handshakes
internal import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens

/// News of other gateways, and the state of the shared server. News may be lost: whatever they say is looked up again before it matters.
extension Keeper {
    package func heard(_ news: FleetNews) {
        guard let fleet else { return }
        switch news {
        case .published(let name, let identity):
            wake(name, fleet)
            renewal(name, fleet) { $0.sharedIdentity != identity }
        case .withdrawn(let name, let identity):
            wake(name, fleet)
            renewal(name, fleet) { $0.sharedIdentity == identity }
        case .released(let name): wake(name, fleet)
        case .spending(let lock, let owner, let isOver):
            if isOver { fleet.spending.ended(lock, owner) } else { fleet.spending.began(lock, owner, at: now) }
        case .session(let name, let version):
            wake(name, fleet)
            lookForLogins(name, fleet)
            if let version { sessionMoved(name, version, fleet) }
        case .sessionEnded(let name, let version): sessionEnded(name, version, fleet)
        case .sessionMissed(let name): sessionMissed(name, fleet)
        case .rejected(let account): rejected(account, fleet)
        case .reset(let account): resetElsewhere(account, fleet)
        case .forgotten: start { await $0.bringBack() }
        }
    }

    private func wake(_ name: SharedName, _ fleet: KeptFleet) {
        for wait in fleet.waits.removeValue(forKey: name) ?? [] { wait.give(()) }
    }

    /// Another token is to be had, or this one is dead: a background flight finds out which, while the one that is held is served.
    private func renewal(_ name: SharedName, _ fleet: KeptFleet, if isDue: (KeptToken) -> Bool) {
        guard let key = fleet.tokens[name] else { return }
        guard let token = tokens[key] else {
            fleet.tokens[name] = nil
            return
        }
        guard isDue(token), token.flightTask == nil || token.machine.state(at: now) != .acquiring,
            let generation = token.machine.servedGeneration(at: now)
        else { return }
        apply(token.machine.refreshDue(generation: generation, at: now), to: token)
    }

    // MARK: - The server

    package func fleetChanged(_ fault: SharedFault?) {
        guard let fleet else { return }
        defer {
            for wait in fleet.arrivals { wait.give(()) }
            fleet.arrivals = []
        }
        if let fault { return noteFleet(fault) }
        let before = fleet.state
        fleet.state = .serving
        let place = LogField("server", .name(fleet.place))
        if case .degraded = before { events.info("shared store works again", [place]) }
        if before == .connecting {
            events.info(
                "shared store connected",
                [place, LogField("format", .name(fleet.format.rawValue))])
            if fleet.format != .new {
                events.warn(
                    "versions and ends in the shared store can be forged by whoever writes to it, until store.shared.format is new",
                    [place])
            }
        }
        // A server that was away may have lost the leases, the sessions and the marks: what this gateway knows of them goes back first.
        start { await $0.bringBack() }
    }

    func noteFleet(_ fault: SharedFault) {
        guard let fleet else { return }
        // Said when it went down; what is asked for since then only meets that.
        if case .degraded = fleet.state, fault.message == "not connected" { return }
        let reason = "\(fault)"
        if fleet.state == .degraded(reason) { return }
        if case .degraded = fleet.state {
        } else {
            events.error(
                "shared store degraded",
                [LogField("server", .name(fleet.place)), LogField("reason", .name(reason))])
        }
        fleet.state = .degraded(reason)
    }

    private func bringBack() async {
        guard let fleet else { return }
        for hold in fleet.holds { fleet.tier.renew(hold.lease) { _ in } }
        for session in sessions.inOrder() {
            let key = session.key
            guard let identity = catalogue.identityOrRetired(key.digest), identity.policy.sharesTokens,
                sessions[key]?.generation == session.generation
            else { continue }
            await bringBack(session, key, identity, fleet)
            // A session that gateways of the old format may have written is looked up: the lookup puts it into the new format too.
            if fleet.format == .both {
                let name = sessionName(key, fleet)
                let _: Result<SharedSession?, SharedFault> = await ask { fleet.tier.session(name, completion: $0) }
            }
        }
        for (key, version) in fleet.versions.ended.inOrder(of: { KeyCodec.encode($0.key) }) {
            fleet.tier.endSession(sessionName(key, fleet), version: version)
        }
        // A key that tokens are bound to is this gateway's alone.
        let own = ByteString(DurablePart.proofKey.name)
        for key in sessions.parts.inOrder.map(\.key)
        where key.part != own && catalogue.identityOrRetired(key.digest)?.policy.isShared == true {
            await offerDurable(key, fleet)
        }
        lookForLogins(nil, fleet)
        await fetchLogins(fleet)
        for identity in identities where identity.account != nil && attemptsRefused(identity) {
            await tellRejected(identity, fleet)
        }
    }

    // MARK: - Status

    package var sharedStatus: SharedStatus? {
        guard let fleet else { return nil }
        var status = SharedStatus(
            state: .serving, detail: nil, place: fleet.place, format: fleet.format.rawValue,
            isSealed: fleet.format == .new)
        switch fleet.state {
        case .connecting: status.state = .connecting
        case .serving: break
        case .degraded(let reason): (status.state, status.detail) = (.degraded, reason)
        }
        status.taken = fleet.taken
        status.alone = fleet.alone
        status.late = fleet.late
        status.withheld = fleet.withheld
        return status
    }
}
