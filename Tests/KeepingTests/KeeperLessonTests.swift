import ScriptedKernel
import Testing

@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Paths and realms that a route has learned, where there is no more room for them, no slot, or nothing that could be read.
@Suite struct KeeperLessonTests {
    /// An upstream with a realm for each directory whose name begins with `r`; all others are open.
    private final class Site {
        let scene: KeeperScene
        private(set) var grants = 0
        private(set) var challenges = 0
        /// Contexts of which the issuer gives no token.
        var isSilent: (Substring) -> Bool = { _ in false }

        init(_ plan: String = Plans.gate(), store: MemoryStore? = nil, slots: Int = 1024) throws {
            scene = try KeeperScene(plan, store: store, slots: slots)
            let gate = NumberedGate()
            scene.issuer = { request in
                if request.path.hasPrefix("/w/") { return self.scene.upstream(request) }
                guard request.path.hasSuffix("/access") else { return gate.answer(request) }
                let place = request.body.split(separator: "ctx-").dropFirst().first?.prefix { $0.isNumber } ?? ""
                if self.isSilent(place) { return nil }
                self.grants += 1
                return Wire.idaas("ACCESSTOKEN", "t.\(place).e")
            }
            scene.upstream = { request in
                let directory = request.path.split(separator: "/").dropFirst().first ?? ""
                guard directory.hasPrefix("r") else { return Wire.ok("open") }
                let place = directory.dropFirst()
                if request.authorization?.contains("t.\(place).e") == true { return Wire.ok("in") }
                self.challenges += 1
                return
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth realm=\"WG\(place):2 /\", request-ctx=\"ctx-\(place)\"\r\n"
                    + "Content-Length: 0\r\n\r\n"
            }
        }

        func status(_ directory: String) -> Int { scene.status("/w/\(directory)/x") }
        var entries: Int { scene.inKeeper { $0.routes[0].table.entries.count } }
    }

    // MARK: - Paths

    @Test func anOpenPathMakesRoomForTheNext() throws {
        let site = try Site()
        for number in 0..<LearnedTable.entryLimit + 5 { #expect(site.status("o\(number)") == 200) }
        #expect(site.entries == LearnedTable.entryLimit)
        // The last of them was learned: its answer is known before it is sent.
        let scouts = site.scene.inKeeper { keeper in
            keeper.routes[0].table.target(
                of: LearnedEntry(
                    path: Array("/w/o\(LearnedTable.entryLimit + 4)/x".utf8), method: Array("GET".utf8)))
        }
        #expect(scouts == .open)
    }

    /// An upstream's caller who makes paths up pushes out only so many of the others in a second.
    @Test func openPathsTakeEachOthersPlaceAtAPace() throws {
        let site = try Site()
        for number in 0..<LearnedTable.entryLimit + 40 { #expect(site.status("o\(number)") == 200) }
        func isKnown(_ number: Int) -> Bool {
            site.scene.inKeeper { keeper in
                let path = Array("/w/o\(number)/x".utf8)
                return keeper.routes[0].table.target(of: LearnedEntry(path: path, method: Array("GET".utf8))) == .open
            }
        }
        // Chance says whose place is taken, but nobody comes behind the tenth.
        #expect(isKnown(LearnedTable.entryLimit + 9))
        #expect((0..<LearnedTable.entryLimit).count(where: isKnown) >= LearnedTable.entryLimit - 10)
        #expect(!(LearnedTable.entryLimit + 10..<LearnedTable.entryLimit + 40).contains(where: isKnown))
        site.scene.pass(seconds: 1)
        #expect(site.status("o999") == 200 && isKnown(999))
    }

    @Test func aChallengedPathTakesThePlaceOfAnOpenOne() throws {
        let site = try Site()
        for number in 0..<LearnedTable.entryLimit { #expect(site.status("o\(number)") == 200) }
        #expect(site.status("r1") == 200 && site.status("r2") == 200 && site.challenges == 2)
        #expect(site.status("r1") == 200 && site.status("r2") == 200 && site.challenges == 2 && site.grants == 2)
        #expect(site.entries <= LearnedTable.entryLimit)
    }

    // MARK: - Realms

    /// Each realm of the route has a token on its way, so that none can give way.
    @Test func aRealmFindsNoPlaceWhereAllAreAtWork() throws {
        let site = try Site()
        #expect(site.status("r0") == 200)
        site.isSilent = { $0 != "0" }
        let waiting = (1..<16).map { site.scene.call(Wire.get("/w/r\($0)/x")) }
        #expect(waiting.allSatisfy { $0.status == nil })
        let late = site.scene.call(Wire.get("/w/r16/x"))
        #expect(late.status == 503 && late.receivedText.contains("problems/too-many-subjects"))
        #expect(late.receivedText.contains("Retry-After: 1\r\n"))
        #expect(site.status("r0") == 200, "the others are served")
        site.isSilent = { _ in false }
        for caller in waiting { caller.reset() }
        site.scene.pass(seconds: 200, step: 10)
        #expect(site.status("r16") == 200)
    }

    // MARK: - Slots

    /// The table of the store names more realms than there are slots.
    @Test func aRealmOfTheStoreWithoutASlotComesAgain() throws {
        let store = MemoryStore()
        let before = try Site(store: store)
        #expect(before.status("r1") == 200 && before.status("r2") == 200)
        let site = try Site(store: store, slots: 1)
        #expect(site.status("r1") == 200 && site.grants == 0)
        let caller = site.scene.call(Wire.get("/w/r2/x"))
        #expect(caller.status == 503 && caller.receivedText.contains("Retry-After: 1\r\n"))
        #expect(site.grants == 0 && site.challenges == 0)
        // A realm that nobody knew is no better off, and does no harm to the one that is served.
        #expect(site.status("r3") == 503 && site.grants == 0 && site.status("r1") == 200)
    }

    @Test func aProbeWithoutASlotGrantsNothing() throws {
        let names = Plans.gate("startup: required", identity: "probe: /w/r1/x")
        let client = """
              o: {oauth2: {token_url: "http://127.0.0.1:9100/o", client_id: c, client_secret: env:S}}
            routes:
              - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, match: {path: /o/}}

            """
        let site = try Site(names.replacing("routes:\n", with: client), slots: 1)
        site.scene.settle()
        #expect(site.challenges == 1 && site.grants == 0)
        #expect(site.scene.inKeeper { $0.awaited(strictly: true) } == ["w"])
    }

    /// The probe's answer comes when a reload has taken its route away.
    @Test func aProbeThatOutlivesItsRouteTeachesNothing() throws {
        let site = try Site(Plans.gate("startup: required", identity: "probe: /w/r1/x"))
        let challenge = site.scene.upstream
        site.scene.upstream = { _ in nil }
        site.scene.settle()
        let probe = try #require(site.scene.issuerCalls.last)
        #expect(probe.path == "/w/r1/x")
        let route = site.scene.inKeeper { $0.routes[0] }
        site.scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
        site.scene.inKeeper { $0.catalogue.alarm?.action() }
        try #require(site.scene.issuers.last).send(try #require(challenge(probe)))
        site.scene.settle()
        #expect(route.table.realms.isEmpty && site.grants == 0 && site.scene.issuerCalls.count == 1)
        #expect(site.scene.inKeeper { $0.tokens.count } == 0)
    }

    // MARK: - Rows

    /// The paths of a route are learned anew where its row is damaged.
    @Test func aDamagedRowTeachesNothingAndHarmsNothing() throws {
        let store = MemoryStore()
        #expect(try Site(store: store).status("r1") == 200)
        let row = try #require(store.rows(RowKind.learned).first)
        store.commit([.put(StoredRow(kind: row.kind, key: row.key, value: [1, 2, 3], expiresWall: nil))]) { _ in }
        let site = try Site(store: store)
        #expect(site.scene.inKeeper { $0.routes[0].table.realms.isEmpty })
        #expect(site.status("r1") == 200 && site.challenges == 1 && site.grants == 0, "its token is in the store")
        #expect(store.rows(RowKind.learned).first?.value != [1, 2, 3])
    }
}
