internal import Audit
internal import DataPath
internal import Handshakes
internal import Telemetry
internal import Tokens

/// Credentials that are good for one request: each is fetched for the ticket that waits for it, in the issuer's pace, and handed to it
/// alone. Nothing here joins flights: two requests never share one.
extension Keeper {
    /// Calls for them that are under way at a time: fewer than the connections that the keeper has to one issuer, so that its other calls
    /// always find one.
    static let mostOneTimeCalls = 32
    /// How long a denial is told again without a call, so that callers who insist do not use up what the issuer allows.
    static let denialMemory: UInt64 = 5_000_000_000

    func fetch(
        for ticket: Ticket, target: [UInt8], subject: RequestSubject?, bindings: [UInt8]? = nil, on route: KeptRoute,
        _ identity: KeptIdentity, by handshake: any OneTimeHandshake
    ) {
        guard let resource = handshake.resource(of: target, on: route.wanted) else {
            return answer(ticket, .fault(Fault(.resourceMissing)))
        }
        // A name that is no text cannot be told to an issuer.
        let user = subject.flatMap { EndUser($0) }
        guard subject == nil || user != nil else { return answer(ticket, .fault(Fault(.subjectMissing))) }
        let need = OneTimeNeed(resource: resource, serverEndPoint: bindings, user: user)
        if let fault = fault(ahead: need, identity) { return answer(ticket, .fault(fault)) }
        guard oneTime.tickets.enter(ticket, of: identity) else {
            return answer(ticket, .fault(Fault(.tooManyWaiters, retryAfter: 1)))
        }
        start { keeper in
            let found = await keeper.fetch(need, for: ticket, identity, by: handshake)
            // Whoever left meanwhile has thrown it away: nobody else may have it.
            if keeper.oneTime.tickets.remove(ticket) { keeper.answer(ticket, found) }
        }
    }

    /// The fault that is known without asking the issuer; nil where there is none.
    private func fault(ahead need: OneTimeNeed, _ identity: KeptIdentity) -> Fault? {
        if let held = heldBackHere(identity) { return held.fault(of: identity.plan.name) }
        if identity.policy.access.connectivity == .offline {
            return Fault(
                .issuerUnavailable, retryAfter: 1, detail: "identity \(identity.plan.name) is configured to be offline")
        }
        guard handOver.mayGrant else { return Self.upgrading }
        guard let denial = identity.denials[need.purpose], denial.until > now else { return nil }
        return Self.denied(need, denial.reason)
    }

    /// A login spares a password. It does not spare the statement by which the gateway registers, which is sent beside a login that stands.
    private func heldBackHere(_ identity: KeptIdentity) -> HeldBack? {
        if let held = heldBack(identity) { return held }
        guard case .rejected? = attempts.heldBack(identity, sparesPassword: false) else { return nil }
        return .rejected
    }

    private func fetch(
        _ need: OneTimeNeed, for ticket: Ticket, _ identity: KeptIdentity, by handshake: any OneTimeHandshake
    ) async -> TokenAnswer {
        let environment = environment(of: identity, ticket: ticket)
        defer { release(environment.claimant) }
        await readMarked(of: identity)
        if let held = heldBackHere(identity) { return .fault(held.fault(of: identity.plan.name)) }
        do throws(Handshakes.GrantFailure) {
            let credential = try await handshake.credential(for: need, environment: environment)
            identity.noteGrant(at: now)
            if ticket.followsChallenge { identity.noteReplay(at: now) }
            identity.recovered(at: now)
            if credential.isNewGrant { audit(.grant, identity, fields(of: need)) }
            return .once(Self.line(of: credential.secret, by: handshake), negotiation: credential.negotiation)
        } catch {
            if case .policyDenied(let reason) = error {
                note(denial: reason, of: need, identity)
                return .fault(Self.denied(need, reason))
            }
            if case .credentialRejected = error, environment.secretVersion == identity.secretVersion {
                markRejected(identity)
                await identity.marking?.value
            }
            if oneTime.tickets.contains(ticket) { identity.note(error, asking: environment.trail.server, at: now) }
            if case .interactionRequired = error { watchLogins() }
            var fault = Fault(Tokens.GrantFailure(error), retryAfter: nil, detail: error.toldToCallers)
            if case .issuerUnavailable(let seconds, _) = error { fault.retryAfter = seconds ?? 1 }
            if let secret = Fault.Kind(secret: error) { fault.kind = secret }
            return .fault(fault)
        }
    }

    static func line(of secret: Secret, by handshake: any OneTimeHandshake) -> Secret {
        Secret(secret.withBytes { fieldLine(handshake.injection(for: Array($0))) })
    }

    /// A denial is the user's where there is one, and otherwise the resource's.
    private static func denied(_ need: OneTimeNeed, _ reason: String) -> Fault {
        Fault(need.user == nil ? .resourceDenied : .subjectRefused, detail: reason)
    }

    private func note(denial reason: String, of need: OneTimeNeed, _ identity: KeptIdentity) {
        if need.user != nil { audit(.refusal, identity, fields(of: need) + self.reason("subject_refused")) }
        if identity.denials.count >= 256 { identity.denials = identity.denials.filter { $0.value.until > now } }
        if identity.denials.count >= 256 { identity.denials.removeAll() }
        identity.denials[need.purpose] = (now + Self.denialMemory, reason)
    }

    // MARK: - Calls

    /// Waits for its turn among the calls first, over all issuers.
    func queuedCall(_ call: IssuerCall, network: IssuerNetwork) async throws(IssuerFault) -> IssuerAnswer {
        let wait = Wait<Bool>()
        if !oneTime.calls.enter(wait, limit: Self.mostOneTimeCalls) { _ = await wait.next() }
        defer { oneTime.calls.leave()?.give(true) }
        return try await self.call(call, network: network)
    }

    // MARK: - For operators

    /// How long a preview stands.
    static let previewLife: UInt64 = 300_000_000_000

    /// The facts that are known now; where the preview is old, a new one is asked for and seen by the next look.
    func facts(of identity: KeptIdentity) -> [IdentityFact] {
        guard let handshake = identity.plan.handshake as? any OneTimeHandshake,
            let key = identity.sessionKey(subject: nil), let session = sessions[key]?.material, session.isLive(at: now)
        else { return [] }
        if handshake.hasPreview, handOver.mayGrant, identity.policy.access.connectivity != .offline,
            !attemptsRefused(identity), identity.preview.map({ now - $0.at > Self.previewLife }) ?? true
        {
            // Marked before it is asked, so that a failure is not asked again at each look.
            identity.preview = (now, [])
            start { await $0.preview(identity, by: handshake) }
        }
        return handshake.facts(of: session) + (identity.preview?.facts ?? [])
    }

    private func preview(_ identity: KeptIdentity, by handshake: any OneTimeHandshake) async {
        let environment = environment(of: identity)
        defer { release(environment.claimant) }
        let facts: [IdentityFact]
        do throws(Handshakes.GrantFailure) {
            facts = try await handshake.preview(environment: environment)
        } catch {
            facts = [IdentityFact(name: "preview", value: "\(error)")]
        }
        identity.preview?.facts = facts
    }

    // MARK: - Pace

    func turn(_ quota: CallQuota, for ticket: Ticket?) async throws(Handshakes.GrantFailure) {
        // A handful: one an issuer, and they are few.
        guard let wait = oneTime.paces[quota.origin, default: CallPace()].take(quota, at: now) else {
            throw .issuerUnavailable(
                retryAfterSeconds: Int(clamping: quota.patience / 1_000_000_000),
                reason: "more calls wait than the issuer takes in time")
        }
        if wait > 0 { await pause(wait) }
        guard let ticket, !oneTime.tickets.contains(ticket) else { return }
        throw .timedOut(step: "the caller left")
    }

    func turnedAway(_ quota: CallQuota) {
        oneTime.paces[quota.origin, default: CallPace()].turnedAway(quota, at: now)
        events.warn("issuer throttles", [LogField("issuer", .name(quota.origin))])
    }
}

extension OneTimeNeed {
    /// The key of a denial: the resource, and in whose name.
    fileprivate var purpose: ByteString {
        guard case .name(let name)? = user else { return ByteString(resource) }
        return ByteString(Array(resource.utf8) + [0] + Array(name.utf8))
    }
}

extension EndUser {
    /// Nil for a name that is no text.
    init?(_ subject: RequestSubject) {
        if let token = subject.token {
            self = .token(token)
        } else if let name = String(validating: subject.key.bytes, as: UTF8.self) {
            self = .name(name)
        } else {
            return nil
        }
    }
}
