import Numbers
import Synchronization
import TLS

@testable import Fleet
@testable import Keeping
@testable import Reactor

/// A shared server in memory, which outlives its gateways; whoever holds the test may write to it. Access tokens are not shared by it, so that
/// each gateway makes its own steps.
final class MemoryServer: Sendable {
    struct State {
        var sessions: [SharedName: SharedSession] = [:]
        var leases: [SharedName: SharedLease] = [:]
        var generation: Int64 = 0
        var news: [FleetNews] = []
        var listeners: [@Sendable (FleetNews) -> Void] = []
        /// News get lost.
        var isSilent = false
        /// The keys that keepers have asked names for, by kind.
        var named: [SharedKind: Set<[UInt8]>] = [:]
        /// How often a lock's turn was given.
        var turns = 0
        /// The calls of the tier that are refused.
        var faults: [Call: SharedFault] = [:]
        /// Set: the answer to every claim.
        var claim: SharedClaim?
        /// Set: the answer to every wish to send a secret.
        var verdict: SharedVerdict?
        /// How many attempts are booked of any secret; nil: not known yet.
        var spent: UInt32? = 0
        /// Attempts that were given back.
        var refunds = 0
        /// Passwords that were sent and taken, and those that were refused.
        var accepted = 0
        var rejected = 0
        /// The calls of the tier that get no answer until `goOn`.
        var held: Set<Call> = []
        var waiting: [@Sendable () -> Void] = []
        /// Leases that were renewed.
        var renewals = 0
        /// The values that were published, by their names, and the answers to claims of some names.
        var published: [SharedName: [UInt8]] = [:]
        var claims: [SharedName: SharedClaim] = [:]
        /// Sessions that were looked up.
        var lookups = 0
        /// The limits under which attempts were booked.
        var limits: [UInt32] = []
        /// The value under the name of every registration.
        var value: SharedSession?
    }
    enum Call { case claim, publish, turn, session, commit, offer, spend, spent, value }
    let state = Mutex(State())

    var sessions: [SharedName: SharedSession] {
        get { state.withLock { $0.sessions } }
        set { state.withLock { $0.sessions = newValue } }
    }
    var leases: [SharedName: SharedLease] {
        get { state.withLock { $0.leases } }
        set { state.withLock { $0.leases = newValue } }
    }
    var news: [FleetNews] { state.withLock { $0.news } }
    var isSilent: Bool {
        get { state.withLock { $0.isSilent } }
        set { state.withLock { $0.isSilent = newValue } }
    }

    /// One call at a time.
    var fault: Call? {
        get { state.withLock { $0.faults.keys.first } }
        set {
            let faults = newValue.map { [$0: SharedFault(.slow, "no answer")] } ?? [:]
            state.withLock { $0.faults = faults }
        }
    }
    func fault(of call: Call) -> SharedFault? { state.withLock { $0.faults[call] } }

    /// Answers a call now, or when it may go on.
    func answer(_ call: Call, _ work: @escaping @Sendable () -> Void) {
        let isHeld = state.withLock { state in
            guard state.held.contains(call) else { return false }
            state.waiting.append(work)
            return true
        }
        if !isHeld { work() }
    }

    func hold(_ calls: Set<Call>) { state.withLock { $0.held = calls } }

    /// Answers what has waited.
    func goOn() {
        let waiting = state.withLock { state in
            defer { (state.held, state.waiting) = ([], []) }
            return state.waiting
        }
        for work in waiting { work() }
    }

    func tell(_ news: FleetNews) {
        let listeners = state.withLock { state in
            state.news.append(news)
            return state.isSilent ? [] : state.listeners
        }
        for listener in listeners { listener(news) }
    }
}

/// One gateway's way to it. What is asked for is answered at once.
final class MemoryTier: SharedTier {
    private let server: MemoryServer
    private let keys: FleetKeys

    init(_ server: MemoryServer) throws {
        self.server = server
        keys = try FleetKeys(SealingKeyRing([SealingKey(bytes: (0..<32).map { UInt8($0) })]))
    }

    /// As a keeper has it.
    var kept: KeptFleet { KeptFleet(tier: self, address: "memory", format: .new) }

    func name(_ kind: SharedKind, _ key: [UInt8]) -> SharedName {
        server.state.withLock { _ = $0.named[kind, default: []].insert(key) }
        return keys.name(kind, key)
    }
    func identity(of value: [UInt8]) -> String { keys.identity(of: value) }

    private func lease(_ name: SharedName, spends: Bool) -> SharedLease? {
        server.state.withLock { state in
            guard state.leases[name] == nil else { return nil }
            state.generation += 1
            let lease = SharedLease(
                name: name, owner: "\(state.generation)", generation: state.generation, spends: spends)
            state.leases[name] = lease
            return lease
        }
    }

    // MARK: Values

    func claim(_ name: SharedName, unless refused: String?, isDead: Bool, completion: @escaping Answer<SharedClaim>) {
        server.answer(.claim) { [self] in
            if let fault = server.fault(of: .claim) { return completion(.failure(fault)) }
            if let claim = server.state.withLock({ $0.claims[name] ?? $0.claim }) {
                // A gateway that has no use for a value has the right to make a new one.
                if case .value(_, let identity, _) = claim, identity == refused {
                } else {
                    return completion(.success(claim))
                }
            }
            completion(.success(lease(name, spends: false).map { .lease($0) } ?? .busy))
        }
    }
    func value(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        server.answer(.value) { [self] in completion(.success(server.state.withLock { $0.value })) }
    }
    func publish(
        _ value: [UInt8], as identity: String, under lease: SharedLease, askedFor age: TimeSpan, for life: TimeSpan?,
        completion: @escaping Answer<Bool>
    ) {
        if let fault = server.fault(of: .publish) { return completion(.failure(fault)) }
        guard server.leases[lease.name] == lease else { return completion(.success(false)) }
        server.state.withLock { $0.published[lease.name] = value }
        release(lease)
        completion(.success(true))
    }
    func withdraw(_ name: SharedName, _ identity: String) {}

    // MARK: Sessions

    func turn(_ lock: SharedName, session: SharedName, spends: Bool, completion: @escaping Answer<SharedTurn>) {
        if let fault = server.fault(of: .turn) { return completion(.failure(fault)) }
        guard let lease = lease(lock, spends: spends) else { return completion(.success(.busy)) }
        server.state.withLock { $0.turns += 1 }
        if spends { server.tell(.spending(lock, owner: lease.owner, isOver: false)) }
        completion(.success(.lease(lease, server.sessions[session])))
    }
    func session(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        server.answer(.session) { [self] in
            server.state.withLock { $0.lookups += 1 }
            if let fault = server.fault(of: .session) { return completion(.failure(fault)) }
            completion(.success(server.sessions[name]))
        }
    }
    func commit(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease, completion: @escaping Answer<Bool>
    ) {
        if let fault = server.fault(of: .commit) { return completion(.failure(fault)) }
        guard server.leases[lease.name] == lease else { return completion(.success(false)) }
        server.sessions[name] = session
        server.tell(.session(name, version: session.version))
        completion(.success(true))
    }
    func offer(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease?, completion: @escaping Answer<Bool>
    ) {
        server.answer(.offer) { [self] in
            if let fault = server.fault(of: .offer) { return completion(.failure(fault)) }
            if let found = server.sessions[name], found.version >= session.version {
                return completion(.success(false))
            }
            server.sessions[name] = session
            server.tell(.session(name, version: session.version))
            completion(.success(true))
        }
    }
    func endSession(_ name: SharedName, version: SessionVersion) {
        if let found = server.sessions[name] {
            guard found.version < version || found.version == version && !found.value.isEmpty else { return }
        } else if version == .none {
            return
        }
        server.sessions[name] = SharedSession(version: version, value: [])
        server.tell(.sessionEnded(name, version: version))
    }
    func tell(_ news: FleetNews) { server.tell(news) }

    // MARK: Leases and attempts

    func renew(_ lease: SharedLease, completion: @escaping Answer<Bool>) {
        server.state.withLock { $0.renewals += 1 }
        completion(.success(true))
    }
    func release(_ lease: SharedLease) {
        server.state.withLock { if $0.leases[lease.name] == lease { $0.leases[lease.name] = nil } }
        if lease.spends { server.tell(.spending(lease.name, owner: lease.owner, isOver: true)) }
        server.tell(.released(lease.name))
    }
    func spend(_ attempt: SharedAttempt, limit: UInt32, completion: @escaping Answer<SharedVerdict>) {
        server.state.withLock { $0.limits.append(limit) }
        if let fault = server.fault(of: .spend) { return completion(.failure(fault)) }
        completion(.success(server.state.withLock { $0.verdict } ?? .allowed))
    }
    func spent(_ attempt: SharedAttempt, completion: @escaping Answer<UInt32?>) {
        if let fault = server.fault(of: .spent) { return completion(.failure(fault)) }
        completion(.success(server.state.withLock { $0.spent }))
    }
    func accepted(_ account: SharedName) { server.state.withLock { $0.accepted += 1 } }
    func rejected(_ attempt: SharedAttempt) { server.state.withLock { $0.rejected += 1 } }
    func refund(_ attempt: SharedAttempt) { server.state.withLock { $0.refunds += 1 } }
    func reset(_ account: SharedName) {}
}

extension KeeperScene {
    /// Makes it one of a fleet whose server is there.
    func join(_ server: MemoryServer) {
        let (loop, keeper) = (keeperLoop, self.keeper)
        server.state.withLock { state in
            state.listeners.append { news in _ = loop.post { keeper.assumeIsolated { $0.heard(news) } } }
        }
        inKeeper { $0.fleetChanged(nil) }
    }
}
