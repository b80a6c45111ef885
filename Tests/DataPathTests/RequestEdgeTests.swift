import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Requests whose way to the upstream, or whose answer's way back, ends in the middle.
@Suite struct RequestEdgeTests {
    // MARK: - Which route

    @Test func aRouteMayAskForFields() throws {
        let route = "{listen: \"127.0.0.1:8080\", use: none, to: \"http://127.0.0.1:"
        let scene = try Scene(
            "routes:\n  - \(route)9001\", match: {headers: {X-Env: prod, X-Kind: a}}}\n"
                + "  - \(route)9002\", match: {headers: {X-Env: test}}}\n")
        for (fields, port) in [
            ("X-Env: prod\r\nX-Kind: a\r\n", 9001), ("x-kind: a\r\nx-env: prod\r\n", 9001), ("X-ENV: test\r\n", 9002),
            ("X-Env: other\r\nX-Env: test\r\n", 9002),
        ] as [(String, UInt16)] {
            let before = scene.upstreams.count
            let caller = scene.call(Wire.get("/", fields))
            try #require(scene.upstreams.count == before + 1, "\(fields)")
            #expect(scene.upstreams[before].address?.port == port)
            scene.upstreams[before].send(Wire.ok("x", "Connection: close\r\n"))
            scene.settle()
            #expect(caller.status == 200)
        }
        let count = scene.upstreams.count
        // Values are compared to the letter, and one of two fields is not both.
        for fields in ["", "X-Env: prod\r\n", "X-Env: TEST\r\n", "X-Env: tes\r\n", "X-Env2: test\r\n"] {
            #expect(scene.call(Wire.get("/", fields)).status == 404, "\(fields)")
        }
        #expect(scene.upstreams.count == count)
        scene.end()
    }

    // MARK: - Connections that are authenticated

    /// On a shared connection others would speak with the caller's authority.
    @Test func aHandshakeOfTheConnectionsOwnIsNotPutOnASharedOne() throws {
        let scene = try Scene(Plans.open("http: \"2\""))
        let caller = scene.call(Wire.get("/", "Authorization: NTLM TlRMTVNTUAABAAAA\r\n"))
        #expect(caller.status == 502 && caller.receivedText.contains("problems/connection-shared"))
        #expect(scene.upstreams.allSatisfy { !String(decoding: $0.received, as: UTF8.self).contains("TlRM") })
        for upstream in scene.upstreams { upstream.reset() }
        scene.settle()
        scene.end()
    }

    // MARK: - Bodies

    /// A chunked request whose block ends within the line of its second chunk.
    private static func cutInALine(_ more: String = "") -> (first: String, rest: String) {
        let head = "PUT / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\(more)\r\n"
        // The block has 16 KiB: the head, one chunk in its frame, and the first octet of the next one's line.
        let count = 16_384 - head.utf8.count - 8 - 1
        let size = String(count, radix: 16)
        return (head + size + "\r\n" + String(repeating: "c", count: count) + "\r\n5", "\r\nhello\r\n0\r\n\r\n")
    }

    @Test(arguments: ["", "on_rejected: {max_body: 1KiB}", "on_rejected: {max_body: 1MiB}"])
    func aLineAtTheEndOfTheBlockIsReadOn(route: String) throws {
        let scene = try Scene(route.isEmpty ? Plans.open() : Plans.oauth(route))
        if !route.isEmpty { try scene.publish("Bearer old", generation: 1) }
        let (first, rest) = Self.cutInALine()
        let caller = scene.call()
        caller.send(first)
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        caller.send(rest)
        scene.settle()
        let seen = try #require(Wire.unchunked(upstream.takeText()))
        #expect(seen.body.hasPrefix("ccc") && seen.body.hasSuffix("chello") && seen.body.utf8.count > 16_000)
        guard !route.isEmpty else {
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("x"))
            return scene.end()
        }
        // A body that was kept can be sent again, another one cannot.
        upstream.send(Wire.challenge)
        scene.settle()
        let report = try #require(scene.keeper.challenges.first)
        let keeps = route.contains("MiB")
        #expect(report.isFinal != keeps)
        if keeps {
            let slot = try scene.publish("Bearer new", generation: 2)
            scene.answer(try #require(report.ticket), .use(slot: slot, granted: 2))
            let again = try #require(scene.upstreams.last)
            let second = try #require(Wire.unchunked(again.takeText()))
            #expect(second.body == seen.body && second.head.contains("Bearer new"))
            again.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("x"))
        }
        scene.end()
    }

    @Test func aBodyThatEndsWithinALineIsNotWhole() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Self.cutInALine().first)
        scene.settle()
        caller.finish()
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.isClosed && !upstream.receivedText.hasSuffix("0\r\n\r\n") && caller.status == 400)
        scene.end()
    }

    /// The refusal is there to be read; the failed write of the body must not hide it.
    @Test(arguments: [0, 1 << 20])
    func anAnswerIsReadThoughItsRequestCannotBeWritten(pipes: Int) throws {
        let scene = try Scene(Plans.open())
        scene.kernel.pipesLeft = pipes
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        caller.send([UInt8](repeating: 1, count: 100_000))
        scene.settle()
        upstream.failWrites([EPIPE])
        caller.send([UInt8](repeating: 1, count: 100_000))
        scene.loop.turnOnce()
        upstream.send("HTTP/1.1 413 Too Big\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        scene.settle()
        #expect(caller.status == 413 && caller.receivedText.hasSuffix("\r\n\r\nno") && upstream.isClosed)
        scene.end()
    }

    @Test func aBodyThatIsTooLongForItsConnectionIsCut() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        caller.send([UInt8](repeating: 1, count: 100_000))
        scene.settle()
        caller.reset()
        scene.settle()
        #expect(upstream.isClosed && upstream.receivedCount < 200_000 && scene.idleUpstreams == 0)
        scene.end()
    }

    // MARK: - Answers that find nobody

    /// An upstream whose answer was not read to its end is not used again.
    @Test(arguments: [
        ("HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n", ""), ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "hello"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhell", "o"),
    ])
    func aCallerThatCannotBeWrittenToIsGone(first: String, rest: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        caller.failWrites([EPIPE])
        let upstream = try #require(scene.upstreams.first)
        upstream.send(first)
        scene.settle()
        upstream.send(rest)
        scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0 && upstream.isClosed && scene.idleUpstreams == 0)
        let next = scene.call(Wire.get("/next"))
        try #require(scene.upstreams.count == 2)
        scene.upstreams[1].send(Wire.ok("x"))
        scene.settle()
        #expect(next.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// The last chunk is written when the upstream's connection ends.
    @Test func anEndThatCannotBeWrittenIsNone() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\n\r\nabc")
        scene.settle()
        #expect(caller.takeText().hasSuffix("3\r\nabc\r\n"))
        caller.failWrites([EPIPE])
        upstream.finish()
        scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0 && upstream.isClosed)
        scene.end()
    }

    @Test func aSwitchThatCannotBeToldEndsBothSides() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n"))
        caller.failWrites([EPIPE])
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        scene.settle()
        #expect(caller.isClosed && upstream.isClosed)
        scene.end()
    }

    // MARK: - Tunnels

    private func tunnel() throws -> (scene: Scene, caller: Peer, far: Peer) {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: ws\r\n"))
        let far = try #require(scene.upstreams.first)
        #expect(far.takeText().contains("\r\nUpgrade: ws\r\n"))
        far.send("HTTP/1.1 101 Go\r\nConnection: upgrade\r\nUpgrade: WS\r\n\r\n")
        scene.settle()
        #expect(caller.status == 101)
        caller.discard()
        return (scene, caller, far)
    }

    @Test(arguments: [true, false])
    func aSideThatCannotBeWrittenToEndsTheTunnel(isCaller: Bool) throws {
        let (scene, caller, far) = try tunnel()
        (isCaller ? caller : far).failWrites([EPIPE])
        (isCaller ? far : caller).send("hello")
        scene.settle()
        #expect(caller.isClosed && far.isClosed)
        scene.end()
    }

    /// Octets without end pass by the kernel, and a piece that it cannot move ends the tunnel.
    @Test(arguments: [ECONNRESET, 0])
    func aFloodPassesOrEndsTheTunnel(error: Int32) throws {
        let (scene, caller, far) = try tunnel()
        let body = String(repeating: "0123456789", count: 20_000)
        if error != 0 { scene.kernel.spliceErrors = [error] }
        far.send(body)
        scene.settle()
        if error == 0 {
            #expect(caller.takeText() == body && !far.isClosed && scene.kernel.spliced > 0)
            far.finish()
            scene.settle()
            caller.finish()
            scene.settle()
        }
        #expect(caller.isClosed && far.isClosed)
        scene.end()
    }

    /// Without pipes the octets are copied.
    @Test func withoutPipesAFloodPassesAllTheSame() throws {
        let (scene, caller, far) = try tunnel()
        scene.kernel.pipesLeft = 0
        let body = String(repeating: "0123456789", count: 20_000)
        far.send(body)
        scene.settle()
        #expect(caller.takeText() == body && scene.kernel.spliced == 0)
        scene.end()
    }

    // MARK: - WebSockets over HTTP/2

    /// SETTINGS with SETTINGS_ENABLE_CONNECT_PROTOCOL.
    private static let offer = Frames.frame(4, 0, 0, [0, 8, 0, 0, 0, 1])

    /// RFC 6455 §4.2.2 wants a proof of the caller's key.
    @Test(arguments: [true, false])
    func aWebSocketNeedsItsKey(hasKey: Bool) throws {
        let scene = try Scene(Plans.open("http: \"2\""))
        let key = hasKey ? "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" : ""
        let caller = scene.call(Wire.get("/", "Connection: upgrade\r\nUpgrade: websocket\r\n\(key)"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Self.offer)
        scene.settle()
        let opened = Frames.read(upstream.take()).first { $0.type == 1 }
        guard hasKey else {
            if opened != nil {
                upstream.send(Frames.frame(1, 4, 1, [0x88]))
                scene.settle()
            }
            #expect(caller.status == nil || caller.status == 400)
            upstream.reset()
            scene.settle()
            return scene.end()
        }
        #expect(opened?.stream == 1)
        upstream.send(Frames.frame(1, 4, 1, [0x88]) + Frames.frame(0, 0, 1, Array("hi".utf8)))
        scene.settle()
        let text = caller.takeText()
        #expect(text.hasPrefix("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n"))
        #expect(
            text.contains("\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n") && text.hasSuffix("\r\n\r\nhi"))
        caller.reset()
        scene.settle()
        upstream.reset()
        scene.settle()
        scene.end()
    }

    // MARK: - A silent server of HTTP/2

    /// Twenty seconds of silence are asked about, and ten more without a word are the end.
    @Test(arguments: [true, false])
    func aServerThatSaysNothingIsAsked(answers: Bool) throws {
        let scene = try Scene(Plans.open("http: \"2\", timeouts: {response: 120s}"))
        let caller = scene.call(Wire.get("/slow"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Frames.settings)
        scene.settle()
        // The first look finds that its SETTINGS have come.
        scene.pass(seconds: 19)
        scene.pass(seconds: 2)
        _ = upstream.take()
        scene.pass(seconds: 21)
        let ping = try #require(Frames.read(upstream.take()).first { $0.type == 6 && $0.flags == 0 })
        if answers { upstream.send(Frames.frame(6, 1, 0, ping.payload)) }
        scene.settle()
        scene.pass(seconds: 11)
        if answers {
            #expect(!upstream.isClosed && caller.receivedCount == 0)
            upstream.send(Frames.ok(1))
            scene.settle()
            #expect(caller.status == 200)
            upstream.reset()
            scene.settle()
        } else {
            // The request is repeated elsewhere, or answered, but not left waiting.
            #expect(upstream.isClosed && (scene.upstreams.count == 2 || caller.status == 502))
        }
        for other in scene.upstreams where !other.isClosed { other.reset() }
        scene.settle()
        scene.end()
    }
}
