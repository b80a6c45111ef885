package import DataPath
internal import Handshakes
internal import Telemetry
package import Tokens

/// The keeper as a running handshake sees it. One a flight; `Keeper.release` ends its claims.
/// Touched on the keeper's loop only.
package final class KeeperEnvironment: GrantEnvironment, @unchecked Sendable {
    private let keeper: Keeper
    let identity: KeptIdentity
    let standing: Standing
    /// Under which the session machines know this flight.
    package let claimant: SessionMachine.Claimant
    let sessionKey: SessionKey?
    /// The one request that it is all for, where there is one.
    let ticket: Ticket?
    /// How the issuer was reached when the flight began; a reload changes nothing of it.
    private let network: IssuerNetwork
    /// Where the flight's calls went.
    package let trail = IssuerTrail()
    /// The route whose challenge the flight answers, where it answers one.
    var challengedRoute: KeptRoute?
    /// Durable parts that were forgotten a moment ago, by their keys: a logout has to tell the issuer of it as the one that it knows.
    var forgotten: [DurableKey: LayerMaterial] = [:]
    /// The refresh token of the configuration, where this flight sends it.
    private(set) var firstRefreshToken: Secret?
    /// This flight has used a registration that was there before it.
    private(set) var usesRegistration = false
    /// The values of the secrets as this flight has read them, by their names.
    private var secrets: [String: Secret] = [:]
    /// The version of the identity's secrets when this flight read its last one.
    private(set) var secretVersion: UInt64
    /// Marks of the attempts that are spent and not settled, with the names of the secrets that were sent.
    private var openMarks: [(secret: String, mark: AttemptMark)] = []

    /// - Parameter subject: the end user of a token per subject; otherwise the session is the identity's account's.
    package init(
        keeper: Keeper, identity: KeptIdentity, standing: Standing, claimant: SessionMachine.Claimant,
        subject: ByteString? = nil, ticket: Ticket? = nil
    ) {
        self.keeper = keeper
        self.identity = identity
        self.standing = standing
        secretVersion = standing.secretVersion
        self.claimant = claimant
        self.ticket = ticket
        network = identity.policy.network
        sessionKey = identity.sessionKey(subject: subject)
    }

    // MARK: - Issuer

    func send(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        trail.asks(call.url)
        let began = await keeper.now
        do throws(IssuerFault) {
            let answer = try await answer(to: call)
            await note(call, status: answer.status, since: began)
            return answer
        } catch {
            await note(call, status: 0, since: began)
            throw error
        }
    }

    private func answer(to call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        guard ticket != nil else { return try await keeper.call(call, network: network) }
        // Handshakes that serve single requests, of which there are hundreds at once: their calls wait for each other over all issuers.
        return try await keeper.queuedCall(call, network: network)
    }

    private func note(_ call: IssuerCall, status: Int, since began: UInt64) async {
        var method = call.method
        trail.note(
            TracedCall(
                start: began, end: await keeper.now, method: method.withUTF8 { SpanMethod(UnsafeRawBufferPointer($0)) },
                status: UInt16(clamping: status)))
    }

    // MARK: - Durable layer

    func durable(_ part: DurablePart) async -> LayerMaterial? {
        if let material = await keeper.durable(part, of: identity) {
            if part == .registration { usesRegistration = true }
            return material
        }
        if let material = identity.durableKey(part).flatMap({ forgotten[$0] }) { return material }
        return await keeper.durableOfFleet(part, of: identity)
    }

    func durable(
        _ part: DurablePart, unless refused: LayerMaterial?,
        make: () async throws(Handshakes.GrantFailure) -> LayerMaterial
    ) async throws(Handshakes.GrantFailure) -> LayerMaterial {
        switch await keeper.claimDurable(part, unless: refused, of: identity) {
        case .standing(let material): return material
        case .failed(let failure): throw failure
        case .make: break
        }
        do throws(Handshakes.GrantFailure) {
            let material: LayerMaterial
            switch try await keeper.claimInFleet(part, unless: refused, of: identity) {
            case .made(let found): material = found
            case .make(let hold):
                do throws(Handshakes.GrantFailure) { material = try await make() } catch {
                    await keeper.letGo(hold)
                    throw error
                }
                await keeper.publish(material, under: hold)
            }
            try await keeper.commit(part, material, of: identity, standing: standing)
            await keeper.durableMade(part, of: identity, .success(material))
            if part == .registration { usesRegistration = false }
            return material
        } catch {
            await keeper.durableMade(part, of: identity, .failure(error))
            throw error
        }
    }

    func commit(_ part: DurablePart, _ material: LayerMaterial) async throws(Handshakes.GrantFailure) {
        try await keeper.commit(part, material, of: identity, standing: standing)
    }

    func drop(_ part: DurablePart, ifStill material: LayerMaterial) async {
        await keeper.drop(part, ifStill: material, of: identity)
    }

    // MARK: - Session layer

    func session() async -> LayerMaterial? {
        guard let sessionKey else { return nil }
        await keeper.freshen(sessionKey, of: identity)
        return await keeper.liveSession(sessionKey)
    }

    func hasLogin() async -> Bool {
        guard let sessionKey else { return false }
        await keeper.freshen(sessionKey, of: identity)
        return await keeper.sparesPerson(sessionKey)
    }

    func session(
        _ claim: SessionClaim,
        step:
            (SessionRung, LayerMaterial?) async throws(Handshakes.GrantFailure) ->
            LayerMaterial
    ) async throws(Handshakes.GrantFailure) -> SessionGrant {
        await keeper.freshen(sessionKey, of: identity)
        var turn = await keeper.claimSession(claim, environment: self)
        // Ends: the ladder has two rungs and is walked down.
        while true {
            switch turn {
            case .ready(let material, let isFresh): return SessionGrant(material: material, isFresh: isFresh)
            case .failed(let failure): throw failure
            case .run(let run, let standing):
                do throws(Handshakes.GrantFailure) {
                    let material = try await material(run, claim, standing, step)
                    turn = await keeper.stepEnded(run, .success(material), environment: self)
                } catch {
                    turn = await keeper.stepEnded(run, .failure(error), environment: self)
                }
            }
        }
    }

    /// Makes the step; in a fleet, in its turn and from what the fleet knows.
    private func material(
        _ run: SessionMachine.Step, _ claim: SessionClaim, _ standing: LayerMaterial?,
        _ step:
            (SessionRung, LayerMaterial?) async throws(Handshakes.GrantFailure) ->
            LayerMaterial
    ) async throws(Handshakes.GrantFailure) -> LayerMaterial {
        guard let turn = try await keeper.fleetTurn(for: run, claim, standing, environment: self) else {
            return try await step(run.rung == .refreshToken ? .refreshToken : .fullGrant, standing)
        }
        do throws(Handshakes.GrantFailure) {
            var material = turn.ready
            if material == nil {
                do throws(Handshakes.GrantFailure) { material = try await step(turn.rung, turn.standing) } catch {
                    // Our own ladder did not know of the fleet's refresh token and stands on its last rung already.
                    guard turn.rung == .refreshToken, run.rung != .refreshToken, claim.canGrantFully,
                        Tokens.GrantFailure(error).consequence == .block
                    else { throw error }
                    material = try await step(.fullGrant, nil)
                }
                if let material { await keeper.commit(material, in: turn) }
            }
            await keeper.letGo(turn.hold)
            guard let material else { throw .internal(reason: "a step without material") }
            return material
        } catch {
            await keeper.letGo(turn.hold)
            throw error
        }
    }

    // MARK: - Secrets and attempts

    func secret(_ name: String) async throws(Handshakes.GrantFailure) -> Secret {
        if let secret = secrets[name] { return secret }
        let secret = try await keeper.secret(name, of: identity)
        secrets[name] = secret
        secretVersion = identity.secretVersion
        return secret
    }

    /// The flight takes these values and reads none of them.
    func know(_ values: [String: Secret]) { secrets.merge(values) { $1 } }

    func latestSecret(_ name: String) async throws(Handshakes.GrantFailure) -> Secret {
        secrets[name] = nil
        return try await secret(name)
    }

    func programAnswer() async throws(Handshakes.GrantFailure) -> Secret {
        try await keeper.programAnswer(of: identity)
    }

    func token(of name: String) async throws(Handshakes.GrantFailure) -> Secret {
        try await keeper.subjectToken(of: name, for: identity)
    }

    func spendAttempt(user: String, secret name: String) async throws(Handshakes.GrantFailure) {
        guard
            let mark = try await keeper.spendAttempt(of: identity, user: user, secret: try await secret(name))
        else { return }
        openMarks.append((name, mark))
    }

    func settleAttempt(_ outcome: AttemptOutcome, secret: String?) async {
        let index = secret.map { name in openMarks.firstIndex { $0.secret == name } } ?? openMarks.indices.last
        guard let index else { return }
        await keeper.settleAttempt(outcome, of: openMarks.remove(at: index).mark)
    }

    func now() async -> UInt64 { await keeper.now }

    func pause(_ span: UInt64) async { await keeper.pause(span) }

    func turn(_ quota: CallQuota) async throws(Handshakes.GrantFailure) {
        try await keeper.turn(quota, for: ticket)
    }

    func aside(_ work: @escaping @Sendable () throws -> Secret) async throws(Handshakes.GrantFailure) -> Secret {
        try await keeper.aside(work)
    }

    func askUpstream(_ call: IssuerCall) async throws(IssuerFault) -> IssuerAnswer {
        guard let challengedRoute else { throw IssuerFault(.unresolvable, provablyUnsent: true) }
        return try await keeper.askUpstream(call, of: challengedRoute, for: identity)
    }

    func tell(_ news: GrantNews) async { await keeper.take(news, of: identity) }

    func standing(ofFirst refreshToken: Secret, beside held: Secret?) async -> FirstRefreshToken {
        let standing = await keeper.standing(ofFirst: refreshToken, beside: held, environment: self)
        if standing == .unspent { firstRefreshToken = refreshToken }
        return standing
    }
}

extension Keeper {
    func take(_ news: GrantNews, of identity: KeptIdentity) {
        switch news {
        case .concern(let what): warn(what, of: identity)
        case .refused(let refreshToken): refused(refreshToken: refreshToken, of: identity)
        case .throttled(let quota): turnedAway(quota)
        case .run(let trace): identity.lastRun = trace
        }
    }
}
