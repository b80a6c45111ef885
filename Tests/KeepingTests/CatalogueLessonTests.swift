import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// Routes and identities under other names over reloads: what was learned and what was had goes on with them.
@Suite struct CatalogueLessonTests {
    private static func compiled(_ yaml: String) throws -> (identities: [KeptIdentity], routes: [KeptRoute]) {
        let scene = try KeeperScene(yaml)
        return (scene.inKeeper { $0.identities }, scene.inKeeper { $0.routes })
    }

    /// The route inherits from its predecessor, and not from one without a table.
    @Test func aRouteUnderAnotherNumberHasTheTableOfItsPredecessor() throws {
        let plan = Plans.gate(paths: ["p"])
        let open =
            "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: none, "
            + "match: {path: /open/}, name: open}\n"
        let (first, next) = (try Self.compiled(plan + open), try Self.compiled(plan + open))
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        // Two routes that lead to the same: the first of them counts.
        let entry = LearnedEntry(path: Array("/w/x".utf8), method: Array("GET".utf8))
        #expect(first.routes[0].table.learnChallenge(of: "R", at: entry) == .learned)
        #expect(first.routes[1].table.learnChallenge(of: "Q", at: entry) == .learned)
        let arrived = catalogue.take(identities: next.identities).identities
        for route in next.routes { route.number += 10 }
        let taken = catalogue.take(routes: next.routes, arrived)
        #expect(taken.fresh.map(\.name) == ["r-w", "r-p", "open"])
        #expect(taken.inheriting.map(\.name) == ["r-w", "r-p"])
        #expect(taken.inheriting.map(\.table.boundRealm) == ["R", "R"])
    }

    @Test func anIdentityUnderAnotherNameGoesOnAsTheSameObject() throws {
        let renamed = Plans.client().replacing("  o:", with: "  other:").replacing("use: o", with: "use: other")
        let (first, next) = (try Self.compiled(Plans.client()), try Self.compiled(renamed))
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        let arrival = catalogue.take(identities: next.identities)
        #expect(catalogue.identities[0] === first.identities[0] && arrival.gone.isEmpty)
        #expect(catalogue.identity(named: "other") === first.identities[0] && catalogue.identity(named: "o") == nil)
    }

    /// A login's grant bounds every later refresh, also by the resources that it was for.
    @Test func aLoginIsAskedForTheResourcesOfAllRoutes() throws {
        let route = #"{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, match: {path: "#
        var yaml = "identities: {o: {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c, "
        yaml += "client_secret: env:S}}}\nroutes:\n"
        for (index, resource) in ["x", "y", "x"].enumerated() {
            yaml += "  - \(route)/\(index)/}, name: n\(index), resource: \"https://\(resource).example.com\"}\n"
        }
        let compiled = try Self.compiled(yaml)
        let wanted = Catalogue(identities: compiled.identities, routes: compiled.routes)
            .wanted(by: compiled.identities[0])
        #expect(wanted.resource == ["https://x.example.com", "https://y.example.com"])
    }

    /// A scheme's tokens may be its service's to forget: what was replaced does not come back with its configuration.
    @Test func tokensOfAnIdentityThatWasReplacedAreNotTakenBack() throws {
        let plan = """
            identities:
              m:
                mobile_hub:
                  {base_url: "http://127.0.0.1:9100", backend_id: 00000000-1111-2222-3333-444444444444,
                   method: basic_user, username: u, password: env:P}
            routes:
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: m}

            """
        let (first, back) = (try Self.compiled(plan), try Self.compiled(plan))
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        #expect(catalogue.take(identities: try Self.compiled(plan).identities).returned.isEmpty, "it was there")
        _ = catalogue.take(identities: [])
        let arrival = catalogue.take(identities: back.identities)
        #expect(arrival.returned.count == 1 && arrival.returned[0] === first.identities[0])
    }
}
