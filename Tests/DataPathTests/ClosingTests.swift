import Glibc
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Reactor
@testable import Scenes

/// How a connection ends: with its last answer where the caller asked for that and nothing can come any more, and with patience
/// everywhere else.
@Suite struct ClosingTests {
    private static let last = Wire.get("/", "Connection: close\r\n")
    private static let answer = Wire.ok("x", "Connection: close\r\n")

    @Test(arguments: [
        last, last.replacing("1.1", with: "1.0"), Wire.post("hello", "Connection: close\r\n"),
    ])
    func aCallerThatAskedForTheEndHasItAtOnce(_ request: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(request)
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(caller.isClosed && caller.takeText() == Self.answer)
        scene.end()
    }

    /// Behind a body an empty line may come, which nobody would have asked for.
    @Test(arguments: [false, true])
    func anAnswerOfOursEndsAsAnother(hasBody: Bool) throws {
        let scene = try Scene(Plans.open("callers: {allow: [10.0.0.0/8]}"))
        let caller = scene.call(hasBody ? Wire.post("hello", "Connection: close\r\n") : Self.last)
        #expect(caller.sawEnd && caller.isClosed == !hasBody && caller.status == 403)
        scene.end()
    }

    enum Moment: CaseIterable { case withTheRequest, beforeTheAnswer, unseenBeforeTheAnswer }

    /// To close with bytes unread would reset the connection, and the reset could overtake the answer.
    @Test(arguments: Moment.allCases)
    func whatComesBehindTheLastRequestIsReadFirst(_ moment: Moment) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.last + (moment == .withTheRequest ? Wire.get("/more") : ""))
        let upstream = try #require(scene.upstreams.first)
        if moment == .beforeTheAnswer {
            caller.send(Wire.get("/more"))
            scene.settle()
        }
        upstream.send(Wire.ok("x"))
        // Its edge comes behind the answer's, in the same turn.
        if moment == .unseenBeforeTheAnswer { caller.send(Wire.get("/more")) }
        scene.settle()
        #expect(caller.takeText() == Self.answer && caller.sawEnd && !caller.isClosed && caller.unread == 0)
        caller.send("and more")
        scene.settle()
        #expect(!caller.isClosed && caller.unread == 0)
        caller.finish()
        scene.settle()
        #expect(caller.isClosed && scene.upstreams.count == 1)
        scene.end()
    }

    /// Many callers write all of an upload before they read: closed early, they would meet a reset and never see the answer.
    @Test func anUploadWhoseAnswerCameEarlyIsReadToItsEnd() throws {
        let scene = try Scene(Plans.open())
        let size = 3_000_000
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(size)\r\n\r\nbegun")
        try #require(scene.upstreams.first).send(Self.answer)
        scene.settle()
        #expect(caller.takeText() == Self.answer && caller.sawEnd)
        for _ in 0..<30 {
            caller.send(String(repeating: "x", count: 100_000))
            scene.settle()
        }
        #expect(!caller.isClosed && caller.unread == 0)
        scene.pass(seconds: 1.1)
        #expect(caller.isClosed)
        scene.end()
    }

    /// A head without an end asks for nothing: its sender gets the refusal, and is not listened to for long.
    @Test func ofAHeadWithoutAnEndLittleIsRead() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET /")
        let piece = String(repeating: "a", count: 100_000)
        caller.send(piece)
        scene.settle()
        #expect(caller.status == 414 && caller.sawEnd && !caller.isClosed)
        for _ in 0..<12 where !caller.isClosed {
            caller.send(piece)
            scene.settle()
        }
        #expect(caller.isClosed && scene.upstreams.isEmpty)
        scene.end()
    }

    /// Octets that are unread when a connection is closed make the kernel reset it, and drop the answer that it has held back.
    @Test func whatComesBetweenTheLookAndTheCloseTakesNothingBack() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.last)
        var hadAll = false
        scene.kernel.afterEmptyRead = { hadAll = caller.sawEnd && caller.receivedText == Self.answer }
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(hadAll && caller.isClosed)
        scene.kernel.afterEmptyRead = {}
        scene.end()
    }

    /// It may have sent its next request already.
    @Test func aCallerThatDidNotAskForTheEndHasTimeToSeeIt() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        upstream.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
        scene.settle()
        #expect(caller.sawEnd && !caller.isClosed && caller.receivedText.hasSuffix("\r\n\r\nx"))
        scene.pass(seconds: 1.1)
        #expect(caller.isClosed)
        scene.end()
    }

    /// Much of it may still lie in the kernel.
    @Test func aLongAnswerKeepsItsConnectionForAMoment() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.last)
        let body = String(repeating: "x", count: 20_000)
        try #require(scene.upstreams.first).send(Wire.ok(body))
        scene.settle()
        #expect(caller.sawEnd && !caller.isClosed)
        #expect(caller.takeText() == Wire.ok(body, "Connection: close\r\n"))
        scene.pass(seconds: 1.1)
        #expect(caller.isClosed)
        scene.end()
    }

    /// Where the answer did not fit at once, the rest leaves before the end.
    @Test func aFullSocketIsHeardOf() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.last)
        caller.window = 10
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(caller.receivedCount == 10 && !caller.sawEnd)
        for _ in 0..<100 where !caller.sawEnd {
            caller.window = 7
            scene.settle()
        }
        #expect(caller.takeText() == Self.answer)
        caller.finish()
        scene.end()
    }

    /// A connection has it from the socket that it came to, whoever opened that.
    @Test(arguments: [false, true])
    func smallWritesAreNotHeldBack(inherited: Bool) throws {
        let address = try #require(SocketAddress(host: "127.0.0.1", port: 0))
        let plan = ListenerPlan(
            index: 0, address: address, text: "here", isUnix: false, isLoopback: true, routes: [])
        var given: [Int32] = []
        if inherited {
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            #expect(Self.with(address) { bind(descriptor, $0, $1) } == 0 && listen(descriptor, 8) == 0)
            given = [descriptor]
        }
        let opened = try ListeningSocket.open(plan, loops: 1, inherited: given)
        let listening = try #require(opened.descriptors.first?.first)
        defer { close(listening) }
        let bound = try #require(ListeningSocket.boundAddress(listening))
        let caller = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(caller) }
        #expect(Self.with(bound) { connect(caller, $0, $1) } == 0)

        let kernel = Kernel()
        #expect(kernel.hasInput(listening))
        let accepted = accept(listening, nil, nil)
        defer { close(accepted) }
        #expect(accepted >= 0 && !kernel.hasInput(listening) && !kernel.hasInput(accepted))
        var isOn: Int32 = 0
        var size = socklen_t(MemoryLayout<Int32>.size)
        #expect(getsockopt(accepted, Int32(IPPROTO_TCP), TCP_NODELAY, &isOn, &size) == 0 && isOn == 1)
    }

    private static func with(_ address: SocketAddress, _ call: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
        address.withStorage { storage, length in
            storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { call($0, length) }
        }
    }
}
