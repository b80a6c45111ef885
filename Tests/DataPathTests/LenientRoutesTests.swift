import HTTP1
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Paths that other servers read as another route's.
@Suite struct LenientRoutesTests {
    /// In the order of the file: path, what sets the route apart, `paths`.
    static func plan(_ routes: [(path: String, rest: String)]) -> String {
        "identities:\n  a: {static: {value: env:V}}\n" + user + "routes:\n"
            + routes.map { path, rest in
                "  - {listen: \"127.0.0.1:8080\", match: {path: \"\(path)\"}, \(rest)}\n"
            }.joined()
    }

    /// An identity with a token for each user.
    private static let user =
        "  u: {oauth2: {token_url: \"https://idp.example/t\", grant: client_credentials, client_id: c, client_secret: env:S, "
        + "extra: {act_as: \"{subject}\"}}}\n"

    static let near = "to: \"http://127.0.0.1:9000\""
    static let strict = near + ", use: a, callers: {token: env:T}"
    static let fallback = near + ", use: none"

    /// Whether the request is refused; nil: no route takes it.
    static func refuses(_ scene: Scene, _ target: String, host: String = "h", method: String = "GET") throws -> Bool? {
        let table = try #require(scene.plan.listeners.first).table
        let bytes = Array("\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\r\n".utf8)
        let scratch = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 1)
        defer { scratch.deallocate() }
        var head = RequestHead(maxFields: 16)
        return bytes.withUnsafeBytes { bytes in
            _ = try? head.parse(bytes.octets, limits: HeadLimits())
            guard let route = table.first(for: head, in: bytes) else { return nil }
            return table.lenient?.other(than: route, for: head, in: bytes, scratch: scratch) != nil
        }
    }

    static let paths: [(String, Bool)] = [
        ("/admin;a=b/x", true), ("/;x/admin/x", true), ("/;x/;y/admin/x", true), ("/admin%3b/x", true),
        ("/admin%3Ba/x", true), ("/ADMIN/x", true), ("/Admin/", true), ("/%41dmin/x", true), ("/admin", true),
        ("/admin?x=/", true), ("/ADMIN", true), ("/admin;", true), ("/admin;x?y", true), ("/;/admin", true),
        // Segments that are none, and separators that are not written as such.
        ("//admin/x", true), ("/./admin/x", true), ("/shop/../admin/x", true), ("/shop/..;a/admin/x", true),
        ("/shop/%2e%2E/admin", true), ("/a/b/../../admin/x", true), ("/../../admin/x", true),
        ("/shop/..%2fadmin/", true),
        ("/admin%2fx", true), ("/\\admin\\x", true), ("/%5cadmin/x", true), ("/shop//..//.//admin/.", true),
        // The route's own, whatever stands in it.
        ("/admin/x", false), ("/admin/", false), ("/admin/X;jsessionid=1", false), ("/admin/x;a/../", false),
        // The other's.
        ("/", false), ("/;jsessionid=2", false), ("/shop;jsessionid=2", false), ("/Shop/Cart", false),
        ("/administrator", false), ("/admin2/", false), ("/x/admin", false), ("/x/admin;y", false),
        // Servers differ about where these lead.
        ("/admin;%2f..%2fpublic/x", true), ("/ADMIN//../public", true), ("/ADMIN/..;/public", true),
        ("/ADMIN/x/..%2f..%2fpublic", true), ("/a/b/../c", false), ("/group%2Fname", false), ("/a//b", false),
        ("/shop/./x", false), ("//shop//x/", false), ("/x/.admin/", false), ("/.../admin/x", false),
        ("/..admin/x", false),
        ("/x/admin/..", false), ("/admin%2gx", false), ("/shop%2fadmin/", false), ("/other?/ADMIN/", false),
        ("/other?;/admin", false), ("/six66", false),
    ]

    @Test(arguments: paths)
    func aStricterRouteIsNotPassedBy(target: String, isRefused: Bool) throws {
        // Both through the list and through the index.
        for count in [0, 40] {
            let more = (0..<count).map { (path: "/r\($0)/", rest: Self.fallback) }
            let scene = try Scene(Self.plan([("/admin/", Self.strict)] + more + [("/", Self.fallback)]))
            defer { scene.end() }
            #expect(try Self.refuses(scene, target) == isRefused)
        }
    }

    static let exact = [("/admin/", strict), ("/admin", fallback), ("/key", strict), ("/", fallback)]
    static let cased = [("/Admin/", strict), ("/admin/", fallback), ("/", fallback)]
    static let raw = [("/admin/", strict), ("/", fallback + ", paths: raw")]
    static let equal = [("/admin/", fallback), ("/", fallback)]
    static let elsewhere = [("/admin/", "to: \"http://127.0.0.1:9001\", use: none"), ("/", fallback)]
    static let alone = [("/admin/", strict)]
    // Told apart by one thing alone.
    static let byCallers = [("/admin/", fallback + ", callers: {token: env:T}"), ("/", fallback)]
    static let bySubject = [
        ("/admin/", near + ", use: u, callers: local, subject: {from_header: X-User}"),
        ("/", near + ", use: u, callers: local, subject: {from_header: X-Other}"),
    ]
    static let byUse = [("/admin/", near + ", use: a"), ("/", fallback)]
    static let exactBefore = [("/admin", strict), ("/admin/", fallback), ("/", fallback)]
    static let parameter = [("/a;v=1/", strict), ("/", fallback)]
    static let reserved = [("/odata/$batch", strict), ("/v1/users:admin/", strict), ("/", fallback)]
    static let encoded = [("/%40admin/", strict), ("/", fallback)]
    static let upper = [("/Admin/", strict), ("/", fallback)]

    @Test(arguments: [
        // Written out in full: meant so.
        (exact, "/admin", false), (exact, "/admin/", false), (exact, "/key", false), (exact, "/KEY", true),
        (exact, "/key;x", true), (exact, "/key/", true), (exact, "/KEY/", true), (exact, "/key;x/", true),
        (exact, "/admin/?x", false), (exact, "/ADMIN", true),
        // Told apart by case alone.
        (cased, "/Admin/x", false), (cased, "/admin/x", false), (cased, "/ADMIN/x", true), (cased, "/Admin/x;y", false),
        (raw, "/ADMIN/x", false), (raw, "/admin;/x", false), (raw, "/admin", false),
        (equal, "/ADMIN/x", false), (equal, "/admin", false),
        (elsewhere, "/ADMIN/x", true), (elsewhere, "/admin", true), (elsewhere, "/admin/x", false),
        (byCallers, "/ADMIN/x", true), (byCallers, "/admin", true), (byCallers, "/admin/x", false),
        (bySubject, "/ADMIN/x", true), (bySubject, "/admin/x", false), (byUse, "/ADMIN/x", true),
        // Written out in full as a prefix is, whatever comes before it.
        (exactBefore, "/admin/", false), (exactBefore, "/admin/?x", false), (exactBefore, "/ADMIN/", true),
        (alone, "/admin/X", false), (alone, "/ADMIN/x", nil),
        (parameter, "/a;v=1/x", false), (parameter, "/a/x", true), (parameter, "/b/x", false),
        (reserved, "/odata/%24batch", true), (reserved, "/v1/users%3aadmin/x", true),
        (reserved, "/odata/%24all", false),
        (reserved, "/odata/$batch", false), (encoded, "/@admin/x", true), (encoded, "/%40admin/x", false),
        (upper, "/admin/x", true), (upper, "/Admin/x", false), (upper, "/Admin/x;jsessionid=1/Y", false),
    ])
    func whatWasToldApartOnPurposePasses(routes: [(String, String)], target: String, isRefused: Bool?) throws {
        let scene = try Scene(Self.plan(routes))
        defer { scene.end() }
        #expect(try Self.refuses(scene, target) == isRefused)
    }

    @Test func hostAndMethodCountAsInTheFirstReading() throws {
        let scene = try Scene(
            "identities:\n  a: {static: {value: env:V}}\nroutes:\n"
                + "  - {listen: \"127.0.0.1:8080\", match: {host: a.example, path: /admin/}, \(Self.strict)}\n"
                + "  - {listen: \"127.0.0.1:8080\", match: {path: /put/, methods: [PUT]}, \(Self.strict)}\n"
                + "  - {listen: \"127.0.0.1:8080\", \(Self.fallback)}\n")
        defer { scene.end() }
        #expect(try Self.refuses(scene, "/ADMIN/x", host: "a.example") == true)
        #expect(try Self.refuses(scene, "/ADMIN/x", host: "b.example") == false)
        #expect(try Self.refuses(scene, "/PUT/x", method: "PUT") == true)
        #expect(try Self.refuses(scene, "/PUT/x") == false)
    }

    /// What the index finds is what a list would.
    @Test func aThousandRoutesAreReadTheSameWay() throws {
        var routes = (0..<1000).map { (path: "/api/Service\($0)/", rest: $0 % 2 == 0 ? Self.strict : Self.fallback) }
        routes.append(("/", Self.fallback))
        let scene = try Scene(Self.plan(routes))
        defer { scene.end() }
        for number in stride(from: 0, to: 1000, by: 37) {
            #expect(try Self.refuses(scene, "/api/service\(number)/x") == (number % 2 == 0))
            #expect(try Self.refuses(scene, "/api/Service\(number)/X;y") == false)
        }
    }

    @Test func aConflictIsA400AndAParameterPasses() throws {
        let scene = try Scene(Self.plan([("/admin/", Self.strict), ("/", Self.fallback)]))
        defer { scene.end() }
        let refused = scene.call("GET /admin;a=b/x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(refused.receivedText.contains("400") && refused.receivedText.contains("unsafe-path"))
        let passed = scene.call("GET /shop/Cart;jsessionid=A HTTP/1.1\r\nHost: localhost\r\n\r\n")
        #expect(passed.receivedText.isEmpty)
        #expect(scene.upstreams.last?.receivedText.hasPrefix("GET /shop/Cart;jsessionid=A HTTP/1.1\r\n") == true)
    }
}
