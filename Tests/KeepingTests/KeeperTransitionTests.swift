import HotCache
import ScriptedKernel
import Synchronization
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Between two processes and between two configurations nothing is lost, and nothing is kept that nobody names.
@Suite struct KeeperTransitionTests {
    private final class Word: Sendable {
        private let said = Atomic(0)
        var count: Int { said.load(ordering: .relaxed) }
        func say() { said.add(1, ordering: .relaxed) }
    }

    private static let basic = """
        identities: {b: {basic: {username: u, password: env:P}}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: b}

        """

    private func empty(_ scene: KeeperScene) {
        scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
        scene.settle()
    }

    // MARK: - Upgrades

    /// The outcome of the one try decides over a mark, which the other process has to find.
    @Test func anUpgradeWaitsForTheTryOfAPassword() throws {
        let scene = try KeeperScene(Self.basic, store: MemoryStore())
        scene.upstream = { _ in nil }
        let caller = scene.call()
        #expect(scene.upstreamCalls.count == 1)
        let quiet = Word()
        scene.inKeeper { $0.stopGranting { quiet.say() } }
        scene.pass(seconds: 1)
        #expect(quiet.count == 0)
        try #require(scene.loops[0].kernel.connections.last).send(Wire.challenge)
        scene.settle()
        #expect(quiet.count == 1 && caller.status.map { $0 >= 400 } == true)
        #expect(scene.store?.rows(RowKind.attempt).isEmpty == false)
    }

    /// The disk of a slow start says during an upgrade that the store is another process's: it is the one that takes over.
    @Test func aStoreThatIsHandedOverIsNobodyElses() throws {
        let store = MemoryStore()
        store.disk = .taken
        let scene = try KeeperScene(Plans.client(), store: store, state: .degraded("slow"))
        scene.issuer = { _ in nil }
        let caller = scene.call()
        #expect(scene.issuerCalls.count == 1)
        scene.inKeeper { $0.stopGranting {} }
        scene.pass(seconds: 3)
        #expect(scene.inKeeper { $0.health.state } == .degraded("slow"))
        scene.issuers[0].send(Wire.bearer("t"))
        scene.settle()
        #expect(caller.status == 200)
        #expect(scene.inKeeper { $0.health.state } == .locked("handed over to another process"))
    }

    @Test func withoutAStoreAnUpgradeThatFailsGoesOnFromMemory() throws {
        let scene = try KeeperScene(Plans.client())
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        scene.settle()
        let quiet = Word()
        scene.inKeeper { $0.stopGranting { quiet.say() } }
        #expect(quiet.count == 1 && scene.status() == 503 && issuer.granted == 0)
        #expect(scene.inKeeper { $0.health.state } == .none)
        scene.inKeeper { $0.grantAgain([], nil) }
        #expect(scene.status() == 200 && issuer.granted == 1)
    }

    /// The other process has used the refresh token before it died: what it left in the store is younger than memory.
    @Test func rowsOfTheOtherProcessTakeThePlaceOfMemory() throws {
        let (store, secrets, issuer) = (MemoryStore(), Secrets(["R": "r0"]), RotatingIssuer())
        let scene = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        scene.issuer = issuer.answer
        #expect(scene.status("/a/") == 200)
        scene.inKeeper { $0.stopGranting {} }
        let other = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        other.issuer = issuer.answer
        other.pass(seconds: 100, step: 10)
        #expect(other.status("/a/") == 200 && issuer.uses == 2)
        let rows = store.restore()
        scene.inKeeper { $0.grantAgain(rows, .serving) }
        scene.pass(seconds: 100, step: 10)
        #expect(scene.status("/a/") == 200 && issuer.uses == 3 && issuer.reuses == 0)
    }

    /// The configured token could not be read when its login was taken up from the store; that is made good when both are there again.
    @Test func aFirstTokenThatCannotBeReadIsLookedAtWhenItsIdentityIsBack() throws {
        let (store, secrets, issuer) = (MemoryStore(), Secrets(["R": "r0"]), RotatingIssuer())
        let before = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        before.issuer = issuer.answer
        #expect(before.status("/a/") == 200)
        for row in store.rows(RowKind.family) { store.commit([.delete(kind: row.kind, key: row.key)]) { _ in } }
        secrets.missing = ["R"]
        let scene = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        scene.issuer = issuer.answer
        scene.settle()
        for _ in 0..<2 {
            empty(scene)
            scene.inKeeper { $0.catalogue.alarm?.action() }
        }
        #expect(store.rows(RowKind.family).isEmpty && store.rows(RowKind.session).count == 1)
        secrets.missing = []
        let next = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        next.issuer = issuer.answer
        next.pass(seconds: 100, step: 10)
        #expect(next.status("/a/") == 200 && issuer.uses == 2 && issuer.reuses == 0)
        #expect(store.rows(RowKind.family).count == 1)
    }

    // MARK: - Reloads

    /// A person's login was being renewed when a reload took its identity away: the new refresh token is kept for 30 days.
    @Test func aLoginThatIsRenewedAfterAReloadIsKept() throws {
        let store = MemoryStore()
        let plan = Plans.client(identity: "grant: device_code, device_authorization_url: https://idp.example.com/d")
        let scene = try KeeperScene(plan, store: store)
        scene.issuer = { _ in nil }
        scene.settle()
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("s"), obtainedAt: keeper.now, lifetime: 1, refreshToken: Secret("r1"), isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        scene.call()
        #expect(scene.issuerCalls.last?.member("refresh_token") == "r1")
        empty(scene)
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.bearer("t", #","refresh_token":"r2""#))
        scene.settle()
        let rows = store.rows(RowKind.session)
        #expect(rows.count == 1 && rows[0].expiresWall != nil)
        #expect(rows.first.flatMap { LayerRow(encoded: $0.value)?.refreshToken } == Secret("r2"))
        let next = try KeeperScene(plan, store: store)
        next.issuer = { _ in Wire.bearer("t") }
        #expect(next.status() == 200 && next.issuerCalls.last?.member("refresh_token") == "r2")
    }

    @Test func aReloadThatFailedGivesItsSlotsBack() throws {
        let scene = try KeeperScene(
            Plans.client(
                identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")
                + "limits: {subjects: 100, new_subjects_per_second: 1000}\n", slots: 2)
        scene.issuer = NumberedIssuer().answer
        let slot = try #require(scene.inKeeper { $0.cache.allocateSlot() })
        _ = scene.inKeeper { $0.holdings() }
        func status() -> Int? { scene.call(Wire.get("/", "X-User: ann\r\n")).status }
        #expect(status() == 503)
        scene.inKeeper { $0.keepAsIs(giving: [slot]) }
        #expect(status() == 200)
    }

    /// Its caller has the token that he waited for, and the disk nothing of an identity that is gone.
    @Test func aTokenThatComesAfterItsIdentityIsGoneIsNotStored() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        scene.issuer = { _ in nil }
        let caller = scene.call()
        empty(scene)
        scene.issuers[0].send(Wire.bearer("t"))
        scene.settle()
        #expect(caller.status == 200 && scene.store?.rows(RowKind.access).isEmpty == true)
    }

    /// A route of another name leads to the same: what its predecessor has learned is known there at once.
    @Test func aRouteOfAnotherNameKnowsWhatItsPredecessorHasLearned() throws {
        let scene = try KeeperScene(Plans.gate(), store: MemoryStore())
        let gate = NumberedGate()
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded("R"))
        #expect(scene.status("/w/x") == 200)
        let next = try KeeperScene(Plans.gate().replacing("r-w", with: "r-other"), store: MemoryStore()).change
        next.routes[0].number += 1
        scene.inKeeper { $0.take(next) }
        let (realms, slot) = scene.inKeeper { keeper in
            (keeper.routes[0].table.realms, keeper.tokens.shared.values.first?.slot)
        }
        #expect(realms == ["R"])
        let published = try #require(next.routes[0].published)
        let verdict = scene.loops[0].data.reader.withSnapshot(published) { snapshot in
            Array("/w/x".utf8).withUnsafeBytes { path in
                Array("GET".utf8).withUnsafeBytes { snapshot.verdict(path: path, method: $0) }
            }
        }
        #expect(try #require(verdict) == .slot(try #require(slot)))
    }

    /// Identities that the issuer cannot tell apart have their rows in common: one that keeps nothing must not take those of the other.
    @Test func anIdentityThatKeepsNothingLeavesTheRowsOfItsTwin() throws {
        func plan(_ token: String) -> String {
            var text = "identities:\n"
            for (name, more) in [("a", token), ("b", "")] {
                text += "  \(name): {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c, "
                text += "client_secret: env:S}, token: {\(more)}}\n"
            }
            return text + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: b}\n"
        }
        let store = MemoryStore()
        let scene = try KeeperScene(plan(""), store: store)
        scene.issuer = NumberedIssuer().answer
        #expect(scene.status() == 200 && store.rows(RowKind.access).count == 1)
        let change = try KeeperScene(plan("persist: false"), store: MemoryStore()).change
        scene.inKeeper { $0.take(change) }
        #expect(store.rows(RowKind.access).count == 1)
        let again = try KeeperScene(plan("persist: false"), store: store)
        again.issuer = { _ in Wire.unavailable }
        #expect(again.status() == 200 && again.issuerCalls.isEmpty)
    }

    /// The rows of other identities stay where one of them keeps nothing any more.
    @Test func anIdentityThatKeepsNothingLeavesTheRowsOfOthers() throws {
        func plan(_ token: String) -> String {
            Plans.gate(names: ["w", "v"]).replacing("token: {}", with: "token: {\(token)}", maxReplacements: 1)
        }
        let store = MemoryStore()
        let scene = try KeeperScene(plan(""), store: store)
        let gate = NumberedGate()
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded())
        #expect(scene.status("/w/x") == 200 && scene.status("/v/x") == 200 && store.rows(RowKind.access).count == 2)
        let change = try KeeperScene(plan("persist: false"), store: MemoryStore()).change
        scene.inKeeper { $0.take(change) }
        let left = store.rows(RowKind.access)
        #expect(left.count == 1 && left[0].nature?.digest == change.identities.first { $0.plan.name == "v" }?.digest)
    }

    /// A password's session is made anew by whoever comes back; nothing of it is kept for an identity that is gone.
    @Test func aSessionOfAPasswordGoesWithItsIdentity() throws {
        let store = MemoryStore()
        let plan = Plans.client(identity: "grant: password, username: u, password: env:P")
        let scene = try KeeperScene(plan, store: store)
        scene.issuer = { _ in Wire.bearer("t", #","refresh_token":"r""#) }
        #expect(scene.status() == 200 && store.rows(RowKind.session).count == 1)
        let configured = scene.change
        empty(scene)
        #expect(store.rows(RowKind.session).isEmpty)
        scene.inKeeper { $0.take(configured) }
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status() == 200 && scene.issuerCalls.last?.member("grant_type") == "password")
    }

    /// The issuer has replaced the refresh token for an identity that a reload took away meanwhile: the new one is kept for its return.
    @Test(arguments: [false, true]) func aRefreshTokenThatComesAfterAReloadIsKeptForTheReturn(_ restarts: Bool) throws {
        let (store, secrets, issuer) = (MemoryStore(), Secrets(["R": "r0"]), RotatingIssuer())
        let scene = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        scene.issuer = issuer.answer
        #expect(scene.status("/a/") == 200)
        scene.pass(seconds: 100, step: 10)
        let configured = scene.change
        var held: Request?
        scene.issuer = { request in
            held = request
            return nil
        }
        scene.call(Wire.get("/a/"))
        let request = try #require(held)
        empty(scene)
        scene.issuer = issuer.answer
        try #require(scene.issuers.last { !$0.isClosed }).send(try #require(issuer.answer(request)))
        scene.settle()
        #expect(issuer.uses == 2)
        let next = restarts ? try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets) : scene
        next.issuer = issuer.answer
        if !restarts { scene.inKeeper { $0.take(configured) } }
        next.pass(seconds: 100, step: 10)
        #expect(next.status("/a/") == 200 && issuer.uses == 3 && issuer.reuses == 0)
    }
}
