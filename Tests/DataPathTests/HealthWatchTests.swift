import Glibc
import Reactor
import ScriptedKernel
import ScriptedWorld
import TLS
import Telemetry
import Testing

@testable import DataPath
@testable import Scenes

/// Checks of addresses, from the connection that asks to the address that requests avoid.
@Suite struct HealthWatchTests {
    private static let events = Result { () throws(LogFault) in try EventLog() }

    /// A watch on a scene's loop. What it tells goes to the data loop of the scene, as in a gateway.
    private final class Play {
        let scene: Scene
        let servers: CheckedServers
        let names = ChangingNames()
        private(set) var watch: HealthWatch! = nil
        /// The hosts that were told, in order.
        private(set) var told: [Set<String>] = []
        /// The loops' mailboxes take nothing.
        var isFull = false

        init(_ yaml: String, plans: [UpstreamPlan]? = nil) throws {
            scene = try Scene(yaml)
            servers = CheckedServers(on: scene.kernel)
            watch = HealthWatch(
                loop: scene.loop, resolver: names, random: SeededRandom(), events: try events.get()
            ) { [unowned self] upstream, unhealthy in
                if isFull { return false }
                told.append(Set(unhealthy.map(\.host)))
                scene.data.noteUnhealthy(unhealthy, of: upstream)
                return true
            }
            watch.take(plans ?? scene.plan.upstreams)
            scene.settle()
        }

        /// In steps that no check's interval is missed in.
        func pass(seconds: Int) {
            for _ in 0..<(seconds * 4) { scene.pass(seconds: 0.25) }
        }

        func lastFailure(_ host: String = "127.0.0.1") -> String? {
            watch.status[0].addresses.first { $0.address.contains(host) }?.lastFailure
        }

        func end() {
            watch.take([])
            scene.settle()
            scene.end()
        }
    }

    private static func checked(_ more: String = "", _ health: String = "") -> String {
        Plans.open(
            "addresses: [\"127.0.0.1:9001\", \"127.0.0.2:9001\"], "
                + "health: {path: /up, interval: 1s, timeout: 500ms, healthy: 2, unhealthy: 2\(health)}\(more)")
    }

    @Test func anAddressThatFailsIsAvoidedUntilItIsWellAgain() throws {
        let play = try Play(Self.checked())
        play.pass(seconds: 2)
        #expect(play.told == [] && play.servers.asked("127.0.0.1") > 0 && play.servers.asked("127.0.0.2") > 0)
        #expect(
            play.servers.requests[0].text
                == "GET /up HTTP/1.1\r\nHost: 127.0.0.1:9000\r\nUser-Agent: cardea-health\r\nAccept: */*\r\n\r\n")
        play.servers.words["127.0.0.1"] = .says("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
        play.pass(seconds: 3)
        #expect(play.told == [["127.0.0.1"]] && play.lastFailure() == "status 503")
        #expect(play.watch.status[0].addresses.map(\.isHealthy) == [false, true])
        let before = play.servers.requests.count
        for _ in 0..<4 { _ = play.scene.call(Wire.get("/x")) }
        #expect(play.servers.requests[before...].map(\.host) == Array(repeating: "127.0.0.2", count: 4))
        play.servers.words = [:]
        play.pass(seconds: 3)
        #expect(play.told == [["127.0.0.1"], []] && play.lastFailure() == nil)
        // A check leaves no connection behind.
        #expect(play.servers.peers.filter { !$0.isClosed }.allSatisfy { $0.address?.host == "127.0.0.2" })
        play.end()
    }

    private static let hints = "HTTP/1.1 103 Hints\r\n\r\n"

    private static let failures: [(CheckedServers.Word, String)] = [
        (.says("SSH-2.0-x\r\n"), "not an HTTP answer"),
        (.says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), "not an HTTP answer"),
        (.says(String(repeating: hints, count: 20)), "not an HTTP answer"),
        (.endsWith(""), "closed without an answer"), (.endsWith("HTTP/1.1 200 O"), "closed without an answer"),
        (.endsWith(hints), "closed without an answer"), (.silent, "no answer in time"),
        (.says("HTTP/1.1 404 No\r\n\r\n"), "status 404"),
    ]

    @Test(arguments: failures)
    func whyACheckFailsIsTold(_ word: CheckedServers.Word, _ reason: String) throws {
        let play = try Play(Self.checked())
        play.servers.words["127.0.0.1"] = word
        play.pass(seconds: 4)
        #expect(play.lastFailure() == reason && play.told == [["127.0.0.1"]])
        play.end()
    }

    /// A head of the usual size comes in more than one block, and interim answers before it.
    @Test func aLargeHeadIsReadToItsEnd() throws {
        let play = try Play(Self.checked())
        let fill = String(repeating: "x", count: 30_000)
        play.servers.words["127.0.0.1"] = .says(Self.hints + "HTTP/1.1 200 OK\r\nX-Fill: \(fill)\r\n\r\n")
        play.servers.words["127.0.0.2"] = .says("HTTP/1.1 200 OK\r\nX-Fill: \(fill)\(fill)\(fill)\r\n\r\n")
        play.pass(seconds: 4)
        #expect(play.told == [["127.0.0.2"]] && play.lastFailure() == nil)
        #expect(play.lastFailure("127.0.0.2") != nil)
        play.end()
    }

    @Test func anAddressThatTakesNoConnectionIsToldAsSuch() throws {
        let play = try Play(Self.checked())
        play.scene.kernel.connectPlan = { $0.host == "127.0.0.1" ? .silent : .failed(ECONNREFUSED) }
        play.pass(seconds: 4)
        #expect(play.lastFailure() == "not connected in time")
        #expect(play.lastFailure("127.0.0.2") == "connection refused")
        play.end()
    }

    /// A connection that is lost while the request is written.
    @Test func aRequestThatCannotBeSentIsAFailure() throws {
        let play = try Play(Self.checked())
        let connected = play.scene.kernel.connected
        play.scene.kernel.connected = { peer in
            connected?(peer)
            if peer.address?.host == "127.0.0.1" { peer.failWrites([EPIPE]) }
        }
        play.pass(seconds: 4)
        #expect(play.lastFailure() == "closed" && play.told == [["127.0.0.1"]])
        play.end()
    }

    @Test func statusesThatAreGoodAreConfigured() throws {
        let play = try Play(Self.checked("", ", statuses: [401]"))
        play.servers.words["127.0.0.1"] = .says("HTTP/1.1 401 No\r\n\r\n")
        play.pass(seconds: 4)
        #expect(play.told == [["127.0.0.2"]])
        play.end()
    }

    // MARK: - What loops hear

    /// A loop that had no room for the news is told again.
    @Test func newsThatFoundNoRoomAreToldAgain() throws {
        let play = try Play(Self.checked())
        play.servers.words["127.0.0.1"] = .endsWith("")
        play.isFull = true
        play.pass(seconds: 4)
        #expect(play.told == [] && play.watch.status[0].addresses.map(\.isHealthy) == [false, true])
        play.isFull = false
        play.scene.pass(seconds: 0.15)
        #expect(play.told == [["127.0.0.1"]])
        play.end()
    }

    // MARK: - Reload

    /// The check that runs ends with its upstream, and one that stays keeps what is known of it.
    @Test func checksEndWithTheirUpstream() throws {
        let play = try Play(Self.checked())
        play.servers.otherwise = .silent
        play.scene.pass(seconds: 1)
        let running = play.servers.peers.filter { !$0.isClosed }
        #expect(!running.isEmpty)
        play.watch.take(play.scene.plan.upstreams)
        #expect(running.allSatisfy { !$0.isClosed })
        play.watch.take([])
        play.scene.settle()
        #expect(running.allSatisfy { $0.isClosed })
        let count = play.servers.peers.count
        play.pass(seconds: 5)
        #expect(play.servers.peers.count == count && play.told == [] && play.watch.status.isEmpty)
        play.end()
    }

    // MARK: - Names

    private static let named = Plans.open(
        "health: {path: /up, interval: 1s, timeout: 500ms, healthy: 1, unhealthy: 1}"
    ).replacing("http://127.0.0.1:9000", with: "http://up.test:9000")

    @Test func theAddressesOfANameAreCheckedAsTheyCome() throws {
        let play = try Play(Self.named)
        #expect(play.servers.peers.isEmpty && play.watch.status[0].addresses.isEmpty)
        play.names.set("up.test", ["127.0.0.1:9000", "127.0.0.2:9000"])
        play.servers.words["127.0.0.1"] = .endsWith("")
        play.pass(seconds: 3)
        #expect(play.servers.requests.allSatisfy { $0.text.contains("\r\nHost: up.test:9000\r\n") })
        #expect(play.told == [["127.0.0.1"]])
        // The name leaves the bad address, whose checks end, and the loops hear that nothing is to be avoided any more.
        play.names.set("up.test", ["127.0.0.2:9000", "127.0.0.3:9000"])
        play.pass(seconds: 31)
        #expect(play.told == [["127.0.0.1"], []])
        let before = play.servers.asked("127.0.0.1")
        play.pass(seconds: 3)
        #expect(play.servers.asked("127.0.0.1") == before && play.servers.asked("127.0.0.3") > 0)
        #expect(play.watch.status[0].addresses.map(\.isHealthy) == [true, true])
        play.end()
    }

    /// The name server's outage is not the upstream's.
    @Test func aNameThatIsNotFoundKeepsItsAddresses() throws {
        let play = try Play(Self.named)
        play.names.set("up.test", ["127.0.0.1:9000"])
        play.pass(seconds: 2)
        play.names.set("up.test", [])
        play.pass(seconds: 40)
        let before = play.servers.asked("127.0.0.1")
        play.pass(seconds: 3)
        #expect(play.servers.asked("127.0.0.1") > before && play.told == [])
        play.end()
    }

    /// An address that the name leaves while it is being checked.
    @Test func aCheckOfAnAddressThatIsGoneIsGivenUp() throws {
        let play = try Play(
            Plans.open("health: {path: /up, interval: 100s, timeout: 100s}, timeouts: {connect: 100s}")
                .replacing("http://127.0.0.1:9000", with: "http://up.test:9000"))
        play.names.set("up.test", ["127.0.0.1:9000"])
        play.servers.otherwise = .silent
        play.pass(seconds: 4)
        let peer = try #require(play.servers.peers.first)
        #expect(!peer.isClosed)
        play.names.set("up.test", ["127.0.0.2:9000"])
        play.pass(seconds: 32)
        #expect(peer.isClosed && play.servers.asked("127.0.0.2") == 1)
        play.end()
    }

    // MARK: - On the way

    @Test func aProxyIsAskedForTheWholeTargetAndToldItsPassword() throws {
        let play = try Play(
            Plans.open(
                "proxy: {url: \"http://127.0.0.9:3128\", username: u, password: env:P}, "
                    + "health: {path: /up, interval: 1s, timeout: 500ms}"))
        play.pass(seconds: 2)
        let request = try #require(play.servers.requests.first)
        #expect(request.host == "127.0.0.9")
        #expect(request.text.hasPrefix("GET http://127.0.0.1:9000/up HTTP/1.1\r\nHost: 127.0.0.1:9000\r\n"))
        #expect(request.text.hasSuffix("\r\nProxy-Authorization: Basic dTpzZWNyZXQ=\r\n\r\n"))
        play.end()
    }

    private struct Unreadable: Error, CustomStringConvertible { let description = "no such file" }

    private static func plan(proxy: ProxyPlan?, tls: Bool) -> UpstreamPlan {
        UpstreamPlan(
            index: 0, origin: "\(tls ? "https" : "http")://127.0.0.1:9000", host: "127.0.0.1", port: 9000, usesTLS: tls,
            serverName: "127.0.0.1", proxy: proxy, endpoints: [],
            trust: tls ? TrustAnchors([.system], systemFile: nil) : nil, minimumVersion: .v1_2, legacyTLS: false,
            clientKeys: nil, connectTimeout: 1_000_000_000, idleTimeout: 1_000_000_000,
            health: HealthPlan(
                path: "/up", host: "127.0.0.1:9000", interval: 1_000_000_000, timeout: 500_000_000, healthy: 1,
                unhealthy: 1, statuses: nil))
    }

    @Test func aPasswordThatCannotBeReadIsToldAsTheReason() throws {
        let address = try #require(SocketAddress(parsing: "127.0.0.9:3128"))
        let credential = ProxyCredential(username: "u") { throw Unreadable() }
        #expect(credential.reload() != nil)
        let proxy = ProxyPlan(.address(address), credential: credential) { _ in true }
        let play = try Play(Plans.open(), plans: [Self.plan(proxy: proxy, tls: false)])
        play.pass(seconds: 2)
        #expect(play.watch.status[0].addresses[0].lastFailure == "proxy credential: no such file")
        // Without its password the proxy is not asked.
        #expect(play.servers.requests.isEmpty)
        play.end()
    }

    @Test func authoritiesThatWereNotReadAreToldAsTheReason() throws {
        let play = try Play(Plans.open(), plans: [Self.plan(proxy: nil, tls: true)])
        play.pass(seconds: 2)
        let failure = try #require(play.watch.status[0].addresses[0].lastFailure)
        #expect(failure.contains("certificate authorities were not read"))
        play.end()
    }
}
