import ScriptedKernel
import Testing

@testable import Keeping
@testable import Scenes

/// Tokens that were granted more than a route wants, or less.
@Suite struct KeeperScopeTests {
    private static func plan() -> String {
        let route = #"{listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, match: {path: "#
        return Plans.client().replacing(", use: o}\n", with: ", use: o, match: {path: /other/}}\n")
            + "  - \(route)/wide/}, name: wide, scopes: [a, b]}\n"
            + "  - \(route)/narrow/}, name: narrow, scopes: [a]}\n"
    }

    /// Also from the hot cache, which alone has the bytes of a token that is on disk.
    @Test(arguments: [false, true]) func aWiderTokenServesWhoWantsLess(isStored: Bool) throws {
        let scene = try KeeperScene(Self.plan(), store: isStored ? MemoryStore() : nil)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        #expect(scene.status("/wide/") == 200 && scene.status("/narrow/") == 200)
        #expect(issuer.granted == 1 && scene.upstreamCalls.map(\.authorization) == ["Bearer t1", "Bearer t1"])
        #expect(scene.inKeeper { $0.identities[0].borrowings } == 1)
        // Refused there, it is not lent a second time.
        scene.upstream = { request in
            request.path == "/narrow/" && request.authorization == "Bearer t1" ? Wire.challenge : Wire.ok()
        }
        #expect(scene.status("/narrow/") == 200 && issuer.granted == 2)
        #expect(scene.status("/wide/") == 200 && scene.upstreamCalls.last?.authorization == "Bearer t1")
    }

    @Test func aNarrowerGrantIsUsedAndLendsNothing() throws {
        let scene = try KeeperScene(Self.plan())
        var granted = 0
        scene.issuer = { _ in
            granted += 1
            return Wire.bearer("t\(granted)", #","scope":"b""#)
        }
        #expect(scene.status("/wide/") == 200 && scene.status("/narrow/") == 200 && granted == 2)
        #expect(scene.inKeeper { $0.identities[0].narrowerGrants } == 2)
    }
}
