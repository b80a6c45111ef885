import Glibc
import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Every size, count and pace has a bound, and the answer at it says which. Time is the kernel's, which is the test's.
@Suite struct LimitTests {
    private static func post(_ length: Int, _ fields: String = "") -> String {
        "POST / HTTP/1.1\r\nHost: localhost\r\n\(fields)Content-Length: \(length)\r\n\r\n"
    }

    /// One byte every half minute: never silent for the idle timeout.
    private static func drip(_ scene: Scene, minutes: Int, _ send: () -> Void) {
        for _ in 0..<(2 * minutes) {
            send()
            scene.settle()
            scene.pass(seconds: 30)
        }
    }

    // MARK: - Sizes

    /// limits, request, status
    @Test(arguments: [
        ("body_size: 10B", post(11), 413), ("body_size: 10B", post(10) + "0123456789", nil),
        ("body_size: 0B", post(1), 413), ("body_size: 0B", Wire.get(), nil),
        ("target_size: 64B", Wire.get("/" + String(repeating: "a", count: 64)), 414),
        ("target_size: 64B", Wire.get("/" + String(repeating: "a", count: 63)), nil),
        ("header_size: 1KiB, target_size: 1KiB", Wire.get("/", "A: \(String(repeating: "b", count: 1000))\r\n"), 431),
        ("headers: 3", Wire.get("/", "A: 1\r\nB: 2\r\n"), nil),
        ("headers: 3", Wire.get("/", "A: 1\r\nB: 2\r\nC: 3\r\n"), 431),
    ])
    func sizes(limits: String, request: String, status: Int?) throws {
        let scene = try Scene(Plans.open() + "limits: {\(limits)}\n")
        let caller = scene.call(request)
        #expect(caller.status == status)
        #expect(scene.upstreams.count == (status == nil ? 1 : 0))
        if status != nil { #expect(caller.receivedText.contains("Connection: close\r\n")) }
        scene.end()
    }

    @Test func aChunkedBodyIsCountedAsItComes() throws {
        let scene = try Scene(Plans.open() + "limits: {body_size: 8B}\n")
        let caller = scene.call(Wire.chunkedPost(["01234567"]))
        let upstream = try #require(scene.upstreams.first)
        #expect(Wire.unchunked(upstream.takeText())?.body == "01234567")
        upstream.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        caller.send(Wire.chunkedPost(["0123", "45678"]))
        scene.settle()
        #expect(caller.status == 413)
        // The upstream must not take what it has for the whole.
        #expect(Wire.unchunked(upstream.takeText()) == nil && upstream.isClosed)
        scene.end()
    }

    // MARK: - Counts

    @Test func aListenerHoldsAsManyConnectionsAsItMay() throws {
        let scene = try Scene(
            "listeners: {l: {address: \"127.0.0.1:8080\", connections: 2}}\n"
                + "routes: [{listen: l, to: \"http://127.0.0.1:9000\", use: none}]\n")
        let first = scene.call()
        let second = scene.call()
        let third = scene.call()
        scene.settle()
        #expect(third.status == 503 && third.receivedText.contains("Retry-After: 1\r\n") && third.isClosed)
        #expect(!first.isClosed && !second.isClosed)
        first.reset()
        scene.settle()
        let fourth = scene.call(Wire.get())
        #expect(!fourth.isClosed && scene.upstreams.count == 1)
        #expect(scene.call().status == 503)
        scene.end()
    }

    @Test func asManyWaitForATokenAsMay() throws {
        let scene = try Scene(Plans.fixed() + "limits: {waiters: 1}\n")
        let first = scene.call(Wire.get())
        let second = scene.call(Wire.get())
        #expect(first.status == nil)
        #expect(second.status == 503 && second.receivedText.contains("Retry-After: 1\r\n"))
        // The connection is as good as before.
        #expect(!second.isClosed)
        scene.end()
    }

    // MARK: - Paces

    @Test func aHeadThatDripsIs408() throws {
        let scene = try Scene(Plans.open() + "limits: {head_timeout: 4s}\n")
        let caller = scene.call("GET")
        for _ in 0..<3 {
            scene.pass(seconds: 1)
            caller.send("x")
            scene.settle()
        }
        #expect(caller.status == nil)
        scene.pass(seconds: 1.5)
        #expect(caller.status == 408)
        scene.end()
    }

    @Test func aBodyThatDripsIs408() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.post(1 << 20))
        Self.drip(scene, minutes: 3) { caller.send("x") }
        #expect(caller.status == 408)
        #expect(try #require(scene.upstreams.first).isClosed)
        #expect(scene.glitches(.slowTransfer) == 1)
        scene.end()
    }

    @Test func aPauseIsNoDrip() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.post(6 * 15_000))
        for _ in 0..<6 {
            for _ in 0..<11 { scene.pass(seconds: 5) }
            caller.send(String(repeating: "x", count: 15_000))
            scene.settle()
        }
        try #require(scene.upstreams.first).send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }

    @Test func noRateNoJudgement() throws {
        let scene = try Scene(Plans.open() + "limits: {min_rate: 0B}\n")
        let caller = scene.call(Self.post(1 << 20))
        Self.drip(scene, minutes: 10) { caller.send("x") }
        #expect(caller.status == nil && !caller.isClosed)
        scene.pass(seconds: 61)
        #expect(caller.status == 408)
        scene.end()
    }

    @Test func anUpstreamThatDripsIsCut() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        Self.drip(scene, minutes: 3) { upstream.send("x") }
        #expect(caller.isClosed && upstream.isClosed && scene.glitches(.slowTransfer) == 1)
        scene.end()
    }

    /// Events come when they happen.
    @Test func aStreamOfEventsMayDrip() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        Self.drip(scene, minutes: 20) { upstream.send("2\r\n:\n\r\n") }
        upstream.send("0\r\n\r\n")
        scene.settle()
        #expect(Wire.unchunked(caller.takeText())?.body == String(repeating: ":\n", count: 40))
        scene.end()
    }

    /// A request that goes on while its answer does is a conversation.
    @Test func aConversationMayDrip() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        Self.drip(scene, minutes: 10) {
            caller.send("1\r\na\r\n")
            upstream.send("1\r\nb\r\n")
        }
        #expect(!caller.isClosed && !upstream.isClosed)
        scene.end()
    }

    @Test func aCallerThatReadsInDripsIsCut() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        caller.window = 0
        upstream.send(Wire.ok(String(repeating: "x", count: 1 << 20)))
        scene.settle()
        Self.drip(scene, minutes: 3) { caller.window = 1 }
        #expect(caller.isClosed && upstream.isClosed && scene.glitches(.slowTransfer) == 1)
        scene.end()
    }

    @Test func aCallerThatReadsSlowlyGetsEverything() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let body = String(repeating: "x", count: 200_000)
        caller.window = 0
        try #require(scene.upstreams.first).send(Wire.ok(body))
        scene.settle()
        var taken = ""
        let whole = Wire.ok(body).utf8.count
        for _ in 0..<200 where taken.utf8.count < whole {
            scene.pass(seconds: 5)
            caller.window = 2_000
            scene.settle()
            taken += caller.takeText()
        }
        #expect(taken == Wire.ok(body))
        scene.end()
    }

    /// The last answer of a connection, all of it in our hands.
    @Test func theRestOfAnAnswerMustBeReadToo() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Connection: close\r\n"))
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 12000\r\n\r\n")
        scene.settle()
        caller.window = 0
        upstream.send(String(repeating: "x", count: 12_000))
        scene.settle()
        #expect(upstream.unread == 0 && !caller.isClosed)
        Self.drip(scene, minutes: 3) { caller.window = 1 }
        #expect(caller.isClosed)
        scene.end()
    }

    @Test func anUpstreamThatReadsInDripsIs504() throws {
        let scene = try Scene(Plans.open())
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Self.post(1 << 20))
        let upstream = try #require(scene.upstreams.first)
        upstream.window = 20_000
        upstream.accept()
        caller.send(String(repeating: "x", count: 1 << 19))
        scene.settle()
        Self.drip(scene, minutes: 3) { upstream.window = 1 }
        #expect(caller.status == 504 && upstream.isClosed && scene.glitches(.slowTransfer) == 1)
        scene.end()
    }

    @Test func anUpstreamsHeadThatDripsIs504() throws {
        let scene = try Scene(Plans.open("timeouts: {response: 10s}"))
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        var first = true
        for _ in 0..<4 {
            upstream.send(first ? "HTTP/1.1 200 OK\r\nX: " : "y")
            first = false
            scene.settle()
            scene.pass(seconds: 4)
        }
        #expect(caller.status == 504)
        scene.end()
    }
}
