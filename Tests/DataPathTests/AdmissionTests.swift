import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests
@testable import Telemetry

/// Requests that are refused before anything is asked for them: by the token and the name that they bring, by their way and by their path.
@Suite struct AdmissionTests {
    private func problem(_ caller: Peer) -> String? {
        caller.receivedText.firstRange(of: "problems/").map { range in
            String(caller.receivedText[range.upperBound...].prefix { $0 != "\"" })
        }
    }

    // MARK: - The gateway's own token

    @Test func aRouteMayWantATokenOfItsOwn() throws {
        let scene = try Scene(Plans.open("callers: {token: env:T}"))
        for fields in [
            "", "Authorization: Bearer secrets\r\n", "Authorization: secret\r\n", "Authorization: Digest secret\r\n",
            "Authorization: Bearer secret\r\nAuthorization: Bearer secret\r\n", "Authorization: Basic secret\r\n",
            "Proxy-Authorization: Bearer secret\r\n",
        ] {
            let caller = scene.call(Wire.get("/", fields))
            #expect(caller.status == 401 && problem(caller) == "caller-token-refused", "\(fields)")
        }
        #expect(scene.upstreams.isEmpty)
        // `user:secret`, and the token alone.
        for (count, credential) in ["Basic dXNlcjpzZWNyZXQ=", "bearer secret", "BEARER   secret"].enumerated() {
            let caller = scene.call(Wire.get("/", "Authorization: \(credential)\r\n"))
            try #require(scene.upstreams.count == count + 1, "\(credential)")
            scene.upstreams[count].send(Wire.ok("x", "Connection: close\r\n"))
            scene.settle()
            #expect(caller.status == 200)
        }
        scene.end()
    }

    // MARK: - Names

    @Test func aHostThatIsNotOursIsMisdirected() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
        #expect(caller.status == 421 && problem(caller) == "misdirected" && scene.upstreams.isEmpty)
        #expect(caller.receivedText.contains("name the host in 'hosts' of the route or of its listener"))
        // The connection is whole, and the next request on it is judged by its own Host.
        caller.discard()
        caller.send(Wire.get())
        scene.settle()
        try #require(scene.upstreams.first).send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// The record of a refusal is found by the caller's own trace, whether or not the route traces its requests.
    @Test(arguments: ["", "tracing: on\n"])
    func aRefusalIsRecordedUnderItsTrace(top: String) throws {
        let scene = try Scene(Plans.open() + "log: {access: all}\n" + top, logsAccess: true)
        let trace = "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\n"
        #expect(scene.call("GET / HTTP/1.1\r\nHost: evil.example\r\n\(trace)\r\n").status == 421)
        var (high, low) = (UInt64(0), UInt64(0))
        let ring = try #require(scene.data.access)
        #expect(ring.next { (high, low) = ($0.traceHigh, $0.traceLow) })
        #expect(high == 0x4bf9_2f35_77b3_4da6 && low == 0xa3ce_929d_0e0e_4736)
        scene.end()
    }

    /// An authority that its caller believes has said that these names are ours, a wildcard for exactly one label (RFC 6125 section 6.4.3).
    @Test func aNameOfTheCertificateThatWasShownIsServed() throws {
        let files = try Certificates.shared.get()
        try files.make("admission-wild", "DNS:*.wild.test,DNS:plain.test")
        let scene = try Scene(
            """
            listeners: {in: {address: "0.0.0.0:8443", tls: [\(files.entry("admission-wild"))]}}
            routes: [{listen: in, to: "http://127.0.0.1:9000", use: none, callers: local}]

            """)
        for (host, isServed) in [
            ("plain.test", true), ("PLAIN.test", true), ("a.wild.test", true), ("A.Wild.TEST:8443", true),
            ("a.b.wild.test", false), ("wild.test", false), (".wild.test", false), ("a.wild.tesT", true),
            ("a.wild.tes4", false), ("a.mild.test", false), ("a.wild.tests", false), ("plain.test.evil.example", false),
            ("a.WILD\u{1}test", false), ("a.wild@test", false),
        ] {
            let caller = try SecureCaller(scene, scene.call(), name: "plain.test")
            #expect(caller.shake() == .done)
            let count = scene.upstreams.count
            #expect(caller.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n"))
            if scene.upstreams.count > count {
                scene.upstreams[count].send(Wire.ok("x", "Connection: close\r\n"))
                scene.settle()
            }
            let answer = caller.receive()
            #expect(answer.hasPrefix("HTTP/1.1 200 ") == isServed && !answer.isEmpty, "\(host)")
        }
        scene.end()
    }

    /// A port that no server can have is not taken for the one that is left of it in 16 bits.
    @Test(arguments: [("65616", false), ("0", false), ("80", true)])
    func aPortThatNoServerHasLeadsToNoRoute(port: String, isTaken: Bool) throws {
        let scene = try Scene(
            """
            listeners: {l: {address: "127.0.0.1:8080", mode: forward_proxy}}
            routes: [{listen: l, to: "http://127.0.0.1:9000", use: none, match: {host: h.test}, callers: local}]

            """)
        let caller = scene.call("GET http://h.test:\(port)/ HTTP/1.1\r\nHost: h.test:\(port)\r\n\r\n")
        #expect(scene.upstreams.isEmpty != isTaken)
        if !isTaken { #expect(caller.status == 404 || caller.status == 400) }
        scene.end()
    }

    // MARK: - The way and the path

    @Test(arguments: [
        ("1.1 gate", true), ("1.0 GATE", true), ("1.1 other, HTTP/1.1 gate (proxy)", true),
        ("1.1 gateway", false), ("1.1 other (gate)", false), ("1.1 other", false),
    ])
    func aRequestThatHasComeThroughHereBeforeIsALoop(via: String, isLoop: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/", "Via: \(via)\r\n"))
        if isLoop {
            #expect(caller.status == 502 && problem(caller) == "loop-detected" && scene.upstreams.isEmpty)
        } else {
            #expect(try #require(scene.upstreams.first).receivedText.contains("Via: \(via)"))
        }
        scene.end()
    }

    /// Servers differ over such paths, so that another one's rules might be passed by with our credential.
    @Test(arguments: ["/a//b", "/a/../b", "/a/./b", "/a%2fb", "/%2e%2e/a", "/a\\b"])
    func aPathWithTwoReadingsMeetsNoCredential(path: String) throws {
        for (route, isRefused) in [("", true), ("paths: raw", false)] {
            let scene = try Scene(Plans.fixed(route))
            try scene.publish("Bearer t", generation: 1)
            let caller = scene.call(Wire.get(path))
            #expect(scene.upstreams.isEmpty == isRefused)
            if isRefused { #expect(caller.status == 400 && problem(caller) == "unsafe-path") }
            scene.end()
        }
    }

    // MARK: - Expect: 100-continue

    /// The word is the upstream's to give, and a caller of HTTP/1.0 does not know it (RFC 9110 section 10.1.1).
    @Test(arguments: ["1.1", "1.0"])
    func anExpectationIsPassedOn(version: String) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(
            "POST / HTTP/\(version)\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
        let upstream = try #require(scene.upstreams.first)
        let asks = version == "1.1"
        #expect(upstream.takeText().contains("\r\nExpect: 100-continue\r\n") == asks)
        upstream.send("HTTP/1.1 100 Continue\r\n\r\n")
        scene.settle()
        #expect(caller.takeText() == (asks ? "HTTP/1.1 100 Continue\r\n\r\n" : ""))
        caller.send("hello")
        scene.settle()
        #expect(upstream.takeText() == "hello")
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }
}
