import Glibc
import Testing

@testable import TLS

/// A listener's certificate in use: whom it serves, what it resumes, what it staples.
@Suite struct ServerIdentityTests {
    let files: Certificates

    init() throws {
        signal(SIGPIPE, SIG_IGN)
        files = try Certificates.shared.get()
    }

    private func identity(
        _ leaf: String = "good", tickets: TicketKeys, callers: String? = nil, context: String = "l/0",
        staple: [UInt8]? = nil, now: Int64? = nil
    ) throws -> ServerIdentity {
        try ServerIdentity(
            .init(
                certificate: files.bytes("\(leaf).pem") + files.bytes("ca.pem"), key: files.bytes("\(leaf).key"),
                callerAuthorities: callers.map { files.bytes($0) }, staple: staple), protocols: ["http/1.1"],
            context: context, tickets: tickets, now: now ?? Int64(time(nil)))
    }

    private func client(_ identity: ClientCertificate? = nil) throws -> TLSClientConfiguration {
        try TLSClientConfiguration(
            authorities: [.file(files.path("ca.pem"))], alpn: ["http/1.1"], identities: identity.map { [$0] } ?? [])
    }

    /// One handshake with an answer, so that the client has read the tickets that stand before it.
    private func meet(_ client: TLSClientConfiguration, _ identity: ServerIdentity) throws -> (
        resumed: Bool, done: Bool
    ) {
        let wires = Wires()
        let caller = try TLSConnection(client: client, serverName: "good.test", descriptor: wires.one)
        let server = try TLSConnection(server: identity.configuration, descriptor: wires.two)
        let result = shake(caller, server)
        guard result.client == .done, result.server == .done else { return (false, false) }
        #expect(server.send("hello") == .bytes(5) && caller.receive().1 == "hello")
        return (caller.resumed, server.resumed == caller.resumed)
    }

    // MARK: - Dates

    @Test func `every certificate and authority tells its dates under its name`() throws {
        let day: Int64 = 86_400
        let now = Int64(time(nil))
        let identity = try identity(tickets: TicketKeys(), callers: "unknown-ca.pem")
        #expect(Set(identity.validities.map(\.subject)) == ["Good", "Test CA"])
        #expect(identity.callerAuthorityValidities.map(\.subject) == ["Unknown CA"])
        for validity in identity.validities + identity.callerAuthorityValidities {
            #expect(abs(validity.notAfter - now - 2 * day) < 3600 && abs(validity.notBefore - now) < 3600)
        }
        let text = Array("# a comment\n".utf8)
        let pem = files.bytes("expired.pem") + text + files.bytes("ca.pem") + files.bytes("ca.pem")
        let bundle = try AuthorityBundle(pem: pem, name: "b")
        #expect(bundle.validities.map(\.subject) == ["Expired", "Test CA"], "those that end first")
        #expect(bundle.validities[0].notAfter < now)
        let pair = try ClientCertificate(
            certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.key"))
        #expect(pair.validities.map(\.subject) == ["Client"])
    }

    @Test func `of certificates of one name that which ends last is told`() {
        func validity(_ subject: String, _ last: Int64) -> CertificateValidity {
            CertificateValidity(subject: subject, notBefore: 0, notAfter: last)
        }
        let told = CertificateValidity.lastOfEach([validity("a", 5), validity("b", 3), validity("a", 9)])
        #expect(told == [validity("b", 3), validity("a", 9)])
        #expect(CertificateValidity.lastOfEach((0..<300).map { validity("\($0)", $0) }).last?.notAfter == 199)
    }

    // MARK: - Tickets

    @Test func `a session is resumed until its key is forgotten`() throws {
        let tickets = try TicketKeys()
        let identity = try identity(tickets: tickets)
        let client = try client()
        tickets.advance(now: 5)
        #expect(try meet(client, identity) == (false, true))
        #expect(try meet(client, identity) == (true, true))
        let first = tickets.names
        #expect(!tickets.advance(now: 4 + TicketKeys.period) && tickets.names == first)
        #expect(tickets.advance(now: 5 + TicketKeys.period) && tickets.names.count == 2 && tickets.names[1] == first[0])
        // Opened by an older key, and sealed anew by the newest.
        #expect(try meet(client, identity) == (true, true))
        #expect(tickets.advance(now: 5 + 3 * TicketKeys.period) && tickets.names.count == 2)
        #expect(!tickets.names.contains(first[0]))
        #expect(try meet(client, identity) == (true, true))
        #expect(tickets.advance(now: 5 + 6 * TicketKeys.period) && tickets.names.count == 1)
        #expect(try meet(client, identity) == (false, true))
    }

    @Test func `a certificate that was made anew resumes what the one before it sealed`() throws {
        let tickets = try TicketKeys()
        let client = try client()
        #expect(try meet(client, identity(tickets: tickets)) == (false, true))
        #expect(try meet(client, identity(tickets: tickets)) == (true, true))
        #expect(try meet(client, identity(tickets: tickets, context: "l/1")) == (false, true))
        #expect(try meet(client, identity(tickets: TicketKeys())) == (false, true))
    }

    @Test func `callers with certificates show them every time`() throws {
        let tickets = try TicketKeys()
        let own = try ClientCertificate(certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.key"))
        let client = try client(own)
        let identity = try identity(tickets: tickets, callers: "ca.pem")
        for _ in 0..<3 { #expect(try meet(client, identity) == (false, true)) }
        #expect(try !meet(self.client(), identity).done)
    }

    /// For the thread sanitizer: loops shake hands while the keeper turns the keys over.
    @Test func `keys change while others use them`() async throws {
        let tickets = try TicketKeys()
        let identity = try identity(tickets: tickets)
        let resumed = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    guard let client = try? self.client() else { return -1000 }
                    return (0..<25).count { _ in (try? self.meet(client, identity))?.resumed == true }
                }
            }
            group.addTask {
                for step in 1...200 { tickets.advance(now: UInt64(step) * TicketKeys.period / 10) }
                return 0
            }
            return await group.reduce(0, +)
        }
        #expect(resumed > 0)
    }

    // MARK: - Callers' certificates

    @Test func `the names of a caller's certificate are read`() throws {
        let own = try ClientCertificate(certificatePEM: files.bytes("client.pem"), keyPEM: files.bytes("client.key"))
        for (client, names) in [(try client(own), ["a@b.test"]), (try client(), nil as [String]?)] {
            let wires = Wires()
            let callers: String? = names == nil ? nil : "ca.pem"
            let caller = try TLSConnection(client: client, serverName: "good.test", descriptor: wires.one)
            let server = try TLSConnection(
                server: identity(tickets: TicketKeys(), callers: callers).configuration, descriptor: wires.two)
            #expect(shake(caller, server).server == .done)
            #expect(server.peerNames == names)
        }
    }

    @Test func `names fit as RFC 9525 has it`() throws {
        let tickets = try TicketKeys()
        let names = try identity(tickets: tickets).names
        #expect(names.hosts == ["good.test"] && names.addresses.count == 2)
        #expect(names.fit("good.test") == .exact && names.fit("a.good.test") == .none && names.fit("test") == .none)
    }

    // MARK: - Material

    @Test func `what cannot be used is refused with its reason`() throws {
        let tickets = try TicketKeys()
        func fault(_ certificate: [UInt8], _ key: [UInt8], _ callers: [UInt8]? = nil) -> String {
            do {
                _ = try ServerIdentity(
                    .init(certificate: certificate, key: key, callerAuthorities: callers), protocols: [], context: "",
                    tickets: tickets, now: 0)
                return ""
            } catch { return "\(error)" }
        }
        let (good, key) = (files.bytes("good.pem"), files.bytes("good.key"))
        #expect(fault(good, files.bytes("other.key")).contains("do not belong together"))
        #expect(fault([], key).contains("no PEM certificate"))
        #expect(fault(good, []).contains("cannot be read"))
        #expect(fault(files.bytes("client.pem"), files.bytes("client.encrypted.key")).contains("encrypted"))
        #expect(fault(good, key, [1, 2, 3]).contains("authorities of callers"))
        #expect(fault(good, key) == "")
    }

    // MARK: - OCSP

    private func answer(_ leaf: String, revoked: Bool = false, by signer: String = "ca") throws -> [UInt8] {
        let folder = files.path("ocsp-\(leaf)-\(revoked)-\(signer)")
        try Programs.run([
            "sh", "-c",
            """
            mkdir -p \(folder) && cd \(folder) && serial=$(openssl x509 -in ../\(leaf).pem -noout -serial | cut -d= -f2) &&
            printf '\(revoked ? "R\\t401231235959Z\\t200101000000Z" : "V\\t401231235959Z\\t")\\t%s\\tunknown\\t/CN=x\\n' "$serial" \
            >index.txt && openssl ocsp -index index.txt -rsigner ../\(signer).pem -rkey ../\(signer).key -CA ../ca.pem \
            -issuer ../ca.pem -cert ../\(leaf).pem -ndays 1 -respout answer.der
            """,
        ])
        return files.bytes("ocsp-\(leaf)-\(revoked)-\(signer)/answer.der")
    }

    @Test func `a sound answer is stapled until its end`() throws {
        let tickets = try TicketKeys()
        let bytes = try answer("good")
        let identity = try identity(tickets: tickets, staple: bytes)
        #expect(identity.stapleFault == nil)
        let until = try #require(identity.stapledUntil)
        #expect((80_000...86_500).contains(until - Int64(time(nil))))
    }

    @Test func `any other answer stays home, and the certificate serves without it`() throws {
        let tickets = try TicketKeys()
        func reason(_ staple: [UInt8], later: Int64 = 0) throws -> String {
            let made = try identity(tickets: tickets, staple: staple, now: Int64(time(nil)) + later)
            #expect(made.stapledUntil == nil)
            return made.stapleFault.map { "\($0)" } ?? ""
        }
        #expect(try reason([]).contains("no OCSP answer"))
        #expect(try reason(Array("garbage".utf8)).contains("no OCSP answer"))
        #expect(try reason(answer("other")).contains("another certificate"))
        #expect(try reason(answer("good", revoked: true)).contains("revoked"))
        #expect(try reason(answer("good", by: "unknown-ca")).contains("signature"))
        #expect(try reason(answer("good"), later: 90_000).contains("expired"))
        #expect(try reason(answer("good"), later: -90_000).contains("not valid yet"))
    }
}
