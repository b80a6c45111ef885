import Glibc
import TLS
import Testing

@Suite struct HandshakeTests {
    let files: Certificates

    init() throws {
        signal(SIGPIPE, SIG_IGN)
        files = try Certificates.shared.get()
    }

    private func client(
        ca: String = "ca.pem", legacy: Bool = false, alpn: [String] = [], identities: [ClientCertificate] = []
    ) throws -> TLSClientConfiguration {
        try TLSClientConfiguration(
            authorities: [.file(files.path(ca))], legacy: legacy, alpn: alpn, identities: identities)
    }

    private func server(
        _ name: String, alpn: [String] = [], maximum: TLSVersion = .v1_3, clients: String? = nil
    ) throws -> TLSServerConfiguration {
        try TLSServerConfiguration(
            certificate: files.bytes("\(name).pem"), key: files.bytes("\(name).key"), alpn: alpn,
            maximumVersion: maximum, callerAuthorities: clients.map { files.bytes($0) })
    }

    @Test(arguments: [
        ("good", "good.test"), ("good", "GOOD.test."), ("good", "127.0.0.1"), ("good", "::1"), ("good", "[::1]"),
        ("good", "[0:0:0::1]"), ("other", "other.test"),
    ])
    func `accepts a certificate for the name or address asked for`(leaf: String, name: String) throws {
        let wires = Wires()
        let client = try TLSConnection(client: client(), serverName: name, descriptor: wires.one)
        let server = try TLSConnection(server: server(leaf), descriptor: wires.two)
        let result = shake(client, server)
        #expect(result.client == .done && result.server == .done)
        #expect(client.version == .v1_3 && !client.resumed && client.negotiatedProtocol == nil)
        #expect(client.handshake() == .done)
    }

    @Test(arguments: [
        ("other", "good.test", "ca.pem", TLSFault.CertificateReason.nameMismatch),
        ("good", "127.0.0.2", "ca.pem", .nameMismatch),
        ("good", "::2", "ca.pem", .nameMismatch),
        ("good", "sub.good.test", "ca.pem", .nameMismatch),
        ("subject", "good.test", "ca.pem", .nameMismatch),
        ("expired", "good.test", "ca.pem", .expired),
        ("unknown", "good.test", "ca.pem", .unknownAuthority),
        ("good", "good.test", "unknown-ca.pem", .unknownAuthority),
    ])
    func `refuses a certificate and says why`(
        leaf: String, name: String, ca: String, reason: TLSFault.CertificateReason
    ) throws {
        let wires = Wires()
        let configuration = try client(ca: ca)
        let client = try TLSConnection(client: configuration, serverName: name, descriptor: wires.one)
        let server = try TLSConnection(server: server(leaf), descriptor: wires.two)
        let result = shake(client, server)
        guard case .failed(let fault) = result.client else { Issue.record("accepted"); return }
        #expect(fault.kind == .certificate(reason))
        #expect(fault.message.contains("certificate of \(name) refused"))
        // The server learns by an alert, and the failed connection stays failed.
        if case .failed(let refused) = result.server, case .alert = refused.kind {} else { Issue.record("no alert") }
        #expect(client.send("x") == .failed(fault) && client.receive().0 == .failed(fault))
        #expect(try configuration.sessionCount(for: name) == 0)
    }

    @Test func `a system without this authority refuses it`() throws {
        let wires = Wires()
        let client = try TLSConnection(
            client: TLSClientConfiguration(), serverName: "good.test", descriptor: wires.one)
        let result = shake(client, try TLSConnection(server: server("good"), descriptor: wires.two))
        guard case .failed(let fault) = result.client else { Issue.record("accepted"); return }
        #expect(fault.kind == .certificate(.unknownAuthority))
    }

    @Test func `legacy accepts a name in the subject`() throws {
        let wires = Wires()
        let client = try TLSConnection(client: client(legacy: true), serverName: "good.test", descriptor: wires.one)
        #expect(shake(client, try TLSConnection(server: server("subject"), descriptor: wires.two)).client == .done)
    }

    @Test func `a server's own certificate can be the authority`() throws {
        let wires = Wires()
        let client = try TLSConnection(client: client(ca: "good.pem"), serverName: "good.test", descriptor: wires.one)
        #expect(shake(client, try TLSConnection(server: server("good"), descriptor: wires.two)).client == .done)
    }

    @Test(arguments: ["", ".", ".good.test", "good test", "good.test\0.evil", "gööd.test", "[::1", "a/b", "user@host"])
    func `refuses what is no server name`(name: String) throws {
        let wires = Wires()
        let configuration = try client()
        #expect(throws: TLSFault.self) {
            try TLSConnection(client: configuration, serverName: name, descriptor: wires.one)
        }
    }

    @Test(arguments: [
        (["h2", "http/1.1"], ["h2", "http/1.1"], "h2"), (["http/1.1"], ["h2", "http/1.1"], "http/1.1"),
        (["h2", "http/1.1"], ["http/1.1"], "http/1.1"), (["h2"], [], nil), ([], ["h2"], nil),
    ])
    func `agrees on a protocol`(offered: [String], served: [String], agreed: String?) throws {
        let wires = Wires()
        let client = try TLSConnection(client: client(alpn: offered), serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: server("good", alpn: served), descriptor: wires.two)
        #expect(shake(client, server).client == .done)
        #expect(client.negotiatedProtocol == agreed && server.negotiatedProtocol == agreed)
    }

    @Test func `no protocol in common is a refusal`() throws {
        let wires = Wires()
        let client = try TLSConnection(client: client(alpn: ["h2"]), serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: server("good", alpn: ["http/1.1"]), descriptor: wires.two)
        guard case .failed(let fault) = shake(client, server).client else { Issue.record("accepted"); return }
        #expect(fault.kind == .alert(120))
    }

    @Test func `authorities that were read are those of their file`() throws {
        let pem = files.bytes("ca.pem")
        let stranger = files.bytes("good.pem")
        func attempt(_ authorities: [UInt8]) throws -> Bool {
            let wires = Wires()
            let bundle = CertificateAuthority.bundle(try AuthorityBundle(pem: authorities, name: "x"))
            let client = try TLSConnection(
                client: try TLSClientConfiguration(authorities: [bundle]), serverName: "good.test",
                descriptor: wires.one)
            let server = try TLSConnection(server: server("good"), descriptor: wires.two)
            return shake(client, server).client == .done
        }
        // Twice, with what a file says around it.
        #expect(try attempt(Array("# ours\n".utf8) + pem + pem))
        #expect(throws: TLSFault.self) { try AuthorityBundle(pem: [], name: "x") }
        #expect(throws: TLSFault.self) { try AuthorityBundle(pem: Array("no certificate".utf8), name: "x") }
        // One that cannot be read spoils the rest: nobody is to believe that it counts.
        let torn = pem + stranger.prefix(stranger.count / 2) + pem
        #expect { try AuthorityBundle(pem: torn, name: "x") } throws: { "\($0)".contains("certificate 2") }
    }

    @Test func `refuses impossible settings`() throws {
        let missing = files.path("missing.pem")
        let key = files.path("good.key")
        #expect(throws: TLSFault.self) { try TLSClientConfiguration(authorities: []) }
        #expect(throws: TLSFault.self) { try TLSClientConfiguration(authorities: [.file(missing)]) }
        #expect(throws: TLSFault.self) { try TLSClientConfiguration(authorities: [.file(key)]) }
        #expect(throws: TLSFault.self) { try TLSClientConfiguration(alpn: [""]) }
        #expect(throws: TLSFault.self) { try TLSClientConfiguration(alpn: [String(repeating: "x", count: 256)]) }
    }

    @Test(arguments: ["pem", "encrypted", "pkcs12"])
    func `shows a client certificate`(form: String) throws {
        let secret = Array("secret".utf8)
        let identity =
            switch form {
            case "pem":
                try ClientCertificate(certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.key"))
            case "encrypted":
                try ClientCertificate(
                    certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.encrypted.key"),
                    password: secret)
            default: try ClientCertificate(pkcs12: files.bytes("client.p12"), password: secret)
            }
        #expect(identity.thumbprint.count == 32)
        let wires = Wires()
        let client = try TLSConnection(
            client: client(identities: [identity]), serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: server("good", clients: "ca.pem"), descriptor: wires.two)
        let result = shake(client, server)
        #expect(result.client == .done && result.server == .done)
    }

    /// The server names one authority; both orders, because the first is also what is shown when none fits.
    @Test(arguments: [true, false])
    func `of several client certificates the requested one is shown`(requestedFirst: Bool) throws {
        let requested = try ClientCertificate(
            certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.key"))
        let other = try ClientCertificate(
            certificatePEM: files.bytes("unknown.pem"), keyPEM: files.bytes("unknown.key"))
        let wires = Wires()
        let client = try TLSConnection(
            client: client(identities: requestedFirst ? [requested, other] : [other, requested]),
            serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: server("good", clients: "ca.pem"), descriptor: wires.two)
        let result = shake(client, server)
        #expect(result.client == .done && result.server == .done)
        let stranger = Wires()
        let refused = try TLSConnection(
            client: self.client(identities: [other, other]), serverName: "good.test", descriptor: stranger.one)
        let judge = try TLSConnection(server: self.server("good", clients: "ca.pem"), descriptor: stranger.two)
        #expect(shake(refused, judge).server != .done)
    }

    @Test func `a certificate says how long it is good`() throws {
        let client = try ClientCertificate(
            certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.key"))
        #expect(client.validity.last - client.validity.first == 2 * 86_400)
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let second = Int64(now.tv_sec)
        #expect(client.validity.first <= second && second <= client.validity.last)
    }

    @Test func `a server that wants a client certificate says so`() throws {
        let wires = Wires()
        let client = try TLSConnection(client: client(), serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: server("good", clients: "ca.pem"), descriptor: wires.two)
        _ = shake(client, server)
        guard case .failed(let fault) = client.receive().0 else { Issue.record("no fault"); return }
        #expect(fault.kind == .alert(116))
    }

    @Test func `refuses an unusable client certificate`() throws {
        let files = files
        #expect(throws: TLSFault.self) {
            try ClientCertificate(certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("good.key"))
        }
        #expect(throws: TLSFault.self) {
            try ClientCertificate(
                certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.encrypted.key"),
                password: Array("wrong".utf8))
        }
        #expect(throws: TLSFault.self) {
            try ClientCertificate(
                certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.encrypted.key"))
        }
        #expect(throws: TLSFault.self) { try ClientCertificate(certificatePEM: [], keyPEM: []) }
        #expect(throws: TLSFault.self) {
            try ClientCertificate(pkcs12: files.bytes("client.p12"), password: Array("wrong".utf8))
        }
        #expect(throws: TLSFault.self) { try ClientCertificate(pkcs12: [1, 2, 3], password: []) }
    }
}
