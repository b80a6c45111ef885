import HTTP1
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// Which names in `Host` are ours, by where a listener is and by what admits the callers of a route.
@Suite struct HostRuleTests {
    struct Place: Sendable, CustomTestStringConvertible {
        var listener = "address: \"0.0.0.0:8080\""
        var route = "callers: local"
        var use = "none"
        var testDescription: String { "\(listener), \(route)" }
    }

    /// A published port: the callers' place alone admits them.
    static let published = Place()
    static let named = Place(
        listener: "address: \"0.0.0.0:8080\", hosts: [gw.example]", route: "callers: local, hosts: \"*.gw.example\"")
    static let matched = Place(route: "callers: local, match: {host: m.example}")
    static let wild = Place(route: "callers: local, match: {host: \"*.m.example\"}")
    static let any = Place(route: "callers: local, hosts: [any]")
    static let open = Place(route: "callers: {unsafe_open: true}")
    static let allowed = Place(route: "callers: {allow: [10.0.0.0/8]}")
    static let proven = Place(route: "callers: {token: env:T}")
    static let forEach = Place(route: "callers: local, subject: from_caller_token", use: "e")
    static let told = Place(route: "callers: local, subject: {from_header: X-User}", use: "u")
    static let unix = Place(listener: "address: \"unix:/run/x.sock\"")
    static let proxy = Place(
        listener: "address: \"0.0.0.0:8080\", mode: forward_proxy",
        route: "callers: local, match: {host: u.example.com}")
    static let diverted = Place(
        listener: "address: \"0.0.0.0:8080\", mode: transparent", route: "callers: local, match: {host: u.example.com}")
    static let near = Place(listener: "address: \"127.0.0.1:8080\"")
    static let nearProven = Place(listener: "address: \"127.0.0.1:8080\"", route: "callers: {token: env:T}")
    static let nearNamed = Place(listener: "address: \"127.0.0.1:8080\", hosts: [gw.example]")

    @Test(arguments: [
        // What no page of somebody else's can have as its name.
        (published, "192.0.2.7", true), (published, "192.0.2.7:8080", true), (published, "0.0.0.0", true),
        (published, "[2001:db8::1]:80", true), (published, "localhost", true), (published, "LocalHost:1", true),
        (published, "gateway", true), (published, "u.example.com", true), (published, "U.EXAMPLE.com:1", true),
        (published, "evil.example", false), (published, "EVIL.example:80", false), (published, "evil.", false),
        (published, "x.u.example.com", false), (published, "localhost.evil.example", false),
        // Nearly an address: browsers ask the name server for some of these.
        (published, "1.2.3", false), (published, "1.2.3.4.5", false), (published, "256.1.1.1", false),
        (published, "1.2.3.", false), (published, ".1.2.3", false), (published, "1..2.3", false),
        (published, "0001.2.3.4", false), (published, "1.2.3.4x", false), (published, "127.0.0.1.evil.example", false),
        // What else is ours is said at the listener or at the route.
        (named, "gw.example", true), (named, "a.gw.example:8080", true), (named, "a.b.gw.example", false),
        (named, "gw.example.evil.example", false), (matched, "m.example", true), (matched, "n.example", false),
        (wild, "a.m.example", true), (wild, "m.example", false), (any, "evil.example", true),
        (open, "evil.example", false), (allowed, "evil.example", false),
        // What a page cannot bring, or cannot reach, and callers that name others.
        (proven, "evil.example", true), (forEach, "evil.example", true), (told, "evil.example", false),
        (unix, "evil.example", true), (proxy, "evil.example", true),
        (diverted, "evil.example", true),
        // On loopback addresses and names without a dot are no exception, nor is a caller that proves itself.
        (near, "localhost:8080", true), (near, "127.0.0.1", true), (near, "[::1]:8080", true),
        (near, "u.example.com", true), (near, "evil.example", false), (near, "192.0.2.7", false),
        (near, "gateway", false), (nearProven, "evil.example", false), (nearProven, "localhost", true),
        (nearNamed, "gw.example", true), (nearNamed, "a.gw.example", false),
    ])
    func aNameIsServed(place: Place, host: String, isServed: Bool) throws {
        #expect(try Self.serves(place, "Host: \(host)\r\n") == isServed)
    }

    /// No browser leaves it out.
    @Test(arguments: [published, near]) func aRequestWithoutHostPasses(place: Place) throws {
        #expect(try Self.serves(place, "", version: "1.0"))
    }

    /// With a token for each user: of the user's own, and by a header.
    private static let identities = [
        "e": "grant: token_exchange", "u": "extra: {act_as: \"{subject}\"}",
    ].mapValues { "oauth2: {token_url: \"https://idp.example/t\", client_id: c, client_secret: env:S, \($0)}" }

    private static func serves(_ place: Place, _ field: String, version: String = "1.1") throws -> Bool {
        let scene = try Scene(
            (identities[place.use].map { "identities: {\(place.use): {\($0)}}\n" } ?? "")
                + "listeners:\n  l: {\(place.listener)}\nroutes:\n"
                + "  - {listen: l, to: \"https://u.example.com:8443\", use: \(place.use), \(place.route)}\n")
        defer { scene.end() }
        let listener = try #require(scene.plan.listeners.first)
        let route = try #require(listener.routes.first)
        let bytes = Array("GET / HTTP/\(version)\r\n\(field)\r\n".utf8)
        var head = RequestHead(maxFields: 8)
        return bytes.withUnsafeBytes { bytes in
            let length = try? head.parse(bytes.octets, limits: HeadLimits())
            #expect(length == bytes.count)
            return !listener.checksHost(on: route) || listener.serves(head, in: bytes, on: route, tls: nil)
        }
    }
}
