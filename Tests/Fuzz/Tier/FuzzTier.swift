import Numbers
import ScriptedWorld
import Synchronization
import TLS

@testable import Fleet

/// Any bytes as the answers of the server that a fleet shares (`HostileServer`): every question has one outcome in bounded time, a value, a
/// version or news that come out were sealed by a gateway of the fleet, and what is told of a fault is fit for a log.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTier(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard let fleet = Fleet.shared else { refute("no keys") }
    guard let server = HostileServer(UnsafeBufferPointer(start: start, count: count), fleet.known) else { return -1 }
    Gateway(fleet, server).run()
    return 0
}

/// The keys of a fleet, and the values that its gateways have put on the server.
private struct Fleet: Sendable {
    let keys: FleetKeys
    let name: SharedName
    /// The octets for the capital letters of an input.
    let known: [UInt8: [UInt8]]
    let news: [FleetNews]

    static let value = Array("a value of the fleet".utf8)
    static let session = Array("a session of the fleet".utf8)
    static let wall = WallTime(milliseconds: 1_780_000_000_000)

    static let shared: Fleet? = {
        guard let key = try? SealingKey(bytes: Array(1...32)),
            let keys = try? FleetKeys(SealingKeyRing([key]))
        else { return nil }
        let name = keys.name(.token, [1])
        let other = keys.name(.token, [2])
        let identity = keys.identity(of: value)
        let end = wall + TimeSpan(60, .seconds)
        guard let version = SessionVersion(ReceivedNumber(Int64(3))),
            let sealed = try? keys.seal(SealedEnvelope(end: end, identity: identity, value: value), for: name),
            let foreign = try? keys.seal(SealedEnvelope(end: end, identity: identity, value: [9]), for: other),
            let session = try? keys.seal(SealedEnvelope(version: version, end: end, value: session), for: name),
            let over = try? keys.seal(SealedEnvelope(version: version, end: end, value: []), for: name),
            let old = try? keys.seal(value, for: name)
        else { return nil }
        let news: [FleetNews] = [
            .published(name, identity: identity), .withdrawn(name, identity: identity), .released(name),
            .spending(name, owner: "o", isOver: false), .session(name, version: version),
            .sessionEnded(name, version: version), .rejected(account: name), .reset(account: name),
            .sessionMissed(name),
            .forgotten,
        ]
        var known: [UInt8: [UInt8]] = [
            UInt8(ascii: "V"): sealed, UInt8(ascii: "X"): foreign, UInt8(ascii: "S"): session, UInt8(ascii: "E"): over,
            UInt8(ascii: "O"): old, UInt8(ascii: "I"): Array(identity.utf8), UInt8(ascii: "N"): Array(name.text.utf8),
        ]
        for (letter, one) in zip(UInt8(ascii: "A")..., news.prefix(4)) { known[letter] = try? keys.seal(one, at: wall) }
        known[UInt8(ascii: "F")] = try? keys.seal(.forgotten, at: wall)
        known[UInt8(ascii: "R")] = try? keys.seal(.reset(account: name), at: wall)
        known[UInt8(ascii: "W")] = Array(news[0].oldMessage.utf8)
        return Fleet(keys: keys, name: name, known: known, news: news)
    }()
}

/// A gateway that asks, and looks at what comes of it.
private final class Gateway: @unchecked Sendable {
    private let fleet: Fleet
    private let server: HostileServer
    private let link = HostileLink()
    private let tier: RedisTier
    private let open = Atomic<Int>(0)
    private var lease: SharedLease

    init(_ fleet: Fleet, _ server: HostileServer) {
        self.fleet = fleet
        self.server = server
        lease = SharedLease(name: fleet.name, owner: "o", generation: 1, spends: true)
        let format = server.format
        tier = RedisTier(
            over: link, as: RedisLogin(), keys: fleet.keys, format: format, wall: { Fleet.wall },
            random: SeededRandom(),
            news: { news in
                // Anybody can write news of the old format.
                expect(format != .new || fleet.news.contains(news), "news that no gateway told")
            }, changed: { fault in if let fault { check(fault) } })
    }

    func run() {
        tier.start()
        link.settle()
        if server.answersLogin {
            receive("%0\r\n")
            receive("$8\r\nrun_id:7\r\n")
            receive(">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n")
            receive(":1\r\n")
        }
        for section in server.sections {
            ask(section.question)
            link.settle()
            deliver(section.reply)
        }
        // Whatever is not answered has an outcome when its time is over.
        for _ in 0..<8 { link.pass() }
        expect(open.load(ordering: .relaxed) == 0, "a question without an outcome")
        ask(UInt8(ascii: "a"))
        tier.stop()
        expect(open.load(ordering: .relaxed) == 0, "a question without an outcome")
    }

    private func receive(_ text: String) { link.receive(Array(text.utf8)) }

    private func deliver(_ reply: [UInt8]) {
        guard server.piece > 0 else { return link.receive(reply) }
        let size = max(server.piece, reply.count / 40)
        for start in stride(from: 0, to: reply.count, by: size) {
            link.receive(Array(reply[start..<min(reply.count, start + size)]))
        }
    }

    // MARK: - Questions

    private func ask(_ question: UInt8) {
        let name = fleet.name
        let version = SessionVersion.none
        let span = TimeSpan(60, .seconds)
        let attempt = SharedAttempt(account: name, secret: name, number: "1")
        switch Character(UnicodeScalar(question)) {
        case "a": tier.claim(name, unless: nil, isDead: false, completion: once(checkClaim))
        case "b": tier.claim(name, unless: "0", isDead: true, completion: once(checkClaim))
        case "c": tier.value(name, completion: once { self.checkSession($0, isValue: true) })
        case "d":
            tier.publish(
                Fleet.value, as: fleet.keys.identity(of: Fleet.value), under: lease, for: span, completion: once())
        case "e": tier.withdraw(name, "0")
        case "f": tier.turn(name, session: name, spends: true, completion: once(checkTurn))
        case "g": tier.turn(name, session: name, spends: false, completion: once(checkTurn))
        case "h": tier.session(name, completion: once { self.checkSession($0, isValue: false) })
        case "i":
            tier.commit(
                SharedSession(version: version.next, value: [1], lasts: span), name, under: lease, completion: once())
        case "j": tier.offer(SharedSession(version: version.next, value: [1]), name, under: lease, completion: once())
        case "k":
            tier.offer(
                SharedSession(version: version.beyondTheUnseen, value: [1]), name, under: nil, completion: once())
        case "l": tier.endSession(name, version: version.next)
        case "m": tier.tell(.forgotten)
        case "n": tier.renew(lease, completion: once())
        case "o": tier.release(lease)
        case "p": tier.spend(attempt, limit: 3, completion: once())
        case "q": tier.spent(attempt, completion: once())
        case "r": tier.accepted(name)
        case "s": tier.rejected(attempt)
        case "t": tier.refund(attempt)
        case "u": tier.reset(name)
        case "v": link.lose()
        case "w": link.pass()
        default: break
        }
    }

    /// Everything here happens on one thread, though answers are for many.
    private func once<Value>(_ look: @escaping (Value) -> Void = { _ in })
        -> @Sendable (Result<Value, SharedFault>) -> Void
    {
        open.add(1, ordering: .relaxed)
        nonisolated(unsafe) let look = look
        nonisolated(unsafe) var isAnswered = false
        return { [self] result in
            expect(!isAnswered, "two outcomes")
            isAnswered = true
            open.subtract(1, ordering: .relaxed)
            switch result {
            case .success(let value): look(value)
            case .failure(let fault): check(fault)
            }
        }
    }

    // MARK: - Outcomes

    private func checkClaim(_ claim: SharedClaim) {
        switch claim {
        case .value(let value, let identity, let left):
            expect(value == Fleet.value, "a value that no gateway put there")
            expect(server.format != .new || identity == fleet.keys.identity(of: value), "another identity")
            checkLeft(left)
        case .lease(let lease): expect(lease.generation >= 1, "a generation that no lease has")
        case .busy: break
        }
    }

    private func checkTurn(_ turn: SharedTurn) {
        guard case .lease(let lease, let session) = turn else { return }
        expect(lease.generation >= 1, "a generation that no lease has")
        checkSession(session, isValue: false)
    }

    private func checkSession(_ session: SharedSession?, isValue: Bool) {
        guard let session else { return }
        // The old format seals neither an end nor a version, and has one kind of value.
        let values = server.format == .new && !isValue ? [Fleet.session, []] : [Fleet.session, Fleet.value, []]
        expect(values.contains(session.value), "a session that no gateway put there")
        if server.format == .new {
            expect(isValue || ["0", "3"].contains("\(session.version)"), "a version that no gateway counted")
            checkLeft(session.lasts)
        }
    }

    /// The server cannot put a sealed end off.
    private func checkLeft(_ left: TimeSpan?) {
        guard server.format == .new, let left else { return }
        expect(left <= TimeSpan(60 + 120, .seconds), "an end that was put off")
    }
}

private func check(_ fault: SharedFault) {
    expect(
        fault.message.utf8.count <= 400 && fault.message.utf8.allSatisfy { (0x20...0x7E).contains($0) },
        "a fault that is not fit for a log: \(fault.message)")
}
