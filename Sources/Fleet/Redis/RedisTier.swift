public import Numbers
internal import Octets
internal import TLS
public import World

/// The shared tier on Redis or Valkey: one script a step, everything sealed and named by `FleetKeys`. Touched on the loop of its link only.
public final class RedisTier: SharedTier, @unchecked Sendable {
    /// Nanoseconds from the beginning of a connection to its first command, at most.
    public static let connectTime = RedisMachine.connectTime
    /// Milliseconds in which gateways bring back what a server may have lost; more than any of them takes to connect again.
    static let settling = RedisMachine.longestPause * 3 / 1_000_000
    /// Milliseconds for which a value without an end of its own is kept: what a fleet no longer asks for must go some time.
    static let longest = TimeSpan(90 * 86_400, .seconds)

    let keys: FleetKeys
    let format: FleetFormat
    private let client: RedisClient
    let channel: String
    private let wall: @Sendable () -> WallTime
    private let random: any RandomSource
    /// The server's run, by the id that it had when the connection was made.
    private let run = Run()

    private final class Run {
        var id = ""
    }

    /// - Parameters:
    ///   - wall: the wall clock, which ends of values and moments of news are sealed by.
    ///   - changed: nil when the server is there, else why not; not only when something has changed.
    public init(
        over link: any FleetLink, as login: RedisLogin, keys: FleetKeys, format: FleetFormat,
        wall: @escaping @Sendable () -> WallTime,
        random: any RandomSource,
        news: @escaping (FleetNews) -> Void, changed: @escaping (SharedFault?) -> Void
    ) {
        self.keys = keys
        self.format = format
        self.wall = wall
        self.random = random
        let prefix = keys.prefix
        channel = prefix + "news"
        let command = Self.command(FleetScripts.greet, [prefix + "epoch", prefix + "settling"])
        let run = self.run
        let heard = HeardNews(since: wall())
        let repeated = RepeatedNews()
        let machine = RedisMachine(login, channel: channel, random: random) { id in
            run.id = id
            return command + [Array(id.utf8), Array("\(Self.settling)".utf8)]
        }
        client = RedisClient(
            machine, over: link,
            news: { message in
                guard let known = Self.news(message, keys, format, heard, wall()) else { return }
                if !repeated.isRepeated(known, isSealed: FleetKeys.isSealedNews(message), at: wall()) { news(known) }
            }, changed: changed)
    }

    /// Connects, and does so again whenever the connection is lost.
    public func start() { client.start() }
    /// Fails whatever is under way, and whatever is asked for from then on.
    public func stop() { client.stop() }

    /// See `FleetKeys.name`.
    public func name(_ kind: SharedKind, _ key: [UInt8]) -> SharedName { keys.name(kind, key) }
    /// See `FleetKeys.identity`.
    public func identity(of value: [UInt8]) -> String { keys.identity(of: value) }

    /// The news in a message; nil where it is in a format that is not read, is not ours, or has been heard.
    private static func news(
        _ message: [UInt8], _ keys: FleetKeys, _ format: FleetFormat, _ heard: HeardNews, _ now: WallTime
    ) -> FleetNews? {
        if FleetKeys.isSealedNews(message) {
            guard format.readsNew, let told = keys.news(message, at: now) else { return nil }
            return heard.counts(told.news, sealedAt: told.moment, at: now) ? told.news : nil
        }
        return format.readsOld ? FleetNews(message) : nil
    }

    // MARK: - Commands

    enum Part: String {
        case value = "v:", lease = "l:", generation = "g:", session = "s:", spending = "u:", attempts = "a:"
    }

    func key(_ part: Part, _ name: SharedName) -> String { keys.prefix + part.rawValue + name.text }
    var settlingKey: String { keys.prefix + "settling" }
    var epochKey: String { keys.prefix + "epoch" }
    /// The arguments that `settled` asks for.
    var settling: [[UInt8]] { Self.words(run.id, "\(Self.settling)") + telling(.forgotten) }

    /// The arguments with which a script tells others: the channel, and the news in the old and in the new format, as far as they are
    /// written.
    func telling(_ news: FleetNews) -> [[UInt8]] {
        let old = format.readsOld ? Array(news.oldMessage.utf8) : []
        return [Array(channel.utf8), old, sealedNews(news)]
    }

    /// Without a seal there is nothing to tell; who waits for it looks.
    func sealedNews(_ news: FleetNews) -> [UInt8] {
        format.readsNew ? (try? keys.seal(news, at: wall())) ?? [] : []
    }

    var now: WallTime { wall() }

    private static func command(_ script: String, _ keys: [String]) -> [[UInt8]] {
        (["EVAL", script, "\(keys.count)"] + keys).map { Array($0.utf8) }
    }

    func run<Value>(
        _ script: String, _ keys: [String], _ arguments: [[UInt8]], _ completion: @escaping Answer<Value>,
        _ read: @escaping @Sendable (RESPValue) throws(SharedFault) -> Value
    ) {
        client.send(Self.command(script, keys) + arguments) { result in
            do throws(SharedFault) {
                let value = try result.get()
                completion(.success(try read(value)))
            } catch { completion(.failure(error)) }
        }
    }

    /// Runs a script for whose answer nobody waits: a loss is found out when it matters.
    func tell(_ script: String, _ keys: [String], _ arguments: [[UInt8]]) {
        client.send(Self.command(script, keys) + arguments) { _ in }
    }

    static func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }
    func newOwner() -> String { Base64.encodeURL(random.bytes(18)) }

    static func flag(_ value: RESPValue) throws(SharedFault) -> Bool {
        guard let number = value.integer else { throw invalid }
        return number != ReceivedNumber(0)
    }

    static var invalid: SharedFault { SharedFault(.invalid, "the server's answer is not what was asked for") }

    /// In the old format; empty where that is not written.
    func sealedAlone(_ value: [UInt8], _ name: SharedName) throws(SharedFault) -> [UInt8] {
        guard format.readsOld else { return [] }
        do throws(SealingFault) { return try keys.seal(value, for: name) } catch {
            throw SharedFault(.invalid, "\(error)")
        }
    }

    /// In the new format; empty where that is not written.
    func sealed(_ envelope: SealedEnvelope, _ name: SharedName) throws(SharedFault) -> [UInt8] {
        guard format.readsNew else { return [] }
        do throws(SealingFault) { return try keys.seal(envelope, for: name) } catch {
            throw SharedFault(.invalid, "\(error)")
        }
    }

    /// Opens a value of the old format.
    func opened(_ sealed: [UInt8], _ name: SharedName) throws(SharedFault) -> [UInt8] {
        do throws(SealingFault) { return try keys.open(sealed, for: name) } catch {
            throw SharedFault(.invalid, "a value of the shared server cannot be opened: \(error)")
        }
    }

    /// A value that is found in the old format alone: whoever takes no other one finds it in the new one too.
    func putBeside(
        _ version: [UInt8], _ old: [UInt8], _ envelope: SealedEnvelope, _ part: Part, _ name: SharedName
    ) {
        guard format == .both, let sealed = try? sealed(envelope, name) else { return }
        tell(FleetScripts.beside, [key(part, name)], [version, old, sealed])
    }

    static func milliseconds(_ lasts: TimeSpan?) -> String {
        "\(max(1, min(lasts ?? longest, longest).milliseconds))"
    }

    /// The digit that a script begins its answer with.
    static func outcome(_ items: [RESPValue]) -> Int? { items.first?.integer?.within(0...9) }

    /// The time that the server's answer to PTTL leaves; nil for a key that has no end, or is not there.
    static func left(_ value: RESPValue) throws(SharedFault) -> TimeSpan? {
        guard let number = value.integer else { throw invalid }
        return number.clamped(to: -1...0) < 0 ? nil : TimeSpan(number, .milliseconds)
    }

    static func generation(_ value: RESPValue) throws(SharedFault) -> Int64 {
        guard let number = value.integer?.within(1...Int64.max) else { throw invalid }
        return number
    }
}

// MARK: - Leases and attempts

extension RedisTier {
    /// See `SharedTier`.
    public func renew(_ lease: SharedLease, completion: @escaping Answer<Bool>) {
        run(
            FleetScripts.renew, [key(.lease, lease.name), key(.spending, lease.name)],
            Self.words(lease.owner, "\(SharedLease.duration)", "\(SharedLease.silence)", lease.spends ? "1" : "0")
                + telling(.spending(lease.name, owner: lease.owner, isOver: false)),
            completion, Self.flag)
    }

    /// See `SharedTier`.
    public func release(_ lease: SharedLease) {
        tell(
            FleetScripts.release, [key(.lease, lease.name), key(.spending, lease.name)],
            Self.words(lease.owner) + telling(.released(lease.name))
                + [lease.spends ? sealedNews(.spending(lease.name, owner: lease.owner, isOver: true)) : []])
    }

    /// See `SharedTier`.
    public func spend(_ attempt: SharedAttempt, limit: UInt32, completion: @escaping Answer<SharedVerdict>) {
        run(
            FleetScripts.spend, [key(.attempts, attempt.account), settlingKey, epochKey],
            Self.words(attempt.secret, attempt.number, "\(max(limit, 1))") + settling, completion
        ) { answer throws(SharedFault) in
            switch answer.integer?.within(0...2) {
            case 0: return .spent
            case 1: return .allowed
            case 2: return .settling
            default: throw Self.invalid
            }
        }
    }

    /// See `SharedTier`.
    public func spent(_ attempt: SharedAttempt, completion: @escaping Answer<UInt32?>) {
        run(
            FleetScripts.spent, [key(.attempts, attempt.account), settlingKey, epochKey],
            Self.words(attempt.secret) + settling, completion
        ) { answer throws(SharedFault) in
            guard let count = answer.integer else { throw Self.invalid }
            return count == ReceivedNumber(-1) ? nil : count.clamped(to: 0...UInt32.max)
        }
    }

    /// See `SharedTier`.
    public func accepted(_ account: SharedName) {
        client.send(["DEL", key(.attempts, account)].map { Array($0.utf8) }) { _ in }
    }

    /// See `SharedTier`.
    public func rejected(_ attempt: SharedAttempt) {
        tell(
            FleetScripts.reject, [key(.attempts, attempt.account)],
            Self.words(attempt.secret, attempt.number) + telling(.rejected(account: attempt.account)))
    }

    /// See `SharedTier`.
    public func refund(_ attempt: SharedAttempt) {
        client.send(
            ["HDEL", key(.attempts, attempt.account), "\(attempt.secret):\(attempt.number)"].map { Array($0.utf8) }
        ) { _ in }
    }

    /// See `SharedTier`.
    public func reset(_ account: SharedName) {
        tell(FleetScripts.reset, [key(.attempts, account)], telling(.reset(account: account)))
    }
}
