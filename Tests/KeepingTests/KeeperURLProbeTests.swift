import HotCache
import ScriptedKernel
import Testing

@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// `token_scope: url` with a probe: tokens of URLs at the start and at their renewal, when no caller's request brings a challenge; and
/// URLs for which there is no room.
@Suite struct KeeperURLProbeTests {
    /// An upstream that challenges each URL by itself and takes that URL's token alone, whoever asks: callers or the keeper.
    private final class Site {
        let scene: KeeperScene
        private(set) var grants: [Substring] = []
        private(set) var challenges = 0
        /// The issuer gives no access token.
        var isSilent = false

        init(
            _ plan: String, limits: String = "subjects: 100, new_subjects_per_second: 1000",
            store: MemoryStore? = nil, slots: Int = 256
        ) throws {
            scene = try KeeperScene(plan + "limits: {\(limits)}\n", store: store, slots: slots)
            let gate = NumberedGate()
            scene.issuer = { request in
                if request.path.hasPrefix("/w/") { return self.scene.upstream(request) }
                guard request.path.hasSuffix("/access") else { return gate.answer(request) }
                if self.isSilent { return nil }
                let place = request.body.split(separator: "ctx-").dropFirst().first?.prefix { $0.isNumber } ?? ""
                self.grants.append(place)
                return Wire.idaas("ACCESSTOKEN", "t.\(place).e")
            }
            scene.upstream = { request in
                let place = request.path.split(separator: "/").last ?? ""
                if request.authorization?.contains("t.\(place).e") == true { return Wire.ok() }
                self.challenges += 1
                return
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth realm=\"WG:2 /\", request-ctx=\"ctx-\(place)\"\r\n"
                    + "Content-Length: 0\r\n\r\n"
            }
        }

        func status(_ place: Int) -> Int { scene.status("/w/\(place)") }
        /// The paths that the keeper has asked the upstream for by itself.
        var probes: [String] { scene.issuerCalls.map(\.path).filter { $0.hasPrefix("/w/") } }
        var awaited: [String] { scene.inKeeper { $0.awaited(strictly: true) } }
    }

    private static func plan(_ token: String = "", probe: Bool = true, names: [String] = ["w"]) -> String {
        Plans.gate(token, identity: "token_scope: url" + (probe ? ", probe: /w/9" : ""), names: names)
    }

    // MARK: - Probes

    /// The challenge of the probe's URL would bring the token of the probe's URL.
    @Test func aRenewalAsksTheTokensOwnURLForItsChallenge() throws {
        let site = try Site(Self.plan())
        #expect(site.status(8) == 200 && site.status(9) == 200 && site.grants == ["8", "9"])
        #expect(site.probes.isEmpty)
        site.scene.pass(seconds: 3600, step: 600)
        #expect(site.status(8) == 200 && site.probes == ["/w/8"])
        #expect(site.status(9) == 200 && site.probes == ["/w/8", "/w/9"])
        #expect(site.grants == ["8", "9", "8", "9"])
    }

    /// Without a probe the next request is its own scout.
    @Test func withoutAProbeARequestBringsTheChallengeOfItsURL() throws {
        let site = try Site(Self.plan(probe: false))
        #expect(site.status(8) == 200 && site.challenges == 1)
        site.scene.pass(seconds: 3600, step: 600)
        #expect(site.status(8) == 200 && site.challenges == 2 && site.grants == ["8", "8"] && site.probes.isEmpty)
    }

    @Test func aStartAfterAnotherTakesTheTokenOfTheProbeFromTheStore() throws {
        let store = MemoryStore()
        let first = try Site(Self.plan("startup: required"), store: store)
        first.scene.settle()
        #expect(first.grants == ["9"] && first.awaited == [])
        let next = try Site(Self.plan("startup: required"), store: store)
        next.scene.settle()
        #expect(next.grants.isEmpty && next.awaited == [])
        #expect(next.status(9) == 200 && next.grants.isEmpty)
    }

    @Test func aProbeThatCannotBeAskedIsAnIssuersFailure() throws {
        let site = try Site(Self.plan())
        #expect(site.status(8) == 200)
        site.scene.pass(seconds: 3600, step: 600)
        site.scene.keeperKernel.connectPlan = { $0.port == 9000 ? .failed(111) : .accepted }
        for peer in site.scene.issuers { peer.reset() }
        site.scene.settle()
        #expect(site.status(8) == 503)
        let told = site.scene.inKeeper { $0.tokens.all.compactMap(\.lastFailure) }
        #expect(told.contains { $0.contains("probe: ") }, "\(told)")
        site.scene.keeperKernel.connectPlan = { _ in .accepted }
        site.scene.pass(seconds: 60)
        #expect(site.status(8) == 200)
    }

    /// The token of the first URL is on its way, so that it cannot give way to the one that nobody has asked for.
    @Test func aStartTakesNobodysPlace() throws {
        let site = try Site(
            Self.plan("startup: required", names: ["w", "v"]), limits: "subjects: 1, new_subjects_per_second: 1000")
        site.isSilent = true
        site.scene.settle()
        #expect(site.probes.count == 2 && site.scene.inKeeper { $0.users.subjects.count } == 1)
        #expect(site.scene.inKeeper { $0.tokens.all.count(where: \.isOfURL) } == 1)
        #expect(site.awaited == ["w", "v"])
    }

    @Test func aStartWithoutASlotLeavesItsURLToRequests() throws {
        let site = try Site(Self.plan("startup: required"), slots: 1)
        site.scene.settle()
        #expect(site.probes == ["/w/9"] && site.grants.isEmpty && site.awaited == ["w"])
        let caller = site.scene.call(Wire.get("/w/9"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/too-many-subjects"))
    }

    // MARK: - Room

    /// The store has the token, and whoever is in memory is waited for.
    @Test func aTokenOfTheStoreFindsNoPlaceWhereAllAreAtWork() throws {
        let store = MemoryStore()
        let before = try Site(Self.plan(probe: false), store: store)
        #expect(before.status(2) == 200)
        let site = try Site(
            Self.plan(probe: false), limits: "subjects: 1, new_subjects_per_second: 1000", store: store)
        site.isSilent = true
        let first = site.scene.call(Wire.get("/w/3"))
        #expect(first.status == nil && site.challenges == 1)
        let second = site.scene.call(Wire.get("/w/2"))
        #expect(second.status == 503 && second.receivedText.contains("problems/too-many-subjects"))
        #expect(site.challenges == 1 && site.scene.inKeeper { $0.tokens.all.count(where: \.isOfURL) } == 1)
        try #require(site.scene.issuers.last { !$0.isClosed }).send(Wire.idaas("ACCESSTOKEN", "t.3.e"))
        site.scene.settle()
        #expect(first.status == 200 && site.status(2) == 200 && site.grants.isEmpty)
    }

    /// The last slot went to another URL while the scout of this one was out.
    @Test func aChallengeForWhichThereIsNoSlotLeftIsAnsweredSo() throws {
        let site = try Site(Self.plan(probe: false), slots: 2)
        let challenge = site.scene.upstream
        site.scene.upstream = { $0.path == "/w/1" ? nil : challenge($0) }
        let first = site.scene.call(Wire.get("/w/1"))
        let scout = try #require(site.scene.upstreamCalls.last)
        let connection = try #require(site.scene.loops[0].kernel.connections.last)
        // The requests behind a scout are told with it.
        let second = site.scene.call(Wire.get("/w/1"))
        let kept = site.scene.inKeeper { keeper in
            keeper.cache.allocateSlot()
        }
        connection.send(try #require(challenge(scout)))
        site.scene.settle()
        #expect(first.status == 503 && first.receivedText.contains("problems/too-many-subjects"))
        #expect(second.status == 503 && site.grants.isEmpty)
        let slot = try #require(kept)
        site.scene.upstream = challenge
        site.scene.inKeeper { $0.keepAsIs(giving: [slot]) }
        #expect(site.status(1) == 200, "a slot that is given back is there for the next")
    }
}
