import Glibc
import HTTP2
import Handshakes
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Bodies of requests that break, end or find no memory where their frames or heads fill a block, and heads that cannot be sent.
@Suite struct RequestBodyEdgeTests {
    /// A head that leaves `room` octets of its block.
    private static func head(_ fields: String, room: Int) -> String {
        let bare = "PUT / HTTP/1.1\r\nHost: localhost\r\nX-Fill: \r\n\(fields)\r\n".utf8.count
        let fill = String(repeating: "f", count: 16_384 - room - bare)
        return "PUT / HTTP/1.1\r\nHost: localhost\r\nX-Fill: \(fill)\r\n\(fields)\r\n"
    }

    private static let chunked = "Transfer-Encoding: chunked\r\n"
    private static let trailer = "X-Trailer: \(String(repeating: "t", count: 3000))\r\n"

    /// A request whose trailers stand across the end of its first block, in the two pieces in which the block cuts them.
    private static func cutInTrailers() -> (first: String, rest: String) {
        let head = "PUT / HTTP/1.1\r\nHost: localhost\r\n\(chunked)\r\n"
        let count = 16_384 - head.utf8.count - 8 - 3 - 100
        let size = String(count, radix: 16)
        let whole = "\(head)\(size)\r\n\(String(repeating: "c", count: count))\r\n0\r\n\(trailer)\r\n"
        return (String(whole.prefix(16_384)), String(whole.dropFirst(16_384)))
    }

    // MARK: - Trailers at the end of a block

    /// Whether the body is kept for a replay, is too long for it, or never was to be kept.
    @Test(arguments: ["", "on_rejected: {max_body: 1KiB}", "on_rejected: {max_body: 1MiB}"])
    func trailersAtTheEndOfTheBlockAreReadOn(route: String) throws {
        let scene = try Scene(route.isEmpty ? Plans.open() : Plans.oauth(route))
        if !route.isEmpty { try scene.publish("Bearer old", generation: 1) }
        let (first, rest) = Self.cutInTrailers()
        let caller = scene.call(first)
        let upstream = try #require(scene.upstreams.first)
        caller.send(rest)
        scene.settle()
        let seen = try #require(Wire.unchunked(upstream.takeText()))
        #expect(seen.trailers == Self.trailer && seen.body.utf8.count > 16_000)
        guard !route.isEmpty else {
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("x"))
            return scene.end()
        }
        upstream.send(Wire.challenge)
        scene.settle()
        let report = try #require(scene.keeper.challenges.first)
        #expect(report.isFinal != route.contains("MiB"))
        if route.contains("MiB") {
            let slot = try scene.publish("Bearer new", generation: 2)
            scene.answer(try #require(report.ticket), .use(slot: slot, granted: 2))
            let last = try #require(scene.upstreams.last)
            let again = try #require(Wire.unchunked(last.takeText()))
            #expect(again.body == seen.body && again.trailers == seen.trailers)
        }
        scene.end()
    }

    /// The head fills nearly all of the block, and the rest is too small for the trailers.
    @Test(arguments: [false, true])
    func trailersBehindALargeHeadFindRoomOrARefusal(isFull: Bool) throws {
        let scene = try Scene(Plans.open() + "limits: {replay_memory: 1MiB}\n")
        let taken = isFull ? scene.data.buffers.takeLarge(1 << 20, for: .input) : nil
        #expect((taken != nil) == isFull)
        let caller = scene.call(Self.head(Self.chunked, room: 90) + "0\r\n\(Self.trailer)\r\n")
        let upstream = try #require(scene.upstreams.first)
        if let taken {
            #expect(caller.status == 503 && caller.receivedText.contains("problems/out-of-buffers"))
            #expect(upstream.isClosed && !upstream.receivedText.contains("X-Trailer"))
            scene.data.buffers.give(taken)
        } else {
            let seen = try #require(Wire.unchunked(upstream.takeText()))
            #expect(seen.trailers == Self.trailer && seen.body.isEmpty)
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("x"))
        }
        scene.end()
    }

    @Test func aBodyThatEndsWithinItsTrailersIsNotWhole() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.head(Self.chunked, room: 200) + "2\r\nhi\r\n0\r\nX-Trailer: t")
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.receivedText.hasSuffix("2\r\nhi\r\n") && caller.receivedCount == 0)
        caller.finish()
        scene.settle()
        #expect(caller.status == 400 && caller.receivedText.contains("problems/incomplete-body") && upstream.isClosed)
        #expect(!upstream.receivedText.hasSuffix("0\r\n\r\n"))
        scene.end()
    }

    @Test(arguments: ["zz\r\n", "2\r\nhiya\r\n", "2\r\nhi\r\n0\r\nX : a\r\n\r\n"])
    func aBodyInBrokenChunksIsMalformed(body: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("PUT / HTTP/1.1\r\nHost: localhost\r\n\(Self.chunked)\r\n\(body)")
        #expect(caller.status == 400 && caller.receivedText.contains("problems/malformed-request"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.isClosed && !upstream.receivedText.hasSuffix("0\r\n\r\n"))
        scene.end()
    }

    @Test func aBodyBehindAHeadThatFillsItsBlockNeedsMemory() throws {
        let scene = try Scene(Plans.open() + "limits: {replay_memory: 1MiB}\n")
        let taken = try #require(scene.data.buffers.takeLarge(1 << 20, for: .input))
        let caller = scene.call(Self.head("Content-Length: 5\r\n", room: 0))
        #expect(caller.status == 503 && caller.receivedText.contains("\r\nRetry-After: 1\r\n"))
        scene.data.buffers.give(taken)
        let next = scene.call(Self.head("Content-Length: 5\r\n", room: 0) + "hello")
        try #require(scene.upstreams.last).send(Wire.ok("x"))
        scene.settle()
        #expect(next.takeText() == Wire.ok("x"))
        #expect(scene.upstreams.last?.receivedText.hasSuffix("\r\n\r\nhello") == true)
        scene.end()
    }

    // MARK: - Streams

    /// The upstream reads the end of the body as one, or not at all.
    @Test(arguments: [false, true])
    func theEndOfAStreamsBodyIsSentOrItsConnectionIsGivenUp(fails: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = try StreamCaller(scene)
        let stream = try caller.ask("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", ended: false)
        caller.write("hello", on: stream)
        let upstream = try #require(scene.upstreams.first)
        if fails { upstream.failWrites([EPIPE]) }
        caller.end(stream, trailers: "x-trailer: 1\r\n")
        if fails {
            upstream.finish()
            #expect(caller.read(stream).hasPrefix("HTTP/1.1 502 ") && upstream.isClosed)
        } else {
            let seen = try #require(Wire.unchunked(upstream.takeText()))
            #expect(seen.body == "hello" && seen.trailers.lowercased() == "x-trailer: 1\r\n")
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.read(stream).hasSuffix("\r\n\r\nx"))
        }
        stream.cancel()
        caller.settle()
        caller.peer.reset()
        scene.end()
    }

    /// `TE: trailers` is told to a server of HTTP/2, and nothing else of `TE` (RFC 9113 section 8.2.2).
    @Test(arguments: [("TE: trailers\r\n", true), ("TE: gzip\r\n", false), ("", false)])
    func aServerOfHTTP2HearsWhoTakesTrailers(field: String, takes: Bool) throws {
        let scene = try Scene(Plans.open("http: 2, request_id: send"))
        let caller = scene.call(Wire.get("/", "Connection: TE\r\n\(field)X-Request-Id: mine\r\n"))
        let server = try StreamServer(scene, try #require(scene.upstreams.first))
        let asked = try #require(server.nextOpened())
        #expect(asked.acceptsTrailers == takes)
        // The lines of the gateway's own go out as fields, too.
        #expect(server.read(asked).lowercased().contains("\r\nx-request-id: mine\r\n"))
        server.answer(asked, "HTTP/1.1 204 No Content\r\n\r\n")
        #expect(caller.status == 204)
        asked.cancel()
        server.peer.reset()
        scene.settle()
        scene.end()
    }

    // MARK: - Heads that cannot be sent

    /// A token fits into its place whole or not at all.
    @Test func aCarriedTokenThatIsTooLongForItsPlaceIsNotSent() throws {
        let scene = try Scene(Plans.oauth("inject: {query: key}"))
        try scene.publish("Bearer old", generation: 1)
        for (line, status) in [
            ("Authorization: Bearer \(String(repeating: "+", count: 20_000))\r\n", 503), ("A: b\r\n", 503),
            ("Authorization: Bearer ++\r\n", 200),
        ] {
            let caller = scene.call(Wire.get("/a"))
            let upstream = try #require(scene.upstreams.first { $0.receivedCount > 0 })
            upstream.discard()
            upstream.send(Wire.challenge)
            scene.settle()
            scene.answer(try #require(scene.keeper.challenges.last?.ticket), .once(Secret(line)))
            let again = try #require(scene.upstreams.last)
            if status == 200 {
                #expect(again.takeText().hasPrefix("GET /a?key=%2B%2B HTTP/1.1\r\n"))
                again.send(Wire.ok("x", "Connection: close\r\n"))
                scene.settle()
            } else {
                #expect(caller.receivedText.contains("problems/identity-misconfigured") && again.receivedCount == 0)
            }
            #expect(caller.status == status)
        }
        scene.end()
    }

    @Test func aHeadThatGrowsTooBigByItsCredentialIsNotSent() throws {
        let scene = try Scene(Plans.fixed() + "limits: {header_size: 4KiB, target_size: 1KiB}\n")
        try scene.publish("Bearer \(String(repeating: "t", count: 40_000))", generation: 1)
        let caller = scene.call(Wire.get())
        #expect(caller.status == 431 && caller.receivedText.contains("problems/big-head"))
        #expect(scene.upstreams.allSatisfy { $0.receivedCount == 0 })
        scene.end()
    }
}
