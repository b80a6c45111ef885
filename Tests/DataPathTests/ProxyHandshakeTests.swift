import Handshakes
import Reactor
import ScriptedKernel
import Synchronization
import TLS
import Testing

@testable import DataPath
@testable import Scenes

/// Connections that authenticate themselves at a proxy, with messages that a test makes at its time. That proxies take real ones is
/// `test_a_proxy_that_authenticates_connections_is_answered.py`.
@Suite struct ProxyHandshakeTests {
    private final class User: UpstreamUser {
        private(set) var fault: Fault?
        private(set) var isConnected = false
        func upstreamConnected(_ connection: UpstreamConnection) { isConnected = true }
        func upstreamReady(_ connection: UpstreamConnection) {}
        func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) { self.fault = fault }
        func upstreamTimedOut(_ connection: UpstreamConnection) {}
    }

    /// Every message is made when the test says so.
    private final class Made: ProxyHandshake, ProxyConversation {
        let openingMessages: Int
        let mayBeOfEachRequest: Bool
        let mostMessages = 3
        let word = "Made"
        let refusals = Atomic(0)
        private let due = Mutex<[(received: [UInt8]?, then: @Sendable (Result<[UInt8], GrantFailure>) -> Void)]>([])

        init(openingMessages: Int = 1, mayBeOfEachRequest: Bool = false) {
            self.openingMessages = openingMessages
            self.mayBeOfEachRequest = mayBeOfEachRequest
        }

        func begin(with secret: [UInt8]) -> any ProxyConversation { self }
        var isCounted: Bool { false }
        func noteRefusal() { refusals.add(1, ordering: .relaxed) }
        func forgetRefusals() {}

        func answer(
            _ received: [UInt8]?, within milliseconds: Int64,
            then completion: @escaping @Sendable (Result<[UInt8], GrantFailure>) -> Void
        ) {
            due.withLock { $0.append((received, completion)) }
        }

        var waiting: Int { due.withLock { $0.count } }

        /// - Returns: the proxy's message that was to be answered.
        @discardableResult
        func make(_ result: Result<[UInt8], GrantFailure>) -> String? {
            let first = due.withLock { $0.removeFirst() }
            first.then(result)
            return first.received.map { String(decoding: $0, as: UTF8.self) }
        }
    }

    private struct Play {
        let scene: Scene
        let made: Made
        let credential: ProxyCredential
        let group: UpstreamGroup
        let secret: Word

        final class Word: Sendable {
            let text = Mutex("secret")
        }

        init(_ made: Made = Made(), usesTLS: Bool = false) throws {
            scene = try Scene(Plans.open())
            self.made = made
            let word = Word()
            secret = word
            credential = ProxyCredential(username: "u", handshake: made) { Array(word.text.withLock { $0 }.utf8) }
            _ = credential.reload()
            let address = try #require(SocketAddress(parsing: "127.0.0.9:3128"))
            let plan = UpstreamPlan(
                index: 0, origin: "http://127.0.0.1:9100", host: "127.0.0.1", port: 9100, usesTLS: usesTLS,
                serverName: "good.test", proxy: ProxyPlan(.address(address), credential: credential) { _ in true },
                endpoints: [], trust: nil, minimumVersion: .v1_2, legacyTLS: false, clientKeys: nil,
                connectTimeout: 2_000_000_000, idleTimeout: 60_000_000_000)
            group = UpstreamGroup(
                plan: plan, loop: scene.loop,
                buffers: LoopBuffers(blocks: 16, largeLimit: 1 << 20, scratchSize: 64 * 1024),
                resolver: ChangingNames()
            ) { _ in }
        }

        func take(for user: User, fresh: Bool = false) -> UpstreamConnection {
            let connection = group.take(for: user, fresh: fresh)
            scene.settle()
            return connection
        }

        func make(_ text: String) -> String? {
            defer { scene.settle() }
            return made.make(.success(Array(text.utf8)))
        }

        func refuse(_ challenge: String, _ rest: String = "") {
            scene.upstreams.last?.send(
                Array("HTTP/1.1 407 No\r\nProxy-Authenticate: \(challenge)\r\nContent-Length: 3\r\n\r\n\(rest)".utf8))
            scene.settle()
        }

        var received: String { scene.upstreams.last?.takeText() ?? "" }

        /// A request on the connection: the line that it carries for the proxy.
        func line(on connection: UpstreamConnection, _ attempt: inout ProxyAttempt) throws -> String {
            connection.requests += 1
            let line = try group.tls.proxy.line(for: &attempt, on: connection, method: "GET", target: [])
            return String(decoding: line, as: UTF8.self)
        }

        func end() {
            group.closeIdle()
            scene.end()
        }
    }

    @Test func theLastMessageGoesWithTheFirstRequest() throws {
        let play = try Play()
        let user = User()
        let connection = play.take(for: user)
        #expect(play.received.isEmpty && play.made.waiting == 1)
        #expect(play.make("one") == nil)
        #expect(
            play.received
                == "HEAD http://127.0.0.1:9100/ HTTP/1.1\r\nHost: 127.0.0.1:9100\r\nProxy-Authorization: Made b25l\r\n\r\n"
        )
        // A HEAD's answer has no body, whatever length is announced.
        play.refuse("Made dHdv")
        #expect(!user.isConnected)
        #expect(play.make("three") == "dHdv")
        #expect(user.isConnected && play.received.isEmpty)
        var attempt = ProxyAttempt()
        #expect(try play.line(on: connection, &attempt) == "Proxy-Authorization: Made dGhyZWU=\r\n")
        #expect(attempt.isAnswering)
        let passed = play.group.tls.proxy.passed(&attempt, [])
        #expect(passed && !attempt.isAnswering)
        #expect(try play.line(on: connection, &attempt).isEmpty && !attempt.isAnswering)
        connection.close()
        play.end()
    }

    @Test func eachMessageGoesWithAConnect() throws {
        let play = try Play(usesTLS: true)
        let user = User()
        _ = play.take(for: user)
        _ = play.make("one")
        #expect(play.received.hasPrefix("CONNECT 127.0.0.1:9100 HTTP/1.1\r\n"))
        play.refuse("Basic realm=x, Made dHdv", "no!")
        #expect(play.make("three") == "dHdv")
        #expect(play.received.hasSuffix("Proxy-Authorization: Made dGhyZWU=\r\n\r\n"))
        play.refuse("Made", "no!")
        #expect(user.fault?.kind == .proxyRefused && user.fault?.receivedStatus == 407)
        #expect(play.group.outage.tlsFailure == "the proxy answered CONNECT with 407; it refuses the credential")
        #expect(play.made.refusals.load(ordering: .relaxed) == 1 && play.scene.upstreams.count == 1)
        play.end()
    }

    /// Messages are bounded, whatever the proxy asks for.
    @Test func aProxyThatGoesOnForEverIsLeft() throws {
        let play = try Play(Made(openingMessages: 0), usesTLS: true)
        let user = User()
        _ = play.take(for: user)
        for _ in 0..<3 {
            _ = play.make("m")
            play.refuse("Made bQ==", "no!")
        }
        #expect(user.fault?.kind == .proxyRefused && play.made.waiting == 0)
        play.end()
    }

    @Test(arguments: [
        ("Basic realm=x", "; it does not offer Made"), ("Made", "; it offers Made and does not go on with it"),
    ]) func nothingFollowsAChallengeThatIsNone(challenge: String, reason: String) throws {
        let play = try Play(usesTLS: true)
        let user = User()
        _ = play.take(for: user)
        _ = play.make("one")
        play.refuse(challenge, "no!")
        #expect(user.fault?.kind == .proxyRefused && play.made.waiting == 0)
        #expect(play.group.outage.tlsFailure == "the proxy answered CONNECT with 407\(reason)")
        #expect(play.made.refusals.load(ordering: .relaxed) == 0)
        play.end()
    }

    @Test(arguments: [
        (GrantFailure.secretUnreadable(name: "keytab", reason: "r"), Fault.Kind.secretUnreadable),
        (.secretUnusable(name: "cache", reason: "r"), .secretUnusable),
        (.credentialRejected(reason: "r"), .quarantined),
        (.configuration(reason: "r"), .identityMisconfigured), (.timedOut(step: "ticket"), .tokenTimeout),
        (.issuerAnswerInvalid(reason: "r"), .proxyRefused),
        (.issuerUnavailable(retryAfterSeconds: nil, reason: "r"), .issuerUnavailable),
    ]) func theReasonIsTold(failure: GrantFailure, kind: Fault.Kind) throws {
        let play = try Play()
        let user = User()
        _ = play.take(for: user)
        play.made.make(.failure(failure))
        play.scene.settle()
        #expect(user.fault?.kind == kind && user.fault?.detail?.hasPrefix("for the proxy on the way: ") == true)
        #expect(play.received.isEmpty && play.group.isUnused)
        play.end()
    }

    /// A message that comes when its connection is gone is nobody's.
    @Test func aMessageMayComeTooLate() throws {
        let play = try Play()
        let user = User()
        _ = play.take(for: user)
        play.scene.pass(seconds: 3)
        #expect(user.fault?.kind == .upstreamConnectTimeout && play.group.isUnused)
        _ = play.make("one")
        #expect(play.received.isEmpty)
        let next = User()
        _ = play.take(for: next)
        _ = play.make("two")
        #expect(play.received.contains("Made dHdv"))
        play.scene.pass(seconds: 3)
        play.end()
    }

    /// - Returns: a connection behind its first request.
    private func authenticated(_ play: Play) throws -> UpstreamConnection {
        let connection = play.take(for: User(), fresh: true)
        _ = play.make("one")
        var attempt = ProxyAttempt()
        #expect(try !play.line(on: connection, &attempt).isEmpty)
        return connection
    }

    /// A bare request's refusal is no refusal of the credential, once.
    @Test func aForgottenConnectionIsReplaced() throws {
        let play = try Play(Made(openingMessages: 0))
        let connection = try authenticated(play)
        var attempt = ProxyAttempt()
        _ = try play.line(on: connection, &attempt)
        var reason = play.group.tls.proxy.challenged([Array("Made".utf8)], by: connection, &attempt)
        #expect(reason == nil && attempt.wantsAnew && !attempt.isAsked)
        let other = play.take(for: User(), fresh: true)
        _ = play.make("one")
        #expect(try !play.line(on: other, &attempt).isEmpty && !attempt.wantsAnew && attempt.isAnswering)
        reason = play.group.tls.proxy.challenged([Array("Made".utf8)], by: other, &attempt)
        #expect(reason == "; it refuses the credential")
        connection.close()
        other.close()
        play.end()
    }

    @Test(arguments: [true, false]) func aProxyMayWantAMessageWithEachRequest(isKnown: Bool) throws {
        let play = try Play(Made(openingMessages: 0, mayBeOfEachRequest: isKnown))
        let connection = try authenticated(play)
        var attempt = ProxyAttempt()
        _ = try play.line(on: connection, &attempt)
        _ = play.group.tls.proxy.challenged([Array("Made".utf8)], by: connection, &attempt)
        let next = try authenticated(play)
        #expect(play.group.tls.proxy.forgets == isKnown)
        #expect(next.mayBeReused(answerComplete: true, requestComplete: true, persistent: true) != isKnown)
        connection.close()
        next.close()
        play.end()
    }

    @Test func connectionsEndWithTheSecret() throws {
        let play = try Play(Made(openingMessages: 0))
        let idle = try authenticated(play)
        let busy = try authenticated(play)
        #expect(idle.mayBeReused(answerComplete: true, requestComplete: true, persistent: true))
        play.group.give(idle)
        play.secret.text.withLock { $0 = "another" }
        #expect(play.credential.reload() == nil)
        let next = play.take(for: User())
        #expect(idle.state == .closed && next !== idle)
        #expect(!busy.mayBeReused(answerComplete: true, requestComplete: true, persistent: true))
        play.group.give(busy)
        #expect(busy.state == .closed)
        next.close()
        play.made.make(.success([]))
        play.scene.settle()
        play.end()
    }
}
