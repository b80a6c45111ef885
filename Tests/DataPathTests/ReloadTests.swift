import Configuration
import HotCache
import ScriptedKernel
import Telemetry
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// What a loop does with the next plan, and what the next plan takes over from the last.
@Suite struct ReloadTests {
    @Test func anExchangeEndsOnTheRouteThatItBeganWith() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get("/one"))
        let counted = scene.plan
        try scene.reload(
            "routes:\n  - {name: new, listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9001\", use: none}\n")
        scene.upstreams[0].send(Wire.ok("first"))
        scene.settle()
        #expect(caller.takeText().hasSuffix("first"))
        caller.send(Wire.get("/two"))
        scene.settle()
        #expect(scene.upstreams.count == 2)
        #expect(scene.upstreams[1].receivedText.hasPrefix("GET /two HTTP/1.1\r\nHost: 127.0.0.1:9001\r\n"))
        scene.upstreams[1].send(Wire.ok("second"))
        scene.settle()
        #expect(caller.takeText().hasSuffix("second"))
        #expect(counted.edition !== scene.data.plan.edition)
        scene.end()
    }

    @Test func anUpstreamThatStaysKeepsItsConnections() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        #expect(scene.idleUpstreams == 1)
        // Another route before it: the same upstream at another place in the file.
        try scene.reload(
            """
            routes:
              - {listen: "127.0.0.1:8081", to: "http://127.0.0.1:9005", use: none}
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: none}

            """)
        caller.send(Wire.get("/again"))
        scene.settle()
        #expect(scene.upstreams.count == 1)
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        // No route leads there any more.
        try scene.reload(
            "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9005\", use: none}\n")
        #expect(scene.idleUpstreams == 0)
        #expect(scene.upstreams[0].isClosed)
        scene.end()
    }

    @Test func callersOfAnAddressThatIsGoneAreToldToLeave() throws {
        let scene = try Scene(Plans.open())
        let idle = scene.call()
        let busy = scene.call(Wire.get())
        try scene.reload("routes:\n  - {listen: \"127.0.0.1:8081\", to: \"http://127.0.0.1:9000\", use: none}\n")
        scene.upstreams[0].send(Wire.ok("last"))
        scene.settle()
        #expect(busy.receivedText.contains("\r\nConnection: close\r\n"))
        #expect(busy.receivedText.hasSuffix("last"))
        // A request that was on its way is answered; whoever sends none has a moment.
        #expect(!idle.isClosed)
        idle.send(Wire.get())
        scene.settle()
        scene.upstreams[0].send(Wire.ok("late"))
        scene.settle()
        #expect(idle.receivedText.contains("\r\nConnection: close\r\n"))
        let silent = scene.call()
        scene.data.drain {}
        scene.pass(seconds: 1.5)
        #expect(silent.isClosed)
        scene.end()
    }

    @Test func countersOfTwoEditionsAddUp() throws {
        let scene = try Scene(Plans.open("name: a"))
        let before = scene.call(Wire.get())
        try scene.reload(
            """
            routes:
              - {name: b, listen: "127.0.0.1:8081", to: "http://127.0.0.1:9000", use: none}
              - {name: a, listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: none}

            """)
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        before.send(Wire.get())
        scene.settle()
        scene.upstreams[0].send(Wire.ok())
        scene.settle()
        #expect(scene.answered(route: "a") == 2)
        #expect(scene.answered(route: "b") == 0)
        scene.end()
    }

    @Test func routesAreTheSameByWhatTheyAre() throws {
        let first = try Scene(Plans.webgate("name: w"))
        let table = first.plan.routes[0].learned
        try first.reload(
            """
            identities:
              w:
                oam_webgate:
                  {service: "https://i.example.com/s", user_agent_prefix: P, client_id: c, username: u, password: env:V}
            routes:
              - {listen: "127.0.0.1:8081", to: "http://127.0.0.1:9005", use: none}
              - {name: w, listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: w}

            """)
        #expect(first.data.plan.routes[1].number == first.plan.routes[0].number)
        #expect(first.data.plan.routes[1].learned === table)
        #expect(first.data.plan.routes[0].number != first.plan.routes[0].number)
        // Another upstream: what was learned of the first says nothing of it.
        try first.reload(Plans.webgate("name: w").replacing("9000", "9001"))
        #expect(first.data.plan.routes[0].number > 1)
        #expect(first.data.plan.routes[0].learned !== table)
    }

    @Test func aSlotStaysWithItsKey() throws {
        let scene = try Scene(Plans.fixed())
        let slot = try scene.publish("held", generation: 1)
        try scene.reload(
            """
            identities: {b: {static: {value: env:W, header: X-Key}}, a: {static: {value: env:V}}}
            routes:
              - {listen: "127.0.0.1:8081", to: "http://127.0.0.1:9000", use: b}
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a}

            """)
        #expect(scene.data.plan.routes[1].slot == slot)
        #expect(scene.data.plan.routes[0].slot != slot)
        _ = scene.call(Wire.get())
        #expect(scene.upstreams[0].receivedText.contains("Authorization: held\r\n"))
        scene.end()
    }
}

extension String {
    fileprivate func replacing(_ old: String, _ new: String) -> String {
        split(separator: old, omittingEmptySubsequences: false).joined(separator: new)
    }
}
