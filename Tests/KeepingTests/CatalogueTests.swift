import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// Identities and routes over reloads, without the keeper.
@Suite struct CatalogueTests {
    /// What a compilation brings: each time other objects.
    private static func compiled(
        _ yaml: String = Plans.client()
    ) throws -> (identities: [KeptIdentity], routes: [KeptRoute]) {
        let scene = try KeeperScene(yaml)
        return (scene.inKeeper { $0.identities }, scene.inKeeper { $0.routes })
    }

    @Test func identitiesThatAreTheSameGoOnAsTheSameObjects() throws {
        let (first, next) = (try Self.compiled(), try Self.compiled(Plans.client("refresh_ahead: 5s")))
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        let arrival = catalogue.take(identities: next.identities)
        #expect(catalogue.identities.count == 1 && catalogue.identities[0] === first.identities[0])
        #expect(arrival.identities[ObjectIdentifier(next.identities[0])] === first.identities[0])
        #expect(arrival.changed == [ObjectIdentifier(first.identities[0])], "its settings are others")
        #expect(arrival.gone.isEmpty && arrival.returned.isEmpty && !catalogue.hasRetired)
    }

    @Test func anIdentityThatIsGoneIsFoundUntilTheRetiredAreTaken() throws {
        let identity = try #require(try Self.compiled().identities.first)
        var catalogue = Catalogue(identities: [identity], routes: [])
        #expect(catalogue.take(identities: []).gone == [ObjectIdentifier(identity)])
        #expect(!catalogue.isConfigured(identity.digest) && !catalogue.isCurrent(identity))
        #expect(catalogue.identityOrRetired(identity.digest) === identity)
        // A second reload without it: it is not gone once more.
        #expect(catalogue.take(identities: []).gone.isEmpty && catalogue.hasRetired)
        let back = catalogue.take(identities: try Self.compiled().identities)
        #expect(back.gone.isEmpty && catalogue.identity(named: "o") === identity && !catalogue.hasRetired)
        _ = catalogue.take(identities: [])
        #expect(catalogue.takeRetired().isEmpty)
        #expect(catalogue.identityOrRetired(identity.digest) == nil && !catalogue.hasRetired)
    }

    @Test func identitiesThatAreEqualButForTheirNamesKeepTheirs() throws {
        let yaml = """
            identities:
              a: {oauth2: {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S}}
              b: {oauth2: {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S}}
            routes:
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a}

            """
        let (first, next) = (try Self.compiled(yaml).identities, try Self.compiled(yaml).identities)
        var catalogue = Catalogue(identities: first, routes: [])
        #expect(catalogue.same(as: first[0]).count == 2 && catalogue.identity(first[0].digest) === first[0])
        _ = catalogue.take(identities: next.reversed())
        #expect(catalogue.identities[0] === first[1] && catalogue.identities[1] === first[0])
        #expect(catalogue.identity(first[0].digest) === first[1], "the first in the order of the configuration")
    }

    @Test func aRouteThatIsGoneIsFoundByItsNumberUntilTheRetiredAreTaken() throws {
        let (first, next) = (try Self.compiled(), try Self.compiled())
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        let arrived = catalogue.take(identities: next.identities).identities
        #expect(catalogue.take(routes: next.routes, arrived).fresh.isEmpty)
        #expect(catalogue.routes[0] === first.routes[0])
        let number = first.routes[0].number
        _ = catalogue.take(routes: [], arrived)
        #expect(catalogue.routes.isEmpty && catalogue.routesByNumber[number] === first.routes[0])
        #expect(catalogue.reusableRoutes.map(\.number) == [number])
        // It comes back before it is dropped.
        _ = catalogue.take(routes: next.routes, arrived)
        #expect(catalogue.takeRetired().isEmpty && catalogue.routesByNumber[number] === first.routes[0])
        _ = catalogue.take(routes: [], arrived)
        #expect(catalogue.takeRetired().map(\.number) == [number])
        #expect(catalogue.routesByNumber.isEmpty)
    }

    @Test func aRouteThatLeadsToTheSameInheritsWhatWasLearned() throws {
        let (first, next) = (try Self.compiled(), try Self.compiled())
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        let entry = LearnedEntry(path: Array("/x".utf8), method: Array("GET".utf8))
        _ = first.routes[0].table.learnChallenge(of: "r", at: entry)
        let arrived = catalogue.take(identities: next.identities).identities
        next.routes[0].number += 1
        let taken = catalogue.take(routes: next.routes, arrived)
        #expect(taken.fresh.count == 1 && taken.fresh[0] === next.routes[0])
        #expect(taken.inheriting.count == taken.fresh.count { $0.published != nil })
        for route in taken.inheriting { #expect(route.table.realms == first.routes[0].table.realms) }
    }

    /// A login's scopes bound every later refresh: the login asks for all that the routes will want, each once.
    @Test func aLoginIsAskedForWhatAllRoutesWant() throws {
        let route = #"{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, match: {path: "#
        var yaml = "identities: {o: {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c, "
        yaml += "client_secret: env:S}}}\nroutes:\n"
        for (index, audience) in ["x", "y", "x"].enumerated() {
            yaml += "  - \(route)/\(index)/}, name: n\(index), audience: \(audience), scopes: [s\(index % 2)]}\n"
        }
        let compiled = try Self.compiled(yaml)
        let catalogue = Catalogue(identities: compiled.identities, routes: compiled.routes)
        let wanted = catalogue.wanted(by: compiled.identities[0])
        #expect(wanted.audience == ["x", "y"] && wanted.scopes == ["s0", "s1"])
    }

    /// A route that leads somewhere else begins with nothing, and learns for itself.
    @Test func aRouteThatLeadsElsewhereInheritsNothing() throws {
        let first = try Self.compiled(Plans.gate())
        let next = try Self.compiled(Plans.gate().replacing("127.0.0.1:9000", with: "127.0.0.1:9001"))
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        let entry = LearnedEntry(path: Array("/w/x".utf8), method: Array("GET".utf8))
        #expect(first.routes[0].table.learnChallenge(of: "r", at: entry) == .learned)
        let arrived = catalogue.take(identities: next.identities).identities
        next.routes[0].number += 1
        let taken = catalogue.take(routes: next.routes, arrived)
        #expect(taken.fresh.count == 1 && taken.inheriting.isEmpty && taken.fresh[0].table.realms.isEmpty)
    }

    /// Routes of the same identity to one upstream have one table on disk; each takes it up.
    @Test func routesThatAreGoneAreTakenInTheirOrder() throws {
        let first = try Self.compiled(Plans.gate(paths: ["p", "q", "z"]))
        var catalogue = Catalogue(identities: first.identities, routes: first.routes)
        let numbers = first.routes.map(\.number)
        #expect(numbers.count == 4)
        _ = catalogue.take(routes: [], [:])
        #expect(catalogue.reusableRoutes.map(\.number) == numbers)
        #expect(catalogue.takeRetired().map(\.number) == numbers)
    }

    @Test(arguments: [false, true]) func aTableThatCannotBeReadIsNotTakenUp(_ ofURLs: Bool) throws {
        let compiled = try Self.compiled(Plans.gate(identity: ofURLs ? "token_scope: url" : ""))
        let route = compiled.routes[0]
        #expect(route.restore([1, 2, 3]) == false)
        // Rows of an earlier release have the URLs too, which have tokens of their own by now.
        var table = LearnedTable(binding: ofURLs ? .url : .realm)
        let entry = LearnedEntry(path: Array("/w/x/".utf8), method: Array("GET".utf8))
        _ = table.learnChallenge(of: "r", at: entry)
        #expect(route.restore(table.encode()) == true)
        #expect(route.table.realms.isEmpty == ofURLs)
    }
}
