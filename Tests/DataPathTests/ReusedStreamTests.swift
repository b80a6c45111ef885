import HTTP2
import ScriptedKernel
@_spi(Reflection) import Swift
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Reactor
@testable import Scenes

/// The objects that serve streams of HTTP/2 serve others behind them. Nothing of a request may be left for the next one, and nobody who
/// still holds such an object may meet another request in it.
@Suite struct ReusedStreamTests {
    // MARK: - Every field

    /// What has been torn down has given these up already, and says so (`holdsNothing`) before it is used again.
    private static let givenUp: Set = [
        "key", "descriptor", "hearsOutput", "tls", "stream", "block", "rosterIndex", "pending", "pipe", "timer",
    ]

    @Test func aCallersFieldsAreAsNew() throws {
        let scene = try Scene(Plans.open())
        let (data, listener) = (scene.data, scene.plan.listeners[0])
        let peer = CallerPeer(isLocal: true)
        let fresh = CallerConnection(data: data, listener: listener, peer: peer)
        let used = CallerConnection(data: data, listener: listener, peer: peer)
        used.borrowExchange()
        let fields = Fields(of: CallerConnection.self)
        fields.soil(used) { type, place in
            switch type {
            case is CallerConnection.Stage.Type: place.storeBytes(of: .tunnel, as: CallerConnection.Stage.self)
            default: return false
            }
            return true
        }
        // These fields are the HTTP/2 connection's and the same for all of its streams.
        let kept = Self.givenUp.union(["loop", "buffers", "data", "listener", "peer", "home", "hop"])
        #expect(fields.differing(used, fresh).union(kept) == fields.names, "each field has to be looked at here")
        #expect(used.holdsNothing && scene.data.exchanges.lent == 1)
        used.renew()
        #expect(fields.differing(used, fresh) == [])
        scene.end()
    }

    @Test func anUpstreamsFieldsAreAsNew() throws {
        let scene = try Scene(Plans.open())
        let group = scene.data.group(try #require(scene.plan.upstreams.first))
        let user = Nobody()
        let fresh = UpstreamConnection(group: group, user: user)
        let used = UpstreamConnection(group: group, user: Nobody())
        let place = try #require(group.pool.book.addresses.first)
        let connection = try #require(UpstreamHTTP2Connection(group: group, address: nil))
        let identity = IdentityPlan(
            index: 0, name: "a", handshake: try BasicHandshake(username: "u"), acquireTimeout: 1, reportsSuccess: true,
            resourceFromCaller: false, isTokenless: false, statuses: nil)
        let nonce = KnownNonce(ServerNonce(isStale: false), of: identity, generation: 1)
        let fields = Fields(of: UpstreamConnection.self)
        fields.soil(used) { type, field in
            switch type {
            case is UpstreamConnection.State.Type: field.storeBytes(of: .closed, as: UpstreamConnection.State.self)
            case is UpstreamAddress?.Type: field.assumingMemoryBound(to: UpstreamAddress?.self).pointee = place
            case is [UpstreamAddress].Type: field.assumingMemoryBound(to: [UpstreamAddress].self).pointee = [place]
            case is UpstreamHTTP2Connection?.Type:
                field.assumingMemoryBound(to: UpstreamHTTP2Connection?.self).pointee = connection
            case is Dialer?.Type: field.assumingMemoryBound(to: Dialer?.self).pointee = Dialer([place], for: used)
            case is ProxyTunnelBox?.Type: field.assumingMemoryBound(to: ProxyTunnelBox?.self).pointee = .init()
            case is PoolSeat.Type: field.storeBytes(of: .refused(.noUpgrade), as: PoolSeat.self)
            case is UpstreamWish.Type:
                let wish = UpstreamWish(isNew: true, isOnce: true, leavesHTTP: true, onlyHTTP1: true, avoided: place)
                field.assumingMemoryBound(to: UpstreamWish.self).pointee = wish
            case is UpstreamOwner?.Type:
                field.assumingMemoryBound(to: UpstreamOwner?.self).pointee = .caller(17)
            case is ConnectionBinding?.Type:
                field.assumingMemoryBound(to: ConnectionBinding?.self).pointee = .init(epoch: 17, until: 17)
            case is KnownNonce?.Type: field.assumingMemoryBound(to: KnownNonce?.self).pointee = nonce
            case is Int?.Type: field.assumingMemoryBound(to: Int?.self).pointee = 17
            default: return false
            }
            return true
        }
        let kept = Self.givenUp.union(["loop", "buffers", "group"])
        #expect(fields.differing(used, fresh).union(kept) == fields.names, "each field has to be looked at here")
        #expect(used.holdsNothing)
        used.renew(for: user)
        #expect(fields.differing(used, fresh) == [])
        scene.end()
    }

    // MARK: - In use

    @Test func oneObjectServesAConnectionsRequests() throws {
        let play = try Play()
        var callers: Set<ObjectIdentifier> = []
        var upstreams: Set<ObjectIdentifier> = []
        for round in 0..<6 {
            // Each other: a body and trailers, a bare answer, a refusal.
            let body = round % 3 == 0 ? String(repeating: "b", count: 5_000 + round) : ""
            let stream = try play.ask(round % 3 == 0 ? "POST" : "GET", "/\(round)", body: body)
            let asked = try #require(play.server.nextOpened())
            #expect(asked.readAll().hasPrefix("\(round % 3 == 0 ? "POST" : "GET") /\(round) HTTP/1.1\r\n"))
            if round % 3 == 2 {
                asked.cancel(.internalError)
            } else {
                #expect(asked.respond("HTTP/1.1 200 OK\r\nx: \(round)\r\n\r\n", body: body))
            }
            play.settle()
            let answer = stream.readAll()
            #expect(answer.hasPrefix(round % 3 == 2 ? "HTTP/1.1 502 " : "HTTP/1.1 200 "))
            #expect(
                answer.contains("x: \(round)\r\n") == (round % 3 != 2) && answer.hasSuffix(round % 3 == 2 ? "" : body))
            stream.cancel()
            asked.cancel()
            play.settle()
            let connection = try #require(play.scene.data.http2Callers.members.first)
            #expect(connection.spare.count == 1 && play.group.spare.count == 1)
            callers.formUnion(connection.spare.map { ObjectIdentifier($0) })
            upstreams.formUnion(play.group.spare.map { ObjectIdentifier($0) })
        }
        #expect(callers.count == 1 && upstreams.count == 1)
        play.end()
    }

    @Test func asManyWaitAsServedAtATime() throws {
        let play = try Play()
        let asked = try (0..<40).map { try play.ask("GET", "/\($0)") }
        while let stream = play.server.nextOpened() {
            #expect(stream.respond("HTTP/1.1 204 No Content\r\n\r\n", body: ""))
        }
        play.settle()
        for (number, stream) in asked.enumerated() {
            #expect(stream.readAll().hasPrefix("HTTP/1.1 204 "), "\(number)")
            stream.cancel()
        }
        play.settle()
        let connection = try #require(play.scene.data.http2Callers.members.first)
        #expect(connection.spare.count == CallerHTTP2Connection.spareLimit && play.group.spare.count == 40)
        // Of what waits nothing is held: no block, no exchange, no place in the loop.
        #expect(connection.spare.allSatisfy { $0.holdsNothing && !$0.hasExchange })
        #expect(play.scene.data.exchanges.lent == 0 && play.scene.data.buffers.pool.taken == 0)
        play.end()
        #expect(connection.spare.isEmpty && play.group.spare.isEmpty)
    }

    @Test func oneThatSomebodyHoldsIsLeftToHim() throws {
        let play = try Play()
        _ = try play.ask("GET", "/")
        let first = play.group.take(for: Nobody(), fresh: false)
        #expect(first.state == .busy)
        first.close()
        #expect(play.group.spare.last === first)
        let second = play.group.take(for: Nobody(), fresh: false)
        #expect(second !== first && first.state == .closed && !play.group.spare.contains { $0 === first })
        second.close()
        play.end()
    }

    /// A reload gives the connection another listener: what waits is of the one of before.
    @Test func aReloadLeavesNoneOfBefore() throws {
        let play = try Play()
        let stream = try play.ask("GET", "/")
        #expect(try #require(play.server.nextOpened()).respond("HTTP/1.1 204 No Content\r\n\r\n", body: ""))
        play.settle()
        stream.cancel()
        play.settle()
        let connection = try #require(play.scene.data.http2Callers.members.first)
        let before = try #require(connection.spare.first)
        try play.scene.reload(Play.plan + "limits: {min_rate: 99B}\n")
        let next = try play.ask("GET", "/next")
        #expect(!connection.spare.contains { $0 === before })
        #expect(try #require(play.server.nextOpened()).respond("HTTP/1.1 204 No Content\r\n\r\n", body: ""))
        play.settle()
        #expect(next.readAll().hasPrefix("HTTP/1.1 204 "))
        next.cancel()
        play.settle()
        #expect(
            connection.spare.count == 1 && connection.spare[0] !== before
                && connection.spare[0].listener === connection.listener)
        play.end()
    }
}

// MARK: -

private final class Nobody: UpstreamUser {
    func upstreamConnected(_ connection: UpstreamConnection) {}
    func upstreamReady(_ connection: UpstreamConnection) {}
    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) {}
    func upstreamTimedOut(_ connection: UpstreamConnection) {}
}

/// The stored fields of a class and of those above it, where they lie.
private struct Fields {
    private var fields: [(name: String, offset: Int, type: Any.Type)] = []

    init(of type: AnyClass) {
        var found: [(name: String, offset: Int, type: Any.Type)] = []
        // `.classType`, which the standard library has as a variable.
        let isWhole = _forEachField(of: type, options: .init(rawValue: 1)) { name, offset, type, _ in
            found.append((String(cString: name), offset, type))
            return true
        }
        #expect(isWhole && found.count > 20)
        fields = found
    }

    var names: Set<String> { Set(fields.map(\.name)) }

    /// Gives plain fields another value, and others what `special` has for them.
    func soil(_ object: AnyObject, _ special: (Any.Type, UnsafeMutableRawPointer) -> Bool) {
        for field in fields where !["key", "descriptor", "rosterIndex", "hearsOutput"].contains(field.name) {
            let place = Self.start(of: object) + field.offset
            switch field.type {
            case is Bool.Type: place.storeBytes(of: !place.load(as: Bool.self), as: Bool.self)
            case is Int.Type: place.storeBytes(of: place.load(as: Int.self) + 17, as: Int.self)
            case is UInt64.Type: place.storeBytes(of: place.load(as: UInt64.self) + 17, as: UInt64.self)
            case is UInt8.Type: place.storeBytes(of: place.load(as: UInt8.self) + 17, as: UInt8.self)
            default: _ = special(field.type, place)
            }
        }
    }

    func differing(_ one: AnyObject, _ other: AnyObject) -> Set<String> {
        var names: Set<String> = []
        for field in fields {
            func text<Value>(_ type: Value.Type, _ object: AnyObject) -> String {
                Self.text((Self.start(of: object) + field.offset).assumingMemoryBound(to: type).pointee)
            }
            if text(field.type, one) != text(field.type, other) { names.insert(field.name) }
        }
        return names
    }

    private static func start(of object: AnyObject) -> UnsafeMutableRawPointer {
        Unmanaged.passUnretained(object).toOpaque()
    }

    /// Objects by their identity.
    private static func text(_ value: Any) -> String {
        let mirror = Mirror(reflecting: value)
        switch mirror.displayStyle {
        case .class: return "\(ObjectIdentifier(value as AnyObject))"
        case .optional: return mirror.children.first.map { text($0.value) } ?? "nil"
        default: return String(describing: value)
        }
    }
}

/// A caller and an upstream that speak HTTP/2, with the gateway between them.
private final class Play {
    static let plan = Plans.open("http: 2, timeouts: {idle: 1h}")
    let scene: Scene
    let client: HTTP2Connection
    let server: HTTP2Connection
    private let caller: Peer
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)
    private let blocks = Blocks()

    init() throws {
        scene = try Scene(Self.plan)
        client = try #require(HTTP2Connection(role: .client, limits: HTTP2Limits(), blocks: blocks))
        server = try #require(HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: blocks))
        caller = scene.call()
    }

    deinit { buffer.deallocate() }

    var group: UpstreamGroup { scene.data.group(scene.data.plan.upstreams[0]) }

    func ask(_ method: String, _ path: String, body: String = "") throws -> HTTP2Stream {
        var head = Array("\(method) \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        let stream = head.withUnsafeMutableBytes {
            client.open(
                request: $0, scheme: "http", secretName: [], secretTarget: false, acceptsTrailers: false,
                ended: body.isEmpty)
        }
        let asked = try #require(stream)
        if !body.isEmpty {
            #expect(Array(body.utf8).withUnsafeBytes { asked.write($0) })
            #expect(Array("t: 1\r\n".utf8).withUnsafeBytes { asked.end(trailers: $0) })
        }
        settle()
        return asked
    }

    /// Carries bytes until nobody has more.
    func settle() {
        for _ in 0..<50 {
            let sent = carry(client, to: caller)
            scene.settle()
            let upstream = scene.upstreams.first
            let taken = upstream.map { carry($0, to: server) } ?? 0
            let answered = upstream.map { carry(server, to: $0) } ?? 0
            scene.settle()
            if sent + taken + answered + carry(caller, to: client) == 0 { return }
        }
        Issue.record("the four do not come to rest")
    }

    private func carry(_ connection: HTTP2Connection, to peer: Peer) -> Int {
        connection.tellUsers()
        let count = connection.send(into: buffer)
        if count > 0 { peer.send(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
        return count
    }

    private func carry(_ peer: Peer, to connection: HTTP2Connection) -> Int {
        let bytes = peer.take()
        if !bytes.isEmpty { #expect(bytes.withUnsafeBytes { connection.receive($0, now: 1) }) }
        connection.tellUsers()
        return bytes.count
    }

    func end() {
        for upstream in scene.upstreams { upstream.reset() }
        scene.end()
        #expect(scene.data.http2Callers.isEmpty)
    }
}

private final class Blocks: BlockSource {
    func take() -> UnsafeMutableRawBufferPointer? { .allocate(byteCount: 16 * 1024, alignment: 16) }
    func give(_ block: UnsafeMutableRawBufferPointer) { block.deallocate() }
}

extension HTTP2Stream {
    fileprivate func readAll() -> String {
        var bytes: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            while case .bytes(let count) = read(into: buffer) { bytes += buffer[..<count] }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    fileprivate func respond(_ head: String, body: String) -> Bool {
        var head = Array(head.utf8)
        guard head.withUnsafeMutableBytes({ send(response: $0, ended: body.isEmpty) }) else { return false }
        return body.isEmpty || Array(body.utf8).withUnsafeBytes { write($0) } && end()
    }
}
