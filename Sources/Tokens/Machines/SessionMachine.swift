/// The durable and session layers of one lock (issuer and subject): one flight at a time across all identities and
/// scopes, in the order they asked. Those that ask for the same session share a flight and its outcome.
public struct SessionMachine: Sendable {
    /// Names the access flight that needs a session; chosen by the keeper, unique in the process.
    public typealias Claimant = UInt64

    /// The machine's knowledge of a session; the keeper has its bytes.
    public struct Session: Equatable, Sendable {
        /// Unique in the process, from `GenerationCounter`.
        public var generation: UInt64
        /// The session starts no access flight from then on.
        var stopServingAt: Instant
        /// Whether the refresh rung of the ladder exists.
        var hasRefreshToken: Bool
        /// A refresh token was replaced: committed before an access token is made from it
        /// (docs/design/tokens.md#rule-4).
        var rotated: Bool
        /// A person's login brought it: its refresh token outlives a purge.
        var isHuman: Bool

        /// Memberwise.
        public init(
            generation: UInt64, stopServingAt: Instant, hasRefreshToken: Bool, rotated: Bool = false,
            isHuman: Bool = false
        ) {
            self.generation = generation
            self.stopServingAt = stopServingAt
            self.hasRefreshToken = hasRefreshToken
            self.rotated = rotated
            self.isHuman = isHuman
        }
    }

    /// A call to the issuer, to be reported as succeeded or failed.
    public struct Step: Equatable, Sendable {
        /// Comes back with the outcome.
        public let token: FlightToken
        /// The session that the step makes or renews.
        public let key: SessionKey
        /// Which way to the session it takes.
        public let rung: GrantLadder.Rung

        /// Memberwise.
        public init(token: FlightToken, key: SessionKey, rung: GrantLadder.Rung) {
            self.token = token
            self.key = key
            self.rung = rung
        }
    }

    /// The answer to an access flight that waited.
    public enum Outcome: Equatable, Sendable {
        case ready(generation: UInt64)
        case failed(GrantFailure)
    }

    /// The keeper's orders, to be carried out in this order.
    public enum Action: Equatable, Sendable {
        /// Make this step. For a password step the attempt ledger is asked, and the attempt committed, before.
        case run(Step)
        /// Seal and commit the session; report `committed`.
        case commit(SessionKey, generation: UInt64)
        case deliver([Claimant], Outcome)
        /// The refresh token was refused: it is gone, in memory and in the store.
        case dropRefreshToken(SessionKey)
        /// Came too late; a rotated refresh token is committed, or revoked after a logout.
        case discard(FlightToken, revokeRefreshToken: Bool)
        case report(AccessTokenMachine.Event)
    }

    private struct Request {
        var key: SessionKey
        var standing: Standing
        var canGrantFully: Bool
        /// Its step serves its one claimant only.
        var isOwn: Bool
        var claimants: [Claimant]
    }

    private struct Running {
        var request: Request
        var token: FlightToken
        var ladder: GrantLadder
        /// Set while a rotated refresh token is being committed.
        var awaitedCommit: UInt64?
        /// A new epoch came: its outcome is discarded, but the lock stays taken until it is known. Two password steps at
        /// once could lock the account.
        var isCutOff = false
    }

    private var sessions: [SessionKey: Session] = [:]
    private var blocked: [SessionKey: GrantFailure] = [:]
    private var running: Running?
    private var queue: [Request] = []
    /// The claimants that were told once that their session is dead: a second time in one flight is final.
    private var renewed: Set<Claimant> = []
    private var lastFlight: UInt64 = 0
    private var logoutEpochs: [IdentityDigest: UInt64] = [:]
    private var secretVersions: [IdentityDigest: UInt64] = [:]
    /// No configuration names it any more, and its cut-off step is still under way.
    private var leaving: IdentityDigest?

    /// A lock without sessions.
    public init() {}

    /// Digests of which anything is remembered beyond their sessions: none but configured ones, and the one that is leaving.
    public var remembered: Set<IdentityDigest> {
        var remembered = Set(logoutEpochs.keys).union(secretVersions.keys)
        if let leaving { remembered.insert(leaving) }
        return remembered
    }
    /// Digests of which there is anything here: for all others `retired` changes nothing.
    public var digests: Set<IdentityDigest> {
        var digests = remembered
        for key in sessions.keys { digests.insert(key.digest) }
        for key in blocked.keys { digests.insert(key.digest) }
        for request in queue { digests.insert(request.key.digest) }
        if let running { digests.insert(running.request.key.digest) }
        return digests
    }

    /// No step is under way or waits for its turn.
    var isIdle: Bool { running == nil && queue.isEmpty }

    /// Nothing is under way and nothing is known but what holds for every lock of the issuer.
    public var isEmpty: Bool { isIdle && sessions.isEmpty && blocked.isEmpty && renewed.isEmpty && leaving == nil }

    /// The session where it can still be used; nil also for one whose time is over.
    public func session(_ key: SessionKey, at now: Instant) -> Session? {
        sessions[key].flatMap { now < $0.stopServingAt ? $0 : nil }
    }

    /// Who walks the ladder of the flight under way: the first that asked and still waits.
    public var leader: Claimant? { running?.request.claimants.first }

    /// Why no step is made for the key until something changes; nil where steps may be made.
    public func refusal(of key: SessionKey) -> GrantFailure? { blocked[key] }

    // MARK: - Claims

    /// An access flight needs a session.
    /// - Parameters:
    ///   - canGrantFully: whether the identity can make a full grant without a person.
    ///   - isOwn: the step brings the claimant's access token too (OAuth refresh tokens): it is shared with nobody, and a live session
    ///     spares nobody a step.
    public mutating func claimed(
        _ key: SessionKey, by claimant: Claimant, standing: Standing, canGrantFully: Bool, isOwn: Bool = false,
        at now: Instant
    ) -> [Action] {
        if !isOwn, let session = session(key, at: now), running?.request.key != key || running?.isCutOff == true {
            return [.deliver([claimant], .ready(generation: session.generation))]
        }
        if let failure = blocked[key] { return [.deliver([claimant], .failed(failure))] }
        return enqueue(
            Request(
                key: key, standing: standing, canGrantFully: canGrantFully, isOwn: isOwn, claimants: [claimant]))
    }

    /// The access step was told that its session is dead. The first time that means one new session, the second the end.
    public mutating func sessionRefused(
        _ key: SessionKey, generation: UInt64, by claimant: Claimant, standing: Standing, canGrantFully: Bool,
        isOwn: Bool = false, at now: Instant
    ) -> [Action] {
        if sessions[key]?.generation == generation {
            // The session lives on in its refresh token alone.
            sessions[key]?.stopServingAt = 0
        }
        guard renewed.insert(claimant).inserted else {
            return [.deliver([claimant], .failed(.policyDenied))]
        }
        return claimed(
            key, by: claimant, standing: standing, canGrantFully: canGrantFully, isOwn: isOwn, at: now)
    }

    /// The access flight is over, however.
    public mutating func released(_ claimant: Claimant) {
        renewed.remove(claimant)
        running?.request.claimants.removeAll { $0 == claimant }
        for index in queue.indices { queue[index].claimants.removeAll { $0 == claimant } }
        queue.removeAll { $0.claimants.isEmpty }
    }

    private mutating func enqueue(_ request: Request) -> [Action] {
        // An outcome speaks for one standing: a claim made after a new secret or epoch waits for a flight of its own.
        if let running, !request.isOwn, !running.isCutOff, running.request.key == request.key,
            running.request.standing == request.standing
        {
            self.running?.request.claimants += request.claimants
            return []
        }
        let same = queue.firstIndex { $0.key == request.key && $0.standing == request.standing }
        if !request.isOwn, let index = same {
            queue[index].claimants += request.claimants
            return []
        }
        queue.append(request)
        return running == nil ? startNext() : []
    }

    private mutating func startNext() -> [Action] {
        running = nil
        var actions: [Action] = []
        while !queue.isEmpty {
            let request = queue.removeFirst()
            if let failure = blocked[request.key] {
                actions.append(.deliver(request.claimants, .failed(failure)))
                continue
            }
            var rungs: [GrantLadder.Rung] = []
            if sessions[request.key]?.hasRefreshToken == true { rungs.append(.refreshToken) }
            if request.canGrantFully { rungs.append(.fullGrant) }
            let ladder = GrantLadder(rungs)
            guard let rung = ladder.rung else {
                actions += block(request, .interactionRequired)
                continue
            }
            lastFlight += 1
            let token = FlightToken(id: lastFlight, standing: request.standing)
            running = Running(request: request, token: token, ladder: ladder, awaitedCommit: nil)
            return actions + [.run(Step(token: token, key: request.key, rung: rung))]
        }
        return actions
    }

    // MARK: - Steps

    /// The step brought a session. A rotated refresh token is delivered after its commit only.
    public mutating func stepSucceeded(_ token: FlightToken, _ session: Session) -> [Action] {
        guard let current = current(token) else { return discarded(token) }
        sessions[current.request.key] = session
        blocked[current.request.key] = nil
        let commit = Action.commit(current.request.key, generation: session.generation)
        if session.rotated {
            running?.awaitedCommit = session.generation
            return [commit]
        }
        return [commit] + deliver(session)
    }

    /// The step brought none: the next rung follows, or the failure goes to all who wait.
    public mutating func stepFailed(_ token: FlightToken, _ failure: GrantFailure) -> [Action] {
        guard let current = current(token) else { return discarded(token) }
        var ladder = current.ladder
        var actions: [Action] = []
        let key = current.request.key
        let was = ladder.rung
        if was == .refreshToken, failure.consequence == .block {
            sessions[key]?.hasRefreshToken = false
            actions.append(.dropRefreshToken(key))
        }
        if let rung = ladder.failed(failure) {
            running?.ladder = ladder
            return actions + [.run(Step(token: token, key: key, rung: rung))]
        }
        let isOutdated = token.standing.secretVersion < secretVersions[token.standing.digest] ?? 0
        if failure.consequence == .block, !isOutdated {
            // A refused refresh token with nothing below it needs a person, not a new secret.
            actions += block(current.request, was == .refreshToken ? .interactionRequired : failure)
        } else {
            actions += delivery(.failed(failure), to: current.request.claimants)
        }
        return actions + startNext()
    }

    /// The commit of a session ended. One that failed leaves the store degraded, and the session is used from memory.
    public mutating func committed(_ key: SessionKey, generation: UInt64, succeeded: Bool) -> [Action] {
        guard let current = running, current.request.key == key, current.awaitedCommit == generation,
            let session = sessions[key]
        else { return [] }
        return (succeeded ? [] : [.report(.storeDegraded)]) + deliver(session)
    }

    private mutating func deliver(_ session: Session) -> [Action] {
        let claimants = running?.request.claimants ?? []
        return delivery(.ready(generation: session.generation), to: claimants) + startNext()
    }

    private func delivery(_ outcome: Outcome, to claimants: [Claimant]) -> [Action] {
        claimants.isEmpty ? [] : [.deliver(claimants, outcome)]
    }

    private mutating func block(_ request: Request, _ failure: GrantFailure) -> [Action] {
        blocked[request.key] = failure
        let event: AccessTokenMachine.Event = failure == .interactionRequired ? .loginNeeded : .credentialQuarantined
        return delivery(.failed(failure), to: request.claimants) + [.report(event)]
    }

    private func current(_ token: FlightToken) -> Running? {
        guard let running, running.token == token, running.awaitedCommit == nil, !running.isCutOff else { return nil }
        return running
    }

    /// An outcome nobody waits for. If it is the cut-off one, the lock is free now.
    private mutating func discarded(_ token: FlightToken) -> [Action] {
        let logout = logoutEpochs[token.standing.digest] ?? 0
        let discard = Action.discard(token, revokeRefreshToken: token.standing.epoch < logout)
        guard let running, running.token == token, running.isCutOff else { return [discard] }
        if leaving == token.standing.digest { forget(token.standing.digest) }
        return [discard] + startNext()
    }

    private mutating func forget(_ digest: IdentityDigest) {
        leaving = nil
        logoutEpochs[digest] = nil
        secretVersions[digest] = nil
    }

    // MARK: - Store, operator

    /// A session out of the store, or brought by `cardea login`.
    public mutating func adopted(_ key: SessionKey, _ session: Session) {
        sessions[key] = session
        blocked[key] = nil
    }

    /// The keeper keeps nothing of the session.
    public mutating func forgotten(_ key: SessionKey, generation: UInt64) {
        if sessions[key]?.generation == generation { sessions[key] = nil }
    }

    /// A changed secret or a reset lifts every refusal of the identity. A step still under way with an older secret
    /// brings no new one.
    public mutating func refusalsLifted(of digest: IdentityDigest, secretVersion: UInt64) {
        secretVersions[digest] = secretVersion
        blocked = blocked.filter { $0.key.digest != digest }
    }

    /// Purge, logout, reset and reload: what is under way for the identity no longer counts. Its claimants are told to
    /// fail; their access machines have a new epoch too and ask again.
    public mutating func epochRose(of digest: IdentityDigest, to epoch: UInt64, cause: EpochCause) -> [Action] {
        var actions: [Action] = []
        switch cause {
        case .purge:
            sessions = sessions.filter { $0.key.digest != digest || $0.value.isHuman }
            for (key, session) in sessions where key.digest == digest && session.hasRefreshToken {
                sessions[key]?.stopServingAt = 0
            }
        case .logout:
            sessions = sessions.filter { $0.key.digest != digest }
            logoutEpochs[digest] = epoch
        case .reset: blocked = blocked.filter { $0.key.digest != digest }
        case .reload: break
        }
        let interrupted = GrantFailure.issuerUnavailable(retryAfter: nil)
        for request in queue where request.key.digest == digest {
            actions.append(.deliver(request.claimants, .failed(interrupted)))
        }
        queue.removeAll { $0.key.digest == digest }
        if let current = running, current.request.key.digest == digest {
            actions += delivery(.failed(interrupted), to: current.request.claimants)
            running?.request.claimants = []
            running?.isCutOff = true
            // A session that waited for its commit is no step any more; nothing else of it is under way.
            if current.awaitedCommit != nil { actions += startNext() }
        }
        return actions
    }

    // MARK: - Reload

    /// No configuration names the identity any more. Its sessions are the store's from now on; what is under way for it does not count,
    /// and a refresh token that it still brings is kept for its return (docs/design/tokens.md#rule-8), unless a logout came
    /// before.
    public mutating func retired(_ digest: IdentityDigest) -> [Action] {
        let actions = epochRose(of: digest, to: .max, cause: .reload)
        sessions = sessions.filter { $0.key.digest != digest }
        blocked = blocked.filter { $0.key.digest != digest }
        if running?.request.key.digest == digest {
            leaving = digest
        } else {
            logoutEpochs[digest] = nil
            secretVersions[digest] = nil
        }
        return actions
    }

    /// A configuration names the identity, perhaps again: its epochs and versions are those of whoever has it now, and may begin anew.
    public mutating func returned(_ digest: IdentityDigest, logoutEpoch: UInt64, secretVersion: UInt64) {
        if leaving == digest { leaving = nil }
        logoutEpochs[digest] = logoutEpoch > 0 ? logoutEpoch : nil
        secretVersions[digest] = secretVersion > 1 ? secretVersion : nil
    }
}
