import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes

/// Places that no route names, as callers of a forward proxy reach them, and requests that no proxy answers.
@Suite struct ForwardProxyTests {
    private static func plan(_ listener: String = ", unmatched: tunnel", _ route: String = "") -> String {
        """
        listeners:
          edge: {address: "127.0.0.1:8080", mode: forward_proxy\(listener)}
        routes:
          - {listen: edge, match: {host: api.test}, to: "http://127.0.0.1:9000", use: none\(route)}

        """
    }

    private static let established = "HTTP/1.1 200 Connection Established\r\n\r\n"

    private static func connect(_ authority: String, _ fields: String = "") -> String {
        InterceptedScene.connect(authority, fields)
    }

    // MARK: - CONNECT

    /// RFC 9110 §9.3.6: from the answer on nothing is HTTP's.
    @Test func aTunnelCarriesWhateverItIsGiven() throws {
        let scene = try Scene(Self.plan(), logsAccess: true)
        let caller = scene.call(Self.connect("203.0.113.5:443", "Content-Length: 0\r\n"))
        let far = try #require(scene.upstreams.first)
        #expect(far.address == SocketAddress(host: "203.0.113.5", port: 443))
        #expect(caller.takeText() == Self.established && far.receivedCount == 0)
        caller.send("\u{1}GET / HTTP/1.1\r\n\r\n")
        far.send("\u{2}any")
        scene.settle()
        #expect(far.takeText() == "\u{1}GET / HTTP/1.1\r\n\r\n" && caller.takeText() == "\u{2}any")
        caller.finish()
        scene.settle()
        #expect(far.sawEnd && !far.isClosed && !caller.sawEnd)
        far.send("last")
        far.finish()
        scene.settle()
        #expect(caller.takeText() == "last" && caller.isClosed && far.isClosed)
        scene.end()
    }

    /// Some callers do not wait for the answer. Where it is a refusal, their octets are no requests.
    @Test func octetsBehindARefusedConnectAreNoRequests() throws {
        let scene = try Scene(Self.plan(""))
        let caller = scene.call(
            Self.connect("203.0.113.5:443") + "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(caller.status == 404 && caller.sawEnd && scene.upstreams.isEmpty)
        #expect(caller.receivedText.split(separator: "HTTP/1.1 ").count == 1)
        #expect(caller.receivedText.contains("problems/no-route"))
        scene.end()
    }

    @Test(arguments: [
        ("203.0.113.5:0", ""), ("[203.0.113.5]:80", ""), ("203.0.113.5:443", "Content-Length: 3\r\n"),
        ("203.0.113.5:443", "Transfer-Encoding: chunked\r\n"),
    ])
    func aConnectThatNamesNoPlaceOrHasABodyIsMalformed(authority: String, fields: String) throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.connect(authority, fields) + "abc")
        #expect(caller.status == 400 && caller.receivedText.contains("problems/malformed-request"))
        #expect(caller.sawEnd && scene.upstreams.isEmpty)
        scene.end()
    }

    @Test func onlyAProxyTakesConnect() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Self.connect("203.0.113.5:443"))
        #expect(caller.status == 405 && caller.sawEnd && scene.upstreams.isEmpty)
        #expect(caller.receivedText.contains("problems/connect-refused"))
        #expect(caller.receivedText.contains("\r\nAllow: GET, HEAD, POST"))
        scene.end()
    }

    /// The far side is there, and the caller that asked for it cannot be told.
    @Test func aCallerThatIsGoneMeanwhileGetsNoTunnel() throws {
        let scene = try Scene(Self.plan())
        scene.kernel.connectPlan = { _ in .silent }
        let caller = scene.call(Self.connect("203.0.113.5:443"))
        caller.failWrites([32])
        try #require(scene.upstreams.first).accept()
        scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0 && scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func aTunnelWithoutTrafficEnds() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call(Self.connect("203.0.113.5:443"))
        scene.pass(seconds: 40)
        caller.send("x")
        scene.settle()
        scene.pass(seconds: 59)
        #expect(!caller.isClosed)
        scene.pass(seconds: 2)
        #expect(caller.isClosed && scene.upstreams[0].isClosed)
        scene.end()
    }

    // MARK: - Plain requests

    /// A request whose scheme wants TLS beyond us would need a check that nobody configured.
    @Test func aRequestForTLSElsewhereIsRefused() throws {
        let scene = try Scene(Self.plan())
        for (target, fields) in [("https://203.0.113.5/", ""), ("http://203.0.113.5:0/", "")] {
            let caller = scene.call("GET \(target) HTTP/1.1\r\nHost: 203.0.113.5\r\n\(fields)\r\n")
            #expect(caller.status == 404 && scene.upstreams.isEmpty, "\(target)")
        }
        let passed = scene.call("GET http://203.0.113.5/a HTTP/1.1\r\nHost: other.test\r\n\r\n")
        // The target counts, and not the field beside it.
        #expect(
            try #require(scene.upstreams.first).receivedText
                == "GET /a HTTP/1.1\r\nHost: 203.0.113.5\r\nVia: 1.1 gate\r\n\r\n")
        #expect(passed.status == nil)
        scene.end()
    }

    /// In origin form nobody is named, and a proxy is nobody's origin.
    @Test func aProxyIsNoOrigin() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call("GET /a HTTP/1.1\r\nHost: api.test\r\n\r\n")
        #expect(caller.status == 400 && caller.receivedText.contains("problems/origin-form-refused"))
        #expect(caller.sawEnd && scene.upstreams.isEmpty)
        scene.end()
    }

    @Test func aRequestThatComesBackIsALoop() throws {
        let scene = try Scene(Self.plan())
        let caller = scene.call("GET http://203.0.113.5/ HTTP/1.1\r\nHost: 203.0.113.5\r\nVia: 1.1 gate\r\n\r\n")
        #expect(caller.status == 502 && caller.receivedText.contains("problems/loop-detected"))
        #expect(scene.upstreams.isEmpty)
        scene.end()
    }

    // MARK: - Interception

    @Test func whoMayNotUseARouteOpensNoHostOfIt() throws {
        let play = try InterceptedScene(
            "forward_proxy", to: "http://good.test:9443", route: "callers: {allow: [198.51.100.0/24]}")
        for (address, status) in [("192.0.2.1", 403), ("198.51.100.7", 200)] {
            let caller = play.scene.call(from: address)
            caller.send(Self.connect("good.test:9443"))
            play.scene.settle()
            #expect(caller.status == status && caller.sawEnd == (status == 403))
        }
        play.scene.end()
    }

    /// Inside of a stream of HTTP/2 the TLS of a host would need a wire of its own.
    @Test func aStreamOpensNoHost() throws {
        let play = try InterceptedScene("forward_proxy", to: "http://good.test:9443")
        let caller = play.scene.call()
        let authority = Array("good.test:9443".utf8)
        let head = [0x02, 7] + Array("CONNECT".utf8) + [0x01, UInt8(authority.count)] + authority
        caller.send(Frames.preface + Frames.frame(1, 4, 1, head))
        play.scene.settle()
        let frames = Frames.read(caller.received).filter { $0.stream == 1 }
        let body = String(decoding: frames.filter { $0.type == 0 }.flatMap(\.payload), as: UTF8.self)
        #expect(body.contains("problems/connect-refused") && frames.map(\.type) == [1, 0, 3])
        #expect(body.contains("an intercepted host needs HTTP/1.1 to the proxy, without TLS"))
        // The answer is whole; the rest of a request that did not end is not wanted (RFC 9113 §8.1).
        #expect(frames.map { $0.flags & 1 } == [0, 1, 0] && frames.last?.payload == [0, 0, 0, 0])
        play.scene.end()
    }

    /// A host is opened once: there is no second proxy behind it, and no way to places that no route names.
    @Test func anOpenedHostIsNoProxy() throws {
        for (request, status) in [
            (Self.connect("good.test:9443"), 405), ("GET / HTTP/1.1\r\nHost: good.test:9443\r\n\r\n", 404),
        ] {
            let play = try InterceptedScene(
                "forward_proxy", to: "http://good.test:9443", match: ", path: /only/",
                listener: ", unmatched: tunnel")
            let caller = try play.connected()
            #expect(caller.shake() == .done && caller.send(request))
            #expect(caller.receive().hasPrefix("HTTP/1.1 \(status) ") && play.scene.upstreams.isEmpty)
            play.scene.end()
        }
    }

    @Test func aCallerThatCannotBeToldIsLost() throws {
        let play = try InterceptedScene("forward_proxy", to: "http://good.test:9443")
        let caller = play.scene.call()
        caller.failWrites([32])
        caller.send(Self.connect("good.test:9443"))
        play.scene.settle()
        #expect(caller.isClosed && caller.receivedCount == 0)
        play.scene.end()
    }
}
