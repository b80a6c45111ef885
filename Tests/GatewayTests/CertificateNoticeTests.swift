import TLS
import Testing

@testable import Configuration
@testable import DataPath
@testable import Gateway
@testable import TLSTests

@Suite struct CertificateNoticeTests {
    @Test func `an end is announced in good time, once a day`() throws {
        let day: Int64 = 86400
        #expect(!CertificateNotice.isExpiring(from: 0, to: 90 * day, now: 60 * day))
        #expect(CertificateNotice.isExpiring(from: 0, to: 90 * day, now: 70 * day))
        #expect(!CertificateNotice.isExpiring(from: 0, to: 8 * day, now: 5 * day))
        #expect(CertificateNotice.isExpiring(from: 0, to: 8 * day, now: 7 * day))
        let files = try Certificates.shared.get()
        let source = CertificateSource(
            listener: "l", index: 0,
            files: .init(
                certificate: files.path("good.pem"), key: .file(path: files.path("good.key")), clientCA: nil, ocsp: nil),
            protocols: ["http/1.1"], environment: { _ in nil }, secretFiles: .warn)
        let identity = try ListenerTLS([source], tickets: TicketKeys(), now: 0).identities[0]
        var notice = CertificateNotice(listener: "l", file: "a.pem")
        let (from, end) = (identity.notBefore, identity.notAfter)
        #expect(notice.look(identity, now: from - 1) == .notYetValid)
        #expect(notice.look(identity, now: from) == nil)
        #expect(notice.look(identity, now: end - 3600) == .expiring)
        #expect(notice.look(identity, now: end - 60) == nil)
        #expect(notice.look(identity, now: end) == .expired)
        #expect(notice.look(identity, now: end + 86399) == nil)
        #expect(notice.look(identity, now: end + 86400) == .expired)
    }
}
