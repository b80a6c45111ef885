internal import GSSAPI
internal import Synchronization

/// The tickets of one identity, for each server of its own, and for each user in whose name it asks.
///
/// Calls that may ask a KDC are kept apart from those that do not, since a silent KDC blocks a call for half a minute. Tickets are published once
/// the ticket for their server is among them, so that a token of them asks nobody: those have a thread of their own. All else waits for
/// three threads, one job of an identity at a time, and all renewals are one job at a time: MIT renews no credential that is held, so that
/// another one is acquired when half of its life is over, beside the requests, which go on with the one that is there. What has found a KDC
/// silent is not tried again at once. Neither are keys that a KDC has refused, since each attempt counts towards a lock-out; nor users
/// in whose name it has given none, who are not held against the keys.
final class NegotiateCredential: Sendable {
    private let source: GSSCredential.Source
    /// The key of its jobs.
    private let name: String
    /// Milliseconds since 1970.
    private let clock: @Sendable () -> Int64
    private let state = Mutex(State())

    private struct State {
        /// By the server's name and the user's.
        var tickets: [Purpose: Tickets] = [:]
        /// Our own, by which users' are asked for.
        var own: Tickets?
        /// Users in whose name the KDC gives no ticket to a server.
        var refusedUsers: [Purpose: Rest] = [:]
        /// The keytab as it was read last.
        var keys: Secret?
        /// Rises when nothing of before may be used: what was asked for before is not published.
        var generation: UInt64 = 0
        /// The refusal of these keys, for the calls that wait behind it. The keeper holds back later ones.
        var refusal: Rest?
        var silence = KDCSilence()
    }

    private struct Tickets {
        let credential: GSSCredential
        let since: Int64
        let until: Int64
        var renewsAt: Int64
        var isRenewing = false
        var usedAt: Int64
        /// They are in a user's name, and nobody has been told of them.
        var isUntold = false
    }

    /// The server that tickets are for, and in whose name: by octets, since two spellings of one text are two users.
    private struct Purpose: Hashable {
        let server: String
        let user: [UInt8]?
    }

    private struct Rest {
        var until: Int64
        var fault: GSSFault
    }

    /// The first token to a server.
    struct FirstToken: Sendable {
        let initiator: GSSInitiator
        let bytes: [UInt8]
        /// Milliseconds that the tickets are still valid.
        let lifetime: Int64
        /// The KDC was asked for tickets in a user's name, and gave them.
        var isNewGrant = false
    }

    /// Milliseconds without another try.
    private static let rest: Int64 = 30_000
    /// Milliseconds that tickets without an end are taken to be good.
    private static let longest: Int64 = 86_400_000
    /// Tickets in our own name, at most one for each host of the routes; and those of users, some kilobytes each.
    private static let mostOwn = 256
    private static let mostOfUsers = 2048

    // The threads of all identities, made with the first job. They belong to no configuration, because a call that blocks outlives any.
    private static let asking = GSSWorker<String>(threads: 3, waiting: 4096, waitingOfKey: 1024)
    private static let local = GSSWorker<String>(threads: 1, waiting: 4096, waitingOfKey: 4096)

    private init(_ source: GSSCredential.Source, of name: String, clock: @escaping @Sendable () -> Int64) {
        self.source = source
        self.name = name
        self.clock = clock
    }

    // MARK: - One for each identity

    private struct Known {
        weak var credential: NegotiateCredential?
    }

    private static let known = Mutex<[String: Known]>([:])

    /// The one of before where the configuration was read again and says the same: its tickets go on to serve while a KDC is away.
    static func shared(
        _ source: GSSCredential.Source, of name: String, clock: @escaping @Sendable () -> Int64
    ) -> NegotiateCredential {
        known.withLock { known in
            known = known.filter { $0.value.credential != nil }
            let key = "\(name) \(source)"
            if let same = known[key]?.credential { return same }
            // The source is part of it: routes may have several credentials for one proxy, whose KDCs are different ones.
            let made = NegotiateCredential(source, of: key, clock: clock)
            known[key] = Known(credential: made)
            return made
        }
    }

    // MARK: - Tokens

    /// The outcome of a job, told once, on a thread of the library or on the caller's.
    typealias Completion<Value> = @Sendable (Result<Value, GSSFault>) -> Void

    /// - Parameters:
    ///   - user: as `name@REALM`, in whose name; nil: in our own.
    ///   - bindings: as `GSSInitiator` takes them.
    ///   - patience: milliseconds that are waited for it.
    func begin(
        to target: GSSTarget, for user: String? = nil, bindings: [UInt8]?, mutual: Bool, within patience: Int64,
        then completion: @escaping Completion<FirstToken>
    ) {
        let want = Want(target: target, user: user, bindings: bindings, mutual: mutual)
        if let refusal = state.withLock({ $0.refusedUsers[want.purpose] }), clock() < refusal.until {
            return completion(.failure(refusal.fault))
        }
        guard let held = standing(want.purpose) else { return acquire(want, within: patience, then: completion) }
        renewInTime(want)
        submit(to: Self.local, within: patience) { () throws(GSSFault) in
            try want.token(of: held)
        } then: { result in
            switch result {
            case .success(var token):
                token.isNewGrant = self.takeUntold(held, for: want.purpose)
                completion(.success(token))
            case .failure(let fault) where fault.kind == .tooLate: completion(result)
            case .failure:
                // Most likely ended by another clock; others are had at once.
                self.drop(held, for: want.purpose)
                self.acquire(want, within: patience, then: completion)
            }
        }
    }

    private func acquire(_ want: Want, within patience: Int64, then completion: @escaping Completion<FirstToken>) {
        ask(for: want, within: patience, { () throws(GSSFault) in try self.acquire(for: want) }) { result in
            completion(
                result.map { token in
                    var token = token
                    // A job that was given up has told nobody of its tickets; this one may have found them.
                    token.isNewGrant = self.takeUntold(nil, for: want.purpose) || token.isNewGrant
                    return token
                })
        }
    }

    /// Takes in a token of the server, which asks no KDC.
    func advance(
        _ initiator: GSSInitiator, with token: [UInt8], within patience: Int64,
        then completion: @escaping Completion<GSSInitiator.Step>
    ) {
        submit(to: Self.local, within: patience, { () throws(GSSFault) in try initiator.step(token) }, then: completion)
    }

    /// For callers that can wait.
    func begin(
        to target: GSSTarget, for user: String?, bindings: [UInt8]?, mutual: Bool, within patience: Int64
    ) async throws(GSSFault) -> FirstToken {
        try await Self.outcome {
            begin(to: target, for: user, bindings: bindings, mutual: mutual, within: patience, then: $0)
        }
    }

    /// For callers that can wait.
    func advance(
        _ initiator: GSSInitiator, with token: [UInt8], within patience: Int64
    ) async throws(GSSFault) -> GSSInitiator.Step {
        try await Self.outcome { advance(initiator, with: token, within: patience, then: $0) }
    }

    private static func outcome<Value: Sendable>(
        of work: (@escaping Completion<Value>) -> Void
    ) async throws(GSSFault) -> Value {
        let result = await withCheckedContinuation { continuation in work { continuation.resume(returning: $0) } }
        return try result.get()
    }

    /// Seconds that tickets would be valid now; nil: without an end.
    /// - Parameter forUsers: those by which users' tickets are asked for.
    func lifetime(forUsers: Bool, within patience: Int64) async throws(GSSFault) -> UInt32? {
        guard !forUsers else {
            return try await Self.outcome {
                ask(
                    for: nil, within: patience,
                    { () throws(GSSFault) in try self.impersonator().remainingLifetime() }, then: $0)
            }
        }
        if let held = state.withLock({ $0.tickets.values.map(\.until).max() }), held > clock() {
            return UInt32(clamping: (held - clock()) / 1000)
        }
        return try await Self.outcome {
            ask(
                for: nil, within: patience, { () throws(GSSFault) in try self.made().remainingLifetime() },
                then: $0)
        }
    }

    private struct Want: Sendable {
        let target: GSSTarget
        let user: String?
        let bindings: [UInt8]?
        let mutual: Bool

        var server: String { "\(target)" }
        var purpose: Purpose { Purpose(server: server, user: user.map { Array($0.utf8) }) }

        func token(of credential: GSSCredential) throws(GSSFault) -> FirstToken {
            let initiator = try GSSInitiator(credential, target: target, channelBindings: bindings, mutual: mutual)
            let step = try initiator.step(nil)
            let whole = try credential.remainingLifetime().map { Int64($0) * 1000 } ?? NegotiateCredential.longest
            let own = step.lifetime.map { Int64($0) * 1000 } ?? whole
            return FirstToken(initiator: initiator, bytes: step.output, lifetime: min(whole, own))
        }
    }

    /// Gives a context up on a thread that may wait: the last reference to tickets makes the library read its configuration.
    func letGo(_ initiator: GSSInitiator) {
        submit(to: Self.local, within: 3_600_000, { () throws(GSSFault) in withExtendedLifetime(initiator) {} }) { _ in
        }
    }

    // MARK: - What is held

    /// Tickets that were had with other keys are not used any more.
    func noteKeys(_ keys: Secret) {
        state.withLock { state in
            guard state.keys != keys else { return }
            if state.keys != nil { Self.forget(&state) }
            state.keys = keys
        }
    }

    /// Nothing of before is used any more, and whatever rests may be tried at once.
    func forget() { state.withLock { Self.forget(&$0) } }

    private static func forget(_ state: inout State) {
        state.generation &+= 1
        state.tickets = [:]
        state.own = nil
        state.refusedUsers = [:]
        state.refusal = nil
        state.silence = KDCSilence()
    }

    /// A server has refused a token. It may have other keys since the ticket for it was made, so that the next token is made of new tickets,
    /// but for a server that refuses each of them not with every request.
    /// - Parameter user: whose token it was; nil: our own.
    func noteRefusal(of user: String?) {
        let now = clock()
        state.withLock { state in
            let user = user.map { Array($0.utf8) }
            state.tickets = state.tickets.filter { $0.key.user != user || now < $0.value.since + Self.rest }
        }
    }

    private func standing(_ purpose: Purpose) -> GSSCredential? {
        let now = clock()
        return state.withLock { state in
            guard let held = state.tickets[purpose], now < held.until else { return nil }
            state.tickets[purpose]?.usedAt = now
            return held.credential
        }
    }

    /// - Parameter credential: nil: whatever is held.
    private func takeUntold(_ credential: GSSCredential?, for purpose: Purpose) -> Bool {
        state.withLock { state in
            guard let held = state.tickets[purpose], credential == nil || held.credential === credential else {
                return false
            }
            state.tickets[purpose]?.isUntold = false
            return held.isUntold
        }
    }

    private func drop(_ credential: GSSCredential, for purpose: Purpose) {
        state.withLock { state in
            if state.tickets[purpose]?.credential === credential { state.tickets[purpose] = nil }
        }
    }

    private func renewInTime(_ want: Want) {
        let now = clock()
        let isDue = state.withLock { state in
            guard let held = state.tickets[want.purpose], now >= held.renewsAt, !held.isRenewing else { return false }
            state.tickets[want.purpose]?.isRenewing = true
            return true
        }
        guard isDue else { return }
        Self.asking.submit(key: "renewals", within: Self.rest) {
            Result { () throws(GSSFault) in try self.acquire(for: want, anew: true) }
        } completion: { outcome in
            // New tickets have taken the place of the old ones. Otherwise these are good for a while yet.
            if case .done(.success) = outcome { return }
            self.state.withLock { state in
                state.tickets[want.purpose]?.isRenewing = false
                state.tickets[want.purpose]?.renewsAt = self.clock() + Self.rest
            }
        }
    }

    // MARK: - Calls that may ask a KDC

    /// - Parameter want: tells what rests after a failure; nil: our own tickets.
    private func ask<Value: Sendable>(
        for want: Want?, within patience: Int64, _ work: @escaping @Sendable () throws(GSSFault) -> Value,
        then completion: @escaping Completion<Value>
    ) {
        let (server, user) = (want?.server ?? "", want?.user)
        let now = clock()
        let (silence, generation) = state.withLock { ($0.silence.fault(at: server, of: user, now: now), $0.generation) }
        if let silence { return completion(.failure(silence)) }
        let beginning = Beginning()
        submit(to: Self.asking, within: patience, began: { beginning.note(self.clock()) }, work) { result in
            guard case .failure(let fault) = result else { return completion(result) }
            // A job that waited for its turn, and had no time left, has found nothing out.
            let wasSilent = fault.kind == .tooLate && beginning.since.map { self.clock() - $0 >= patience / 2 } ?? false
            if fault.kind == .kdcUnreachable || wasSilent {
                self.state.withLock { state in
                    guard state.generation == generation else { return }
                    state.silence.note(fault, at: server, of: user, now: self.clock())
                }
            }
            completion(result)
        }
    }

    /// When a job has begun, in milliseconds, for whoever is told that it was too late.
    private final class Beginning: Sendable {
        private let time = Atomic<Int64>(-1)
        var since: Int64? {
            let time = time.load(ordering: .relaxed)
            return time < 0 ? nil : time
        }
        func note(_ now: Int64) { time.store(now, ordering: .relaxed) }
    }

    private func submit<Value: Sendable>(
        to worker: GSSWorker<String>, within patience: Int64, began: @escaping @Sendable () -> Void = {},
        _ work: @escaping @Sendable () throws(GSSFault) -> Value, then completion: @escaping Completion<Value>
    ) {
        worker.submit(key: name, within: patience) {
            began()
            return Result { () throws(GSSFault) in try work() }
        } completion: { outcome in
            switch outcome {
            case .done(let result): completion(result)
            case .tooLate: completion(.failure(GSSFault(.tooLate, "no answer of a KDC in time")))
            case .refused, .closed: completion(.failure(GSSFault(.other, "too many tickets are asked for at once")))
            }
        }
    }

    // MARK: - On a thread that may ask a KDC

    /// Tickets with the one for a server among them.
    /// - Parameter anew: also where some are held.
    private func acquire(for want: Want, anew: Bool = false) throws(GSSFault) -> FirstToken {
        // The job before may have brought them.
        if !anew, let held = standing(want.purpose), let token = try? want.token(of: held) { return token }
        // Or a refusal.
        if !anew, let refusal = state.withLock({ $0.refusedUsers[want.purpose] }), clock() < refusal.until {
            throw refusal.fault
        }
        let generation = state.withLock { $0.generation }
        let (credential, token) = try tickets(for: want)
        let now = clock()
        // A file of tickets is looked at again soon: another program may have put fresher ones there.
        let half = if case .cache = source { min(token.lifetime / 2, 60_000) } else { token.lifetime / 2 }
        state.withLock { state in
            guard state.generation == generation else { return }
            Self.makeRoom(in: &state, for: want, at: now)
            state.tickets[want.purpose] = Tickets(
                credential: credential, since: now, until: now + token.lifetime, renewsAt: now + half, usedAt: now,
                isUntold: want.user != nil)
            state.silence.end(at: want.server, of: want.user)
            state.refusedUsers[want.purpose] = nil
        }
        return token
    }

    private func tickets(for want: Want) throws(GSSFault) -> (GSSCredential, FirstToken) {
        if let user = want.user { return try tickets(for: want, of: user) }
        let credential = try made()
        do throws(GSSFault) { return (credential, try want.token(of: credential)) } catch {
            // A refusal of that kind is a user's where there is one.
            throw error.kind == .requestRefused ? GSSFault(.other, error.message) : error
        }
    }

    /// Tickets that have not been used for the longest time give way to others.
    private static func makeRoom(in state: inout State, for want: Want, at now: Int64) {
        let most = want.user == nil ? mostOwn : mostOfUsers
        guard state.tickets[want.purpose] == nil, state.tickets.count >= most else { return }
        state.tickets = state.tickets.filter { now < $0.value.until }
        while state.tickets.count >= most, let oldest = state.tickets.min(by: { $0.value.usedAt < $1.value.usedAt }) {
            state.tickets[oldest.key] = nil
        }
    }

    private func made() throws(GSSFault) -> GSSCredential {
        let (refusal, generation) = state.withLock { ($0.refusal, $0.generation) }
        if let refusal, clock() < refusal.until { throw refusal.fault }
        do throws(GSSFault) { return try GSSCredential(GSSLibrary.open(), source, mechanism: .spnego) } catch {
            guard [.keysWrong, .clientUnknown, .clientRevoked].contains(error.kind) else { throw error }
            let isOfNow = state.withLock { state in
                guard state.generation == generation else { return false }
                state.refusal = Rest(until: clock() + Self.rest, fault: error)
                return true
            }
            // The keys of now have not been judged.
            guard isOfNow else { throw GSSFault(.other, "the keys have changed while tickets were asked for") }
            throw error
        }
    }

    // MARK: - In a user's name

    private func tickets(for want: Want, of user: String) throws(GSSFault) -> (GSSCredential, FirstToken) {
        let generation = state.withLock { $0.generation }
        let own = try impersonator()
        do throws(GSSFault) {
            let credential = try GSSCredential(own, actingFor: user)
            var token = try want.token(of: credential)
            token.isNewGrant = true
            return (credential, token)
        } catch {
            if let words = Self.words(ofRefusal: error.kind) {
                let fault = GSSFault(.requestRefused, words)
                note(refusal: fault, of: want, generation)
                throw fault
            }
            // Nothing that is said of a user's ticket is said of our keys. Our own may have ended by the KDC's clock.
            guard [.credentialExpired, .credentialMissing, .keysWrong].contains(error.kind) else { throw error }
            state.withLock { state in
                if state.own?.credential === own { state.own = nil }
            }
            throw GSSFault(.other, error.message)
        }
    }

    /// Our own tickets, which many users' are asked for with.
    private func impersonator() throws(GSSFault) -> GSSCredential {
        let now = clock()
        let (held, generation) = state.withLock { ($0.own, $0.generation) }
        if let held, now < held.renewsAt { return held.credential }
        let credential: GSSCredential
        do throws(GSSFault) { credential = try made() } catch {
            throw error.kind == .requestRefused ? GSSFault(.other, error.message) : error
        }
        let life = try credential.remainingLifetime().map { Int64($0) * 1000 } ?? Self.longest
        state.withLock { state in
            guard state.generation == generation else { return }
            state.own = Tickets(
                credential: credential, since: now, until: now + life, renewsAt: now + life / 2, usedAt: now)
        }
        return credential
    }

    /// Tells without a name; nil for what is no refusal of a user.
    private static func words(ofRefusal kind: GSSFault.Kind) -> String? {
        switch kind {
        case .clientUnknown: "the KDC does not know this user"
        case .clientRevoked: "the KDC says that this user's account is locked, disabled or expired"
        case .requestRefused:
            "the KDC gives no ticket to this server in this user's name: the user's account must not be delegated, or the gateway's "
                + "account may not act for users towards this server, or krb5.conf has no 'forwardable = true'"
        default: nil
        }
    }

    private func note(refusal fault: GSSFault, of want: Want, _ generation: UInt64) {
        let now = clock()
        state.withLock { state in
            guard state.generation == generation else { return }
            if state.refusedUsers.count >= Self.mostOfUsers {
                state.refusedUsers = state.refusedUsers.filter { now < $0.value.until }
            }
            if state.refusedUsers.count >= Self.mostOfUsers { state.refusedUsers = [:] }
            state.refusedUsers[want.purpose] = Rest(until: now + Self.rest, fault: fault)
            // The tickets of before would serve on for hours.
            state.tickets[want.purpose] = nil
            // The KDC has answered.
            state.silence.end(at: want.server, of: want.user)
        }
    }
}
