import HotCache
import ScriptedKernel
import Testing

@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// `token_scope: url`: tokens of URLs are kept as those of end users are, bounded by `limits`, and come back from the store.
@Suite struct KeeperURLTests {
    /// An upstream that challenges each URL by itself, and takes that URL's token alone; `/open/` needs none.
    private final class Site {
        let scene: KeeperScene
        private(set) var grants = 0
        private(set) var challenges = 0
        var isOpen = true

        init(
            _ limits: String = "subjects: 100, new_subjects_per_second: 1000", token: String = "",
            identity: String = "", store: MemoryStore? = nil, loops: Int = 1
        ) throws {
            let text = Plans.gate(token, identity: "token_scope: url" + (identity.isEmpty ? "" : ", " + identity))
            scene = try KeeperScene(text + "limits: {\(limits)}\n", loops: loops, store: store)
            let gate = NumberedGate()
            scene.issuer = { request in
                if request.path.hasPrefix("/w/") { return self.scene.upstream(request) }
                guard request.path.hasSuffix("/access") else { return gate.answer(request) }
                self.grants += 1
                let place = request.body.split(separator: "ctx-").dropFirst().first?.prefix { $0.isNumber } ?? ""
                return Wire.idaas("ACCESSTOKEN", "t.\(place).e")
            }
            scene.upstream = { request in
                let path = request.path.prefix { $0 != "?" }
                let place = path.split(separator: "/").last ?? ""
                if self.isOpen, path.contains("/open/") { return Wire.ok() }
                if request.authorization?.contains("t.\(place).e") == true { return Wire.ok() }
                self.challenges += 1
                return
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth realm=\"WG:2 /\", request-ctx=\"ctx-\(place)\"\r\n"
                    + "Content-Length: 0\r\n\r\n"
            }
        }

        func status(_ place: Int, loop: Int = 0) -> Int? {
            scene.call(Wire.get("/w/\(place)?q=\(place)"), loop: loop).status
        }
        var kept: (tokens: Int, subjects: Int, keys: Int, realms: Int) {
            scene.inKeeper { keeper in
                (
                    keeper.tokens.count, keeper.users.subjects.count, keeper.cache.keyCount,
                    keeper.routes.reduce(0) { $0 + $1.table.realms.count }
                )
            }
        }
    }

    @Test func theyAreBoundedByLimitsAndComeBackFromTheStore() throws {
        let site = try Site(store: MemoryStore())
        for place in 0..<300 {
            #expect(site.status(place) == 200, "\(place)")
            // One that is used all the time stays.
            #expect(site.status(0) == 200)
            site.scene.pass(seconds: 0.01, step: 0.01)
        }
        #expect(site.grants == 300 && site.challenges == 300)
        // One more stands for all of them.
        #expect(site.kept == (101, 100, 100, 0))
        // Back from the store, without a challenge and without the issuer.
        for place in [1, 2, 3, 299, 0] { #expect(site.status(place) == 200) }
        #expect(site.grants == 300 && site.challenges == 300)
    }

    /// Cold and all at once, with a row to be looked up for each: nobody is turned away, and each URL is one grant.
    @Test(arguments: [false, true])
    func aBurstIsOneGrantForEach(_ hasStore: Bool) throws {
        let site = try Site(store: hasStore ? MemoryStore() : nil, loops: 2)
        let callers = (0..<40).map { site.scene.call(Wire.get("/w/\($0 % 4)"), loop: $0 % 2, settles: false) }
        site.scene.settle()
        #expect(callers.map(\.status) == Array(repeating: 200, count: 40))
        #expect(site.grants == 4)
    }

    @Test func theyOutliveARestart() throws {
        let store = MemoryStore()
        for round in 0..<3 {
            let site = try Site(store: store)
            for place in 0..<5 { #expect(site.status(place) == 200) }
            #expect(site.grants == (round == 0 ? 5 : 0) && site.challenges == (round == 0 ? 5 : 0))
        }
    }

    /// Also what memory does not hold.
    @Test func aPurgeForgetsThemAll() throws {
        let store = MemoryStore()
        let site = try Site("subjects: 3, new_subjects_per_second: 1000", store: store)
        for place in 0..<10 { #expect(site.status(place) == 200) }
        _ = site.scene.inKeeper { $0.purge(.identity("w")) }
        site.scene.settle()
        for place in 0..<10 { #expect(site.status(place) == 200) }
        #expect(site.grants == 20)
        _ = site.scene.inKeeper { $0.purge(.route("r-w")) }
        site.scene.settle()
        for place in 0..<10 { #expect(site.status(place) == 200) }
        #expect(site.grants == 30)
    }

    @Test func newOnesComeAtAPace() throws {
        let site = try Site("subjects: 100, new_subjects_per_second: 10")
        let found = (0..<50).map { site.status($0) }
        #expect(found.count { $0 == 200 } == 10 && found.count { $0 == 503 } == 40)
        #expect(site.scene.callers.last?.receivedText.contains("Retry-After") == true)
        #expect(site.kept == (11, 10, 10, 0))
        for place in 0..<10 { #expect(site.status(place) == 200, "known ones are served") }
        site.scene.pass(seconds: 1)
        #expect(site.status(49) == 200)
    }

    @Test func withoutAStoreTheLeastUsedIsFetchedAgain() throws {
        let site = try Site("subjects: 2, new_subjects_per_second: 1000")
        for place in [1, 2, 3, 1] { #expect(site.status(place) == 200) }
        #expect(site.grants == 4 && site.kept == (3, 2, 2, 0))
    }

    @Test func otherLoopsAndMethodsUseTheSameToken() throws {
        let site = try Site(loops: 2)
        #expect(site.status(7) == 200 && site.status(7, loop: 1) == 200)
        #expect(
            site.scene.call(Wire.get("/w/7").replacing("GET", with: "OPTIONS", maxReplacements: 1), loop: 1).status
                == 200)
        #expect(site.grants == 1 && site.challenges == 1)
    }

    /// Longer than what a key holds in the clear, and all of the same beginning.
    @Test func longPathsAreToldApart() throws {
        let site = try Site()
        let long = String(repeating: "a", count: 600)
        for _ in 0..<2 {
            for place in 1...3 { #expect(site.scene.status("/w/\(long)/\(place)") == 200) }
        }
        #expect(site.grants == 3 && site.challenges == 3)
    }

    @Test func aPathThatNeedsNoTokenIsLearnedAndMayChange() throws {
        let site = try Site()
        for _ in 0..<3 { #expect(site.scene.status("/w/open/5") == 200) }
        #expect(site.grants == 0)
        site.isOpen = false
        // Its caller's answer is the challenge, since what it had sent was nothing.
        for _ in 0..<3 { _ = site.scene.status("/w/open/5") }
        #expect(site.scene.status("/w/open/5") == 200 && site.grants == 1)
    }

    @Test func whoeverLeavesIsForgotten() throws {
        let site = try Site()
        let gate = site.scene.issuer
        site.scene.issuer = { _ in nil }
        let callers = (0..<10).map { _ in site.scene.call(Wire.get("/w/5")) }
        for caller in callers.dropFirst() { caller.reset() }
        site.scene.settle()
        #expect(site.scene.inKeeper { keeper in keeper.tokens.all.reduce(0) { $0 + $1.tickets.count } } <= 1)
        #expect(site.scene.inKeeper { $0.users.waitingCount } <= 1)
        site.scene.issuer = gate
    }

    /// A token of another URL would be refused: the challenge is that of the token's own URL.
    @Test func aStartWithAProbeBringsTheTokenOfItsURL() throws {
        let site = try Site(token: "startup: required", identity: "probe: /w/9")
        site.scene.settle()
        #expect(site.grants == 1 && site.scene.inKeeper { $0.awaited(strictly: true) } == [])
        #expect(site.status(9) == 200 && site.grants == 1)
        #expect(site.status(8) == 200 && site.grants == 2)
    }
}
