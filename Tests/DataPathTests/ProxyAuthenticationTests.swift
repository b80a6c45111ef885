import Configuration
import HTTP1
import Handshakes
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// A proxy on the way that asks for HTTP Digest (RFC 7616), told in clear text and by CONNECT.
@Suite struct ProxyAuthenticationTests {
    private static let proxy = "proxy: {url: \"http://127.0.0.9:3128\", username: u, password: env:P, digest: [md5]}"

    private func challenge(_ nonce: String, _ rest: String = "Content-Length: 4\r\n", body: String = "no!!") -> [UInt8]
    {
        Array(
            """
            HTTP/1.1 407 No\r
            Proxy-Authenticate: Digest realm="p", nonce="\(nonce)", qop="auth"\r
            \(rest)\r
            \(body)
            """.utf8)
    }

    /// The last request that a connection has received: its answer's parameter.
    private func said(_ name: String, in text: String) -> String? {
        let line = text.split(separator: "\r\n").last { $0.hasPrefix("Proxy-Authorization: Digest ") }
        let parts = line?.dropFirst("Proxy-Authorization: Digest ".count).split(separator: ", ") ?? []
        let part = parts.first { $0.hasPrefix("\(name)=") }
        return part.map { $0.dropFirst(name.count + 1).filter { $0 != "\"" } }
    }

    @Test func aRequestIsSentAgainOnTheConnectionThatBroughtTheNonce() throws {
        let scene = try Scene(Plans.open(Self.proxy))
        let caller = scene.call(Wire.get("/a?b"))
        let upstream = try #require(scene.upstreams.first)
        #expect(!upstream.receivedText.contains("Proxy-Authorization"))
        upstream.send(challenge("one"))
        scene.settle()
        let text = upstream.receivedText
        #expect(scene.upstreams.count == 1 && said("nonce", in: text) == "one" && said("nc", in: text) == "00000001")
        #expect(said("uri", in: text) == "http://127.0.0.1:9000/a?b")
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        let next = scene.call(Wire.get("/c"))
        let again = upstream.receivedText
        #expect(said("nc", in: again) == "00000002" && said("uri", in: again) == "http://127.0.0.1:9000/c")
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(next.status == 200 && scene.upstreams.count == 1)
        scene.end()
    }

    /// A refusal judges the answer to its own challenge alone.
    @Test func anOlderNonceMayHaveBeenTooOld() throws {
        let scene = try Scene(Plans.open(Self.proxy))
        _ = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.send(challenge("one"))
        scene.settle()
        upstream.send(Wire.ok("x"))
        scene.settle()
        let second = scene.call(Wire.get())
        upstream.send(challenge("two"))
        scene.settle()
        #expect(said("nonce", in: upstream.receivedText) == "two" && second.status == nil)
        upstream.send(challenge("three"))
        scene.settle()
        #expect(second.status == 502)
        // The next request has nothing to answer, and asks.
        _ = scene.call(Wire.get())
        let last = try #require(scene.upstreams.last)
        #expect(last !== upstream && !last.receivedText.contains("Proxy-Authorization"))
        scene.end()
    }

    @Test(arguments: [
        "Connection: close\r\nContent-Length: 4\r\n", "Content-Length: 100000\r\n", "",
    ]) func aConnectionThatCannotGoOnIsReplaced(_ rest: String) throws {
        let scene = try Scene(Plans.open(Self.proxy))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(challenge("one", rest))
        scene.settle()
        #expect(scene.upstreams.count == 2)
        #expect(said("nonce", in: scene.upstreams[1].receivedText) == "one")
        scene.upstreams[1].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        scene.end()
    }

    @Test(arguments: [
        "", "Proxy-Authenticate: Basic realm=\"p\"\r\n", "Proxy-Authenticate: Digest realm=\"p\"\r\n",
        "Proxy-Authenticate: Digest realm=\"p\", nonce=\"n\", algorithm=SHA-256\r\n",
        "WWW-Authenticate: Digest realm=\"p\", nonce=\"n\"\r\n",
    ]) func aChallengeThatCannotBeAnsweredIsNotAsked(_ field: String) throws {
        let scene = try Scene(Plans.open(Self.proxy))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Array("HTTP/1.1 407 No\r\n\(field)Content-Length: 0\r\n\r\n".utf8))
        scene.settle()
        #expect(caller.status == 502 && scene.upstreams.count == 1)
        #expect(!scene.upstreams[0].receivedText.contains("Proxy-Authorization"))
        scene.end()
    }

    /// A server that says that it knows the password, and does not, is not the proxy.
    @Test func aProofThatIsNoneEndsTheExchange() throws {
        let scene = try Scene(Plans.open(Self.proxy))
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(challenge("one"))
        scene.settle()
        scene.upstreams[0].send(
            Array("HTTP/1.1 200 OK\r\nProxy-Authentication-Info: rspauth=\"00\"\r\nContent-Length: 1\r\n\r\nx".utf8))
        scene.settle()
        #expect(caller.status == 502)
        scene.end()
    }

    @Test func theProxyMayNameTheNextNonce() throws {
        let scene = try Scene(Plans.open(Self.proxy))
        _ = scene.call(Wire.get())
        let upstream = scene.upstreams[0]
        upstream.send(challenge("one"))
        scene.settle()
        upstream.send(
            Array("HTTP/1.1 200 OK\r\nProxy-Authentication-Info: nextnonce=\"two\"\r\nContent-Length: 1\r\n\r\nx".utf8))
        scene.settle()
        _ = scene.call(Wire.get())
        #expect(
            said("nonce", in: upstream.receivedText) == "two" && said("nc", in: upstream.receivedText) == "00000001")
        scene.end()
    }
}

/// The body of a refusal, behind which the same connection is asked for the tunnel again.
@Suite struct ProxyTunnelRestTests {
    private func tunnel(_ fields: String) throws -> ProxyTunnel {
        var tunnel = ProxyTunnel()
        let head = Array("HTTP/1.1 407 No\r\n\(fields)\r\n".utf8)
        let verdict = tunnel.judge(head.span)
        #expect(verdict == .refused(status: 407, length: head.count))
        return tunnel
    }

    private func passOver(_ tunnel: inout ProxyTunnel, _ text: String) -> (length: Int, isOver: Bool)? {
        let bytes = Array(text.utf8)
        return bytes.withUnsafeBytes { tunnel.passOver($0) }
    }

    @Test func aBodyIsPassedOverToItsEnd() throws {
        var counted = try tunnel("Content-Length: 5\r\n")
        let countedBegins = counted.beginRest()
        #expect(countedBegins)
        let first = passOver(&counted, "abc")
        #expect(first?.length == 3 && first?.isOver == false)
        let last = passOver(&counted, "deHTTP")
        #expect(last?.length == 2 && last?.isOver == true)
        var chunked = try tunnel("Transfer-Encoding: chunked\r\n")
        let chunkedBegins = chunked.beginRest()
        #expect(chunkedBegins)
        let whole = passOver(&chunked, "3\r\nabc\r\n0\r\n\r\n")
        #expect(whole?.length == 13 && whole?.isOver == true)
        var none = try tunnel("Content-Length: 0\r\n")
        let noneBegins = none.beginRest()
        #expect(noneBegins)
        let nothing = passOver(&none, "")
        #expect(nothing?.length == 0 && nothing?.isOver == true)
    }

    @Test func connectionsThatEndCarryNothingMore() throws {
        var closed = try tunnel("Connection: close\r\nContent-Length: 5\r\n")
        let closedBegins = closed.beginRest()
        #expect(!closedBegins)
        var endless = try tunnel("")
        let endlessBegins = endless.beginRest()
        #expect(!endlessBegins)
    }

    @Test func aBodyHasABound() throws {
        var long = try tunnel("Content-Length: 70000\r\n")
        let longBegins = long.beginRest()
        #expect(longBegins)
        let piece = String(repeating: "x", count: 32 * 1024)
        let steps = [passOver(&long, piece)?.length, passOver(&long, piece)?.length, passOver(&long, "x")?.length]
        #expect(steps == [piece.utf8.count, piece.utf8.count, nil])
        var broken = try tunnel("Transfer-Encoding: chunked\r\n")
        let brokenBegins = broken.beginRest()
        #expect(brokenBegins)
        let step = passOver(&broken, "zz\r\n")
        #expect(step == nil)
    }
}
