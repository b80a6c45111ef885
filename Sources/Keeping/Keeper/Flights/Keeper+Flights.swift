internal import DataPath
internal import Handshakes
internal import HotCache
internal import Telemetry
internal import Tokens
internal import World

/// Runs grants: one task a flight, on the keeper's loop.
extension Keeper {
    func startFlight(_ flight: Flight, of token: KeptToken) {
        // A flight that was cut off is taken up with the challenge that it was to answer.
        let challenge = token.challenge ?? (flight.reason == .restarted ? token.answering : nil)
        token.challenge = nil
        token.answering = challenge
        hold(token) { await $0.fly(flight, token, challenge: challenge) }
    }

    /// Runs what gets the token, and holds the task no longer than it runs: a task that has ended keeps its stack, tens of kilobytes,
    /// as long as somebody holds it. By then the next may have begun, whose task is not this one's to let go.
    private func hold(_ token: KeptToken, _ work: @escaping @Sendable (isolated Keeper) async -> Void) {
        token.flights &+= 1
        let number = token.flights
        token.flightTask = start { keeper in
            await work(keeper)
            guard token.flights == number else { return }
            token.flightTask = nil
            token.answering = nil
        }
    }

    private func fly(_ flight: Flight, _ token: KeptToken, challenge: Handshakes.Challenge?) async {
        let identity = token.identity
        let began = now
        defer { identity.grantTimes.observe(nanoseconds: now - min(now, began)) }
        var wanted = token.wanted
        wanted.challenge = challenge
        // A challenge that asked for more was answered once; a renewal that asked for less would only bring it back.
        wanted.scopes += flight.scopes.scopes.map { String(decoding: $0.bytes, as: UTF8.self) }
            .filter { !wanted.scopes.contains($0) }
        let environment = KeeperEnvironment(
            keeper: self, identity: identity, standing: flight.token.standing, claimant: sessions.nextClaimant(),
            subject: token.user)
        if challenge != nil { environment.challengedRoute = token.challengedRoute }
        token.claimant = environment.claimant
        defer {
            release(environment.claimant)
        }
        if let held = await refused(identity) {
            return fail(flight, token, held.failure, with: identity.secretVersion)
        }
        // Before it says that a person must log in: perhaps one has.
        if let refusal = storeRefusal(of: identity) { return fail(flight, token, refusal) }
        let hold: FleetHold?
        switch await claimInFleet(flight, of: token, challenge) {
        case .landed: return
        case .overdue: return fail(flight, token, .timedOut(step: "waiting for another gateway"))
        case .grant(let found): hold = found
        }
        defer { letGo(hold) }
        do throws(Handshakes.GrantFailure) {
            if wanted.challenge == nil, let route = token.route, let path = probePath(of: token) {
                wanted.challenge = try await probe(path, on: route, identity)
            }
            wanted.user = try endUser(of: token)
            let grant = try await identity.plan.handshake.acquire(wanted, environment: environment)
            note(doubt: false, of: identity)
            let landed = moment
            guard !grant.hasLostItsOrigin(skew(of: identity), at: landed) else { throw Self.originEnded(for: wanted) }
            resources.traces?.tell(of: token, trail: environment.trail, failure: nil, since: began, until: now)
            land(flight, token, grant, challenge: challenge, at: landed)
            publishToFleet(token, under: hold)
        } catch {
            var error = error
            if case .interactionRequired = error, isLoginElsewhere(of: identity) { error = .storeUnusable }
            doubtRegistration(of: identity, after: error, environment)
            if identity.policy.kind == .proactive { await book(error, of: identity, environment) }
            resources.traces?.tell(of: token, trail: environment.trail, failure: error, since: began, until: now)
            fail(flight, token, error, with: environment.secretVersion, asking: environment.trail.server)
        }
    }

    /// A client secret that was refused is not sent again either, though no account is locked by it.
    func refused(_ identity: KeptIdentity) async -> HeldBack? {
        guard identity.policy.kind == .proactive else { return nil }
        await readMarked(of: identity)
        return heldBack(identity)
    }

    /// Marks a secret that its issuer has refused. A password step has booked its own outcome; and a refused secret is marked by its value,
    /// which may be another one by now. Callers hear of it after it is on disk, so that a crash cannot come between.
    func book(_ failure: Handshakes.GrantFailure, of identity: KeptIdentity, _ environment: KeeperEnvironment) async {
        guard case .credentialRejected = failure, !identity.policy.sendsPassword,
            identity.secretVersion == environment.secretVersion
        else { return }
        identity.heed(failure, asking: environment.trail.server)
        markRejected(identity)
        await identity.marking?.value
    }

    /// The caller's token, or the one that a secret has, ended while the issuer made another one of it.
    private static func originEnded(for wanted: Wanted) -> Handshakes.GrantFailure {
        wanted.user != nil
            ? .callersTokenExpired
            : .issuerUnavailable(retryAfterSeconds: 1, reason: "the token that it was made from ended meanwhile")
    }

    private func land(
        _ flight: Flight, _ token: KeptToken, _ grant: AccessGrant, challenge: Handshakes.Challenge?, at landed: Moment
    ) {
        let lifetime = token.identity.policy.lifetime.lifetime(
            sentAt: grant.sentAt,
            expiresIn: grant.seconds(skew(of: token.identity), token.identity.policy.lifetime, at: landed),
            jitter: random.jitter())
        let generation = tokens.nextGeneration()
        let line = (grant.material ?? grant.token).withBytes { bytes in
            Self.fieldLine(token.identity.plan.handshake.injection(for: Array(bytes)))
        }
        let asked = token.key.scopes.union(flight.scopes)
        let granted = grant.grantedScopes.map { ScopeSet($0.map { ByteString($0) }) } ?? asked
        noteGranted(granted, asked: asked, for: token)
        token.landing = (generation, Secret(line))
        token.lastFailure = nil
        token.secretFault = nil
        token.grants += 1
        token.identity.noteGrant(at: now)
        token.identity.recovered(at: now)
        apply(
            token.machine.landed(
                flight.token,
                Grant(
                    generation: generation, lifetime: lifetime, level: grant.level ?? challenge?.level,
                    granted: granted, asked: asked),
                at: now),
            to: token)
    }

    /// - Parameter version: of the secrets that the failure is of; nil where the flight read none.
    private func fail(
        _ flight: Flight, _ token: KeptToken, _ failure: Handshakes.GrantFailure, with version: UInt64? = nil,
        asking server: String? = nil
    ) {
        token.failed(failure, asking: server, at: now)
        token.identity.note(failure, ofUser: token.user != nil, asking: server, at: now)
        apply(token.machine.failed(flight.token, Tokens.GrantFailure(failure), with: version, at: now), to: token)
    }

    /// `Name: value` with its line end, ready to splice.
    static func fieldLine(_ field: InjectedField) -> [UInt8] {
        Array(field.name.utf8) + [UInt8(ascii: ":"), UInt8(ascii: " ")] + field.value + [13, 10]
    }

    /// Asks the upstream for a challenge, as a caller without a credential would.
    func probe(
        _ path: String, on route: KeptRoute, _ identity: KeptIdentity
    ) async throws(Handshakes.GrantFailure) -> Handshakes.Challenge? {
        guard let url = IssuerURL(route.upstream.origin + route.pathPrefix + path) else {
            throw .configuration(reason: "probe: not a path")
        }
        let call = IssuerCall(
            step: "probe", method: "GET", url: url, headers: [("User-Agent", route.probeAgent)], body: [],
            carriesPassword: false)
        let answer: IssuerAnswer
        do throws(IssuerFault) { answer = try await askUpstream(call, of: route, for: identity) } catch {
            throw .issuerUnavailable(retryAfterSeconds: nil, reason: "probe: \(error.kind)")
        }
        switch identity.plan.handshake.judge(
            UpstreamAnswer(
                status: answer.status, fields: answer.headers.map { (Array($0.name.utf8), Array($0.value.utf8)) },
                body: answer.body, requestURL: url.description, requestMethod: Array("GET".utf8)))
        {
        case .challenged(let challenge), .nonce(_, let challenge): return challenge
        case .none, .conflict: throw .configuration(reason: "probe: the path is not protected")
        case .unusable(let reason), .misconfigured(let reason): throw .configuration(reason: "probe: \(reason)")
        }
    }

    /// A request to the upstream of a route, as the route reaches it.
    func askUpstream(
        _ call: IssuerCall, of route: KeptRoute, for identity: KeptIdentity
    ) async throws(IssuerFault) -> IssuerAnswer {
        // Whoever composed the call: what is trusted and shown there is for this one place.
        guard call.url.origin == IssuerURL(route.upstream.origin)?.origin else {
            throw IssuerFault(.unresolvable, provablyUnsent: true)
        }
        return try await self.call(call, network: identity.policy.network.leading(to: route.upstream))
    }

    // MARK: - Fixed credentials

    /// Reads the secret of a `static` or `basic` identity and makes it the token.
    /// - Parameters:
    ///   - isKnown: a reading has just brought the secret. One more could bring another value, which would be a change again, for ever where
    ///     a program makes a new value at each reading.
    ///   - then: what the trial of a new value begins with, once it is there.
    func loadFixed(_ token: KeptToken, isKnown: Bool = false, then actions: [BasicProbation.Action] = []) {
        let environment = environment(of: token.identity)
        if isKnown { environment.know(token.identity.latestSecrets) }
        token.loadedAt = now
        token.reading = environment.claimant
        hold(token) { await $0.readFixed(token, environment, then: actions) }
    }

    private func readFixed(_ token: KeptToken, _ environment: KeeperEnvironment, then actions: [BasicProbation.Action])
        async
    {
        do {
            let grant = try await token.identity.plan.handshake.acquire(token.wanted, environment: environment)
            if token.reading == environment.claimant {
                let line = grant.token.withBytes { bytes in
                    Self.fieldLine(token.identity.plan.handshake.injection(for: Array(bytes)))
                }
                token.line = (tokens.nextGeneration(), Secret(line))
                token.lastFailure = nil
                token.secretFault = nil
                if token.probation?.state == .unproven { await learnRefusal(of: token.identity) }
            }
        } catch {
            if token.reading == environment.claimant {
                token.failed(error, asking: environment.trail.server, at: now)
                token.identity.note(error, asking: environment.trail.server, at: now)
                events.error("secret cannot be read", [token.identity.logged, LogField("reason", .name("\(error)"))])
                // Nothing can be served: callers learn why, and a later request tries the secret again.
                token.line = nil
                if tokens.holds(token) { cache.clear(slot: token.slot) }
            }
        }
        ended(environment, of: token, then: actions)
    }

    /// A reading that began later has the later value, and may end sooner: what waits, waits for that one, whose own actions begin the trial.
    private func ended(_ reading: KeeperEnvironment, of token: KeptToken, then actions: [BasicProbation.Action]) {
        guard token.reading == reading.claimant else { return }
        token.reading = nil
        // The slot of a token that was given up while it was read may be another's by now; the requests that wait are told below.
        if tokens.holds(token) {
            if token.probation == nil || token.probation?.state == .proven { publishFixed(token) }
            if token.line != nil, token.probation?.state == .unproven, attemptsRefused(token.identity) {
                // Refused before a restart: a process that starts again and again would lock the account.
                let refused = token.probation?.quarantined() ?? []
                perform(refused, on: token)
            } else {
                perform(actions, on: token)
            }
        }
        let waiting = token.onLoaded
        token.onLoaded = []
        for work in waiting { work() }
    }

    func publishFixed(_ token: KeptToken) {
        guard let line = token.line else { return }
        let forever = Lifetime(
            sentAt: now, refreshAt: .max, stopServingAt: .max, expiresAt: .max, original: LifetimePolicy.longest)
        apply(
            token.machine.adopted(Grant(generation: line.generation, lifetime: forever), from: .configuration, at: now),
            to: token)
    }
}
