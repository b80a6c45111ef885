import Testing

@testable import Handshakes
@testable import Keeping
@testable import TokenStore
@testable import Tokens

/// A store that a release without marks has written: what its sessions began with is not known, and must not be sent again.
@Suite struct FormerStoreTests {
    private let issuer = RotatingIssuer()
    private let secrets = Secrets(["R": "r0"])

    private func scene(
        _ yaml: String = RotatingIssuer.plan(), _ store: MemoryStore, secrets: Secrets? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets ?? self.secrets)
        scene.issuer = issuer.answer
        return scene
    }

    /// After one grant, as such a release leaves it.
    private func formerStore() throws -> MemoryStore {
        let store = MemoryStore()
        #expect(try scene(store: store).status("/a/") == 200)
        for row in store.rows(RowKind.family) {
            store.commit([.delete(kind: row.kind, key: row.key)]) { _ in }
        }
        for row in store.rows(RowKind.session) {
            var session = try #require(LayerRow(encoded: row.value))
            session.isHuman = false
            store.commit([
                .put(StoredRow(kind: row.kind, key: row.key, value: session.encoded(), expiresWall: row.expiresWall))
            ]) { _ in }
        }
        return store
    }

    private func scene(store: MemoryStore) throws -> KeeperScene { try scene(RotatingIssuer.plan(), store) }

    @Test func aPurgeGoesOnWithTheSuccessor() throws {
        let store = try formerStore()
        let scene = try scene(store: store)
        for uses in 2...3 {
            _ = scene.inKeeper { $0.purge(.everything) }
            #expect(scene.status("/a/") == 200 && issuer.uses == uses && issuer.reuses == 0)
        }
    }

    /// The first start makes the mark, also where nothing is asked for.
    @Test(arguments: ["extra: {x: y}", "headers: {X-Tenant: t}"]) func changedSettingsGoOnWithTheSuccessor(
        _ more: String
    ) throws {
        let store = try formerStore()
        try scene(store: store).settle()
        #expect(store.rows(RowKind.family).count == 1)
        let scene = try scene(RotatingIssuer.plan([more]), store)
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status("/a/") == 200 && issuer.uses == 2 && issuer.reuses == 0)
    }

    @Test func settingsThatChangeWithTheReleaseSendNothing() throws {
        let store = try formerStore()
        for _ in 0..<2 {
            let changed = try scene(RotatingIssuer.plan(["extra: {x: y}"]), store)
            #expect(changed.status("/a/") == 503 && changed.issuerCalls.isEmpty)
            let failure = changed.inKeeper { $0.status().tokens.first?.lastFailure }
            #expect(failure?.contains("cardea reset") == true, "\(failure ?? "")")
        }
        // Back to the settings of before, and the login is there.
        #expect(try scene(store: store).status("/a/") == 200)
        #expect(issuer.uses == 2 && issuer.reuses == 0)
    }

    @Test func anOperatorSaysThatItIsANewOne() throws {
        let store = try formerStore()
        secrets["R"] = "n0"
        issuer.current = "n0"
        let changed = try scene(RotatingIssuer.plan(["extra: {x: y}"]), store)
        #expect(changed.status("/a/") == 503 && changed.issuerCalls.isEmpty)
        _ = changed.inKeeper { $0.reset(identity: "i0") }
        #expect(changed.status("/a/") == 200)
        #expect(changed.issuerCalls.map { $0.member("refresh_token") } == ["n0"])
        #expect(try scene(RotatingIssuer.plan(["extra: {x: y}", "headers: {a: b}"]), store).status("/a/") == 200)
        #expect(issuer.reuses == 0)
    }

    /// The operator may have changed it together with the release: then it is not spent, and is wanted when the session is over.
    @Test func whatIsOnlyPresumedIsSentAfterARefusalAndAReset() throws {
        let store = try formerStore()
        secrets["R"] = "n0"
        let scene = try scene(store: store)
        scene.settle()
        issuer.current = "n0"
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status("/a/") == 503)
        #expect(store.rows(RowKind.family).isEmpty)
        _ = scene.inKeeper { $0.reset(identity: "i0") }
        #expect(scene.status("/a/") == 200)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r1", "n0"])
    }

    @Test func aLogoutLeavesWhatIsPresumedSpent() throws {
        let store = try formerStore()
        let scene = try scene(store: store)
        _ = scene.inKeeper { $0.beginLogout("i0") }
        scene.settle()
        #expect(scene.status("/a/") == 503)
        #expect(try self.scene(store: store).status("/a/") == 503)
        #expect(issuer.uses == 1 && issuer.reuses == 0)
    }

    /// What cannot be read at the start is looked at when it is wanted; meanwhile the session is renewed.
    @Test func theFirstMayBeReadLater() throws {
        let store = try formerStore()
        secrets["R"] = ""
        let scene = try scene(store: store)
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status("/a/") == 200 && issuer.uses == 2)
        #expect(store.rows(RowKind.family).isEmpty)
        secrets["R"] = "r0"
        try self.scene(store: store).settle()
        let families = store.rows(RowKind.family).compactMap { FamilyRow(encoded: $0.value) }
        #expect(families.map(\.current) == [Secret("r2")])
    }

    /// A server that did not rotate until now: the session has held the first itself.
    @Test func theFirstMayBeReplacedLate() throws {
        let store = MemoryStore()
        issuer.rotates = false
        #expect(try scene(store: store).status("/a/") == 200)
        issuer.rotates = true
        let scene = try scene(store: store)
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status("/a/") == 200 && issuer.current == "r2")
        let changed = try self.scene(RotatingIssuer.plan(["extra: {x: y}"]), store)
        #expect(changed.status("/a/") == 200 && issuer.reuses == 0)
    }
}
