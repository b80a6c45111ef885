import ScriptedKernel
import TLS
import Testing
import Tokens

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// For whom a request is: the one value that names its end user, or a refusal.
@Suite struct SubjectTests {
    private static let named = Plans.users("extra: {act_as: '{subject}'}", "{from_header: X-User}")
    private static let exchanged = Plans.users("grant: token_exchange", "from_caller_token")

    /// - Returns: the key of the user for whom the keeper is asked for a token; nil: the request was refused.
    private static func key(_ fields: String, _ plan: String) throws -> [UInt8]? {
        let scene = try Scene(plan)
        let caller = scene.call(Wire.get("/", fields))
        let asked = scene.keeper.cold.first
        if asked == nil {
            #expect(caller.status == 403 && caller.receivedText.contains("problems/subject-missing"), "\(fields)")
        }
        #expect(scene.upstreams.isEmpty)
        scene.end()
        return asked?.subject?.key.bytes
    }

    // MARK: - A field

    @Test(arguments: [
        ("X-User: anna\r\n", "anna"), ("x-uSER:  anna b \r\n", "anna b"),
        ("X-User: \(String(repeating: "u", count: 256))\r\n", String(repeating: "u", count: 256)),
        ("", nil), ("X-User: \r\n", nil), ("X-User: anna\r\nX-User: anna\r\n", nil), ("X-Users: anna\r\n", nil),
        ("X-User: \(String(repeating: "u", count: 257))\r\n", nil), ("X-User: an\tna\r\n", nil),
    ])
    func aFieldNamesItsUser(fields: String, user: String?) throws {
        #expect(try Self.key(fields, Self.named) == user.map { Array($0.utf8) })
    }

    @Test func eachUserHasATokenOfItsOwn() throws {
        let scene = try Scene(Self.named)
        for user in ["anna", "bert"] {
            try scene.publish("Bearer of-\(user)", generation: 1, for: Array(user.utf8))
        }
        for user in ["anna", "bert"] {
            let caller = scene.call(Wire.get("/", "X-User: \(user)\r\n"))
            let upstream = try #require(scene.upstreams.last)
            #expect(upstream.takeText().contains("\r\nAuthorization: Bearer of-\(user)\r\n"))
            upstream.send(Wire.ok("x"))
            scene.settle()
            #expect(caller.takeText() == Wire.ok("x"))
        }
        #expect(scene.keeper.reports.isEmpty && scene.call(Wire.get("/", "X-User: carl\r\n")).receivedCount == 0)
        #expect(scene.keeper.cold.count == 1)
        scene.end()
    }

    // MARK: - A token

    /// `Bearer` and one token68 (RFC 6750 section 2.1); the user is known by the digest of the token.
    @Test(arguments: [
        ("Bearer t0ken-._~+/=", "t0ken-._~+/="), ("bEARER   x", "x"),
        ("Bearer \(String(repeating: "t", count: 8192))", String(repeating: "t", count: 8192)),
        ("Bearer \(String(repeating: "t", count: 8193))", nil), ("Bearer", nil), ("Bearer_token", nil),
        ("Basic dXNlcjpw", nil), ("Bearer a b", nil), ("Bearer a,b", nil), ("Bearer \"a\"", nil), ("x", nil),
    ])
    func aCallersTokenNamesItsUser(credential: String, token: String?) throws {
        let key = try Self.key("Authorization: \(credential)\r\n", Self.exchanged)
        #expect(key == token.map { [1] + sha256(Array($0.utf8)) })
    }

    /// Whose turn it is to be exchanged must not be a matter of interpretation.
    @Test func twoTokensNameNobody() throws {
        #expect(try Self.key("Authorization: Bearer a\r\nAuthorization: Bearer a\r\n", Self.exchanged) == nil)
        #expect(try Self.key("", Self.exchanged) == nil)
    }

    /// The placeholder of `token_stub` stands for nobody.
    @Test func thePlaceholderNamesNobody() throws {
        for plan in [Self.named, Self.exchanged] {
            let stub = "  - {listen: \"127.0.0.1:8080\", match: {path: /token}, token_stub: {}}\n"
            for mark in ["cardea-placeholder-admits-nobody", "cardea-placeholder-of-later", "%63ardea-placeholder"] {
                #expect(try Self.key("X-User: \(mark)\r\nAuthorization: Bearer \(mark)\r\n", plan + stub) == nil)
            }
            let fields = "X-User: cardea\r\nAuthorization: Bearer cardea\r\n"
            #expect(try Self.key(fields, plan + stub) != nil)
        }
    }

    // MARK: - A certificate

    private static func certified(_ entries: [String], hosts: String = "good.test, other.test") -> String {
        """
        identities:
          o: {oauth2: {token_url: "https://i.example.com/t", client_id: c, client_secret: env:V, extra: {act_as: "{subject}"}}}
        listeners: {in: {address: "127.0.0.1:8080", hosts: [\(hosts)], tls: [\(entries.joined(separator: ", "))]}}
        routes: [{listen: in, to: "http://127.0.0.1:9000", use: o, callers: local, subject: from_client_certificate}]

        """
    }

    private static func caller(_ scene: Scene, _ leaf: String) throws -> SecureCaller {
        let files = try Certificates.shared.get()
        let caller = try SecureCaller(
            scene, scene.call(),
            configuration: TLSClientConfiguration(
                authorities: [.file(files.path("ca.pem"))], alpn: ["http/1.1"],
                identities: [
                    ClientCertificate(certificatePEM: files.bytes(leaf + ".pem"), keyPEM: files.bytes(leaf + ".key"))
                ]))
        #expect(caller.shake() == .done)
        return caller
    }

    @Test func theNameOfACertificateIsItsUser() throws {
        let files = try Certificates.shared.get()
        let scene = try Scene(Self.certified([files.entry("good", callers: "ca.pem")]))
        try scene.publish("Bearer of-mail", generation: 1, for: Array("a@b.test".utf8))
        let caller = try Self.caller(scene, "client")
        #expect(caller.send("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"))
        let upstream = try #require(scene.upstreams.first)
        #expect(upstream.takeText().contains("\r\nAuthorization: Bearer of-mail\r\n"))
        upstream.send(Wire.ok("x"))
        scene.settle()
        #expect(caller.receive().hasSuffix("\r\n\r\nx"))
        // The keeper is told the same name.
        let other = try Self.caller(scene, "other")
        #expect(other.send("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"))
        let key = try #require(scene.keeper.cold.first?.subject?.key)
        #expect(key.bytes == Array("other.test".utf8))
        scene.end()
    }

    /// A choice among several names would be ours, and none is nobody's.
    @Test(arguments: [
        ("subject-two", "DNS:a.test,email:a@b.test"), ("subject-none", "IP:192.0.2.1"),
        ("subject-long", "URI:urn:\(String(repeating: "u", count: 253))"),
    ])
    func aCertificateWithoutExactlyOneNameNamesNobody(leaf: String, names: String) throws {
        let files = try Certificates.shared.get()
        try files.make(leaf, names)
        let scene = try Scene(Self.certified([files.entry("good", callers: "ca.pem")]))
        let caller = try Self.caller(scene, leaf)
        #expect(caller.send("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"))
        let answer = caller.receive()
        #expect(answer.hasPrefix("HTTP/1.1 403 ") && answer.contains("problems/subject-missing"))
        #expect(scene.keeper.reports.isEmpty && scene.upstreams.isEmpty)
        scene.end()
    }

    /// The name was vouched for by the authority of one host alone.
    @Test func aUserOfOneHostIsNobodyAtAnothersHost() throws {
        let files = try Certificates.shared.get()
        let scene = try Scene(
            Self.certified([
                files.entry("good", callers: "ca.pem"), files.entry("other", callers: "unknown-ca.pem"),
            ]))
        let caller = try Self.caller(scene, "client")
        #expect(caller.send("GET / HTTP/1.1\r\nHost: other.test\r\n\r\n"))
        #expect(caller.receive().hasPrefix("HTTP/1.1 421 ") && scene.keeper.reports.isEmpty)
        #expect(caller.send("GET / HTTP/1.1\r\nHost: good.test\r\n\r\n"))
        #expect(scene.keeper.cold.count == 1)
        scene.end()
    }
}
