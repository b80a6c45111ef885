import Glibc
import ScriptedKernel
import Synchronization
import TLS
import TemporaryFolder
import Testing

@testable import DataPath
@testable import Reactor
@testable import Scenes
@testable import TLSTests

/// Parts of plans that are read anew, end, or lead somewhere: what each change of them is told by, and where it leads.
@Suite struct PlanReadingTests {
    private struct Unreadable: Error, CustomStringConvertible { let description: String }

    /// A file or variable whose contents change.
    private final class Source: Sendable {
        private let contents = Mutex<Result<String, Unreadable>>(.failure(Unreadable(description: "no such file")))

        func set(_ text: String) { contents.withLock { $0 = .success(text) } }
        func fail(_ reason: String) { contents.withLock { $0 = .failure(Unreadable(description: reason)) } }
        func read() throws -> String { try contents.withLock { $0 }.get() }
    }

    // MARK: - Secrets and keys

    /// Each fault is told once, and the line of before stays in use.
    @Test func aProxysPasswordIsReadAnew() {
        let password = Source()
        let credential = ProxyCredential(username: "user") { Array(try password.read().utf8) }
        #expect(credential.reload() == "no such file" && credential.reload() == nil)
        #expect(credential.current.fault == "no such file" && credential.version == 0)
        #expect(credential.current.secret == nil)
        password.set("pass")
        let line = Array("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n".utf8)
        #expect(credential.reload() == nil && credential.current.secret == line && credential.current.fault == nil)
        #expect(credential.version == 1)
        // The same password is nothing new.
        #expect(credential.reload() == nil && credential.version == 1)
        password.fail("denied")
        #expect(credential.reload() == "denied" && credential.current.secret == line && credential.version == 1)
        password.set("other")
        #expect(credential.reload() == nil && credential.version == 2 && credential.current.secret != line)
    }

    /// Names of hosts have no case, those of `proxy.except` among them.
    @Test func aProxyServesHostsInAnySpelling() throws {
        let endpoint = UpstreamEndpoint(host: "192.0.2.1", port: 3128)
        let proxy = ProxyPlan(endpoint, credential: nil) { $0 != "direct.test" }
        #expect(proxy.serves("a.test") && !proxy.serves("direct.test") && !proxy.serves("Direct.TEST"))
    }

    @Test func aClientCertificateIsNewWhereItsKeyOrItsFileIs() throws {
        let files = try Certificates.shared.get()
        let leaf = Source()
        leaf.set("client")
        let keys = ClientKeys([
            ClientKeys.Files(certificate: "client.pem") {
                let name = try leaf.read()
                return try ClientCertificate(
                    certificatePEM: files.bytes(name + ".pem"), keyPEM: files.bytes(name + ".key"))
            }
        ])
        var read = keys.reload()
        let version = keys.version
        #expect(read.changed == [0] && read.failed.isEmpty && keys.certificates.count == 1)
        read = keys.reload()
        #expect(read.changed.isEmpty && read.failed.isEmpty && keys.version == version)
        leaf.fail("no such file")
        read = keys.reload()
        #expect(read.changed.isEmpty && read.failed == [0] && keys.contents[0].fault == "no such file")
        // The certificate of before is shown on.
        #expect(keys.reload().failed.isEmpty && keys.certificates.count == 1 && keys.version == version)
        leaf.set("other")
        #expect(keys.reload().changed == [0] && keys.version > version && keys.contents[0].fault == nil)
    }

    @Test func aCallerThatNamesNoHostIsShownTheFirstCertificate() throws {
        let files = try Certificates.shared.get()
        let scene = try Scene(
            """
            listeners: {in: {address: "127.0.0.1:8443", tls: [\(files.entry("good")), \(files.entry("other"))]}}
            routes: [{listen: in, to: "http://127.0.0.1:9000", use: none, callers: local}]

            """)
        let tls = try #require(scene.plan.listeners[0].tls)
        #expect(tls.identity(for: nil) === tls.identities[0] && tls.identity(for: "other.test") === tls.identities[1])
        // An address is no name that a caller may ask for (RFC 6066 section 3).
        let caller = try SecureCaller(scene, scene.call(), name: "127.0.0.1")
        #expect(caller.shake() == .done)
        scene.end()
    }

    // MARK: - Folders and editions

    /// A folder that is not there is no reason to watch the others no more.
    @Test func foldersThatCannotBeWatchedAreLeftOut() throws {
        let folder = TemporaryFolder("watch")
        let loop = try Loop(name: "watch")
        let gone = folder.path + "/none"
        #expect(FolderWatch(loop: loop, folders: [gone], haveBeenRead: false) == nil)
        #expect(FolderWatch(loop: loop, folders: [], haveBeenRead: true) == nil)
        let watch = try #require(FolderWatch(loop: loop, folders: [gone, folder.path], haveBeenRead: false))
        loop.close(watch)
    }

    /// A swap of files is several events, which are told as one.
    @Test func changesThatComeTogetherAreToldOnce() throws {
        let folder = TemporaryFolder("watch")
        let kernel = FakeKernel()
        let loop = try Loop(name: "watch", kernel: kernel)
        let watch = try #require(FolderWatch(loop: loop, folders: [folder.path], haveBeenRead: false))
        var told = 0
        watch.changed = { told += 1 }
        func pass(_ seconds: Double) {
            kernel.advance(seconds: seconds)
            loop.turnOnce()
        }
        for round in 1...2 {
            loop.turnOnce()
            watch.ready(.readable)
            pass(0.05)
            watch.ready(.readable)
            #expect(told == round - 1)
            pass(0.2)
            #expect(told == round)
            pass(1)
            #expect(told == round)
        }
        loop.close(watch)
    }

    /// Only then may its upstreams' numbers be given out again.
    @Test func anEditionIsOverWithItsLastExchange() {
        var living = LivingEditions()
        var first: Edition? = Edition(number: 1)
        first?.upstreamNumbers = [1, 2]
        let second = Edition(number: 2)
        second.upstreamNumbers = [2, 3]
        if let first { living.add(first) }
        living.add(second)
        #expect(living.upstreamNumbers == [1, 2, 3])
        first = nil
        #expect(living.upstreamNumbers == [2, 3])
        second.upstreamNumbers = []
        #expect(living.upstreamNumbers.isEmpty)
    }

    @Test func anAddressIsCountedOnceForEachOfItsConnections() throws {
        let census = AddressCensus(limit: 2)
        let address = try #require(SocketAddress(parsing: "192.0.2.7:1"))
        #expect(census.enter(address) && census.enter(address) && !census.enter(address))
        census.leave(address)
        #expect(census.enter(address) && !census.enter(address))
        for _ in 0..<2 { census.leave(address) }
        // Once more than it came is nothing.
        census.leave(address)
        #expect(census.enter(address) && census.enter(address) && !census.enter(address))
    }

    // MARK: - Upstreams

    /// An operator is told why an upstream cannot be reached, and since when, until it can.
    @Test func theTroubleOfAnUpstreamStandsUntilAConnectionComesAbout() throws {
        let scene = try Scene(Plans.open())
        let trouble = scene.plan.upstreams[0].trouble
        #expect(trouble.current == nil)
        scene.kernel.connectPlan = { _ in .failed(ECONNREFUSED) }
        let began = scene.kernel.clock
        #expect(scene.call(Wire.get()).status == 502)
        let reason = try #require(trouble.current?.reason)
        scene.pass(seconds: 40)
        #expect(scene.call(Wire.get()).status == 502)
        #expect(trouble.current?.since == began && trouble.current?.reason == reason && !reason.isEmpty)
        scene.kernel.connectPlan = { _ in .accepted }
        scene.pass(seconds: 40)
        let caller = scene.call(Wire.get())
        #expect(trouble.current == nil)
        try #require(scene.upstreams.last).send(Wire.ok("x"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("x"))
        scene.end()
    }

    /// RFC 9112 section 3.2.3: an IPv6 address stands in brackets.
    @Test func aProxyIsAskedForAnAddressInBrackets() throws {
        let scene = try Scene(
            Plans.open("proxy: {url: \"http://127.0.0.9:3128\"}")
                .replacing("http://127.0.0.1:9000", with: "https://[2001:db8::1]:9443"))
        _ = scene.call(Wire.get())
        let proxy = try #require(scene.upstreams.first)
        #expect(proxy.address?.host == "127.0.0.9")
        #expect(proxy.receivedText.hasPrefix("CONNECT [2001:db8::1]:9443 HTTP/1.1\r\nHost: [2001:db8::1]:9443\r\n"))
        scene.end()
    }

    /// Connections that were made with one certificate are no use to a plan with another one.
    @Test func anUpstreamIsReachedAsBeforeWhereItsCertificateIsTheSame() throws {
        let files = try Certificates.shared.get()
        func plan(_ leaf: String) -> String {
            Plans.open(
                "tls: {ca: \(files.path("ca.pem")), certificate: \(files.path(leaf + ".pem")), "
                    + "key: \"file:\(files.path(leaf + ".key"))\"}, addresses: [\"127.0.0.1:9443\"]"
            ).replacing("http://127.0.0.1:9000", with: "https://good.test:9443")
        }
        let scene = try Scene(plan("client"))
        let upstream = scene.plan.upstreams[0]
        #expect(upstream.clientKeys != nil && UpstreamReach(of: upstream) == UpstreamReach(of: upstream))
        try scene.reload(plan("other"))
        #expect(UpstreamReach(of: scene.data.plan.upstreams[0]) != UpstreamReach(of: upstream))
        scene.end()
    }

    @Test func anAddressBehindABracketIsOneWithItsPort() throws {
        for text in ["[::1]443", "[2001:db8::1]x", "[2001:db8::1]x:1"] {
            #expect(Destination(authority: text.utf8, defaultPort: 80) == nil, "\(text)")
        }
        #expect(Destination(authority: "[2001:db8::1]".utf8, defaultPort: 80)?.port == 80)
        let address = try #require(SocketAddress(host: "192.0.2.7", port: 8443))
        #expect(Destination(address) == Destination(authority: "192.0.2.7:8443".utf8, defaultPort: nil))
    }
}
