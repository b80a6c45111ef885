import Testing
import World

@testable import TLS

@Suite struct CertificateMintTests {
    private let now = SystemTime().wallSeconds()

    @Test func aLeafIsForItsHostAlone() throws {
        let made = try CertificateMint.makeAuthority(
            name: "test", hosts: ["api.test", "*.deep.test"], days: 30, now: now)
        let mint = try CertificateMint(pem: made.pair)
        let identity = try ServerIdentity(
            mint.leaf(for: "api.test", now: now), protocols: [], context: "t", tickets: TicketKeys(), now: 1)
        #expect(identity.names.fit("api.test") != .none)
        #expect(identity.names.fit("other.test") == .none)
        #expect(identity.notAfter <= mint.notAfter)
    }

    @Test(arguments: [["192.0.2.7"], ["fd91::2"], ["api.test", "fd91::2", "192.0.2.7"]])
    func anAddressIsAHost(hosts: [String]) throws {
        let made = try CertificateMint.makeAuthority(name: "test", hosts: hosts, days: 30, now: now)
        let mint = try CertificateMint(pem: made.pair)
        for host in hosts {
            let identity = try ServerIdentity(
                mint.leaf(for: host, now: now), protocols: [], context: "t", tickets: TicketKeys(), now: 1)
            #expect(identity.notAfter <= mint.notAfter)
        }
    }

    @Test func theSharedFileHoldsNoKey() throws {
        let made = try CertificateMint.makeAuthority(name: "test", hosts: ["api.test"], days: 30, now: now)
        #expect(!String(decoding: made.certificate, as: UTF8.self).contains("PRIVATE KEY"))
        #expect(throws: TLSFault.self) { try CertificateMint(pem: made.certificate) }
    }

    @Test(arguments: ["a,b", "a\nb", "a b", "DNS:x\"", ""])
    func aHostCannotAddAnotherName(host: String) throws {
        #expect(throws: TLSFault.self) {
            try CertificateMint.makeAuthority(name: "t", hosts: [host], days: 1, now: now)
        }
        let made = try CertificateMint.makeAuthority(name: "test", hosts: ["api.test"], days: 30, now: now)
        let mint = try CertificateMint(pem: made.pair)
        #expect(throws: TLSFault.self) { try mint.leaf(for: host, now: now) }
    }
}
