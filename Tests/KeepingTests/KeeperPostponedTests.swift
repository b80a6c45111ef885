import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Challenges that wait for another challenge's grant, when a reload takes away what they wait for.
@Suite struct KeeperPostponedTests {
    private static let plan: String = {
        var text = "identities: {o: {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c, "
        text += "client_secret: env:S, allowed_scopes: [a, b]}}}\nroutes:\n"
        for name in ["1", "2"] {
            text += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: o, match: {path: /\(name)/}, "
            text += "name: r\(name)}\n"
        }
        return text
    }()

    /// Two requests want more than the token has, and not the same: the grant for the first is under way.
    private func waiting() throws -> (scene: KeeperScene, callers: [Peer]) {
        let scene = try KeeperScene(Self.plan)
        scene.issuer = { request in Wire.bearer("t-" + (request.member("scope") ?? "")) }
        scene.upstream = { request in
            let need = String(request.path.suffix(1))
            if need == "n" || request.authorization?.hasSuffix(need) == true { return Wire.ok("in") }
            return "HTTP/1.1 403 No\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(need)\"\r\n"
                + "Content-Length: 0\r\n\r\n"
        }
        #expect(scene.status("/1/n") == 200)
        scene.issuer = { _ in nil }
        let callers = [scene.call(Wire.get("/2/a")), scene.call(Wire.get("/1/b"))]
        #expect(callers.map(\.status) == [nil, nil] && scene.issuerCalls.count == 2)
        return (scene, callers)
    }

    private func reload(_ scene: KeeperScene, routes: [String]) {
        let change = scene.change
        scene.inKeeper { keeper in
            let left = change.routes.filter { routes.contains($0.name) }
            keeper.take(
                KeeperChange(
                    identities: left.isEmpty ? [] : change.identities, routes: left,
                    keys: left.isEmpty ? [] : change.keys, subjects: keeper.users.limits))
        }
        // The time of the retired is over.
        scene.inKeeper { $0.catalogue.alarm?.action() }
    }

    /// A third request finds no token while a wider one is on its way: its record has fallen out of the cache.
    @Test func aMissGivesNobodyWhoWaitsForMoreTheTokenThatIsTooLittle() throws {
        let (scene, callers) = try waiting()
        let asked = scene.upstreamCalls.count
        scene.inKeeper { keeper in keeper.needed(keeper.tokens.all.inOrder[0].slot, from: 0) }
        scene.settle()
        #expect(callers.map(\.status) == [nil, nil] && scene.upstreamCalls.count == asked)
        scene.issuers[1].send(Wire.bearer("t-a"))
        scene.settle()
        #expect(callers[0].status == 200)
    }

    @Test func aRequestThatWaitsForAnotherGrantIsAnsweredWhenTheTokenGoes() throws {
        let (scene, callers) = try waiting()
        reload(scene, routes: [])
        #expect(callers.map(\.status) == [503, 503] && scene.inKeeper { $0.tokens.count } == 0)
        #expect(callers[1].receivedText.contains("Retry-After: 1\r\n"))
    }

    @Test func aRequestThatWaitsForAnotherGrantIsAnsweredWhenItsRouteGoes() throws {
        let (scene, callers) = try waiting()
        reload(scene, routes: ["r2"])
        #expect(callers.map(\.status) == [nil, nil])
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.bearer("t-a"))
        scene.settle()
        #expect(callers.map(\.status) == [200, 503])
        #expect(scene.issuerCalls.count == 2, "nothing is granted for a route that is gone")
    }

    @Test func aRequestThatWaitsForAnotherGrantHasOneOfItsOwnBehindIt() throws {
        let (scene, callers) = try waiting()
        scene.issuer = { request in Wire.bearer("t-" + (request.member("scope")?.suffix(1) ?? "")) }
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.bearer("t-a"))
        scene.settle()
        #expect(callers.map(\.status) == [200, 200] && scene.issuerCalls.count == 3)
    }
}
