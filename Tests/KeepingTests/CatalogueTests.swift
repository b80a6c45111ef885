import Testing

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
}
