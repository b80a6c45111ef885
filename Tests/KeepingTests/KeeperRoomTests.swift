import HotCache
import ScriptedKernel
import Synchronization
import Telemetry
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// The room that a keeper has: mailboxes that are full, tokens that give way, rows that have to go, and scopes that are narrower than asked for.
@Suite struct KeeperRoomTests {
    // MARK: - Mailboxes

    /// A loop takes no letter for a moment: what is ordered waits for it, in its order.
    @Test func aLoopWhoseMailboxIsFullHasItsOrdersLater() throws {
        let scene = try KeeperScene(Plans.client(), loops: 2)
        scene.issuer = { _ in nil }
        let callers = (0..<2).map { scene.call(Wire.get("/"), loop: $0) }
        scene.issuers[0].send(Wire.bearer("t"))
        let full = scene.loops[1].data.loop
        while full.post({}) {}
        for _ in 0..<6 { scene.keeperLoop.turnOnce() }
        scene.settle()
        #expect(callers[0].status == 200 && callers[1].status == nil)
        scene.pass(seconds: 0.02, step: 0.02)
        #expect(callers[1].status == 200 && scene.issuerCalls.count == 1)
    }

    // MARK: - Memory

    /// Tokens that are too many for the cache are told of, and served all the same.
    @Test func tokensThatMakeRoomForOthersAreToldOf() throws {
        let events = try EventLog(level: .debug)
        let scene = try KeeperScene(
            Plans.client(
                identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")
                + "limits: {subjects: 100, new_subjects_per_second: 1000}\n", events: events)
        scene.issuer = { Wire.bearer(($0.member("act_as") ?? "") + String(repeating: "x", count: 30_000)) }
        for number in 0..<60 { #expect(scene.call(Wire.get("/", "X-User: u\(number)\r\n")).status == 200) }
        let told = events.takeTold().filter { $0.hasPrefix("tokens evicted count=") }
        #expect(!told.isEmpty)
        #expect(scene.call(Wire.get("/", "X-User: u0\r\n")).status == 200 && scene.issuerCalls.count == 60)
        #expect(scene.upstreamCalls.last?.authorization?.hasPrefix("Bearer u0x") == true)
    }

    /// The token's bytes fell out of memory, and somebody has deleted its row.
    @Test func aTokenWhoseRowIsGoneIsGrantedAnew() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.client(), store: store)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        #expect(scene.status() == 200)
        let row = try #require(store.rows(RowKind.access).first)
        scene.inKeeper { keeper in for token in keeper.tokens.all { keeper.cache.clear(slot: token.slot) } }
        #expect(scene.status() == 200 && issuer.granted == 1, "its row brings it back")
        scene.inKeeper { keeper in for token in keeper.tokens.all { keeper.cache.clear(slot: token.slot) } }
        store.commit([.delete(kind: row.kind, key: row.key)]) { _ in }
        #expect(scene.status() == 200 && issuer.granted == 2 && store.rows(RowKind.access).count == 1)
    }

    // MARK: - Scopes

    private static let scoped = Plans.client(route: "scopes: [a, b]")

    /// Said once, and not with each renewal.
    @Test func aGrantOfFewerScopesIsToldOnce() throws {
        let events = try EventLog()
        let scene = try KeeperScene(Self.scoped, events: events)
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100", #","scope":"a""#) }
        for _ in 0..<3 {
            #expect(scene.status() == 200)
            scene.pass(seconds: 120, step: 10)
        }
        #expect(scene.inKeeper { $0.identities[0].narrowerGrants } == 3)
        #expect(events.takeTold().count { $0.hasPrefix("granted fewer scopes than asked for") } == 1)
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100", #","scope":"a b""#) }
        #expect(scene.status() == 200)
        scene.pass(seconds: 120, step: 10)
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100", #","scope":"a""#) }
        #expect(scene.status() == 200)
        let told = events.takeTold().count { $0.hasPrefix("granted fewer scopes than asked for") }
        #expect(told == 1, "it is news again")
    }

    @Test func aWiderTokenThatIsUsedIsToldToWhoLooksClosely() throws {
        let events = try EventLog(level: .debug)
        let route = #"  - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, match: {path: "#
        let plan =
            Plans.client().split(separator: "routes:")[0] + "routes:\n\(route)/wide/}, scopes: [a, b]}\n"
            + "\(route)/narrow/}, scopes: [a]}\n"
        let scene = try KeeperScene(String(plan), events: events)
        scene.issuer = NumberedIssuer().answer
        #expect(scene.status("/wide/") == 200 && scene.status("/narrow/") == 200 && scene.issuerCalls.count == 1)
        #expect(events.takeTold().contains { $0.hasPrefix("wider token used identity=o scopes=") })
        // Its bytes are nowhere in memory: a token of its own is granted.
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status("/wide/") == 200 && scene.issuerCalls.count == 2)
        scene.inKeeper { keeper in
            for token in keeper.tokens.all {
                token.line = nil
                keeper.cache.clear(slot: token.slot)
            }
        }
        #expect(scene.status("/narrow/") == 200 && scene.issuerCalls.count == 3)
    }

    // MARK: - Purges

    /// A store does another job after a start with other identities; the rows that memory does not know of go behind it.
    @Test func aPurgeOfRowsWaitsForAnotherJobOfTheStore() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.gate(), store: store)
        let gate = NumberedGate()
        (scene.issuer, scene.upstream) = (gate.answer, gate.guarded())
        #expect(scene.status("/w/x") == 200)
        let row = try #require(store.rows(RowKind.access).first)
        store.disk = .hung
        store.start(.retain(kind: RowKind.owners) { _ in true }) { _ in }
        let answers = Mutex<[String?]>([])
        scene.inKeeper { keeper in
            _ = keeper.purge(.everything)
            keeper.whenErased { reason in answers.withLock { $0.append(reason) } }
        }
        scene.pass(seconds: 1)
        #expect(answers.withLock { $0.isEmpty })
        store.thaw()
        // Left by a process that had the store in between.
        store.commit([.put(row)]) { _ in }
        scene.pass(seconds: 2)
        #expect(answers.withLock { $0 } == [nil] && store.rows(RowKind.access).isEmpty)
    }

    /// The owner of such a row cannot be told.
    @Test func aPurgeLeavesARowThatCannotBeRead() throws {
        let store = MemoryStore()
        let scene = try KeeperScene(Plans.gate(), store: store)
        scene.settle()
        store.commit([.put(StoredRow(kind: RowKind.access, key: [1, 2], value: [3], expiresWall: nil))]) { _ in }
        let answers = Mutex<[String?]>([])
        scene.inKeeper { keeper in
            _ = keeper.purge(.everything)
            keeper.whenErased { reason in answers.withLock { $0.append(reason) } }
        }
        #expect(store.rows(RowKind.access).map(\.key) == [[1, 2]] && answers.withLock { $0 } == [nil])
    }

    @Test func aRouteWithoutAnIdentityHasNothingToPurge() throws {
        let plan = Plans.client(route: "name: guarded, match: {path: /g/}")
        let scene = try KeeperScene(
            plan + #"  - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: none, name: open}"# + "\n")
        scene.issuer = NumberedIssuer().answer
        #expect(scene.status("/g/") == 200)
        let report = scene.inKeeper { $0.purge(.route("open")) }
        #expect(report == PurgeReport(identities: [], tokens: 0))
        #expect(scene.status("/g/") == 200 && scene.issuerCalls.count == 1)
    }

    @Test func aResetOfNobodyIsNone() throws {
        let scene = try KeeperScene(Plans.client())
        let told = scene.inKeeper { [$0.reset(identity: "nobody"), $0.reset(identity: "o")] }
        #expect(told == [false, true])
    }
}
