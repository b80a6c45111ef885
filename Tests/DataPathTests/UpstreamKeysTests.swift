import Glibc
import Reactor
import ScriptedKernel
import Synchronization
import TLS
import TemporaryFolder
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// The gateway's own certificate and its proxy's password toward an upstream, as their files change.
@Suite struct UpstreamKeysTests {
    /// A route whose upstream may ask for a certificate, the files of which lie in a folder of its own.
    private final class Play {
        let scene: Scene
        let keys: ClientKeys
        private let folder = TemporaryFolder("keys")
        private let files: Certificates

        /// - Parameter more: further keys of the route.
        init(_ more: String = "") throws {
            files = try Certificates.shared.get()
            let tls =
                "tls: {ca: \(files.path("ca.pem")), certificate: \(folder.path)/own.pem, "
                + "key: \"file:\(folder.path)/own.key\"}"
            scene = try Scene(
                "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"https://good.test:9443\", use: none, "
                    + "addresses: [\"127.0.0.1:9443\"], \(tls)\(more)}\n")
            keys = try #require(scene.plan.upstreams[0].clientKeys)
        }

        /// Puts another certificate in place, and reads it as a gateway does whose file has changed.
        func put(_ leaf: String) {
            for kind in ["pem", "key"] {
                let file = open("\(folder.path)/own.\(kind)", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
                let octets = files.bytes("\(leaf).\(kind)")
                #expect(write(file, octets, octets.count) == octets.count)
                close(file)
            }
            #expect(keys.reload().failed == [])
        }

        /// The server of the newest connection, which asks for a certificate.
        func server(alpn: [String] = ["http/1.1"]) throws -> SecureUpstream {
            try SecureUpstream(scene, try #require(scene.upstreams.last), alpn: alpn, callers: "ca.pem")
        }
    }

    private static let forwarded = "GET /a HTTP/1.1\r\nHost: good.test:9443\r\nVia: 1.1 gate\r\n\r\n"

    /// Without the certificate that the operator wants to be shown, no request goes out.
    @Test func aCertificateThatCannotBeReadIsTold() throws {
        let play = try Play()
        let unread = play.scene.call(Wire.get("/a"))
        #expect(unread.status == 503 && unread.receivedText.contains("problems/secret-unreadable"))
        let reason = try #require(play.scene.data.groups[0]?.outage.tlsFailure)
        #expect(reason.hasPrefix("file:") && reason.hasSuffix("/own.pem: No such file or directory"))
        // It was told when the plan was made, and is told once.
        #expect(play.keys.reload() == ([], []))
        #expect(play.scene.upstreams.allSatisfy { $0.isClosed && $0.receivedCount == 0 })
        play.put("client")
        let caller = play.scene.call(Wire.get("/a"))
        let server = try play.server()
        #expect(server.shake() == .done && server.receiveText() == Self.forwarded)
        server.send(Wire.ok("x"))
        #expect(caller.takeText() == Wire.ok("x"))
        play.scene.end()
    }

    /// A connection that was made with the certificate before carries no further request.
    @Test func aRenewedCertificateIsShownToAll() throws {
        let play = try Play()
        play.put("client")
        let caller = play.scene.call(Wire.get("/a"))
        let first = try play.server()
        first.shake()
        first.send(Wire.ok("x"))
        #expect(caller.takeText() == Wire.ok("x") && play.scene.idleUpstreams == 1)
        play.put("other")
        caller.send(Wire.get("/a"))
        play.scene.settle()
        #expect(first.peer.isClosed && play.scene.upstreams.count == 2)
        let second = try play.server()
        #expect(second.shake() == .done && second.receiveText() == Self.forwarded)
        second.send(Wire.ok("y"))
        #expect(caller.takeText() == Wire.ok("y"))
        play.scene.end()
    }

    /// Streams that run on a shared connection end there; the next ones get a connection with the new certificate.
    @Test func aRenewedCertificateEndsSharedConnections() throws {
        let play = try Play(", http: 2")
        play.put("client")
        let caller = play.scene.call(Wire.get("/a"))
        let first = try play.server(alpn: ["h2", "http/1.1"])
        #expect(first.shake() == .done && first.tls.negotiatedProtocol == "h2")
        first.send(Frames.settings)
        play.put("other")
        let second = play.scene.call(Wire.get("/b"))
        #expect(play.scene.upstreams.count == 2 && !first.peer.isClosed)
        // The caller of before has its answer.
        first.send(Frames.ok(1))
        #expect(caller.status == 200 && first.peer.isClosed)
        let server = try play.server(alpn: ["h2"])
        #expect(server.shake() == .done)
        server.send(Frames.settings + Frames.ok(1))
        #expect(second.status == 200)
        server.peer.finish()
        play.scene.settle()
        play.scene.end()
    }

    /// A change in the middle of a handshake: its request goes out, and nothing else goes out beside it.
    @Test func aHandshakeOfBeforeCarriesItsOwnRequestAlone() throws {
        let play = try Play(", http: 2")
        play.put("client")
        let caller = play.scene.call(Wire.get("/a"))
        let first = try play.server(alpn: ["h2"])
        play.put("other")
        let second = play.scene.call(Wire.get("/b"))
        #expect(first.shake() == .done)
        first.send(Frames.settings + Frames.ok(1))
        #expect(caller.status == 200)
        play.scene.settle()
        #expect(first.peer.isClosed, "it carries no other request")
        try #require(play.scene.upstreams.count == 2)
        let server = try play.server(alpn: ["h2"])
        #expect(server.shake() == .done)
        server.send(Frames.settings + Frames.ok(1))
        #expect(second.status == 200)
        server.peer.finish()
        play.scene.settle()
        play.scene.end()
    }

    /// A server that never ends its handshake has the time of a connection attempt.
    @Test func aHandshakeThatDoesNotEndIsGivenUp() throws {
        let play = try Play(", timeouts: {connect: 2s}")
        play.put("client")
        let caller = play.scene.call(Wire.get("/a"))
        play.scene.pass(seconds: 1.9)
        #expect(caller.status == nil)
        play.scene.pass(seconds: 0.2)
        #expect(caller.status == 504 && caller.receivedText.contains("problems/upstream-connect-timeout"))
        #expect(play.scene.upstreams.map(\.isClosed) == [true])
        play.scene.end()
    }

    // MARK: - Without a plan of the configuration

    private final class User: UpstreamUser {
        private(set) var fault: Fault?
        func upstreamConnected(_ connection: UpstreamConnection) {}
        func upstreamReady(_ connection: UpstreamConnection) {}
        func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) { self.fault = fault }
        func upstreamTimedOut(_ connection: UpstreamConnection) {}
    }

    private final class Stored: Sendable {
        let text = Mutex<String?>(nil)
    }

    private func group(
        _ scene: Scene, host: String = "127.0.0.1", names: ChangingNames = ChangingNames(), proxy: ProxyPlan? = nil,
        usesTLS: Bool = true, admits: @escaping (SocketAddress) -> Bool = { _ in true }
    ) -> UpstreamGroup {
        let plan = UpstreamPlan(
            index: 0, origin: "https://\(host):9100", host: host, port: 9100, usesTLS: usesTLS, serverName: "good.test",
            proxy: proxy, endpoints: [], trust: nil, minimumVersion: .v1_2, legacyTLS: false, clientKeys: nil,
            connectTimeout: 2_000_000_000, idleTimeout: 60_000_000_000)
        return UpstreamGroup(
            plan: plan, loop: scene.loop,
            buffers: LoopBuffers(blocks: 16, largeLimit: 1 << 20, scratchSize: 64 * 1024), resolver: names,
            admits: admits
        ) { _ in }
    }

    /// Where no authorities are named, no server is trusted.
    @Test func withoutAuthoritiesNobodyIsTrusted() throws {
        let scene = try Scene(Plans.open())
        let (user, group) = (User(), group(scene))
        _ = group.take(for: user, fresh: true)
        scene.settle()
        let server = try SecureUpstream(scene, try #require(scene.upstreams.last))
        server.shake()
        #expect(user.fault?.kind == .upstreamTLS && server.peer.isClosed && group.isUnused)
        scene.end()
    }

    /// A proxy that wants a password is not asked without it.
    @Test func aProxysPasswordHasToBeThere() throws {
        struct Unreadable: Error, CustomStringConvertible { let description = "no such file" }
        let password = Stored()
        let address = try #require(SocketAddress(parsing: "127.0.0.9:3128"))
        let credential = ProxyCredential(username: "u") {
            guard let text = password.text.withLock({ $0 }) else { throw Unreadable() }
            return Array(text.utf8)
        }
        let scene = try Scene(Plans.open())
        let group = group(scene, proxy: ProxyPlan(.address(address), credential: credential) { _ in true })
        for reason in ["not read", "no such file"] {
            let user = User()
            _ = group.take(for: user, fresh: true)
            scene.settle()
            #expect(user.fault?.kind == .secretUnreadable && scene.upstreams.last?.receivedCount == 0)
            #expect(group.outage.tlsFailure == "proxy credential: \(reason)")
            _ = credential.reload()
        }
        password.text.withLock { $0 = "secret" }
        #expect(credential.reload() == nil)
        _ = group.take(for: User(), fresh: true)
        scene.settle()
        let request = try #require(scene.upstreams.last).takeText()
        #expect(request.hasPrefix("CONNECT 127.0.0.1:9100 HTTP/1.1\r\n"))
        #expect(request.hasSuffix("\r\nProxy-Authorization: Basic dTpzZWNyZXQ=\r\n\r\n"))
        scene.pass(seconds: 3)
        #expect(scene.upstreams.last?.isClosed == true && group.isUnused)
        scene.end()
    }

    /// A name that leads to addresses which may not be reached is no name without addresses.
    @Test func aNameThatLeadsToClosedPlacesIsRefused() throws {
        let scene = try Scene(Plans.open())
        let names = ChangingNames()
        let group = group(scene, host: "inside.test", names: names, usesTLS: false) { $0.host != "127.0.0.1" }
        let unknown = User()
        _ = group.take(for: unknown, fresh: true)
        scene.settle()
        #expect(unknown.fault?.kind == .upstreamUnresolvable)
        names.set("inside.test", ["127.0.0.1:9100"])
        scene.pass(seconds: 2)
        let refused = User()
        _ = group.take(for: refused, fresh: true)
        scene.settle()
        #expect(refused.fault?.kind == .destinationRefused && scene.upstreams.isEmpty && group.isUnused)
        scene.end()
    }
}
