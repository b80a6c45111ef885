import TLS

@testable import Fleet

/// The fleet's shared server: the gateway's own scripts on keys in memory, over RESP3.
final class RedisServer {
    /// How it behaves for now.
    enum Mood: Equatable {
        case well
        /// Commands are taken and not answered.
        case silence
        /// It takes no writes, as a replica.
        case readOnly
        /// Answers come this much later, in nanoseconds.
        case late(UInt64)
        /// Somebody else writes there: values come back changed.
        case alters
    }

    var mood = Mood.well {
        didSet {
            if mood == .alters { hasLostData = true }
            moodAt = world.timeline.now
        }
    }
    private var moodAt: UInt64 = 0
    /// It has taken no writes for some time, in nanoseconds.
    func isReadOnly(for time: UInt64) -> Bool { mood == .readOnly && world.timeline.now >= moodAt + time }
    /// It has lost what it was told, so that nothing is promised of what may be tried once.
    private(set) var hasLostData = false
    /// When it was wiped while it ran, nanoseconds, until somebody has noticed.
    private var wipedAt: UInt64?
    /// When something last happened after which nothing is promised of leases for a while.
    private(set) var troubledAt: UInt64?
    private var hiddenAt: UInt64?
    private let world: World
    private let scripts = RedisScripts()
    private var data = RedisData()
    private var run = 1
    private var draw: Draw
    private var links: [RedisLink] = []
    /// Locks whose turn a process was given and has not given back, with the owner's word.
    private var turns: [ProcessName: [[UInt8]: [UInt8]]] = [:]
    /// How often each process has wanted each lock's turn in this second.
    private var wishes: [ProcessName: [[UInt8]: Int]] = [:]
    private var wishSecond: UInt64 = 0

    init(_ world: World) {
        self.world = world
        draw = Draw(world.seed, Purpose.issuers + 500)
    }

    func accept(_ wire: Wire) -> any Conversation {
        let link = RedisLink(self, wire)
        links.append(link)
        return link
    }

    fileprivate func forget(_ link: RedisLink) { links.removeAll { $0 === link } }

    func noteTrouble(hidesLogins: Bool = true) {
        troubledAt = world.timeline.now
        if hidesLogins { hiddenAt = world.timeline.now }
    }

    /// Nothing has disturbed it, its network or a holder of a lease for so long that leases hold.
    var isCalm: Bool { troubledAt.map { world.timeline.now > $0 + .seconds(45) } ?? true }

    /// Gateways have heard of each other's logins.
    var showsLogins: Bool { !hasLostData && (hiddenAt.map { world.timeline.now > $0 + .seconds(15) } ?? true) }

    /// The process was given a lock's turn, and has not given it back.
    func hasTurn(_ process: ProcessName) -> Bool { !(turns[process] ?? [:]).isEmpty }

    /// Its data are gone; the process goes on.
    func wipe() {
        noteTrouble()
        hasLostData = true
        data.wipe()
        wipedAt = world.timeline.now
    }

    /// The data of a former time, which somebody may put back; no gateway may go back to them.
    private var former: RedisData?
    private var replays = 0
    func remember() { former = data }
    func replay() {
        noteTrouble()
        replays += 1
        if let former {
            data.replay(former, version: 1_000_000 * replays) { [self] key, sealed in oldFormat(of: sealed, under: key)
            }
        }
        former = nil
    }

    /// The gateways' own, for what a gateway of another release would write.
    private static let keys: FleetKeys = {
        do { return try FleetKeys(SealingKeyRing([SealingKey(fileContents: Array(World.storeKey.utf8))])) } catch {
            preconditionFailure("the key of the store is none: \(error)")
        }
    }()

    private func oldFormat(of sealed: [UInt8], under key: [UInt8]) -> [UInt8]? {
        let parts = String(decoding: key, as: UTF8.self).split(separator: ":")
        guard parts.count == 4, parts[2] == "s", let name = SharedName(parts[3]),
            let envelope = Self.keys.envelope(sealed, for: name), !envelope.value.isEmpty
        else { return nil }
        world.journal.note(.redis, 0, [], "somebody puts back a session of before, version \(envelope.version)")
        return try? Self.keys.seal(envelope.value, for: name)
    }

    /// Another process, without what the last one knew unless that was kept.
    func restart(keepsData: Bool) {
        noteTrouble()
        run += 1
        if !keepsData {
            hasLostData = true
            data.wipe()
        }
        for link in links { link.wire.reset() }
    }

    // MARK: - Commands

    private var milliseconds: Int64 { Int64(world.timeline.now / 1_000_000) }
    /// A script meets the refusal where it writes, and not before.
    private static let writes: Set<String> = ["DEL", "HDEL", "SET", "HSET", "INCR", "EXPIRE", "PEXPIRE"]
    static let isReplica = "READONLY You can't write against a read only replica."

    /// - Returns: the answer's octets; nil for none.
    fileprivate func answer(_ words: [[UInt8]], _ link: RedisLink) -> [UInt8]? {
        let name = String(decoding: words.first ?? [], as: UTF8.self).uppercased()
        // Sealed values differ from run to run, since their nonces must never be the same; keys are hashes and stay.
        world.journal.note(
            .redis, link.wire.number, words.count > 3 ? words[3] : [], "redis does \(name) for g\(link.wire.gateway)")
        switch name {
        case "HELLO": return Array("%1\r\n$6\r\nserver\r\n$5\r\nredis\r\n".utf8)
        case "PING": return Array("+PONG\r\n".utf8)
        case "SELECT": return Array("+OK\r\n".utf8)
        case "INFO": return Self.octets(.text(Array("# Server\r\nrun_id:run\(run)\r\n".utf8)))
        case "SUBSCRIBE":
            link.channel = words.count > 1 ? words[1] : []
            return Array(">3\r\n$9\r\nsubscribe\r\n".utf8) + Self.octets(.text(link.channel ?? []))
                + Array(":1\r\n".utf8)
        case "EVAL": return Self.octets(evaluate(words, link))
        default: return Self.octets(command(words))
        }
    }

    private func command(_ words: [[UInt8]]) -> RedisData.Reply {
        if mood == .readOnly, let name = words.first,
            Self.writes.contains(String(decoding: name, as: UTF8.self).uppercased())
        {
            return .error(Self.isReplica)
        }
        return carryOut(words)
    }

    private func carryOut(_ words: [[UInt8]]) -> RedisData.Reply {
        data.run(words, at: milliseconds) { [self] channel, message in
            var heard: Int64 = 0
            for link in links where link.channel == channel {
                heard += 1
                link.push(
                    Array(">3\r\n$7\r\nmessage\r\n".utf8) + Self.octets(.text(channel)) + Self.octets(.text(message)))
            }
            return heard
        }
    }

    private func evaluate(_ words: [[UInt8]], _ link: RedisLink) -> RedisData.Reply {
        guard words.count >= 3, let count = Int(String(decoding: words[2], as: UTF8.self)), words.count >= 3 + count
        else { return .error("ERR wrong number of arguments") }
        let (keys, arguments) = (Array(words[3..<3 + count]), Array(words[(3 + count)...]))
        var reply = scripts.run(words[1], keys: keys, arguments: arguments) { [unowned self] in command($0) }
        if mood == .alters { reply = altered(reply) }
        note(words[1], keys, arguments, reply, of: link.wire.process)
        return reply
    }

    private func note(
        _ script: [UInt8], _ keys: [[UInt8]], _ arguments: [[UInt8]], _ reply: RedisData.Reply, of process: ProcessName
    ) {
        if script == Self.turn { noteWish(process, keys[0]) }
        if script == Self.turn, case .list(let items) = reply, case .number(0) = items.first {
            // A gateway that has a session or knows a refused password has to bring it back before anybody gets a turn: else another one logs
            // in anew, with that password.
            if let wipedAt {
                world.verdicts.expect(
                    world.timeline.now > wipedAt + .milliseconds(2500), .fleetLease,
                    "\(process) is given a turn \((world.timeline.now - wipedAt) / 1_000_000) ms after the server was wiped"
                )
            }
            wipedAt = nil
            turns[process, default: [:]][keys[0]] = arguments[0]
        } else if script == Self.release, turns[process]?[keys[0]] == arguments[0] {
            turns[process]?[keys[0]] = nil
        }
    }

    /// A turn that is given back unused and taken again at once helps nobody.
    private func noteWish(_ process: ProcessName, _ lock: [UInt8]) {
        let second = world.timeline.now / .seconds(1)
        if second != wishSecond {
            wishSecond = second
            wishes = [:]
        }
        wishes[process, default: [:]][lock, default: 0] += 1
        let count = wishes[process]?[lock] ?? 0
        world.verdicts.expect(count < 40, .restless, "\(process) has wanted a turn \(count) times in this second")
    }

    /// One octet of each value is another one.
    private func altered(_ reply: RedisData.Reply) -> RedisData.Reply {
        switch reply {
        case .text(var bytes) where !bytes.isEmpty:
            let index = draw.below(bytes.count)
            bytes[index] ^= UInt8(1 << draw.below(8))
            return .text(bytes)
        case .list(let items): return .list(items.map { altered($0) })
        default: return reply
        }
    }

    private static let turn = Array(FleetScripts.turn.utf8)
    private static let release = Array(FleetScripts.release.utf8)

    private static func octets(_ reply: RedisData.Reply) -> [UInt8] {
        switch reply {
        case .number(let number): Array(":\(number)\r\n".utf8)
        case .text(let bytes): Array("$\(bytes.count)\r\n".utf8) + bytes + [13, 10]
        case .null: Array("_\r\n".utf8)
        case .status(let words): Array("+\(words)\r\n".utf8)
        case .error(let words): Array("-\(words)\r\n".utf8)
        case .list(let items): Array("*\(items.count)\r\n".utf8) + items.flatMap { octets($0) }
        }
    }

    fileprivate func after(_ delay: UInt64, _ body: @escaping () -> Void) { world.timeline.after(delay, body) }
}

/// One gateway's connection to the server.
private final class RedisLink: Conversation {
    let wire: Wire
    var channel: [UInt8]?
    private let server: RedisServer
    private var input: [UInt8] = []

    init(_ server: RedisServer, _ wire: Wire) {
        self.server = server
        self.wire = wire
    }

    func began() {}

    func received(_ bytes: [UInt8]) {
        input += bytes
        while let words = command() {
            guard server.mood != .silence, let answer = server.answer(words, self) else { continue }
            if case .late(let delay) = server.mood {
                server.after(delay) { [self] in wire.send(answer) }
            } else {
                wire.send(answer)
            }
        }
    }

    func ended(isReset: Bool) {
        server.forget(self)
        if !isReset { wire.close() }
    }

    func push(_ bytes: [UInt8]) { if server.mood != .silence { wire.send(bytes) } }

    /// An array of strings, which is the one form that clients speak in.
    private func command() -> [[UInt8]]? {
        var position = 0
        guard let count = number(&position, UInt8(ascii: "*")) else { return nil }
        var words: [[UInt8]] = []
        for _ in 0..<count {
            guard let length = number(&position, UInt8(ascii: "$")), input.count >= position + length + 2 else {
                return nil
            }
            words.append(Array(input[position..<position + length]))
            position += length + 2
        }
        input.removeFirst(position)
        return words
    }

    private func number(_ position: inout Int, _ mark: UInt8) -> Int? {
        guard position < input.count, input[position] == mark else { return nil }
        guard let end = input[position...].firstIndex(of: 13), end + 1 < input.count else { return nil }
        defer { position = end + 2 }
        return Int(String(decoding: input[position + 1..<end], as: UTF8.self))
    }
}
