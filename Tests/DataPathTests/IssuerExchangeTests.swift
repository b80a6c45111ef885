import Glibc
import Handshakes
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes

/// A call to an issuer, which is hostile until its answer is decoded.
@Suite struct IssuerExchangeTests {
    private final class Play {
        let scene: Scene
        let names = ChangingNames()
        let group: UpstreamGroup
        private(set) var results: [Result<IssuerAnswer, IssuerFault>] = []

        init(host: String = "127.0.0.1", proxy: ProxyPlan? = nil, usesTLS: Bool = false) throws {
            scene = try Scene(Plans.open())
            let plan = UpstreamPlan(
                index: 0, origin: "\(usesTLS ? "https" : "http")://\(host):9100", host: host, port: 9100,
                usesTLS: usesTLS, serverName: host, proxy: proxy, endpoints: [], trust: nil, minimumVersion: .v1_2,
                legacyTLS: false, clientKeys: nil,
                connectTimeout: 2_000_000_000, idleTimeout: 60_000_000_000)
            group = UpstreamGroup(
                plan: plan, loop: scene.loop,
                buffers: LoopBuffers(blocks: 16, largeLimit: 1 << 20, scratchSize: 64 * 1024), resolver: names
            ) { _ in }
        }

        var issuer: Peer { scene.upstreams[scene.upstreams.count - 1] }

        func call(
            _ method: String = "POST", headers: [(name: String, value: String)] = [], body: String = "a=b",
            carriesPassword: Bool = false
        ) throws {
            let url = try #require(IssuerURL("\(group.plan.origin)/t?x"))
            let call = IssuerCall(
                step: "token", method: method, url: url, headers: headers, body: Array(body.utf8),
                carriesPassword: carriesPassword)
            let exchange = IssuerExchange(
                call, group: group, deadline: scene.loop.now + 10_000_000_000, limits: scene.data.limits.heads
            ) { [unowned self] in results.append($0) }
            exchange.start()
            scene.settle()
        }

        func answer(_ text: String, ends: Bool = false) {
            issuer.send(text)
            if ends { issuer.finish() }
            scene.settle()
        }

        var body: String? { (try? results.last?.get()).map { String(decoding: $0.body, as: UTF8.self) } }
        var fault: IssuerFault? { if case .failure(let fault)? = results.last { fault } else { nil } }

        func end() {
            group.closeIdle()
            scene.settle()
            #expect(group.isUnused)
            scene.end()
        }
    }

    @Test func whatIsSentIsTheCall() throws {
        let play = try Play()
        // No value of a handshake makes a second header, and what is no name is not sent either.
        try play.call(headers: [
            ("X-Tab", "a\tb"), ("X-Evil", "a\r\nAuthorization: x"), ("X Evil", "b"), ("X-Evil:", "c"),
            ("x-Null", "a\0b"),
            ("user-AGENT", "me"), ("Accept", "text/plain"),
        ])
        #expect(
            play.issuer.takeText()
                == "POST /t?x HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nX-Tab: a\tb\r\nuser-AGENT: me\r\n"
                + "Accept: text/plain\r\nContent-Length: 3\r\n\r\na=b")
        play.answer(Wire.ok("token"))
        #expect(play.body == "token" && play.group.pool.idle.count == 1)
        try play.call("GET", body: "")
        #expect(
            play.issuer.takeText()
                == "GET /t?x HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nUser-Agent: cardea\r\nAccept: application/json\r\n\r\n"
        )
        play.answer(Wire.ok("again"))
        #expect(play.body == "again" && play.scene.upstreams.count == 1)
        play.end()
    }

    @Test func aProxyIsAskedForTheWholeURL() throws {
        let address = try #require(SocketAddress(parsing: "127.0.0.9:3128"))
        let credential = ProxyCredential(username: "u") { Array("secret".utf8) }
        _ = credential.reload()
        let play = try Play(proxy: ProxyPlan(.address(address), credential: credential) { _ in true })
        try play.call()
        #expect(play.issuer.address?.host == "127.0.0.9")
        let request = play.issuer.takeText()
        #expect(request.hasPrefix("POST http://127.0.0.1:9100/t?x HTTP/1.1\r\nHost: 127.0.0.1:9100\r\n"))
        #expect(request.hasSuffix("\r\nProxy-Authorization: Basic dTpzZWNyZXQ=\r\n\r\na=b"))
        play.answer(Wire.ok("token"))
        #expect(play.body == "token")
        play.end()
    }

    // MARK: - Answers

    private static let hint = "HTTP/1.1 103 Hints\r\n\r\n"
    private static let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

    private static let whole: [String] = [
        hint + hint + Wire.ok("token"), chunked + "2;x=y\r\nto\r\n3\r\nken\r\n0\r\nX: y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX-Fill: " + String(repeating: "x", count: 20_000) + "\r\nContent-Length: 5\r\n\r\ntoken",
    ]

    @Test(arguments: whole)
    func aWholeAnswerIsTakenAndItsConnectionKept(_ answer: String) throws {
        let play = try Play()
        try play.call()
        // In two pieces, cut in the body.
        let octets = Array(answer.utf8)
        play.issuer.send(Array(octets.dropLast(4)))
        play.scene.settle()
        #expect(play.results.isEmpty)
        play.issuer.send(Array(octets.suffix(4)))
        play.scene.settle()
        #expect(play.body == "token" && play.group.pool.idle.count == 1)
        play.end()
    }

    @Test func anAnswerThatEndsWithItsConnectionIsWhole() throws {
        let play = try Play()
        try play.call()
        play.answer("HTTP/1.1 200 OK\r\n\r\ntoken")
        #expect(play.results.isEmpty)
        play.answer("!", ends: true)
        #expect(play.body == "token!" && play.issuer.isClosed && play.group.isUnused)
        play.end()
    }

    private static let refused: [(String, IssuerFault.Kind)] = [
        ("SSH-2.0-x\r\n", .brokenAnswer), ("HTTP/1.1 101 Go\r\n\r\n", .brokenAnswer),
        (String(repeating: hint, count: 16), .brokenAnswer), (chunked + "zz\r\n", .brokenAnswer),
        (chunked + "3\r\nabcd\r\n", .brokenAnswer),
        ("HTTP/1.1 200 OK\r\nContent-Length: 70000\r\n\r\n" + long, .answerTooLarge),
        (chunked + "11170\r\n" + long, .answerTooLarge),
        ("HTTP/1.1 200 OK\r\nX-Long: " + long + "\r\n\r\n", .answerTooLarge),
        ("HTTP/1.1 200 OK\r\n" + String(repeating: "X: y\r\n", count: 1000) + "\r\n", .answerTooLarge),
    ]
    private static let long = String(repeating: "x", count: 70_000)

    @Test(arguments: refused)
    func whatIsNoAnswerIsRefused(_ answer: String, _ kind: IssuerFault.Kind) throws {
        let play = try Play()
        try play.call()
        play.answer(answer)
        #expect(play.fault == IssuerFault(kind, provablyUnsent: false))
        #expect(play.issuer.isClosed && play.results.count == 1)
        play.end()
    }

    private static let halves: [String] = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntok", chunked + "5\r\ntok", chunked + "5\r\ntoken\r\n",
    ]

    @Test(arguments: halves)
    func halfAnAnswerIsNone(_ half: String) throws {
        for isReset in [false, true] {
            let play = try Play()
            try play.call()
            play.answer(half)
            if isReset { play.issuer.reset() } else { play.issuer.finish() }
            play.scene.settle()
            #expect(play.fault == IssuerFault(.brokenAnswer, provablyUnsent: false) && play.issuer.isClosed)
            play.end()
        }
    }

    @Test func anAnswerHasItsTime() throws {
        let play = try Play()
        try play.call()
        play.answer("HTTP/1.1 200 OK\r\n")
        play.scene.pass(seconds: 9)
        #expect(play.results.isEmpty)
        play.scene.pass(seconds: 2)
        #expect(play.fault == IssuerFault(.timedOut, provablyUnsent: false) && play.issuer.isClosed)
        play.end()
    }

    // MARK: - Losses

    /// A pooled connection may have been stale: once more on a new one, unless the call must not arrive twice.
    @Test func aLossOnAKeptConnectionIsTriedAgainOnce() throws {
        let play = try Play()
        try play.call()
        play.answer(Wire.ok("one"))
        try play.call()
        #expect(play.scene.upstreams.count == 1)
        play.issuer.reset()
        play.scene.settle()
        #expect(play.scene.upstreams.count == 2 && play.results.count == 1)
        #expect(play.issuer.takeText().hasPrefix("POST /t?x HTTP/1.1\r\n"))
        play.issuer.reset()
        play.scene.settle()
        #expect(play.fault == IssuerFault(.closed, provablyUnsent: false) && play.scene.upstreams.count == 2)
        play.end()
    }

    @Test func aCallWithAPasswordGetsANewConnectionAndOneAttempt() throws {
        let play = try Play()
        try play.call()
        play.answer(Wire.ok("one"))
        try play.call(carriesPassword: true)
        #expect(play.scene.upstreams.count == 2)
        play.issuer.reset()
        play.scene.settle()
        #expect(play.fault == IssuerFault(.closed, provablyUnsent: false) && play.scene.upstreams.count == 2)
        play.end()
    }

    @Test func aCallThatCannotBeWrittenMayHaveBegun() throws {
        let play = try Play()
        var lost: Peer?
        play.scene.kernel.connected = { peer in
            lost = peer
            peer.failWrites([EPIPE])
        }
        try play.call()
        #expect(play.fault == IssuerFault(.closed, provablyUnsent: false) && lost?.isClosed == true)
        play.end()
    }

    @Test func whoCannotBeReachedWasSentNothing() throws {
        let refusing = try Play()
        refusing.scene.kernel.connectPlan = { _ in .failed(ECONNREFUSED) }
        try refusing.call()
        #expect(refusing.fault == IssuerFault(.refused, provablyUnsent: true))
        refusing.end()
        let silent = try Play()
        silent.scene.kernel.connectPlan = { _ in .silent }
        try silent.call()
        silent.scene.pass(seconds: 3)
        #expect(silent.fault == IssuerFault(.timedOut, provablyUnsent: true))
        silent.end()
        // The gateway's own shortage is no failure of the issuer, which would be given a pause for it.
        let short = try Play()
        short.scene.kernel.socketErrors = [EMFILE]
        try short.call()
        #expect(short.fault == IssuerFault(.overloaded, provablyUnsent: true))
        short.end()
        let nameless = try Play(host: "issuer.test")
        try nameless.call()
        #expect(nameless.fault == IssuerFault(.unresolvable, provablyUnsent: true))
        // A second later the name is asked for again.
        nameless.names.set("issuer.test", ["127.0.0.1:9100"])
        nameless.scene.pass(seconds: 1.5)
        try nameless.call()
        #expect(nameless.issuer.takeText().contains("\r\nHost: issuer.test:9100\r\n"))
        nameless.answer(Wire.ok("token"))
        #expect(nameless.body == "token")
        nameless.end()
    }

    private struct Unreadable: Error {}

    /// Callers are told of this failure, so the secret's own reason stays in the log.
    @Test func aProxyPasswordThatCannotBeReadKeepsTheCallHere() throws {
        let address = try #require(SocketAddress(parsing: "127.0.0.9:3128"))
        let credential = ProxyCredential(username: "u") { throw Unreadable() }
        _ = credential.reload()
        let play = try Play(proxy: ProxyPlan(.address(address), credential: credential) { _ in true })
        try play.call()
        #expect(
            play.fault
                == IssuerFault(
                    .tls("a secret of the gateway's own cannot be read; its log says why"), provablyUnsent: true))
        #expect(play.scene.upstreams.allSatisfy { $0.receivedCount == 0 && $0.isClosed })
        play.end()
    }

    /// The part of a CONNECT that one proxy did not take is not sent to the next one.
    @Test func theNextProxyIsAskedAnew() throws {
        let proxy = ProxyPlan(.name(host: "proxy.test", port: 3128), credential: nil) { _ in true }
        let play = try Play(host: "issuer.test", proxy: proxy, usesTLS: true)
        play.names.set("proxy.test", ["127.0.0.8:3128", "127.0.0.9:3128"])
        var peers: [Peer] = []
        play.scene.kernel.connected = { peer in
            if peers.isEmpty { peer.window = 10 }
            peers.append(peer)
        }
        try play.call()
        try #require(peers.count == 1)
        #expect(peers[0].takeText() == "CONNECT is")
        peers[0].finish()
        play.scene.settle()
        try #require(peers.count == 2)
        #expect(peers[1].takeText() == "CONNECT issuer.test:9100 HTTP/1.1\r\nHost: issuer.test:9100\r\n\r\n")
        peers[1].send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
        play.scene.settle()
        #expect(play.fault == IssuerFault(.proxy("the proxy answered CONNECT with 403"), provablyUnsent: true))
        #expect(peers.allSatisfy { $0.isClosed })
        play.end()
    }
}
