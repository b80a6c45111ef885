import FoundationEssentials
import Glibc
import TLS
import TemporaryFolder

/// The one certificate of a run, which is its own authority, for all names of the simulation, and what is made with it. Its files are real:
/// certificates are read from disk by their paths, and the simulated disk has only the store.
final class SimulatedCertificate {
    private let folder = TemporaryFolder("sim")
    let certificate: String
    let key: String
    private let server: TLSServerConfiguration
    private let web: TLSServerConfiguration
    private let clients: [Bool: TLSClientConfiguration]

    /// The certificate is good by the machine's clock, which OpenSSL reads, and by the simulation's, which gateways read.
    private static let days = "20000"

    init() throws {
        certificate = folder.path + "/certificate.pem"
        key = folder.path + "/key.pem"
        let names = ["issuer", "oam", "api0", "api1", "api2", "redis"].map { "DNS:\($0).example" } + ["DNS:localhost"]
        try Self.run([
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            "/CN=simulation",
            "-days", Self.days,
            "-addext", "subjectAltName=" + names.joined(separator: ","), "-keyout", key, "-out", certificate,
        ])
        let material = ServerIdentity.Material(certificate: try Self.bytes(certificate), key: try Self.bytes(key))
        func identity(_ protocols: [String]) throws -> TLSServerConfiguration {
            try ServerIdentity(
                material, protocols: protocols, context: "simulation", tickets: TicketKeys(), now: 1_800_000_000
            ).configuration
        }
        server = try identity(["http/1.1"])
        web = try identity(["h2", "http/1.1"])
        let authority = CertificateAuthority.file(certificate)
        clients = [
            true: try TLSClientConfiguration(authorities: [authority], alpn: ["h2"]),
            false: try TLSClientConfiguration(authorities: [authority], alpn: ["http/1.1"]),
        ]
    }

    /// - Parameter speaksHTTP2: too.
    func server(speaksHTTP2: Bool) -> TLSServerConfiguration { speaksHTTP2 ? web : server }

    /// - Parameter speaksHTTP2: and nothing else.
    func client(speaksHTTP2: Bool) -> TLSClientConfiguration? { clients[speaksHTTP2] }

    private static func bytes(_ path: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: path)))
    }

    private static func run(_ arguments: [String]) throws {
        var pointers = arguments.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        defer { posix_spawn_file_actions_destroy(&actions) }
        var child = pid_t()
        var status: Int32 = 0
        guard posix_spawnp(&child, arguments[0], &actions, nil, &pointers, environ) == 0 else {
            throw SimulationFault("\(arguments[0]) cannot be started")
        }
        while waitpid(child, &status, 0) < 0, errno == EINTR {}
        guard status == 0 else { throw SimulationFault("\(arguments[0]) made no certificate") }
    }
}
