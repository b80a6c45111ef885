import Glibc
import Handshakes
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import Configuration
@testable import DataPath
@testable import Gateway
@testable import Scenes
@testable import TLSTests

/// Certificates of a listener: who gets which, what a change of files does, whom names admit.
@Suite struct ListenerTLSTests {
    /// A folder of its own with copies of certificates.
    private final class Folder {
        let path: String
        private let files: Certificates

        init() throws {
            files = try Certificates.shared.get()
            path = files.path("listener-\(UInt64.random(in: 0 ... .max))")
            try Programs.run(["mkdir", path])
        }

        func put(_ name: String, _ source: String) throws {
            try Programs.run(["cp", files.path(source), "\(path)/\(name).new"])
            try Programs.run(["mv", "\(path)/\(name).new", "\(path)/\(name)"])
        }

        func source(_ name: String) -> CertificateSource {
            CertificateSource(
                listener: "l", index: 0,
                files: .init(
                    certificate: "\(path)/\(name).pem", key: .file(path: "\(path)/\(name).key"), clientCA: nil,
                    ocsp: nil),
                protocols: ["http/1.1"], environment: { _ in nil }, secretFiles: .warn)
        }
    }

    @Test func `what has changed is taken up, what is broken is not`() throws {
        let folder = try Folder()
        for name in ["a", "b"] {
            try folder.put("\(name).pem", "good.pem")
            try folder.put("\(name).key", "good.key")
        }
        let tls = try ListenerTLS([folder.source("a"), folder.source("b")], tickets: TicketKeys(), now: 0)
        let before = tls.identities
        func looks() -> [String] {
            tls.lookAgain(now: 0).map { look in
                switch look {
                case .unchanged: "unchanged"
                case .changed: "changed"
                case .broken(let reason): reason
                }
            }
        }
        #expect(looks() == ["unchanged", "unchanged"])
        // The certificate has come, its key has not.
        try folder.put("a.pem", "other.pem")
        var found = looks()
        #expect(found[0].contains("do not belong together") && found[1] == "unchanged")
        #expect(tls.identity(for: "other.test") === before[0])
        try folder.put("a.key", "other.key")
        #expect(looks() == ["changed", "unchanged"])
        #expect(tls.identity(for: "other.test") !== before[0] && tls.identity(for: "good.test") === before[1])
        try Programs.run(["rm", "\(folder.path)/b.key"])
        found = looks()
        #expect(found[0] == "unchanged" && found[1].contains("b.key") && tls.identities[1] === before[1])
        try folder.put("b.key", "good.key")
        #expect(looks() == ["unchanged", "unchanged"])
    }

    @Test func `a listener without its certificate does not start`() throws {
        let folder = try Folder()
        #expect(throws: GatewayFault.self) { try ListenerTLS([folder.source("a")], tickets: TicketKeys(), now: 0) }
    }

    // MARK: - Callers by name

    private static func named(_ names: String, _ tls: String) -> String {
        """
        listeners: {in: {address: "127.0.0.1:8080", tls: [\(tls)]}}
        routes: [{listen: in, to: "http://127.0.0.1:9000", use: none, callers: {tls_names: \(names)}}]

        """
    }

    private static func entry(_ leaf: String, callers: String?) throws -> String {
        let files = try Certificates.shared.get()
        let authority = callers.map { ", client_ca: \(files.path($0))" } ?? ""
        return "{certificate: \(files.path(leaf + ".pem")), key: \"file:\(files.path(leaf + ".key"))\"\(authority)}"
    }

    private static func caller(_ leaf: String) throws -> TLSClientConfiguration {
        let files = try Certificates.shared.get()
        return try TLSClientConfiguration(
            authorities: [.file(files.path("ca.pem"))], alpn: ["http/1.1"],
            identities: [
                ClientCertificate(certificatePEM: files.bytes(leaf + ".pem"), keyPEM: files.bytes(leaf + ".key"))
            ])
    }

    @Test(arguments: [("[a@b.test]", "client", 200), ("[x, other.test]", "other", 200), ("[b.test]", "client", 403)])
    func `a name admits`(names: String, leaf: String, status: Int) throws {
        let scene = try Scene(Self.named(names, Self.entry("good", callers: "ca.pem")))
        let caller = try SecureCaller(scene, scene.call(), configuration: Self.caller(leaf))
        #expect(caller.shake() == .done)
        #expect(caller.send(Wire.get()))
        if status == 200 { try #require(scene.upstreams.last).send(Wire.ok()) }
        scene.settle()
        #expect(caller.receive().hasPrefix("HTTP/1.1 \(status)"))
        scene.end()
    }

    @Test func `no certificate, or one of nobody's, and there is no connection`() throws {
        let scene = try Scene(Self.named("[a@b.test]", Self.entry("good", callers: "ca.pem")))
        for configuration in [try Self.caller("unknown"), nil] {
            let caller = try SecureCaller(scene, scene.call(), configuration: configuration)
            _ = caller.shake()
            _ = caller.send(Wire.get())
            scene.settle()
            // It hears why before the connection goes.
            #expect(caller.receive() == "" && caller.peer.sawEnd && !caller.peer.isClosed)
            scene.pass(seconds: 2)
            #expect(caller.peer.isClosed)
        }
        #expect(scene.upstreams.isEmpty && scene.glitches(.handshakeFailed) == 2)
        scene.end()
    }

    /// Two authorities on one listener: what one of them vouches for says nothing at the other's host.
    @Test func `a name counts only at the host whose certificate asked for it`() throws {
        let entries = try Self.entry("good", callers: "ca.pem") + ", " + Self.entry("other", callers: "unknown-ca.pem")
        let routes = ["good.test", "other.test"].map { host in
            "{listen: in, match: {host: \(host)}, to: \"http://127.0.0.1:9000\", use: none, callers: {tls_names: [a@b.test]}}"
        }
        let scene = try Scene(
            "listeners: {in: {address: \"127.0.0.1:8080\", tls: [\(entries)]}}\nroutes: [\(routes.joined(separator: ", "))]\n"
        )
        for (host, status) in [("GOOD.test", 200), ("other.test", 421)] {
            let caller = try SecureCaller(scene, scene.call(), configuration: Self.caller("client"))
            #expect(caller.shake() == .done)
            #expect(caller.send("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n"))
            if status == 200 { try #require(scene.upstreams.last).send(Wire.ok()) }
            scene.settle()
            #expect(caller.receive().hasPrefix("HTTP/1.1 \(status)"), "\(host)")
        }
        scene.end()
    }

    @Test func `an authority is needed where names are asked for`() throws {
        let loaded = try Configuration.load(.text(Self.named("[a]", Self.entry("good", callers: nil)))) { _ in nil }
        #expect(loaded.errors.count == 1 && loaded.errors[0].message.contains("client_ca"))
    }
}
