import Glibc
import Reactor
import ScriptedKernel
import TLS
import TemporaryFolder
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// A listener that opens TLS for some hosts, with an authority of its own that callers trust.
final class InterceptedScene {
    let scene: Scene
    private let authority: [UInt8]
    private let folder = TemporaryFolder("intercepted")

    /// - Parameters:
    ///   - mode: the listener's.
    ///   - origin: where the one route leads, at 127.0.0.1:9443.
    ///   - hosts: those that are opened, the first of which is the route's.
    ///   - match: more of what the route stands for.
    ///   - route: more of the route.
    init(
        _ mode: String, to origin: String, hosts: [String] = ["good.test"], match: String = "",
        listener: String = "", route: String = ""
    ) throws {
        // OpenSSL looks at the machine's clock.
        let now = Int64(time(nil))
        let made = try CertificateMint.makeAuthority(name: "test", hosts: hosts, days: 30, now: now)
        authority = made.certificate
        let path = "\(folder.path)/mint.pem"
        let file = open(path, O_WRONLY | O_CREAT, 0o600)
        _ = made.pair.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        close(file)
        let ca = try Certificates.shared.get().path("ca.pem")
        let names = hosts.map { "\"\($0)\"" }.joined(separator: ", ")
        scene = try Scene(
            """
            listeners:
              edge: {address: "127.0.0.1:8080", mode: \(mode), intercept: {ca: \(path), hosts: [\(names)]}\(listener)}
            routes:
              - listen: edge
                match: {host: "\(hosts[0])"\(match)}
                to: "\(origin)"
                use: none
                addresses: ["127.0.0.1:9443"]
                \(origin.hasPrefix("https") ? "tls: {ca: \(ca)}" : "")
                \(route)

            """)
        scene.kernel.wallOffset = now * 1000 - Int64(scene.kernel.clock / 1_000_000)
        scene.kernel.redirected = SocketAddress(host: "192.0.2.9", port: 9443)
    }

    /// A caller that trusts the authority.
    func caller(_ peer: Peer, name: String = "good.test") throws -> SecureCaller {
        let bundle = try AuthorityBundle(pem: authority, name: "mint")
        return try SecureCaller(
            scene, peer, name: name,
            configuration: TLSClientConfiguration(authorities: [.bundle(bundle)], alpn: ["http/1.1"]))
    }

    static func connect(_ authority: String, _ fields: String = "") -> String {
        "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(fields)\r\n"
    }

    /// A caller whose CONNECT was answered.
    func connected(_ name: String = "good.test", _ fields: String = "") throws -> SecureCaller {
        let peer = scene.call(Self.connect("\(name):9443", fields))
        #expect(peer.takeText() == "HTTP/1.1 200 Connection Established\r\n\r\n")
        return try caller(peer, name: name)
    }

    /// The first message of a caller that asks for this name; of an address none is sent.
    func hello(_ name: String) throws -> [UInt8] {
        let (descriptor, peer) = scene.kernel.pair()
        let caller = try caller(peer, name: name)
        caller.holdsBack = true
        _ = caller.tls.handshake()
        scene.kernel.close(descriptor)
        return caller.held
    }
}
