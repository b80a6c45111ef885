import Testing

@testable import Configuration
@testable import Handshakes

/// `client_certificate` and the certificate of a `tls` block.
@Suite struct ClientKeyTests {
    @Test func oneOrSeveral() throws {
        let one = try #require(
            Trial(Trial.around(identity: "client_certificate: {certificate: /c.p12, password: env:P}")).draft)
        #expect(
            one.identities[0].scheme.certificates
                == [.init(certificate: "/c.p12", key: nil, password: .environment(name: "P"))])
        let two = Trial(
            Trial.around(identity: "client_certificate: [{certificate: /a, key: env:A}, {certificate: /b}]"))
        #expect(two.errors == [])
        let files = try #require(two.draft?.identities[0].scheme.certificates)
        #expect(files.map(\.certificate) == ["/a", "/b"])
        #expect(two.draft?.clientKeys.map(\.owner) == ["identity 'a'", "identity 'a'"])
    }

    @Test func whatIsMissingOrWrongIsSaid() {
        let missing = Trial(Trial.around(identity: "client_certificate: {key: env:K}")).errors
        #expect(missing.count == 1 && missing[0].contains("'certificate'"))
        #expect(Trial(Trial.around(identity: "client_certificate: []")).errors.count == 1)
        let alone = Trial(Trial.around(route: "tls: {key: env:K}")).errors
        #expect(alone == ["'key' in 'tls' goes only with 'certificate'"])
        let certificate = "client_certificate: {certificate: /c}"
        let beside = Trial(Trial.around(identity: certificate, route: "tls: {certificate: /d}")).errors
        #expect(beside.count == 1 && beside[0].contains("which is a certificate itself"))
        let clear = Trial(
            """
            identities: {a: {\(certificate)}}
            routes: [{listen: "127.0.0.1:1", to: "http://127.0.0.1:2", use: a}]
            """
        ).errors
        #expect(clear.count == 1 && clear[0].contains("needs 'to' to be https:"))
        let vain = Trial(Trial.around(identity: certificate, route: "scopes: [x]")).warnings
        #expect(vain.contains { $0.contains("'scopes'") && $0.contains("no effect") })
    }

    @Test func theTLSBlockHasOne() throws {
        let route = try #require(
            Trial(Trial.around(route: "tls: {certificate: /c, key: env:K, password: env:P}")).draft?.routes.first)
        #expect(
            route.tls.identity
                == .init(certificate: "/c", key: .environment(name: "K"), password: .environment(name: "P")))
    }
}
