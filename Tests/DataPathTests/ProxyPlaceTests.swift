import Reactor
import ScriptedKernel
import Testing

@testable import Scenes

/// Where callers that take us for a proxy, or do not know of us, get to, and with whose credential.
@Suite struct ProxyPlaceTests {
    /// - Parameters:
    ///   - listener: further members of the listener.
    ///   - match: further members of the route's match.
    private static func plan(_ mode: String, _ listener: String = "", match: String = "") -> String {
        "identities: {a: {static: {value: env:V}}}\nlisteners:\n"
            + "  l: {address: \"127.0.0.1:8080\", mode: \(mode)\(listener)}\nroutes:\n"
            + "  - {listen: l, to: \"http://127.0.0.1:9000\", use: a, match: {host: h.test\(match)}}\n"
    }

    /// A route stands for its host on the ports that it has; the kernel says to which one a connection was going.
    @Test(
        arguments: [
            ("", 80, true), ("", 443, true), ("", 9000, true), ("", 81, false), ("", 8080, false),
            (", port: 81", 81, true), (", port: 81", 80, false), (", port: [81, 82]", 82, true),
        ] as [(String, UInt16, Bool)])
    func aRedirectedConnectionHasThePortThatItWasGoingTo(match: String, port: UInt16, isTaken: Bool) throws {
        let scene = try Scene(Self.plan("transparent", match: match))
        try scene.publish("k", generation: 1)
        scene.kernel.redirected = SocketAddress(host: "192.0.2.9", port: port)
        // Whatever the request says of it.
        let caller = scene.call("GET / HTTP/1.1\r\nHost: h.test:80\r\n\r\n")
        #expect(scene.upstreams.count == (isTaken ? 1 : 0))
        if !isTaken { #expect(caller.status == 404 && caller.receivedText.contains("problems/no-route")) }
        scene.end()
    }

    /// Behind a translator of this network's own stand IPv4 addresses, which are judged as such.
    @Test(arguments: [
        ("192.0.2.9", true, true), ("[2001:db8::9]", true, true), ("127.0.0.1", false, false),
        ("[64:ff9b::c000:209]", true, true), ("[64:ff9b::7f00:1]", false, false),
        ("[64:ff9b:1:fffe::c000:209]", false, true), ("[64:ff9b:1:fffe::7f00:1]", false, false),
    ])
    func aTranslatorIsLookedThrough(host: String, isOpen: Bool, isOpenWhenTold: Bool) throws {
        for (top, isOpen) in [("", isOpen), ("nat64: \"64:ff9b:1:fffe::/96\"\n", isOpenWhenTold)] {
            let scene = try Scene(top + Self.plan("forward_proxy", ", unmatched: tunnel"))
            let caller = scene.call("GET http://\(host)/ HTTP/1.1\r\nHost: \(host)\r\n\r\n")
            #expect(scene.upstreams.count == (isOpen ? 1 : 0))
            if !isOpen { #expect(caller.status == 403) }
            scene.end()
        }
    }
}
