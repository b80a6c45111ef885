import Configuration
import Numbers
import ScriptedWorld
import Synchronization
import TLS
import World

@testable import DataPath
@testable import Fleet
@testable import Keeping
@testable import Reactor

/// A tier on a loop of its own, for tests that ask it from many threads: every call is posted to that loop.
final class RunningTier: SharedTier {
    let isUp = Atomic<Bool>(false)
    private let tier: RedisTier
    private let loop: Loop

    init(
        _ server: RedisServer, key: SealingKey, format: FleetFormat, wall: @escaping @Sendable () -> WallTime,
        news: @escaping @Sendable (FleetNews) -> Void
    ) throws {
        let loop = try Loop(name: "fleet")
        self.loop = loop
        let connection = try FleetConnection(
            to: .unix(path: server.socket), trust: nil, readPassword: nil, loop: loop, resolver: try Resolver(),
            blocking: try BlockingThread())
        let up = LoopBound(Up())
        tier = RedisTier(
            over: connection, as: RedisLogin(), keys: try FleetKeys(SealingKeyRing([key])), format: format, wall: wall,
            random: SystemRandom(), news: news, changed: { fault in up.value.tell(fault == nil) })
        up.value.tell = { [unowned self] isUp in if isUp { self.isUp.store(true, ordering: .releasing) } }
        let tier = self.tier
        _ = loop.post { tier.start() }
        try WorkerThread(name: "fleet") { loop.run() }.detach()
    }

    private final class Up { var tell: (Bool) -> Void = { _ in } }

    /// The loop ends when what was posted before has been done.
    func stop() {
        let (tier, loop) = (self.tier, self.loop)
        _ = loop.post {
            tier.stop()
            _ = loop.post { loop.stop() }
        }
    }

    var keys: FleetKeys { tier.keys }
    var channel: String { tier.channel }
    var now: WallTime { tier.now }
    func key(_ part: RedisTier.Part, _ name: SharedName) -> String { tier.key(part, name) }

    private func post(_ work: @escaping @Sendable (RedisTier) -> Void) {
        let tier = self.tier
        precondition(loop.post { work(tier) }, "the loop takes no more")
    }

    func name(_ kind: SharedKind, _ key: [UInt8]) -> SharedName { tier.name(kind, key) }
    func identity(of value: [UInt8]) -> String { tier.identity(of: value) }
    func claim(_ name: SharedName, unless refused: String?, isDead: Bool, completion: @escaping Answer<SharedClaim>) {
        post { $0.claim(name, unless: refused, isDead: isDead, completion: completion) }
    }
    func value(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        post { $0.value(name, completion: completion) }
    }
    func publish(
        _ value: [UInt8], as identity: String, under lease: SharedLease, askedFor age: TimeSpan, for life: TimeSpan?,
        completion: @escaping Answer<Bool>
    ) {
        post { $0.publish(value, as: identity, under: lease, askedFor: age, for: life, completion: completion) }
    }
    func withdraw(_ name: SharedName, _ identity: String) { post { $0.withdraw(name, identity) } }
    func turn(_ lock: SharedName, session: SharedName, spends: Bool, completion: @escaping Answer<SharedTurn>) {
        post { $0.turn(lock, session: session, spends: spends, completion: completion) }
    }
    func session(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        post { $0.session(name, completion: completion) }
    }
    func commit(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease, completion: @escaping Answer<Bool>
    ) {
        post { $0.commit(session, name, under: lease, completion: completion) }
    }
    func offer(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease?, completion: @escaping Answer<Bool>
    ) {
        post { $0.offer(session, name, under: lease, completion: completion) }
    }
    func endSession(_ name: SharedName, version: SessionVersion) { post { $0.endSession(name, version: version) } }
    func tell(_ news: FleetNews) { post { $0.tell(news) } }
    func renew(_ lease: SharedLease, completion: @escaping Answer<Bool>) {
        post { $0.renew(lease, completion: completion) }
    }
    func release(_ lease: SharedLease) { post { $0.release(lease) } }
    func spend(_ attempt: SharedAttempt, limit: UInt32, completion: @escaping Answer<SharedVerdict>) {
        post { $0.spend(attempt, limit: limit, completion: completion) }
    }
    func spent(_ attempt: SharedAttempt, completion: @escaping Answer<UInt32?>) {
        post { $0.spent(attempt, completion: completion) }
    }
    func accepted(_ account: SharedName) { post { $0.accepted(account) } }
    func rejected(_ attempt: SharedAttempt) { post { $0.rejected(attempt) } }
    func refund(_ attempt: SharedAttempt) { post { $0.refund(attempt) } }
    func reset(_ account: SharedName) { post { $0.reset(account) } }
}
