import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Scenes

/// The answer to a change that is to outlast the process leaves when the store has it.
@Suite struct AdminServerTests {
    /// Purges, as the admin site does, and tells what became of it; says "read" to everything else.
    private struct Site: AdminResponder {
        let keeper: Keeper

        func answer(_ request: AdminRequest) -> AdminAnswer {
            guard request.path == "/purge" else { return AdminAnswer(200, "text/plain", "read") }
            guard keeper.assumeIsolated({ $0.purge(.everything) }) != nil else {
                return AdminAnswer(404, "text/plain", "")
            }
            var answer = AdminAnswer(200, "text/plain", "purged")
            answer.unlessStored = { AdminAnswer(500, "text/plain", "because: \($0)") }
            return answer
        }
    }

    private struct Desk {
        let scene: KeeperScene
        let server: AdminServer
        let listener: Int32

        init(_ store: MemoryStore?, _ text: String = Plans.client()) throws {
            scene = try KeeperScene(text, store: store)
            let keeper = scene.keeper
            server = AdminServer(loop: scene.keeperLoop, responder: Site(keeper: keeper), hosts: []) { done in
                keeper.assumeIsolated { $0.whenErased(done) }
            }
            listener = scene.keeperKernel.listen()
            server.hold(listener, of: try #require(SocketAddress(parsing: "127.0.0.1:1")), entrance: .listen)
            #expect(server.open())
            scene.settle()
            let issuer = NumberedIssuer()
            issuer.expiresIn = "3600"
            scene.issuer = issuer.answer
        }

        /// A token that is held and stored.
        func warm() { #expect(scene.status() == 200) }

        func ask(_ paths: String...) throws -> Peer {
            let caller = try #require(scene.keeperKernel.call(listener))
            for path in paths { caller.send("POST \(path) HTTP/1.1\r\nHost: localhost\r\n\r\n") }
            scene.settle()
            return caller
        }

        /// A caller whose buffer takes the answer's beginning and is not read.
        func askAndStall() throws -> Peer {
            let caller = try #require(scene.keeperKernel.call(listener))
            caller.window = 60
            caller.send("GET /read HTTP/1.1\r\nHost: localhost\r\n\r\n")
            scene.settle()
            #expect(caller.receivedCount == 60 && !caller.isClosed)
            return caller
        }
    }

    private static let perUser = """
        identities:
          one: {oauth2: {token_url: "http://127.0.0.1:9100/one", client_id: a, client_secret: env:S, extra: {act_as: '{subject}'}}}
          two: {oauth2: {token_url: "http://127.0.0.1:9100/two", client_id: b, client_secret: env:S, extra: {act_as: '{subject}'}}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: one, match: {path: "/one/"}, callers: local,
             subject: {from_header: X-User}}
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: two, match: {path: "/two/"}, callers: local,
             subject: {from_header: X-User}}

        """

    @Test func aPurgeIsAnsweredWhenTheStoreHasIt() throws {
        let store = MemoryStore()
        let desk = try Desk(store)
        desk.warm()
        store.disk = .hung
        let caller = try desk.ask("/purge", "/read")
        // Nothing overtakes it either.
        #expect(caller.receivedCount == 0)
        store.thaw()
        desk.scene.settle()
        let text = caller.takeText()
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.contains("purged") && text.hasSuffix("read"))
    }

    @Test func aStoreThatFailsIsTold() throws {
        let store = MemoryStore()
        let desk = try Desk(store)
        desk.warm()
        store.disk = .failing
        let text = try desk.ask("/purge").takeText()
        #expect(
            text.hasPrefix("HTTP/1.1 500 Internal Server Error\r\n") && text.contains("because: ")
                && text.contains("no space"))
    }

    @Test func aDiskThatHangsIsTold() throws {
        let store = MemoryStore()
        let desk = try Desk(store)
        desk.warm()
        store.disk = .hung
        let caller = try desk.ask("/purge")
        desk.scene.pass(seconds: 4)
        #expect(caller.receivedCount == 0)
        desk.scene.pass(seconds: 2)
        #expect(caller.takeText().contains("because: it does not answer"))
        // What it says afterwards is nobody's answer any more.
        store.thaw()
        desk.scene.settle()
        #expect(caller.receivedCount == 0)
        caller.send("GET /read HTTP/1.1\r\nHost: localhost\r\n\r\n")
        desk.scene.settle()
        #expect(caller.takeText().hasSuffix("read"))
    }

    @Test func whoeverLeavesIsForgotten() throws {
        let store = MemoryStore()
        let desk = try Desk(store)
        desk.warm()
        store.disk = .hung
        let caller = try desk.ask("/purge")
        caller.reset()
        desk.scene.settle()
        #expect(caller.isClosed)
        store.thaw()
        desk.scene.settle()
        #expect(desk.scene.keeperKernel.misuse == [])
    }

    /// Those of users whom memory does not know go by jobs, of which the store does one at a time.
    @Test func usersThatMemoryDoesNotKnowGoBeforeTheAnswer() throws {
        let store = MemoryStore()
        let first = try Desk(store, Self.perUser)
        for path in ["/one/x", "/two/x"] {
            #expect(first.scene.call(Wire.get(path, "X-User: anna\r\n")).status == 200)
        }
        #expect(store.rows(RowKind.access).count == 2)
        // The next gateway knows nobody.
        let desk = try Desk(store, Self.perUser)
        store.disk = .hung
        let caller = try desk.ask("/purge")
        #expect(caller.receivedCount == 0)
        store.thaw()
        desk.scene.settle()
        #expect(caller.takeText().hasPrefix("HTTP/1.1 200 "))
        #expect(store.rows(RowKind.access).isEmpty)
    }

    /// What is being read from the disk when the purge comes is what it takes.
    @Test func whatIsBeingLookedUpIsPurgedToo() throws {
        let store = MemoryStore()
        let asks = Wire.get("/one/x", "X-User: anna\r\n")
        #expect(try Desk(store, Self.perUser).scene.call(asks).status == 200)
        let desk = try Desk(store, Self.perUser)
        store.disk = .hung
        let late = desk.scene.call(asks)
        _ = try desk.ask("/purge")
        store.thaw()
        desk.scene.settle()
        #expect(late.status == 200 && desk.scene.issuerCalls.count == 1)
    }

    // MARK: - Connections without a request

    /// Whoever says nothing, or begins and does not go on, has two seconds.
    @Test func aHeadIsDueWithinTwoSeconds() throws {
        let desk = try Desk(nil)
        let silent = try desk.ask()
        let slow = try desk.ask()
        slow.send("GET /read HTTP/1.1\r\n")
        desk.scene.settle()
        desk.scene.pass(seconds: 1.5)
        slow.send("Host: localhost\r\n")
        #expect(!silent.isClosed && !slow.isClosed)
        desk.scene.pass(seconds: 1)
        #expect(silent.isClosed && slow.isClosed)
        // One that has been answered may keep its connection for longer, and has two seconds from the next octet on.
        let kept = try desk.ask("/read")
        desk.scene.pass(seconds: 20)
        #expect(!kept.isClosed)
        kept.send("G")
        desk.scene.pass(seconds: 3)
        #expect(kept.isClosed)
    }

    /// Those that ask for nothing do not keep the next one out, and those that are answered stay. All are of one address here.
    @Test func theOldestThatWaitsGivesWay() throws {
        let store = MemoryStore()
        let desk = try Desk(store)
        desk.warm()
        store.disk = .hung
        let busy = try desk.ask("/purge")
        var idle: [Peer] = []
        for _ in 1..<AdminServer.addressLimit { idle.append(try desk.ask("/read")) }
        #expect(idle.allSatisfy { !$0.isClosed })
        let next = try desk.ask("/read")
        #expect(next.takeText().hasSuffix("read"))
        #expect(idle.count { $0.isClosed } == 1 && !busy.isClosed)
        store.thaw()
        desk.scene.settle()
        #expect(busy.takeText().contains("purged"))
    }

    // MARK: - Readers that do not read

    /// Whoever asks and does not read holds a place for two seconds, if somebody wants it.
    @Test func whoeverDoesNotReadGivesWay() throws {
        let desk = try Desk(nil)
        var stalled: [Peer] = []
        for _ in 0..<AdminServer.addressLimit {
            stalled.append(try desk.askAndStall())
            desk.scene.pass(seconds: 0.01)
        }
        desk.scene.pass(seconds: 1)
        let early = try desk.ask("/read")
        #expect(early.isClosed)
        #expect(stalled.allSatisfy { !$0.isClosed })
        desk.scene.pass(seconds: 1.5)
        for gone in 1...3 {
            let next = try desk.ask("/read")
            #expect(next.takeText().hasSuffix("read"))
            // Those that were answered come after those that read nothing.
            #expect(stalled.map(\.isClosed) == stalled.indices.map { $0 < gone })
        }
        // Where nobody wants the places, they end after half a minute as before.
        desk.scene.pass(seconds: 25)
        #expect(stalled.count { $0.isClosed } == 3)
        desk.scene.pass(seconds: 5)
        #expect(stalled.allSatisfy { $0.isClosed })
        #expect(desk.scene.keeperKernel.misuse == [])
    }

    /// One octet a second is slow, and is no stall: also where the socket has not asked for more since.
    @Test func whoeverReadsSlowlyStays() throws {
        let desk = try Desk(nil)
        let slow = try desk.askAndStall()
        var stalled: [Peer] = []
        for _ in 1..<AdminServer.addressLimit { stalled.append(try desk.askAndStall()) }
        for second in 1...AdminServer.addressLimit {
            _ = slow.take(1)
            desk.scene.pass(seconds: 1)
            guard second > 2, second < AdminServer.addressLimit else { continue }
            let next = try desk.ask("/read")
            #expect(next.takeText().hasSuffix("read") && !slow.isClosed)
        }
        #expect(stalled.contains { $0.isClosed })
    }

    /// The bound of all addresses together, from as many as it takes.
    @Test func readersThatDoNotReadLockNobodyOut() throws {
        let desk = try Desk(nil)
        var stalled: [Peer] = []
        for place in 0..<AdminServer.connectionLimit {
            desk.scene.keeperKernel.callerAddress = "192.0.2.\(place / AdminServer.addressLimit)"
            stalled.append(try desk.askAndStall())
        }
        desk.scene.pass(seconds: 2.5)
        desk.scene.keeperKernel.callerAddress = "198.51.100.1"
        let next = try desk.ask("/read")
        #expect(next.takeText().hasSuffix("read") && stalled.count { $0.isClosed } == 1)
    }

    /// Many in one read, none of which waits.
    @Test func withoutAStoreNobodyWaits() throws {
        let desk = try Desk(nil)
        let caller = try desk.ask("/purge", "/purge", "/read")
        let text = caller.takeText()
        #expect(text.split(separator: "purged").count == 3 && text.hasSuffix("read"))
    }
}
