import Glibc
import HTTP2
import HotCache
import Reactor
import ScriptedKernel
import Testing
import Tokens

@testable import DataPath
@testable import Handshakes
@testable import Scenes

/// Requests that are held until their body has come, to be signed, and answers that are held until theirs has been looked at.
@Suite struct HeldMessageTests {
    // MARK: - Requests that are signed with their body

    private static func signing(_ sign: String = "{request.body_sha256 | hex}", _ route: String = "") -> String {
        """
        identities:
          a:
            recipe:
              secrets: {key: {value: env:K, to: "http://127.0.0.1:9000"}}
              sign: {a: "\(sign)"}
              inject: {header: X-Signed, value: "{sign.a}"}
        routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a, cache_control: pass\(route)}]

        """
    }

    /// The secrets of the signature, as the keeper puts them into the cache.
    private static func signer(_ yaml: String = signing()) throws -> Scene {
        let scene = try Scene(yaml)
        let route = scene.plan.routes[0]
        let material = RecipeMaterial.encode([RecipeSigningHandshake.part: ["key": Secret("k")]])
        var line = [UInt8](repeating: 0x78, count: try #require(route.identity).linePrefix)
        material.withBytes { line += Array($0) }
        line += [13, 10]
        let end = scene.kernel.clock + 1_000_000_000_000
        scene.cache.publish(
            slot: try #require(route.slot),
            record: RecordFields(refreshAt: end, servedUntil: end, expiresAt: end, generation: 1), bytes: line)
        return scene
    }

    private static let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    private static let large = String(repeating: "0123456789", count: 10_000)
    /// Of `large`, by sha256sum.
    private static let digest = "aca9e593cc629cbaa94cd5a07dc029424aad93e5129e5d11f8dcd2f139c16cc0"

    private func signed(_ request: String) -> String? {
        request.split(separator: "\r\n").first { $0.hasPrefix("X-Signed: ") }.map { String($0.dropFirst(10)) }
    }

    /// As many fields as the operator lets a caller send.
    @Test func aHeadOfManyFieldsIsSigned() throws {
        let scene = try Self.signer(Self.signing() + "limits: {headers: 300}\n")
        let fields = (0..<280).map { "X-\($0): 1\r\n" }.joined()
        _ = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\n\(fields)Content-Length: 3\r\n\r\nabc")
        #expect(signed(try #require(scene.upstreams.first).takeText()) == Self.abc)
        scene.end()
    }

    /// The block grows with the body: at once by its announced length, by steps without one.
    @Test(arguments: [
        Wire.post(large), Wire.chunkedPost([large]),
        Wire.chunkedPost(Array(repeating: String(large.prefix(1000)), count: 100)),
    ])
    func aLargeBodyIsHeldAndSigned(request: String) throws {
        let scene = try Self.signer()
        let caller = scene.call()
        let bytes = Array(request.utf8)
        for start in stride(from: 0, to: bytes.count, by: 30_000) {
            #expect(scene.upstreams.isEmpty)
            caller.send(Array(bytes[start..<min(start + 30_000, bytes.count)]))
            scene.settle()
        }
        let upstream = try #require(scene.upstreams.first)
        let seen = upstream.takeText()
        #expect(signed(seen) == Self.digest)
        #expect(seen.hasSuffix(Self.large) || Wire.unchunked(seen)?.body == Self.large)
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// Somebody who sends a whole body and closes its side has it read in turns, however small the pieces.
    @Test func aBodyInTinyPiecesTakesTurns() throws {
        let scene = try Self.signer()
        let caller = scene.call()
        caller.mostPerRead = 1
        caller.send(Wire.chunkedPost(Array(repeating: "0123456789", count: 30)))
        caller.finish()
        scene.loop.turnOnce()
        scene.loop.turnOnce()
        #expect(scene.upstreams.isEmpty && caller.mostReads <= 2 * CallerConnection.rounds)
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        // The length is known by now, and some servers take no body without it.
        let seen = upstream.takeText()
        #expect(seen.contains("Content-Length: 300\r\n"))
        #expect(seen.hasSuffix("\r\n\r\n" + String(repeating: "0123456789", count: 30)))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    @Test func aBodyThatFindsNoMemoryIsRefusedForAWhile() throws {
        let scene = try Self.signer(Self.signing() + "limits: {replay_memory: 1MiB}\n")
        let taken = try #require(scene.data.buffers.takeLarge(1 << 20, for: .input))
        for request in [Wire.post(Self.large), Wire.chunkedPost([Self.large])] {
            let caller = scene.call(request)
            #expect(caller.status == 503 && caller.receivedText.contains("problems/out-of-buffers"))
            #expect(caller.receivedText.contains("\r\nRetry-After: 1\r\n") && scene.upstreams.isEmpty)
        }
        scene.data.buffers.give(taken)
        scene.end()
    }

    /// A body of few octets in frames of many: what is held is bounded with the frames.
    @Test func aBodyWhoseFramesTakeTooMuchRoomIsRefused() throws {
        let scene = try Self.signer(Self.signing("{request.body_sha256 | hex}", ", on_rejected: {max_body: 1KiB}"))
        let padded = "1;\(String(repeating: "e", count: 240))\r\nx\r\n"
        let frames = String(repeating: padded, count: 60) + String(repeating: "1\r\nx\r\n", count: 700)
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
        let caller = scene.call(head + frames)
        #expect(caller.status == 413 && caller.receivedText.contains("such a body may have 1024 bytes"))
        #expect(scene.upstreams.isEmpty)
        scene.end()
    }

    @Test(arguments: ["zz\r\n", "2\r\nhiya\r\n"])
    func aBodyInBrokenChunksIsNotSigned(body: String) throws {
        let scene = try Self.signer()
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + body)
        #expect(caller.status == 400 && caller.receivedText.contains("problems/malformed-request"))
        #expect(scene.upstreams.isEmpty)
        scene.end()
    }

    /// Nobody but the gateway can give the word: the head does not leave before the body has come.
    @Test func aCallerThatWaitsForTheWordIsToldToContinue() throws {
        let scene = try Self.signer()
        let head = "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        let caller = scene.call(head)
        #expect(caller.takeText() == "HTTP/1.1 100 Continue\r\n\r\n" && scene.upstreams.isEmpty)
        caller.send("abc")
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        let seen = upstream.takeText()
        #expect(signed(seen) == Self.abc && !seen.contains("Expect"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        let gone = scene.call()
        gone.failWrites([EPIPE])
        gone.send(head)
        scene.settle()
        #expect(gone.isClosed && scene.upstreams.count == 1)
        scene.end()
    }

    /// The end of a stream's body comes beside it.
    @Test(arguments: ["", "Content-Length: 3\r\n"])
    func aBodyOnAStreamIsSigned(fields: String) throws {
        let scene = try Self.signer()
        let caller = try StreamCaller(scene)
        let stream = try caller.ask("POST / HTTP/1.1\r\nHost: localhost\r\n\(fields)\r\n", ended: false)
        caller.write("ab", on: stream)
        caller.write("c", on: stream)
        if fields.isEmpty { #expect(scene.upstreams.isEmpty) }
        caller.end(stream)
        let upstream = try #require(scene.upstreams.first)
        let seen = upstream.takeText()
        #expect(signed(seen) == Self.abc && (seen.hasSuffix("\r\n\r\nabc") || Wire.unchunked(seen)?.body == "abc"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.read(stream).hasSuffix("\r\n\r\nx"))
        stream.cancel()
        caller.settle()
        caller.peer.reset()
        scene.end()
    }

    /// A signature that fits nowhere is not cut.
    @Test func aSignatureThatIsTooLongIsNotSent() throws {
        let scene = try Self.signer(Self.signing(String(repeating: "{request.path}", count: 8), ""))
        let caller = scene.call(Wire.get("/" + String(repeating: "p", count: 8000)))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/identity-misconfigured"))
        #expect(scene.upstreams.allSatisfy { $0.receivedCount == 0 })
        scene.end()
    }

    /// Fields of the route's stand beside those of the caller, whose limits are not theirs.
    @Test func aHeadThatGrowsPastItsCallersLimitsIsSigned() throws {
        let many = ", headers: {set: {\(Self.manyFields)}}"
        let scene = try Self.signer(Self.signing("{request.path}", many) + "limits: {headers: 20}\n")
        _ = scene.call(Wire.get("/p"))
        #expect(scene.upstreams.first?.receivedText.contains("X-199: v") == true)
        scene.end()
    }

    private static let manyFields = (0..<200).map { "X-\($0): v" }.joined(separator: ", ")

    // MARK: - Answers that are looked at

    private static let reading = """
        identities:
          a:
            recipe:
              challenge: {json: /error/need, take: {need: {json: /error/need}}}
              key: [need]
              steps: [{name: access, get: "https://sso.example.com/", take: {token: {json: /token}}}]
              token: "{access.token}"
              inject: {value: "In-House {token}"}
        routes: [{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a, cache_control: pass}]

        """

    private static let head = "HTTP/1.1 401 No\r\nContent-Type: application/json\r\n"

    /// A request that went out as a scout, on a route whose answers are looked at.
    private static func asked(_ top: String = "") throws -> (scene: Scene, caller: Peer, upstream: Peer) {
        let scene = try Scene(reading + top)
        let caller = scene.call(Wire.get("/p"))
        scene.answer(try #require(scene.keeper.cold.first?.ticket), .bare(scout: true))
        return (scene, caller, try #require(scene.upstreams.first))
    }

    /// A body without an announced length is held up to a bound, and then goes on as it comes.
    @Test func anAnswerThatTurnsOutTooLongIsPassedOn() throws {
        let (scene, caller, upstream) = try Self.asked()
        let chunk = "2710\r\n\(String(repeating: "x", count: 10_000))\r\n"
        upstream.send(Self.head + "Transfer-Encoding: chunked\r\n\r\n")
        for _ in 0..<5 {
            upstream.send(chunk)
            scene.settle()
            #expect(caller.receivedCount == 0)
        }
        for _ in 0..<5 {
            upstream.send(chunk)
            scene.settle()
        }
        upstream.send("0\r\n\r\n")
        scene.settle()
        let seen = try #require(Wire.unchunked(caller.takeText()))
        #expect(seen.body == String(repeating: "x", count: 100_000) && seen.head.hasPrefix(Self.head))
        #expect(scene.keeper.challenges.isEmpty && scene.keeper.scoutsFailed.count == 1)
        #expect(scene.glitches(.unusableChallenge) == 1)
        scene.end()
    }

    @Test func anAnswerThatFindsNoMemoryIsPassedOn() throws {
        let (scene, caller, upstream) = try Self.asked("limits: {replay_memory: 1MiB}\n")
        let taken = try #require(scene.data.buffers.takeLarge(1 << 20, for: .input))
        let answer = Self.head + "Content-Length: 30000\r\n\r\n" + String(repeating: "x", count: 30_000)
        upstream.send(answer)
        scene.settle()
        #expect(caller.takeText() == answer && scene.glitches(.unusableChallenge) == 1)
        scene.data.buffers.give(taken)
        scene.end()
    }

    /// Nothing of it has reached the caller, so it need not see half an answer.
    @Test func anAnswerWhoseConnectionBreaksIsNone() throws {
        let (scene, caller, upstream) = try Self.asked()
        upstream.send(Self.head + "Content-Length: 30\r\n\r\n{\"error\"")
        scene.settle()
        #expect(caller.receivedCount == 0)
        upstream.reset()
        scene.settle()
        #expect(caller.status == 502 && caller.receivedText.contains("problems/upstream-closed"))
        #expect(!caller.receivedText.contains("{\"error\"") && upstream.isClosed)
        scene.end()
    }
}
