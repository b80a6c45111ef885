internal import DataPath
internal import Handshakes
internal import HotCache
package import Reactor
internal import Telemetry
internal import TokenStore
internal import Tokens
internal import World

/// Owns all token state: it alone writes the hot cache, runs handshakes, and decides what a challenge means. It lives on one loop, whose
/// executor it is; loops and store reach it by mail.
///
/// This file holds its state and the mail. `Keeper+Challenges.swift` decides over cold keys and challenges,
/// `Keeper+Flights.swift` runs grants, `Keeper+Environment.swift` keeps layers and attempts, `Keeper+Store.swift` restores and commits,
/// `Keeper+Status.swift` tells operators.
package actor Keeper: KeeperInbox {
    nonisolated let executor: LoopExecutor
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package nonisolated let resources: KeeperResources
    var catalogue: Catalogue
    var tokens: TokenTable
    var issuers: IssuerCalls
    package var sessions = Sessions()
    var logins = Logins()
    package var attempts: Attempts
    var users: Users
    var oneTime = KeptOneTime()
    package var health: StoreHealth
    var orphans = OrphanRows()
    var erasures = Erasures()
    /// Set before the first flight, where the configuration has `store.shared`.
    package var fleet = KeptFleet()
    package var handOver = KeeperHandOver()

    package nonisolated var loop: Loop { executor.loop }

    package init(_ parts: KeeperParts) {
        executor = parts.executor
        let seed = parts.random.number()
        resources = KeeperResources(parts)
        catalogue = Catalogue(identities: parts.identities, routes: parts.routes)
        health = StoreHealth(parts.storeState)
        attempts = Attempts(parts.markKey)
        tokens = TokenTable(seed: seed)
        issuers = IssuerCalls(seed: seed)
        users = Users(parts.subjects)
    }

    var cache: HotCache { resources.cache }
    nonisolated var events: EventLog { resources.events }
    package nonisolated var blocking: any BlockingWork { resources.blocking }
    nonisolated var random: any RandomSource { resources.random }
    nonisolated var store: ErasureMask? { resources.store }
    package var identities: [KeptIdentity] { catalogue.identities }
    package var routes: [KeptRoute] { catalogue.routes }

    // MARK: - Mail in

    nonisolated func send(_ report: LoopReport, from loop: Int) -> Bool {
        post { $0.take(report, from: loop) }
    }

    private func take(_ report: LoopReport, from loop: Int) {
        noticeClock()
        switch report {
        case .traced(let wait): resources.traces?.note(wait, at: now)
        case .needed(let slot): needed(slot, from: loop)
        case .refreshDue(let slot, let generation):
            guard let token = tokens[slot], !token.lacksCallerToken else { return }
            apply(token.machine.refreshDue(generation: generation, at: now), to: token)
        case .cold(let request): cold(request)
        case .left(let ticket): left(ticket)
        case .foundOpen(let ticket): foundOpen(ticket)
        case .scoutFailed(let ticket): scoutFailed(ticket)
        case .challenged(let challenge): challenged(challenge)
        case .negotiated(let report): negotiated(report)
        case .accepted(let slot, let generation): accepted(slot, generation)
        }
        checkQuiet()
    }

    package var now: UInt64 { executor.loop.kernel.now() }

    /// Sets an alarm, which is made when it is first needed.
    func set(_ alarm: inout Alarm?, at deadline: UInt64, _ action: @escaping @Sendable (isolated Keeper) -> Void) {
        let set = alarm ?? Alarm(loop: loop)
        alarm = set
        set.action = { [unowned self] in self.assumeIsolated(action) }
        set.set(at: deadline)
    }

    /// Runs `action` once, so many nanoseconds from now.
    func later(_ span: UInt64, _ action: @escaping @Sendable (isolated Keeper) -> Void) {
        let alarm = Alarm(loop: loop)
        alarm.action = { [unowned self, unowned alarm] in
            alarm.close()
            self.assumeIsolated(action)
        }
        alarm.set(at: now + span)
    }

    /// - Parameters:
    ///   - span: nanoseconds.
    ///   - late: the word where none comes in that time.
    ///   - leave: called when the time is over, so that nobody gives a word to who waits no more.
    func word<Word>(
        of wait: Wait<Word>, within span: UInt64, late: Word,
        leave: @escaping @Sendable (isolated Keeper) -> Void
    ) async -> Word {
        guard !wait.hasWord else { return await wait.next() }
        // The alarm belongs to the wait, and must not hold it.
        set(&wait.alarm, at: now + span) { [weak wait] keeper in
            leave(keeper)
            wait?.give(late)
        }
        return await wait.next()
    }

    /// Brings what another thread has found to the keeper's loop.
    /// - Returns: false when the loop's mailbox is full: the letter is lost, and whoever waits for it needs an alarm.
    @discardableResult
    nonisolated func post(_ letter: @escaping @Sendable (isolated Keeper) -> Void) -> Bool {
        executor.loop.post {
            self.assumeIsolated { keeper in
                letter(keeper)
                keeper.resources.postman.letterEnded()
            }
        }
    }

    /// Looked at whenever there is work, not by a timer: an idle gateway does not wake up, and a jump matters when a token is used.
    private func noticeClock() {
        guard tokens.clock.observe(wall: wall &* 1_000_000, boot: now) else { return }
        events.warn("wall clock jumped; every token is due for renewal")
        for token in tokens.all.inOrder { apply(token.machine.wallClockJumped(at: now), to: token) }
    }

    /// Runs work of the keeper that waits for something, on the keeper's loop from its first step to its last.
    @discardableResult
    package func start(_ work: @escaping @Sendable (isolated Keeper) async -> Void) -> Task<Void, Never> {
        handOver.works += 1
        return Task(executorPreference: executor) { await self.run(work) }
    }

    private func run(_ work: @escaping @Sendable (isolated Keeper) async -> Void) async {
        await work(self)
        handOver.works -= 1
        resources.postman.letterEnded()
        checkQuiet()
    }

    // MARK: - Mail out

    func connect(_ loops: [LoopBound<DataLoop>]) { resources.postman.connect(loops) }

    var loopCount: Int { resources.postman.loopCount }

    /// The loop has it after this turn.
    func order(_ order: KeeperOrder, to loop: Int) { resources.postman.order(order, to: loop) }

    func answer(_ ticket: Ticket, _ answer: TokenAnswer) {
        if ticket.followsChallenge, case .use(let slot, _) = answer { tokens[slot]?.identity.noteReplay(at: now) }
        resources.traces?.forget(ticket)
        order(.request(ticket, answer), to: ticket.loop)
    }

    // MARK: - Interpreting a token's machine

    /// Carries out what a machine decided.
    /// - Parameter direct: the event was about one request, and the answer is its alone: it is returned instead of being given to the
    ///   waiters.
    @discardableResult
    func apply(_ actions: [AccessTokenMachine.Action], to token: KeptToken, direct: Bool = false) -> Outcome? {
        defer { if !token.postponed.isEmpty, !token.machine.isBusy { reconsider(token) } }
        var direct: (isAsked: Bool, outcome: Outcome?) = (direct, nil)
        for action in actions {
            switch action {
            case .startFlight(let flight): startFlight(flight, of: token)
            case .abandonFlight:
                token.flightTask?.cancel()
                if let claimant = token.claimant { release(claimant) }
            case .commit(let generation): commit(token, generation: generation)
            case .publish(let fields): publish(token, fields)
            case .unpublish: cache.clear(slot: token.slot)
            case .answer(let loops, let outcome):
                if direct.isAsked { direct.outcome = outcome } else { deliver(outcome, of: token, to: loops) }
            // Kept by whoever reported the challenge.
            case .postpone: break
            case .watch(let route, let until):
                for loop in 0..<loopCount { order(.watch(slot: token.slot, route: route, until: until), to: loop) }
            case .scout(let loops):
                for loop in loops.indices { order(.settled(slot: token.slot, .retry), to: loop) }
            case .schedule(let time):
                // A flight may end for a token that was forgotten meanwhile: nobody would close the alarm, which would outlive the token.
                guard tokens[token.slot] === token else { break }
                set(&token.alarm, at: time) { [unowned token] keeper in
                    keeper.apply(token.machine.timerFired(at: keeper.now), to: token)
                }
            case .cancelTimer: token.alarm?.clear()
            case .deleteRow:
                // A token that is purged, or ends with its login, leaves no bytes in memory either.
                (token.line, token.landing) = (nil, nil)
                deleteRow(of: token)
            case .discard: break
            case .report(let event): log(event, token)
            }
        }
        _ = cache.reclaim()
        return direct.outcome
    }

    private func publish(_ token: KeptToken, _ fields: RecordFields) {
        // The machine knows nothing of a trial: a secret that was refused, or that nobody has taken yet, is not for loops to send.
        if let probation = token.probation, probation.state != .proven { return }
        if let landing = token.landing, landing.generation == fields.generation {
            token.line = landing
            token.landing = nil
        }
        guard let line = token.line, line.generation == fields.generation else {
            // Other times for the bytes that are there; where they are not, the next miss looks them up.
            cache.restamp(slot: token.slot, record: fields)
            return
        }
        let publication = line.bytes.withBytes { cache.publish(slot: token.slot, record: fields, bytes: $0) }
        lighten(token)
        if case .published(let evicted) = publication, !evicted.isEmpty {
            events.debug("tokens evicted", [LogField("count", .count(Int64(evicted.count)))])
        }
    }

    private func deliver(_ outcome: Outcome, of token: KeptToken, to waiting: LoopSet) {
        let answer = tokenAnswer(outcome, of: token)
        resources.traces?.forget(token.slot)
        for loop in waiting.indices { order(.settled(slot: token.slot, answer), to: loop) }
        let tickets = token.tickets.filter { waiting.contains(.loop($0.loop)) }
        token.tickets.removeAll { waiting.contains(.loop($0.loop)) }
        for ticket in tickets { self.answer(ticket, answer) }
    }

    func tokenAnswer(_ outcome: Outcome, of token: KeptToken) -> TokenAnswer {
        switch outcome {
        case .ready(let generation, let justGranted): .use(slot: token.slot, granted: justGranted ? generation : 0)
        case .failed(let failure, let wait): .fault(fault(failure, retryAfter: wait, of: token))
        case .final: .final
        case .moved: .fault(Fault(.issuerUnavailable, retryAfter: 1))
        }
    }

    private func fault(_ failure: Tokens.GrantFailure, retryAfter wait: UInt64?, of token: KeptToken) -> Fault {
        var fault = Fault(failure, retryAfter: wait, detail: token.toldFailure)
        if token.identity.policy.access.connectivity == .offline {
            fault.detail =
                "identity \(token.identity.plan.name) is configured to be offline, and there is no valid token"
        }
        // A denial of one user's token is that user's trouble, which he can do something about.
        if token.user != nil, fault.kind == .policyDenied { fault.kind = .subjectRefused }
        // The machine waits as it does for an issuer; who must act is the operator.
        if fault.kind == .issuerUnavailable, let secret = token.secretFault { fault.kind = secret }
        if !handOver.mayGrant, failure == .notPermitted(retryAfter: .seconds(1)) { return Self.upgrading }
        return fault
    }

    // MARK: - Tokens by key

    /// The token of a key, made when it is first asked for. Nil when every slot of the hot cache is in use.
    func token(of key: AccessKey, identity: KeptIdentity, wanted: Wanted) -> KeptToken? {
        if let token = tokens[key] { return token }
        guard let slot = cache.allocateSlot() else { return nil }
        return adopt(key: key, slot: slot, identity: identity, wanted: wanted)
    }

    @discardableResult
    func adopt(key: AccessKey, slot: Slot, identity: KeptIdentity, wanted: Wanted) -> KeptToken {
        let machine = AccessTokenMachine(
            policy: identity.policy.access, standing: identity.standing, seed: tokens.seed(of: slot))
        let token = KeptToken(key: key, slot: slot, identity: identity, machine: machine, wanted: wanted)
        token.machine.scopes = ScopeSet(wanted.scopes.map { ByteString($0) })
        if !handOver.mayGrant { _ = token.machine.suspended(at: now) }
        if identity.policy.kind == .basic {
            token.probation = BasicProbation(pathLimit: identity.policy.refusalsUntilClosed)
        }
        token.mayBeStored = store != nil && identity.policy.access.persist
        tokens.add(token)
        return token
    }
}
