import Glibc
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// What happens between `accept` and the protocol, on a kernel in memory.
@Suite struct ArrivalTests {
    private static func proxied(_ callers: String = "{allow: [192.0.2.0/24]}", _ top: String = "") -> String {
        """
        listeners: {in: {address: "127.0.0.1:8080", proxy_protocol: {from: [10.0.0.0/8]}}}
        routes: [{listen: in, to: "http://127.0.0.1:9000", use: none, callers: \(callers)}]
        \(top)

        """
    }

    private static let line = "PROXY TCP4 192.0.2.7 10.0.0.1 12345 80\r\n"

    // MARK: - PROXY

    @Test(arguments: [1, 7, 1 << 20])
    func `a trusted proxy's header decides who is admitted`(piece: Int) throws {
        let scene = try Scene(Self.proxied())
        for (header, status) in [(Self.line, 200), ("PROXY TCP4 198.51.100.7 10.0.0.1 1 80\r\n", 403)] {
            let caller = scene.call(from: "10.1.2.3")
            caller.mostPerRead = piece
            caller.send(header + Wire.get())
            scene.settle()
            if status == 200 { try #require(scene.upstreams.last).send(Wire.ok()) }
            scene.settle()
            #expect(caller.status == status)
        }
        scene.end()
    }

    @Test func `what comes with a header in one piece is read from its own beginning`() throws {
        let scene = try Scene(Self.proxied())
        let caller = scene.call(from: "10.1.2.3")
        let body = String(repeating: "0123456789", count: 30)
        caller.send(Self.line + Wire.post(body, path: "/one") + Wire.get("/two"))
        scene.settle()
        let upstream = try #require(scene.upstreams.last)
        #expect(upstream.takeText() == Wire.forwarded("POST", "/one", framing: "Content-Length: 300\r\n", body: body))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(upstream.takeText() == Wire.forwarded("GET", "/two"))
        upstream.send(Wire.ok("y"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x") + Wire.ok("y"))
        #expect(scene.upstreams.count == 1)
        // The body comes later.
        let late = scene.call(from: "10.1.2.3")
        late.send(Self.line + "PUT / HTTP/1.1\r\nHost:localhost\r\nContent-Length:99\r\n\r\n")
        scene.settle()
        late.send(String(repeating: "z", count: 99))
        scene.settle()
        #expect(upstream.takeText().hasSuffix("\r\n\r\n" + String(repeating: "z", count: 99)))
        upstream.send(Wire.ok("z"))
        scene.settle()
        #expect(late.takeText() == Wire.ok("z"))
        scene.end()
    }

    @Test func `a header and everything behind it may come in pieces`() throws {
        let scene = try Scene(Self.proxied())
        let caller = scene.call(from: "10.1.2.3")
        for byte in Array((Self.line + Wire.get()).utf8) {
            caller.send([byte])
            scene.settle()
        }
        try #require(scene.upstreams.last).send(Wire.ok())
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }

    @Test func `nobody else is served, with a header or without`() throws {
        let scene = try Scene(Self.proxied("{unsafe_open: true}"))
        for request in [Wire.get(), Self.line + Wire.get()] {
            for address in ["192.0.2.7", "127.0.0.1"] {
                let caller = scene.call(from: address)
                caller.send(request)
                scene.settle()
                #expect(caller.isClosed && caller.receivedCount == 0)
            }
        }
        #expect(scene.glitches(.proxyHeader) == 4 && scene.upstreams.isEmpty)
        scene.end()
    }

    @Test func `a trusted proxy has to send one`() throws {
        let scene = try Scene(Self.proxied("{unsafe_open: true}"))
        let caller = scene.call(from: "10.1.2.3")
        caller.send(Wire.get())
        scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0 && scene.upstreams.isEmpty)
        let silent = scene.call(from: "10.1.2.3")
        scene.pass(seconds: 9)
        #expect(!silent.isClosed)
        scene.pass(seconds: 2)
        #expect(silent.isClosed)
        scene.end()
    }

    @Test(arguments: [
        "PROXY TCP4 127.0.0.1 10.0.0.1 1 80\r\n", "PROXY TCP6 ::1 ::1 1 80\r\n",
        "PROXY TCP6 ::ffff:127.0.0.1 ::1 1 80\r\n",
        "PROXY UNKNOWN\r\n",
    ])
    func `a claimed loopback address is nobody's`(header: String) throws {
        for callers in ["local", "{allow: [127.0.0.0/8, \"::1/128\", 10.0.0.0/8]}"] {
            let scene = try Scene(Self.proxied(callers))
            let caller = scene.call(from: "10.1.2.3")
            caller.send(header + Wire.get())
            scene.settle()
            #expect(caller.status == 403 && scene.upstreams.isEmpty)
            scene.end()
        }
    }

    @Test func `a proxy that speaks for itself is who it is`() throws {
        let scene = try Scene(Self.proxied("{allow: [10.0.0.0/8]}"))
        let caller = scene.call(from: "10.1.2.3")
        caller.send(ProxyHeaderTests.binary(command: 0x20, family: 0, []))
        caller.send(Wire.get())
        scene.settle()
        try #require(scene.upstreams.last).send(Wire.ok())
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }

    // MARK: - Clear text

    @Test func `a plain listener needs no arrival`() throws {
        let scene = try Scene(Plans.open())
        _ = scene.call()
        #expect(scene.data.arrivals.isEmpty && scene.data.callers.count == 1)
        scene.end()
    }

    // MARK: - TLS

    static func secure(_ more: String = "", callers: String = "local") throws -> String {
        let files = try Certificates.shared.get()
        return """
            listeners:
              in:
                address: "127.0.0.1:8080"
                tls: [{certificate: \(files.path("good.pem")), key: "file:\(files.path("good.key"))"},
                      {certificate: \(files.path("other.pem")), key: "file:\(files.path("other.key"))"}]
                \(more)
            routes: [{listen: in, to: "http://127.0.0.1:9000", use: none, callers: \(callers)}]

            """
    }

    @Test(arguments: [1, 100, 1 << 20])
    func `a TLS caller is served, whatever the pieces`(piece: Int) throws {
        let scene = try Scene(Self.secure())
        let peer = scene.call()
        (peer.mostPerRead, peer.mostPerWrite) = (piece, max(piece, 50))
        let caller = try SecureCaller(scene, peer)
        #expect(caller.shake() == .done)
        #expect(caller.tls.negotiatedProtocol == "http/1.1" && caller.tls.version == .v1_3)
        for _ in 0..<3 {
            #expect(caller.send(Wire.get("/", "X-Fill: \(String(repeating: "f", count: 3000))\r\n")))
            try #require(scene.upstreams.last).send(Wire.ok("hello"))
            scene.settle()
            #expect(caller.receive() == Wire.ok("hello"))
        }
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    @Test func `a request that comes with the handshake's end is not left lying`() throws {
        let scene = try Scene(Self.secure())
        let caller = try SecureCaller(scene, scene.call())
        caller.holdsBack = true
        while caller.tls.handshake() == .wantsRead { caller.release() }
        #expect(caller.tls.send(Wire.get()) == .bytes(Wire.get().utf8.count))
        caller.release()
        try #require(scene.upstreams.last).send(Wire.ok())
        scene.settle()
        #expect(caller.receive() == Wire.ok())
        scene.end()
    }

    @Test func `PROXY comes before TLS`() throws {
        let scene = try Scene(Self.secure("proxy_protocol: {from: [10.0.0.0/8]}", callers: "{allow: [192.0.2.7]}"))
        let peer = scene.call(from: "10.0.0.9")
        let caller = try SecureCaller(scene, peer)
        caller.holdsBack = true
        peer.send(Self.line)
        while caller.tls.handshake() == .wantsRead { caller.release() }
        caller.release()
        caller.holdsBack = false
        #expect(caller.send(Wire.get()))
        try #require(scene.upstreams.last).send(Wire.ok())
        scene.settle()
        #expect(caller.receive() == Wire.ok())
        scene.end()
    }

    @Test func `the certificate follows the name asked for`() throws {
        let scene = try Scene(Self.secure())
        for (name, expected) in [("good.test", true), ("other.test", true), ("third.test", false)] {
            let caller = try SecureCaller(scene, scene.call(), name: name)
            #expect((caller.shake() == .done) == expected, "\(name)")
        }
        scene.end()
    }

    @Test func `clear text on a TLS port is told so`() throws {
        let scene = try Scene(Self.secure())
        let caller = scene.call(Wire.get())
        #expect(caller.status == 400 && caller.receivedText.contains("https://") && caller.sawEnd)
        caller.finish()
        scene.settle()
        #expect(caller.isClosed)
        let other = scene.call("\u{1}\u{2}")
        #expect(other.isClosed && other.receivedCount == 0 && scene.glitches(.clearTextOnTLS) == 2)
        scene.end()
    }

    @Test func `a handshake has its time`() throws {
        let scene = try Scene(Self.secure())
        let silent = scene.call()
        let begun = try SecureCaller(scene, scene.call())
        _ = begun.tls.handshake()
        scene.settle()
        let broken = scene.call()
        broken.send([22, 3, 1, 0x40, 0])
        scene.pass(seconds: 9.5)
        #expect(!silent.isClosed && !broken.isClosed)
        scene.pass(seconds: 1)
        #expect(silent.isClosed && begun.peer.isClosed && broken.isClosed && scene.glitches(.slowArrival) == 3)
        scene.end()
    }

    @Test func `the oldest arrival gives way to the newest`() throws {
        let scene = try Scene(Self.secure())
        let first = scene.call()
        scene.pass(seconds: 1)
        let others = (0..<DataLoop.arrivalLimit).map { _ in scene.call() }
        #expect(first.isClosed && others.allSatisfy { !$0.isClosed } && scene.glitches(.arrivalLimit) == 1)
        #expect(scene.data.arrivals.count == DataLoop.arrivalLimit)
        scene.end()
    }

    @Test func `handshakes take turns`() throws {
        let scene = try Scene(Self.secure())
        let callers = try (0..<20).map { _ in try SecureCaller(scene, scene.call()) }
        for caller in callers { _ = caller.tls.handshake() }
        scene.loop.turnOnce()
        #expect(callers.count { $0.peer.receivedCount > 0 } == DataLoop.handshakesPerTurn)
        scene.settle()
        for caller in callers { #expect(caller.shake() == .done) }
        scene.end()
    }

    @Test func `callers that go away early leave nothing`() throws {
        let scene = try Scene(Self.secure())
        let whole = try SecureCaller(scene, scene.call())
        whole.holdsBack = true
        _ = whole.tls.handshake()
        let hello = whole.held
        for count in [0, 1, 5, 60, hello.count - 1, hello.count] {
            let finished = scene.call()
            finished.send(Array(hello.prefix(count)))
            finished.finish()
            let reset = scene.call()
            reset.send(Array(hello.prefix(count)))
            scene.loop.turnOnce()
            reset.reset()
            scene.settle()
            #expect(finished.isClosed && reset.isClosed, "\(count)")
        }
        scene.end()
    }

    @Test func `a drain lets handshakes end and takes no idle ones along`() throws {
        let scene = try Scene(Self.secure())
        let caller = try SecureCaller(scene, scene.call())
        _ = caller.tls.handshake()
        scene.settle()
        nonisolated(unsafe) var isDone = false
        scene.data.drain { isDone = true }
        scene.settle()
        #expect(!isDone)
        _ = caller.shake()
        scene.settle()
        // Whoever went through a handshake has a request: it gets a moment to come.
        #expect(!isDone)
        scene.pass(seconds: 1.5)
        #expect(isDone)
        scene.end()
    }
}

/// A caller that speaks TLS, played over its end of a connection in memory.
final class SecureCaller: TLSWire {
    let peer: Peer
    private let scene: Scene
    private(set) var tls: TLSConnection! = nil
    private var inbox: [UInt8] = []
    /// What is sent stays in `held` until `release`.
    var holdsBack = false
    private(set) var held: [UInt8] = []

    init(
        _ scene: Scene, _ peer: Peer, name: String = "good.test", alpn: [String] = ["http/1.1"],
        configuration: TLSClientConfiguration? = nil
    ) throws {
        self.scene = scene
        self.peer = peer
        let files = try Certificates.shared.get()
        let client = try configuration ?? TLSClientConfiguration(authorities: [.file(files.path("ca.pem"))], alpn: alpn)
        tls = try TLSConnection(client: client, serverName: name, wire: self)
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        inbox += peer.take()
        if inbox.isEmpty { return peer.sawEnd ? 0 : Int(-EAGAIN) }
        let count = min(buffer.count, inbox.count)
        buffer.copyBytes(from: inbox.prefix(count))
        inbox.removeFirst(count)
        return count
    }

    func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        if holdsBack { held += bytes } else { peer.send(bytes) }
        return bytes.count
    }

    func release() {
        peer.send(held)
        held = []
        scene.settle()
    }

    func shake() -> TLSProgress {
        for _ in 0..<100 {
            let progress = tls.handshake()
            scene.settle()
            if progress != .wantsRead, progress != .wantsWrite { return progress }
        }
        return .wantsRead
    }

    func send(_ text: String) -> Bool {
        let result = Array(text.utf8).withUnsafeBytes { tls.write($0) }
        scene.settle()
        return result == .bytes(text.utf8.count)
    }

    /// Everything that is there.
    func receive() -> String {
        var text = ""
        var buffer = [UInt8](repeating: 0, count: 16384)
        while case .bytes(let count) = buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
            text += String(decoding: buffer.prefix(count), as: UTF8.self)
        }
        return text
    }
}
