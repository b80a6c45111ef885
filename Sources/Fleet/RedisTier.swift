public import Numbers
internal import Synchronization
internal import TLS

/// The shared tier on Redis or Valkey: one script a step, everything sealed and named by `FleetKeys`.
public final class RedisTier: SharedTier {
    /// Milliseconds in which gateways bring back what a server may have lost; more than any of them takes to connect again.
    static let settling = RedisClient.longestPause * 3
    /// Milliseconds for which a value without an end of its own is kept: what a fleet no longer asks for must go some time.
    static let longest = TimeSpan(90 * 86_400, .seconds)

    private let keys: FleetKeys
    private let client: RedisClient
    private let channel: String
    /// As the server called its run when the connection was made.
    private let run = Run()

    private final class Run: Sendable {
        let id = Mutex("")
    }

    /// - Parameters:
    ///   - news: on the client's thread; must not block.
    ///   - changed: nil when the server is there, else why not; on the client's thread, not only when something has changed.
    public init(
        _ settings: RedisSettings, keys: FleetKeys, news: @escaping @Sendable (FleetNews) -> Void,
        changed: @escaping @Sendable (RedisFault?) -> Void
    ) throws(RedisFault) {
        self.keys = keys
        let prefix = keys.prefix
        channel = prefix + "news"
        let command = Self.command(FleetScripts.greet, [prefix + "epoch", prefix + "settling"])
        let run = self.run
        client = try RedisClient(
            settings, channel: channel,
            listener: RedisClient.Listener(
                greet: { id in
                    run.id.withLock { $0 = id }
                    return command + [Array(id.utf8), Array("\(Self.settling)".utf8)]
                },
                greeted: { _ in },
                news: { message in if let known = FleetNews(message) { news(known) } },
                changed: changed))
    }

    public func start() throws(RedisFault) { try client.start() }
    public func stop() { client.stop() }

    public func name(_ kind: SharedKind, _ key: [UInt8]) -> SharedName { keys.name(kind, key) }
    public func identity(of value: [UInt8]) -> String { keys.identity(of: value) }

    // MARK: - Commands

    enum Part: String {
        case value = "v:", lease = "l:", generation = "g:", session = "s:", spending = "u:", attempts = "a:"
    }

    func key(_ part: Part, _ name: SharedName) -> String { keys.prefix + part.rawValue + name.text }
    private var settlingKey: String { keys.prefix + "settling" }
    private var epochKey: String { keys.prefix + "epoch" }
    /// What `settled` asks for.
    private var settling: [[UInt8]] { Self.words(run.id.withLock { $0 }, "\(Self.settling)", channel) }

    private static func command(_ script: String, _ keys: [String]) -> [[UInt8]] {
        (["EVAL", script, "\(keys.count)"] + keys).map { Array($0.utf8) }
    }

    private func run<Value>(
        _ script: String, _ keys: [String], _ arguments: [[UInt8]], _ completion: @escaping Answer<Value>,
        _ read: @escaping @Sendable (RESPValue) throws(RedisFault) -> Value
    ) {
        client.send(Self.command(script, keys) + arguments) { result in
            do throws(RedisFault) {
                let value = try result.get()
                completion(.success(try read(value)))
            } catch { completion(.failure(error)) }
        }
    }

    /// Nobody waits for it: what is lost is found out when it matters.
    private func tell(_ script: String, _ keys: [String], _ arguments: [[UInt8]]) {
        client.send(Self.command(script, keys) + arguments) { _ in }
    }

    private static func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }
    private static func newOwner() -> String { Base64.encodeURL(randomBytes(18)) }

    private static func flag(_ value: RESPValue) throws(RedisFault) -> Bool {
        guard let number = value.integer else { throw invalid }
        return number != ReceivedNumber(0)
    }

    private static var invalid: RedisFault { RedisFault(.invalid, "the server's answer is not what was asked for") }

    private func seal(_ value: [UInt8], _ name: SharedName) throws(RedisFault) -> [UInt8] {
        do throws(SealingFault) { return try keys.seal(value, for: name) } catch {
            throw RedisFault(.invalid, "\(error)")
        }
    }

    private func open(_ value: RESPValue?, _ name: SharedName) throws(RedisFault) -> [UInt8] {
        guard let sealed = value?.bytes else { throw Self.invalid }
        do throws(SealingFault) { return try keys.open(sealed, for: name) } catch {
            throw RedisFault(.invalid, "a value of the shared server cannot be opened: \(error)")
        }
    }

    private static func milliseconds(_ lasts: TimeSpan?) -> String {
        "\(max(1, min(lasts ?? longest, longest).milliseconds))"
    }

    /// What a script begins its answer with.
    private static func outcome(_ items: [RESPValue]) -> Int? { items.first?.integer?.within(0...9) }

    /// What the server says to PTTL; nil for what has no end.
    private static func left(_ value: RESPValue) throws(RedisFault) -> TimeSpan? {
        guard let number = value.integer else { throw invalid }
        return number.clamped(to: -1...0) < 0 ? nil : TimeSpan(number, .milliseconds)
    }

    private static func generation(_ value: RESPValue) throws(RedisFault) -> Int64 {
        guard let number = value.integer?.within(1...Int64.max) else { throw invalid }
        return number
    }
}

// MARK: - Values

extension RedisTier {
    public func claim(
        _ name: SharedName, unless refused: String?, isDead: Bool, completion: @escaping Answer<SharedClaim>
    ) {
        let owner = Self.newOwner()
        run(
            FleetScripts.claim, [key(.value, name), key(.lease, name), key(.generation, name)],
            Self.words(refused ?? "", isDead ? "1" : "0", owner, "\(SharedLease.duration)", name.text, channel),
            completion
        ) { [self] answer throws(RedisFault) in
            let items = answer.items ?? []
            switch (Self.outcome(items), items.count) {
            case (0, 2):
                return .lease(
                    SharedLease(
                        name: name, owner: owner, generation: try Self.generation(items[1]), spends: false))
            case (1, 4):
                guard let id = items[1].bytes else { throw Self.invalid }
                return .value(
                    try open(items[2], name), identity: String(decoding: id.prefix(64), as: UTF8.self),
                    left: try Self.left(items[3]))
            case (2, _): return .busy
            default: throw Self.invalid
            }
        }
    }

    public func value(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        run(FleetScripts.peek, [key(.value, name)], [], completion) { [self] answer throws(RedisFault) in
            guard let items = answer.items, items.count == 2 else { throw Self.invalid }
            guard items[0].bytes != nil else { return nil }
            return SharedSession(version: .none, value: try open(items[0], name), lasts: try Self.left(items[1]))
        }
    }

    public func publish(
        _ value: [UInt8], as identity: String, under lease: SharedLease, for life: TimeSpan?,
        completion: @escaping Answer<Bool>
    ) {
        let sealed: [UInt8]
        do throws(RedisFault) { sealed = try seal(value, lease.name) } catch { return completion(.failure(error)) }
        run(
            FleetScripts.publish, [key(.value, lease.name), key(.lease, lease.name), key(.generation, lease.name)],
            Self.words(lease.owner, "\(lease.generation)", identity) + [sealed]
                + Self.words(Self.milliseconds(life), lease.name.text, channel),
            completion, Self.flag)
    }

    public func withdraw(_ name: SharedName, _ identity: String) {
        tell(FleetScripts.withdraw, [key(.value, name)], Self.words(identity, name.text, channel))
    }
}

// MARK: - Sessions

extension RedisTier {
    public func turn(
        _ lane: SharedName, session: SharedName, spends: Bool, completion: @escaping Answer<SharedTurn>
    ) {
        let owner = Self.newOwner()
        run(
            FleetScripts.turn,
            [
                key(.lease, lane), key(.generation, lane), key(.session, session), key(.spending, lane), settlingKey,
                epochKey,
            ],
            Self.words(owner, "\(SharedLease.duration)", spends ? "1" : "0", "\(SharedLease.silence)") + settling,
            completion
        ) { [self] answer throws(RedisFault) in
            let items = answer.items ?? []
            switch (Self.outcome(items), items.count) {
            case (0, 5):
                let lease = SharedLease(
                    name: lane, owner: owner, generation: try Self.generation(items[1]), spends: spends)
                // One that cannot be read counts as none: what comes next replaces it, and the turn must not be lost.
                return .lease(lease, try? known(items[2...], session))
            case (2, _): return .busy
            case (3, _): return .settling
            default: throw Self.invalid
            }
        }
    }

    public func session(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        run(FleetScripts.look, [key(.session, name)], [], completion) { [self] answer throws(RedisFault) in
            guard let items = answer.items, items.count == 3 else { throw Self.invalid }
            return try known(items[...], name)
        }
    }

    /// - Parameter items: version, value, and the milliseconds that are left of them.
    private func known(_ items: ArraySlice<RESPValue>, _ name: SharedName) throws(RedisFault) -> SharedSession? {
        let items = Array(items)
        guard let text = items[0].bytes else { return nil }
        guard let version = ReceivedNumber(decimal: text).flatMap({ SessionVersion($0) }) else { throw Self.invalid }
        let left = try Self.left(items[2])
        guard items[1].bytes != nil else { return SharedSession(version: version, value: [], lasts: nil) }
        return SharedSession(version: version, value: try open(items[1], name), lasts: left)
    }

    public func commit(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease, completion: @escaping Answer<Bool>
    ) {
        let sealed: [UInt8]
        do throws(RedisFault) { sealed = try seal(session.value, name) } catch { return completion(.failure(error)) }
        run(
            FleetScripts.commit, [key(.session, name), key(.lease, lease.name), key(.spending, lease.name)],
            Self.words(lease.owner, "\(session.version)") + [sealed]
                + Self.words(Self.milliseconds(session.lasts), name.text, channel),
            completion, Self.flag)
    }

    public func offer(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease?, completion: @escaping Answer<Bool>
    ) {
        let sealed: [UInt8]
        do throws(RedisFault) { sealed = try seal(session.value, name) } catch { return completion(.failure(error)) }
        run(
            FleetScripts.offer, [key(.session, name), key(.spending, lease?.name ?? name)],
            Self.words("\(session.version)") + [sealed]
                + Self.words(Self.milliseconds(session.lasts), name.text, channel, lease?.owner ?? "-"),
            completion, Self.flag)
    }

    public func endSession(_ name: SharedName, version: SessionVersion) {
        tell(
            FleetScripts.end, [key(.session, name)],
            Self.words("\(version)", name.text, channel, Self.milliseconds(nil)))
    }
}

// MARK: - Leases and attempts

extension RedisTier {
    public func renew(_ lease: SharedLease, completion: @escaping Answer<Bool>) {
        run(
            FleetScripts.renew, [key(.lease, lease.name), key(.spending, lease.name)],
            Self.words(lease.owner, "\(SharedLease.duration)", "\(SharedLease.silence)", lease.spends ? "1" : "0"),
            completion, Self.flag)
    }

    public func release(_ lease: SharedLease) {
        tell(
            FleetScripts.release, [key(.lease, lease.name), key(.spending, lease.name)],
            Self.words(lease.owner, lease.name.text, channel))
    }

    public func spend(_ attempt: SharedAttempt, limit: UInt32, completion: @escaping Answer<SharedVerdict>) {
        run(
            FleetScripts.spend, [key(.attempts, attempt.account), settlingKey, epochKey],
            Self.words(attempt.secret, attempt.number, "\(max(limit, 1))") + settling, completion
        ) { answer throws(RedisFault) in
            switch answer.integer?.within(0...2) {
            case 0: return .spent
            case 1: return .allowed
            case 2: return .settling
            default: throw Self.invalid
            }
        }
    }

    public func spent(_ attempt: SharedAttempt, completion: @escaping Answer<UInt32?>) {
        run(
            FleetScripts.spent, [key(.attempts, attempt.account), settlingKey, epochKey],
            Self.words(attempt.secret) + settling, completion
        ) { answer throws(RedisFault) in
            guard let count = answer.integer else { throw Self.invalid }
            return count == ReceivedNumber(-1) ? nil : count.clamped(to: 0...UInt32.max)
        }
    }

    public func accepted(_ account: SharedName) {
        client.send(["DEL", key(.attempts, account)].map { Array($0.utf8) }) { _ in }
    }

    public func rejected(_ attempt: SharedAttempt) {
        tell(
            FleetScripts.reject, [key(.attempts, attempt.account)],
            Self.words(attempt.secret, attempt.number, attempt.account.text, channel))
    }

    public func refund(_ attempt: SharedAttempt) {
        client.send(
            ["HDEL", key(.attempts, attempt.account), "\(attempt.secret):\(attempt.number)"].map { Array($0.utf8) }
        ) { _ in }
    }

    public func reset(_ account: SharedName) {
        tell(FleetScripts.reset, [key(.attempts, account)], Self.words(account.text, channel))
    }
}
