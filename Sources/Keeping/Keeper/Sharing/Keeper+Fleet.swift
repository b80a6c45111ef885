internal import DataPath
internal import Fleet
internal import Handshakes
internal import Numbers
internal import Telemetry
internal import Tokens
internal import World

/// Access tokens in a fleet: one grant a key for all gateways, by a lease; who does not get it waits for what its holder brings.
///
/// Only grants that lock no account and spend no refresh token get as far as being made without a lease: the steps that could do harm
/// stand in `Keeper+FleetSessions.swift` and are held back there.
extension Keeper {
    /// The next thing that a flight does.
    enum FleetClaim {
        /// Make the grant, under a lease or, nil, alone.
        case grant(FleetHold?)
        /// Another gateway's token has landed.
        case landed
        /// The holder took longer than anybody may wait.
        case overdue
    }

    /// How long a follower sleeps where no news come. Nanoseconds.
    private static let firstLook: UInt64 = 40_000_000
    private static let lastLook: UInt64 = 500_000_000

    func ask<Value: Sendable>(
        _ work: (@escaping @Sendable (Result<Value, SharedFault>) -> Void) -> Void
    ) async -> Result<Value, SharedFault> {
        await withCheckedContinuation { continuation in work { continuation.resume(returning: $0) } }
    }

    func claimInFleet(_ flight: Flight, of token: KeptToken, _ challenge: Handshakes.Challenge?) async -> FleetClaim {
        guard let tier = fleet.tier, token.identity.policy.sharesTokens, !token.isRetired else { return .grant(nil) }
        await firstConnection()
        let name = sharedName(of: token, tier)
        // A token that is not held any more is not called refused: it may be a good one that memory has lost.
        var refused = token.machine.heldGrant == nil ? nil : token.sharedIdentity
        var isDead = flight.reason == .challenged && refused != nil
        var pause = Self.firstLook
        while !Task.isCancelled {
            let (unwanted, dies, askedAt) = (refused, isDead, now)
            let claim: Result<SharedClaim, SharedFault> = await ask {
                tier.claim(name, unless: unwanted, isDead: dies, completion: $0)
            }
            switch claim {
            case .failure(let fault):
                noteFleet(fault)
                fleet.alone += 1
                return .grant(nil)
            case .success(.lease(let lease)): return .grant(hold(lease, askedAt: askedAt))
            case .success(.value(let bytes, let identity, let left)):
                if landShared(bytes, identity, left, flight, token, challenge) { return .landed }
                (refused, isDead) = (identity, false)
            case .success(.busy):
                isDead = false
                guard now < flight.abandonedAt else { return .overdue }
                await news(of: name, within: pause / 2 + random.number(below: pause / 2 + 1))
                pause = min(pause * 2, Self.lastLook)
            }
        }
        return .overdue
    }

    private func sharedName(of token: KeptToken, _ tier: any SharedTier) -> SharedName {
        if let name = token.sharedName { return name }
        let name = tier.name(of: token.key)
        token.sharedName = name
        fleet.met(name, token.key, beside: tokens)
        return name
    }

    /// False when it is of no use for what this flight was started for.
    private func landShared(
        _ bytes: [UInt8], _ identity: String, _ left: TimeSpan?, _ flight: Flight, _ token: KeptToken,
        _ challenge: Handshakes.Challenge?
    ) -> Bool {
        // The time that is left is the server's word; the clocks of two gateways have nothing to do with each other.
        guard let left, let row = AccessRow(encoded: bytes),
            let lifetime = token.identity.policy.lifetime.restored(
                wallExpiry: (WallTime(milliseconds: wall) + left).milliseconds, original: row.original, wallNow: wall,
                now: now, jitter: random.jitter()), now < lifetime.stopServingAt
        else { return false }
        if token.machine.servedGeneration(at: now) != nil, lifetime.refreshAt <= now { return false }
        if let level = challenge?.level, let known = row.level, known < level { return false }
        if let scopes = challenge?.scopes, !scopes.allSatisfy({ row.granted.scopes.contains(ByteString($0)) }) {
            return false
        }
        // Scopes that others who wait want beside it, or that a flight that was cut off had asked for.
        guard token.machine.accepts(granted: row.granted, configured: token.key.scopes) else { return false }
        let generation = tokens.nextGeneration()
        token.landing = (generation, row.line)
        token.sharedIdentity = identity
        token.lastFailure = nil
        token.secretFault = nil
        token.identity.recovered(at: now)
        fleet.taken += 1
        events.debug("token of another gateway taken", [token.identity.logged])
        apply(
            token.machine.landed(
                flight.token,
                Grant(
                    generation: generation, lifetime: lifetime, level: row.level, granted: row.granted, isShared: true),
                at: now),
            to: token)
        return true
    }

    /// After a flight's own grant: the fleet gets it with the lease.
    func publishToFleet(_ token: KeptToken, under hold: FleetHold?) {
        guard let tier = fleet.tier, let landed = token.landing ?? token.line,
            let grant = token.machine.landingGrant ?? token.machine.heldGrant, grant.generation == landed.generation
        else { return }
        let identity = tier.identity(of: landed.bytes)
        token.sharedIdentity = identity
        guard let hold, !hold.isOver else { return }
        end(hold)
        let row = AccessRow(landed.bytes, grant, wallExpiry: 0)
        let left = TimeSpan(nanoseconds: grant.lifetime.expiresAt - min(now, grant.lifetime.expiresAt))
        tier.publish(
            row.encoded(), as: identity, under: hold.lease, askedFor: hold.age(at: now), for: left
        ) { result in
            self.post { keeper in
                switch result {
                case .success(true): break
                // This token is as good as the other one; the other gateways have theirs from whoever came in between.
                case .success(false): keeper.fleet.late += 1
                case .failure(let fault): keeper.noteFleet(fault)
                }
            }
        }
    }

    /// Notes the shared identity of a token that did not come from the fleet.
    func noteIdentity(of token: KeptToken, _ line: Secret) {
        guard let tier = fleet.tier else { return }
        token.sharedIdentity = tier.identity(of: line)
        _ = sharedName(of: token, tier)
    }

    /// A purge or a logout counts for all gateways.
    func withdrawFromFleet(_ chosen: [KeptToken]) {
        for token in chosen {
            if let name = token.sharedName, let value = token.sharedIdentity { fleet.tier?.withdraw(name, value) }
        }
    }

    // MARK: - Leases

    func hold(_ lease: SharedLease, askedAt: UInt64) -> FleetHold {
        let hold = FleetHold(lease, askedAt: askedAt, Alarm(loop: loop))
        fleet.holds.append(hold)
        renewLater(hold)
        return hold
    }

    private func renewLater(_ hold: FleetHold) {
        hold.alarm.action = { [unowned self, weak hold] in
            guard let hold else { return }
            self.assumeIsolated { keeper in
                guard !hold.isOver else { return }
                // The answer tells nothing that is needed: a lost lease is found out by the last write under it, which is compared.
                keeper.fleet.tier?.renew(hold.lease) { _ in }
                keeper.renewLater(hold)
            }
        }
        hold.alarm.set(at: now + UInt64(SharedLease.renewal) * 1_000_000)
    }

    private func end(_ hold: FleetHold) {
        hold.isOver = true
        hold.alarm.close()
        fleet.spending.ended(hold.lease)
        fleet.holds.removeAll { $0 === hold }
    }

    /// The work is over and nothing was published.
    func letGo(_ hold: FleetHold?) {
        guard let hold, !hold.isOver else { return }
        end(hold)
        fleet.tier?.release(hold.lease)
    }

    // MARK: - Waiting

    /// At the start of a fleet every gateway would make its grant alone, for want of a connection that comes a moment later.
    func firstConnection() async {
        guard fleet.server.isNew else { return }
        await news(of: nil, within: RedisTier.connectTime)
    }

    /// - Parameter name: nil: the first connection to the server.
    func news(of name: SharedName?, within patience: UInt64) async {
        let wait = Wait<Void>()
        fleet.waits.add(wait, for: name)
        await word(of: wait, within: max(patience, 1_000_000), late: ()) { $0.fleet.waits.giveUp(wait, for: name) }
    }
}
