internal import Fleet
internal import Handshakes
internal import Tokens

/// The one try of a `basic` password in a fleet: each request with it is a login attempt, so gateways that come up together take turns,
/// and who comes second looks first whether it was refused.
///
/// The lease goes with its holder. What a gateway that dies in its try has found out, nobody knows: the next one tries again.
extension Keeper {
    /// Whether the try that a probation wants to begin waits for its turn. Then `perform` is called again when there is one.
    func awaitsTrial(_ token: KeptToken) -> Bool {
        guard fleet.tier != nil, token.probation?.state == .unproven, token.trial == nil else { return false }
        // The search that is under way serves the successor of a caller who left while it waited, too.
        guard !token.seeksTrial else { return true }
        token.seeksTrial = true
        start { await $0.seekTrial(for: token) }
        return true
    }

    private func seekTrial(for token: KeptToken) async {
        let epoch = token.identity.standing
        let turn = await trial(of: token.identity)
        token.seeksTrial = false
        let isCurrent = tokens.holds(token) && token.identity.standing == epoch
        switch turn {
        case .begin(let hold):
            guard isCurrent, token.probation?.state == .unproven, let ticket = token.probation?.trial else {
                // Whoever wanted it has left, or the secret is another one now.
                letGo(hold)
                break
            }
            token.trial = hold
            perform([.dispatch(ticket)], on: token)
            return
        case .refused where isCurrent:
            markRejected(token.identity)
            perform(token.probation?.quarantined() ?? [], on: token)
        case .withheld(let reason) where isCurrent:
            token.failed("not without the shared store: \(reason)", asking: nil, at: now)
            perform(token.probation?.withheld() ?? [], on: token)
        case .refused, .withheld: break
        }
        // A new secret came while this one waited: its own try has not been asked for yet.
        if let ticket = token.probation?.trial, token.probation?.state == .unproven {
            perform([.dispatch(ticket)], on: token)
        }
    }

    private enum Trial {
        case begin(FleetHold)
        /// Another gateway has met the refusal.
        case refused
        case withheld(String)
    }

    private func trial(of identity: KeptIdentity) async -> Trial {
        guard let tier = fleet.tier, let account = identity.account else { return .withheld("there is none") }
        let secret: Secret
        do { secret = try await sentPassword(of: identity) } catch { return .withheld("\(error)") }
        await firstConnection()
        let name = tier.name(of: secret, account)
        let attempt = tier.attempt(account, secret, "")
        let deadline = now + 2 * identity.policy.access.acquireTimeout
        while true {
            let askedAt = now
            let claim: Result<SharedClaim, SharedFault> = await ask {
                tier.claim(name, unless: nil, isDead: false, completion: $0)
            }
            switch claim {
            case .failure(let fault):
                _ = withheld(fault)
                return .withheld("\(fault)")
            case .success(.lease(let lease)):
                let hold = hold(lease, askedAt: askedAt)
                let count: Result<UInt32?, SharedFault> = await ask { tier.spent(attempt, completion: $0) }
                if case .success(let spent?) = count, spent < max(identity.policy.attempts.loginAttempts, 1) {
                    return .begin(hold)
                }
                letGo(hold)
                switch count {
                case .success(nil):
                    // Who knows of a refusal has not brought it back yet.
                    guard now < deadline else { return .withheld("it has just come up") }
                    await pause(250_000_000)
                case .success: return .refused
                case .failure(let fault):
                    _ = withheld(fault)
                    return .withheld("\(fault)")
                }
            case .success(.value), .success(.busy):
                guard handOver.mayGrant else { return .withheld("another process takes over") }
                guard now < deadline else {
                    fleet.withheld += 1
                    return .withheld("another gateway is trying the password")
                }
                await news(of: name, within: 250_000_000)
            }
        }
    }

    /// After each event of a probation: the turn ends with its outcome. A refusal is told before, by `tellRejected`.
    func settleTrial(of token: KeptToken) {
        guard let hold = token.trial, let probation = token.probation else { return }
        guard probation.state != .unproven || !probation.isTrying else { return }
        token.trial = nil
        guard probation.state == .quarantined, let marking = token.identity.marking else { return letGo(hold) }
        // Who comes next must find the mark.
        start { keeper in
            await marking.value
            keeper.letGo(hold)
        }
    }

    /// The secret is another one: what is under way with the one before is of no interest.
    func dropTrial(of token: KeptToken) {
        guard let hold = token.trial else { return }
        token.trial = nil
        letGo(hold)
    }
}
