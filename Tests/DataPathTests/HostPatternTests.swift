import ScriptedKernel
import Testing

@testable import Scenes

/// Which hosts of requests a route's `match.host` means.
@Suite struct HostPatternTests {
    @Test(arguments: [
        ("api.example.com", "api.example.com", true), ("api.example.com", "API.example.com:8443", true),
        ("api.example.com", "api.example.com:", true), ("api.example.com", "other.example.com:8443", false),
        ("*.example.com", "api.example.com:8443", true), ("*.example.com", "a.b.example.com:8443", false),
        ("[fd91::2]", "[fd91::2]", true), ("[fd91::2]", "[FD91::2]:8443", true),
        ("[fd91::2]", "[fd91::3]:8443", false), ("192.0.2.1", "192.0.2.1:80", true),
    ])
    func aPortDoesNotCount(pattern: String, host: String, matches: Bool) throws {
        let scene = try Scene(Plans.open("match: {host: \"\(pattern)\"}"))
        let caller = scene.call("GET / HTTP/1.1\r\nHost: \(host)\r\n\r\n")
        #expect(scene.upstreams.isEmpty == !matches)
        if !matches { #expect(caller.receivedText.hasPrefix("HTTP/1.1 404 ")) }
        scene.end()
    }

    /// Brackets around what is no address make it no host that anybody has named.
    @Test func bracketsAroundANameAreNoWayIn() throws {
        let scene = try Scene(Plans.open("match: {host: api.example.com}"))
        let caller = scene.call("GET / HTTP/1.1\r\nHost: [api.example.com]\r\n\r\n")
        #expect(scene.upstreams.isEmpty && caller.receivedText.hasPrefix("HTTP/1.1 4"))
        scene.end()
    }
}
