import Glibc
import HTTP2
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import Telemetry

/// Parts that the gateway adds to heads where they find no room or have nothing to say, and answers of its own that close.
@Suite struct HeadPartsTests {
    // MARK: - Toward the caller

    /// - Parameter count: octets of the Host, under which the caller takes the gateway for its server.
    private static func redirected(host count: Int) throws -> String {
        let scene = try Scene(Plans.open("hosts: [any], server_timing: on"))
        let caller = scene.call("GET / HTTP/1.1\r\nHost: \(String(repeating: "h", count: count))\r\n\r\n")
        try #require(scene.upstreams.first).send(
            "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:9000/a\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        defer { scene.end() }
        return caller.takeText()
    }

    /// Neither the caller's origin nor a line of the gateway's own is cut: each is written whole or left out.
    @Test func aPartThatFindsNoRoomIsLeftOut() throws {
        let short = try Self.redirected(host: 9)
        #expect(short.contains("\r\nLocation: http://hhhhhhhhh/a\r\n") && short.contains("\r\nServer-Timing: "))
        // Room for the origin alone.
        let long = try Self.redirected(host: 4080)
        #expect(long.contains("\r\nLocation: http://\(String(repeating: "h", count: 4080))/a\r\n"))
        #expect(!long.contains("Server-Timing") && long.hasSuffix("\r\nContent-Length: 0\r\n\r\n"))
        // A host that long names no server to send a caller to.
        let longer = try Self.redirected(host: 4090)
        #expect(longer.hasPrefix("HTTP/1.1 302 Found\r\n") && !longer.contains("hhh"))
        #expect(longer.contains("\r\nServer-Timing: ") && longer.hasSuffix("\r\nContent-Length: 0\r\n\r\n"))
    }

    // MARK: - Toward the upstream

    /// A unix socket has no address that could be told.
    @Test func aCallerWithoutAnAddressIsUnknown() throws {
        let scene = try Scene(
            """
            listeners: {l: {address: "unix:/run/x.sock"}}
            routes:
              - {listen: l, to: "http://127.0.0.1:9000", use: none, forwarded: {fields: both, caller: address}}

            """)
        let (descriptor, peer) = scene.kernel.pair()
        scene.data.admit(descriptor, from: nil, listener: scene.plan.listeners[0])
        let caller = try StreamCaller(scene, peer)
        let stream = try caller.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        let seen = upstream.takeText()
        #expect(seen.contains("\r\nForwarded: for=unknown;") && seen.contains("\r\nX-Forwarded-For: unknown\r\n"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.read(stream).hasSuffix("\r\n\r\nx"))
        stream.cancel()
        caller.settle()
        peer.reset()
        scene.end()
    }

    // MARK: - Answers of the gateway's own

    @Test func aCallerThatAsksForTheEndGetsItBehindTheLastHopsAnswer() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(
            "OPTIONS * HTTP/1.1\r\nHost: localhost\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n")
        #expect(
            caller.takeText() == "HTTP/1.1 200 OK\r\nAllow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS\r\n"
                + "Content-Length: 0\r\nConnection: close\r\n\r\n")
        #expect(caller.sawEnd && scene.upstreams.isEmpty)
        scene.end()
    }

    /// Who does not know of us speaks with somebody else, and would take our words for theirs.
    @Test func aRedirectedCallerWhoseServerCannotBeReachedHearsNothing() throws {
        let scene = try Scene(
            """
            listeners: {l: {address: "127.0.0.1:8080", mode: transparent, unmatched: tunnel}}
            routes: [{listen: l, match: {host: api.test}, to: "http://127.0.0.1:9000", use: none}]

            """)
        scene.kernel.redirected = SocketAddress(host: "192.0.2.9", port: 443)
        func greet() throws -> Peer {
            let caller = try SecureCaller(scene, scene.call(), name: "other.test")
            _ = caller.tls.handshake()
            scene.settle()
            return caller.peer
        }
        let caller = try greet()
        let server = try #require(scene.upstreams.first)
        #expect(server.address == SocketAddress(host: "192.0.2.9", port: 443))
        // The hello is passed on as it came.
        #expect(server.receivedText.contains("other.test") && caller.receivedCount == 0 && !caller.isClosed)
        scene.kernel.connectPlan = { _ in .failed(ECONNREFUSED) }
        let other = try greet()
        #expect(other.isClosed && other.receivedCount == 0 && !caller.isClosed)
        scene.end()
    }

    // MARK: - Records

    /// An answer that the gateway's own end cuts is neither the caller's doing nor the upstream's.
    @Test(arguments: [true, false])
    func theRecordSaysWhoCutAnAnswer(ends: Bool) throws {
        let scene = try Scene(Plans.open() + "log: {access: all}\n", logsAccess: true)
        let caller = scene.call(Wire.get())
        try #require(scene.upstreams.first).send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")
        scene.settle()
        #expect(caller.receivedText.hasSuffix("half"))
        if ends { scene.data.closeEverything() } else { caller.reset() }
        scene.settle()
        #expect(caller.isClosed)
        var incomplete = LogSide.none
        var fault: UInt16 = 0
        let ring = try #require(scene.data.access)
        #expect(ring.next { (incomplete, fault) = ($0.incomplete, $0.fault) })
        #expect(incomplete == (ends ? .gateway : .caller))
        #expect(fault == (ends ? scene.plan.faultNames[.draining] : 0))
        scene.end()
    }

    // MARK: - Second readings

    private static func lenient(_ routes: [String]) -> String {
        "identities: {a: {static: {value: env:V}}}\nroutes:\n"
            + routes.map {
                "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", match: {path: \($0)}, use: none}\n"
            }.joined()
            + "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", match: {path: /admin/}, use: a}\n"
    }

    /// Where a second reading leads to no route at all, there is nobody's to be taken.
    @Test func aSecondReadingThatLeadsNowhereIsNoOtherRoute() throws {
        let scene = try Scene(Self.lenient((1...6).map { "/r\($0)/" }))
        for (path, isRefused) in [("/r1/../x", false), ("/r1/../admin/x", true), ("/r1/../r2/x", false)] {
            let count = scene.upstreams.count
            let caller = scene.call(Wire.get(path))
            #expect(scene.upstreams.count == count + (isRefused ? 0 : 1), "\(path)")
            if isRefused { #expect(caller.status == 400 && caller.receivedText.contains("problems/unsafe-path")) }
        }
        scene.end()
    }

    /// `*` is the server as a whole (RFC 9110 section 9.3.7), and no path that could be read twice.
    @Test func aRequestForTheServerHasNoSecondReading() throws {
        let scene = try Scene(
            Self.lenient([]) + "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none}\n")
        _ = scene.call("OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(try #require(scene.upstreams.first).takeText() == Wire.forwarded("OPTIONS", "*"))
        scene.end()
    }

    /// Brackets stand around addresses alone; around a name they make another name, which is nobody's.
    @Test(arguments: [("[::1]", true), ("[localhost]", false), ("[127.0.0.1]", false), ("[v1.localhost]:80", false)])
    func aNameInBracketsIsNotTheName(host: String, isServed: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        #expect(scene.upstreams.isEmpty != isServed)
        if !isServed { #expect(caller.status == 421 || caller.status == 400) }
        scene.end()
    }
}
