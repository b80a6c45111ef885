import ScriptedKernel
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A refresh token that the configuration names is sent once, whatever becomes of the identity that names it.
@Suite struct FirstRefreshTokenTests {
    private let secrets = Secrets(["R": "r0"])

    private func scene(
        _ yaml: String, _ issuer: RotatingIssuer, store: MemoryStore? = nil, state: StoreHealth.State? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, state: state, secrets: secrets)
        scene.issuer = issuer.answer
        return scene
    }

    @Test(arguments: ["store", "memory", "persist: false"]) func aPurgeGoesOnWithItsSuccessor(where place: String)
        throws
    {
        let issuer = RotatingIssuer()
        let store = place == "memory" ? nil : MemoryStore()
        let scene = try scene(RotatingIssuer.plan(token: place.hasPrefix("persist") ? place : ""), issuer, store: store)
        for uses in 1...3 {
            #expect(scene.status("/a/") == 200 && issuer.uses == uses)
            _ = scene.inKeeper { $0.purge(uses == 1 ? .everything : .identity("i0")) }
            scene.settle()
        }
        #expect(scene.status("/a/") == 200 && issuer.uses == 4 && issuer.reuses == 0)
    }

    @Test func itsSettingsMayChangeAndChangeBack() throws {
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        let changes = ["", "extra: {x: y}", "headers: {X-Tenant: t}", "", "extra: {x: y}"]
        for (index, more) in changes.enumerated() {
            let scene = try scene(RotatingIssuer.plan([more]), issuer, store: store)
            // What was granted before serves, or a new one.
            #expect(scene.status("/a/") == 200)
            _ = scene.inKeeper { $0.purge(.everything) }
            #expect(scene.status("/a/") == 200 && issuer.reuses == 0, "change \(index)")
        }
        #expect(issuer.reuses == 0 && issuer.current != "ended")
    }

    @Test func aScopeThatIsNotThereSpendsNothing() throws {
        let issuer = RotatingIssuer()
        let scene = try scene(RotatingIssuer.plan(routes: [(0, "a"), (0, "bad")]), issuer, store: MemoryStore())
        #expect(scene.status("/a/") == 200)
        #expect(scene.status("/bad/") == 503)
        #expect(scene.issuerCalls.last?.member("refresh_token") == "r1")
        #expect(scene.issuerCalls.count == 2 && issuer.reuses == 0)
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status("/a/") == 200 && issuer.reuses == 0)
    }

    @Test(arguments: [true, false]) func twoIdentitiesGoOnTogether(stored: Bool) throws {
        let issuer = RotatingIssuer()
        let store = stored ? MemoryStore() : nil
        let yaml = RotatingIssuer.plan(["", "extra: {x: y}"], routes: [(0, "a"), (1, "b")])
        let scene = try scene(yaml, issuer, store: store)
        for path in ["/a/", "/b/", "/a/", "/b/"] {
            #expect(scene.status(path) == 200)
            scene.pass(seconds: 100, step: 10)
        }
        #expect(issuer.uses == 4 && issuer.reuses == 0)
        guard let store else { return }
        let again = try self.scene(yaml, issuer, store: store)
        for path in ["/b/", "/a/", "/b/"] {
            #expect(again.status(path) == 200)
            again.pass(seconds: 100, step: 10)
        }
        #expect(issuer.uses > 4 && issuer.reuses == 0)
    }

    /// The one that keeps nothing on disk uses what both have: what the other has there is its successor's.
    @Test(arguments: [[0, 1], [1], [1, 0, 1]]) func oneOfTwoMayKeepNothing(_ order: [Int]) throws {
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        let routes = [(0, "a"), (1, "b")]
        let yaml = RotatingIssuer.plan(["", "extra: {x: y}"], routes: routes)
        let partly = yaml.replacing(
            "extra: {x: y}}\n    token: {}", with: "extra: {x: y}}\n    token: {persist: false}")
        #expect(partly != yaml)
        let before = try scene(partly, issuer, store: store)
        for index in order {
            #expect(before.status("/\(routes[index].1)/") == 200)
            before.pass(seconds: 100, step: 10)
        }
        for path in ["/a/", "/b/"] {
            let scene = try scene(partly, issuer, store: store)
            _ = scene.inKeeper { $0.purge(.everything) }
            #expect(scene.status(path) == 200 && issuer.reuses == 0)
        }
    }

    @Test(arguments: [StoreHealth.State.refused("another key"), .degraded("the disk does not answer")])
    func nothingIsSpentWhileTheStoreCannotBeRead(_ state: StoreHealth.State) throws {
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        #expect(try scene(RotatingIssuer.plan(), issuer, store: store).status("/a/") == 200)
        let rows = MemoryStore()
        rows.disk = .failing
        let blind = try scene(RotatingIssuer.plan(), issuer, store: rows, state: state)
        let caller = blind.call(Wire.get("/a/"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/store-unusable"))
        #expect(blind.issuerCalls.isEmpty)
        let back = try scene(RotatingIssuer.plan(), issuer, store: store)
        _ = back.inKeeper { $0.purge(.everything) }
        #expect(back.status("/a/") == 200 && issuer.reuses == 0)
    }

    /// The mark is made with the key of the process, and the disk brings another one.
    @Test func theMarkOutlivesItsKey() throws {
        typealias Kind = RowKind
        let before = MemoryStore()
        #expect(try scene(RotatingIssuer.plan(), RotatingIssuer(), store: before).status("/a/") == 200)
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        store.disk = .failing
        let yaml = RotatingIssuer.plan(["", "extra: {x: y}"], token: "persist: false", routes: [(0, "a"), (1, "b")])
        let late = try scene(yaml, issuer, store: store, state: .degraded("no answer"))
        #expect(late.status("/a/") == 200 && issuer.uses == 1)
        store.disk = .good
        before.rows(Kind.markKey).forEach { store.put($0) { _ in } }
        late.pass(seconds: 61, step: 1)
        #expect(late.inKeeper { $0.health.state } == .serving)
        #expect(late.status("/b/") == 200 && issuer.uses == 2 && issuer.reuses == 0)
    }

    @Test func aFullDiskIsReadable() throws {
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        let scene = try scene(RotatingIssuer.plan(), issuer, store: store)
        #expect(scene.status("/a/") == 200)
        store.disk = .failing
        for uses in 2...3 {
            scene.pass(seconds: 100, step: 10)
            #expect(scene.status("/a/") == 200 && issuer.uses == uses)
        }
        #expect(issuer.reuses == 0)
    }

    @Test func oneThatIsSpentStaysAtHomeWhenNothingIsLeftOfIt() throws {
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        #expect(try scene(RotatingIssuer.plan(), issuer, store: store).status("/a/") == 200)
        issuer.current = "revoked by somebody"
        let scene = try scene(RotatingIssuer.plan(["extra: {x: y}"]), issuer, store: store)
        #expect(scene.status("/a/") == 503)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r1"])
        _ = scene.inKeeper { $0.reset(identity: "i0") }
        #expect(scene.status("/a/") == 503 && scene.issuerCalls.count == 1)
        // The operator brings another one.
        issuer.current = "n0"
        secrets["R"] = "n0"
        scene.pass(seconds: 2)
        #expect(scene.status("/a/") == 200)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r1", "n0"])
    }

    @Test func aLogoutLeavesItSpent() throws {
        let issuer = RotatingIssuer()
        let scene = try scene(RotatingIssuer.plan(), issuer, store: MemoryStore())
        #expect(scene.status("/a/") == 200)
        _ = scene.inKeeper { $0.beginLogout("i0") }
        scene.settle()
        #expect(scene.status("/a/") == 503)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r0"] && issuer.reuses == 0)
    }

    /// A store of before the marks, or another gateway of a fleet: nobody knows what the session began with.
    @Test func whatASessionOfUnknownBeginningBeganWithIsNotSent() throws {
        let issuer = RotatingIssuer()
        let store = MemoryStore()
        #expect(try scene(RotatingIssuer.plan(), issuer, store: store).status("/a/") == 200)
        for row in store.rows(RowKind.family) {
            store.commit([.delete(kind: row.kind, key: row.key)]) { _ in }
        }
        let scene = try scene(RotatingIssuer.plan(routes: [(0, "bad"), (0, "a")]), issuer, store: store)
        #expect(scene.status("/bad/") == 503)
        issuer.current = "revoked by somebody"
        _ = scene.inKeeper { $0.purge(.everything) }
        #expect(scene.status("/a/") == 503)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r1", "r1"])
    }

    /// The session goes on until it is refused; then the new one is sent.
    @Test func anotherOneIsSentWhenTheSessionOfTheFirstIsOver() throws {
        let issuer = RotatingIssuer()
        let scene = try scene(RotatingIssuer.plan(), issuer, store: MemoryStore())
        #expect(scene.status("/a/") == 200)
        secrets["R"] = "n0"
        issuer.current = "n0"
        scene.pass(seconds: 100, step: 10)
        #expect(scene.status("/a/") == 200)
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r0", "r1", "n0"])
    }

    /// A server that does not rotate has one refresh token for ever.
    @Test func oneThatIsNotReplacedIsSentAgain() throws {
        let scene = try KeeperScene(RotatingIssuer.plan(), store: MemoryStore(), secrets: secrets)
        var granted = 0
        scene.issuer = { _ in
            granted += 1
            return Wire.bearer("t\(granted)")
        }
        for _ in 0..<3 {
            #expect(scene.status("/a/") == 200)
            scene.pass(seconds: 100, step: 10)
        }
        #expect(scene.issuerCalls.map { $0.member("refresh_token") } == ["r0", "r0", "r0"])
        #expect(scene.store?.rows(RowKind.family).isEmpty == true)
    }

    /// An issuer that takes its time has replaced the token all the same.
    @Test func itsSuccessorIsWaitedForLongerThanOthers() throws {
        let issuer = RotatingIssuer()
        let scene = try scene(RotatingIssuer.plan(token: "acquire_timeout: 5s"), issuer, store: MemoryStore())
        var held: [String] = []
        scene.issuer = { request in
            held.append(issuer.answer(request) ?? "")
            return nil
        }
        let caller = scene.call(Wire.get("/a/"))
        scene.pass(seconds: 30, step: 1)
        #expect(caller.status == 504 && held.count == 1)
        scene.issuer = issuer.answer
        scene.issuers.first?.send(held[0])
        scene.settle()
        #expect(scene.status("/a/") == 200)
        #expect(issuer.reuses == 0 && issuer.uses == 2)
    }

    @Test func aCheckSparesIt() throws {
        let issuer = RotatingIssuer()
        let scene = try scene(RotatingIssuer.plan(), issuer, store: MemoryStore())
        scene.inKeeper { $0.handOver.sparesRefreshTokens = true }
        #expect(scene.status("/a/") == 503 && scene.issuerCalls.isEmpty)
    }

    @Test func aFamilyIsWrittenAndReadBack() {
        let lock = SessionLockKey(
            issuer: Tokens.Origin(scheme: "https", host: "idp.example", port: 443), subject: "client")
        for current in [Secret("r1"), nil] {
            for lock in [lock, SessionLockKey(issuer: lock.issuer, subject: nil)] {
                let row = FamilyRow(lock: lock, current: current)
                let read = FamilyRow(encoded: row.encoded())
                #expect(read?.lock == lock && read?.current == current)
                #expect(FamilyRow(encoded: Array(row.encoded().dropLast())) == nil)
                #expect(FamilyRow(encoded: row.encoded() + [0]) == nil)
            }
        }
    }
}
