import Reactor
import ScriptedKernel
import Testing

@testable import Configuration
@testable import DataPath
@testable import Scenes

@Suite struct ProxyTunnelTests {
    private func judge(_ text: String) -> ProxyTunnel.Verdict {
        var tunnel = ProxyTunnel()
        return tunnel.judge(Array(text.utf8).span)
    }

    @Test func theRequestNamesTheServerAndItsPort() {
        let request = ProxyTunnel.request(authority: "api.example.com:443", credential: Array("P: q\r\n".utf8))
        #expect(
            String(decoding: request, as: UTF8.self)
                == "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\nP: q\r\n\r\n")
    }

    @Test func answers() {
        #expect(judge("HTTP/1.1 200 Connection established\r\nVia: p\r\n\r\n") == .open(47))
        // A length says nothing of a tunnel (RFC 9110 section 9.3.6).
        #expect(judge("HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\n") == .open(38))
        #expect(judge("HTTP/1.1 407 No\r\n\r\n") == .refused(status: 407, length: 19))
        #expect(judge("HTTP/1.1 302 No\r\nLocation: http://x/\r\n\r\n") == .refused(status: 302, length: 40))
        #expect(judge("HTTP/1.1 20") == .needsMore)
        #expect(judge("HTTP/1.1 103 Hints\r\n\r\n") == .skip(22))
        #expect(judge("HTTP/1.1 101 Switch\r\n\r\n") == .broken)
        #expect(judge("SSH-2.0-x\r\n\r\n") == .broken)
        #expect(judge("HTTP/1.1 200 OK\r\n\r\nhello") == .broken)
        #expect(judge("HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 9000)) == .broken)
    }

    @Test func interimAnswersWithoutEndAreNotWaitedOut() {
        var tunnel = ProxyTunnel()
        let hint = Array("HTTP/1.1 103 Hints\r\n\r\n".utf8)
        let verdicts = (0..<10).map { _ in tunnel.judge(hint.span) }
        #expect(verdicts.filter { $0 == .skip(22) }.count == 8 && verdicts.last == .broken)
    }

    /// In clear text the proxy is told the whole target, and its credential goes with every request.
    @Test func clearTextGoesInAbsoluteForm() throws {
        let proxy = "proxy: {url: \"http://127.0.0.9:3128\", username: u, password: env:P}"
        let scene = try Scene(Plans.open(proxy))
        let caller = scene.call(Wire.get("/a?b", "Proxy-Authorization: Basic Y2FsbGVy\r\n"))
        #expect(scene.upstreams.map(\.address?.description) == ["127.0.0.9:3128"])
        let request = scene.upstreams[0].receivedText
        #expect(request.hasPrefix("GET http://127.0.0.1:9000/a?b HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n"))
        // The environment of a scene says "secret".
        #expect(request.hasSuffix("Proxy-Authorization: Basic dTpzZWNyZXQ=\r\n\r\n"))
        #expect(!request.contains("Y2FsbGVy"))
        scene.upstreams[0].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }

    @Test func aHostAmongTheExceptionsIsReachedDirectly() throws {
        let scene = try Scene(Plans.open("proxy: {url: \"http://127.0.0.9:3128\", except: [127.0.0.1]}"))
        _ = scene.call(Wire.get())
        #expect(scene.upstreams.map(\.address?.description) == ["127.0.0.1:9000"])
        scene.end()
    }

    @Test func exceptionsAreWholeNames() {
        let proxy = OutgoingProxy(
            host: "p", port: 1, username: nil, password: nil, except: [.exact("a.test"), .oneLabel(".b.test")])
        #expect(!proxy.serves("a.test") && !proxy.serves("x.b.test"))
        #expect(
            proxy.serves("xa.test") && proxy.serves("b.test") && proxy.serves("x.y.b.test") && proxy.serves("xb.test"))
    }
}
