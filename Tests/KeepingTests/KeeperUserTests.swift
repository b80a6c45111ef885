import HotCache
import Octets
import ScriptedKernel
import TLS
import Testing
import TokenStore

@testable import DataPath
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// A token for each end user, in virtual time: who shares a grant, who gives way, what a broken disk does.
@Suite struct KeeperUserTests {
    private static func plan(_ limits: String = "subjects: 100, new_subjects_per_second: 1000") -> String {
        Plans.client(identity: "extra: {act_as: '{subject}'}", route: "callers: local, subject: {from_header: X-User}")
            + "limits: {\(limits)}\n"
    }

    /// Gives each user a token with his name, and an upstream that admits no other.
    private final class Names {
        var asked: [String] = []
        var lifetime = "100"
        var holds = false
        var revoked: Set<String> = []

        func issue(_ request: Request) -> String? {
            guard let user = request.body.split(separator: "&").first(where: { $0.hasPrefix("act_as=") }) else {
                return nil
            }
            asked.append(String(user.dropFirst(7)))
            guard !holds else { return nil }
            let name = asked[asked.count - 1]
            return Wire.bearer("for-\(name)-\(asked.count { $0 == name })", expiresIn: lifetime)
        }

        func serve(_ request: Request) -> String? {
            guard let token = request.authorization, let user = request.field("x-check"),
                request.field("x-user") == nil,
                token.hasPrefix("Bearer for-\(user)-")
            else { return "HTTP/1.1 500 Wrong\r\nContent-Length: 0\r\n\r\n" }
            return revoked.contains(token) ? Wire.challenge : Wire.ok("in")
        }
    }

    private func scene(_ names: Names, _ text: String = plan(), loops: Int = 1, store: MemoryStore? = nil) throws
        -> KeeperScene
    {
        let scene = try KeeperScene(text, loops: loops, store: store)
        scene.issuer = names.issue
        scene.upstream = names.serve
        return scene
    }

    private func ask(_ scene: KeeperScene, _ user: String, loop: Int = 0, settles: Bool = true) -> Peer {
        scene.call(Wire.get("/", "X-User: \(user)\r\nX-Check: \(user)\r\n"), loop: loop, settles: settles)
    }

    @Test func aBurstOfEverybodyIsOneGrantForEach() throws {
        let names = Names()
        let scene = try scene(names, loops: 2)
        let callers = (0..<200).map { ask(scene, "u\($0 % 5)", loop: $0 % 2, settles: false) }
        scene.settle()
        #expect(callers.count { $0.status == 200 } == 200)
        #expect(names.asked.sorted() == ["u0", "u1", "u2", "u3", "u4"])
        #expect(scene.inKeeper { $0.users.subjects.count } == 5)
    }

    /// A task that has ended keeps its stack, tens of kilobytes a user, as long as somebody holds it.
    @Test func aFlightThatHasEndedIsHeldByNobody() throws {
        let names = Names()
        let scene = try scene(names)
        names.holds = true
        let early = ask(scene, "a")
        #expect(scene.inKeeper { $0.tokens.all.count { $0.flightTask != nil } } == 1)
        names.holds = false
        scene.issuers[0].send(Wire.bearer("for-a-1", expiresIn: "100"))
        scene.settle()
        #expect(early.status == 200)
        #expect((0..<20).allSatisfy { ask(scene, "u\($0)").status == 200 })
        #expect(scene.inKeeper { $0.tokens.all.count { $0.flightTask != nil } } == 0)
    }

    @Test func aRevokedTokenIsOneUsersGrant() throws {
        let names = Names()
        let scene = try scene(names)
        #expect(ask(scene, "a").status == 200 && ask(scene, "b").status == 200)
        names.revoked = ["Bearer for-a-1"]
        let callers = (0..<50).map { ask(scene, $0 % 2 == 0 ? "a" : "b", settles: false) }
        scene.settle()
        #expect(callers.count { $0.status == 200 } == 50)
        #expect(names.asked == ["a", "b", "a"])
    }

    @Test func whoIsUsedLeastGivesWayAndComesBackFromTheStore() throws {
        let names = Names()
        names.lifetime = "3600"
        let scene = try scene(names, Self.plan("subjects: 3, new_subjects_per_second: 1000"), store: MemoryStore())
        for round in 0..<3 {
            for number in 0..<9 {
                #expect(ask(scene, "u\(number)").status == 200, "\(round) \(number)")
                #expect(ask(scene, "popular").status == 200)
            }
        }
        #expect(names.asked.count == 10)
        let (count, tokens, keys) = scene.inKeeper { ($0.users.subjects.count, $0.tokens.count, $0.cache.keyCount) }
        // The one beside them stands for all users of the key.
        #expect(count == 3 && tokens == 4 && keys == 3)
    }

    @Test func nobodyGivesWayWhoIsWaitedFor() throws {
        let names = Names()
        let scene = try scene(names, Self.plan("subjects: 2, new_subjects_per_second: 1000"))
        names.holds = true
        let first = ask(scene, "a")
        let second = ask(scene, "b")
        let third = ask(scene, "c")
        #expect(first.status == nil && second.status == nil)
        #expect(third.status == 503 && third.receivedText.contains("too-many-subjects"))
        #expect(names.asked == ["a", "b"])
        #expect(scene.inKeeper { $0.tokens.count } == 3)
    }

    @Test(arguments: [MemoryStore.Disk.failing, .hung])
    func aBrokenDiskCostsGrantsAndNothingElse(disk: MemoryStore.Disk) throws {
        let names = Names()
        let store = MemoryStore()
        let scene = try scene(names, store: store)
        scene.settle()
        store.disk = disk
        let callers = (0..<20).map { ask(scene, "u\($0 % 2)", settles: false) }
        scene.pass(seconds: 2, step: 0.1)
        #expect(callers.count { $0.status == 200 } == 20)
        #expect(names.asked.sorted() == ["u0", "u1"])
    }

    @Test func whoLeavesLeavesNothingBehind() throws {
        let names = Names()
        names.holds = true
        let scene = try scene(names)
        for peer in (0..<10).map({ _ in ask(scene, "a") }) { peer.reset() }
        scene.settle()
        #expect(scene.inKeeper { keeper in keeper.users.waitingCount == 0 })
        #expect(scene.loops[0].data.desk.parked.isEmpty && scene.loops[0].data.desk.waiters == 0)
    }

    @Test func expiredTokensAreOneGrantForEachAgain() throws {
        let names = Names()
        let scene = try scene(names)
        #expect(ask(scene, "a").status == 200 && ask(scene, "b").status == 200)
        scene.pass(seconds: 120, step: 10)
        let callers = (0..<40).map { ask(scene, $0 % 2 == 0 ? "a" : "b", settles: false) }
        scene.settle()
        #expect(callers.count { $0.status == 200 } == 40)
        #expect(names.asked == ["a", "b", "a", "b"] || names.asked == ["a", "b", "b", "a"])
    }

    // MARK: - Tokens made from the callers'

    /// A caller's own token, good for that many seconds of the scene's clock.
    private func own(_ scene: KeeperScene, seconds: Int64) -> String {
        let end = scene.keeperKernel.wallMilliseconds() / 1000 + seconds
        return [#"{"alg":"RS256"}"#, #"{"exp":\#(end)}"#, "signature"].map { Base64.encodeURL(Array($0.utf8)) }
            .joined(separator: ".")
    }

    private func exchanging() throws -> KeeperScene {
        try KeeperScene(
            Plans.client(identity: "grant: token_exchange", route: "callers: local, subject: from_caller_token"))
    }

    @Test func aTokenMadeFromTheCallersEndsWithIt() throws {
        let scene = try exchanging()
        scene.issuer = { _ in Wire.bearer("made", expiresIn: "3600") }
        let request = Wire.get("/", "Authorization: Bearer \(own(scene, seconds: 60))\r\n")
        #expect(scene.call(request).status == 200)
        scene.pass(seconds: 59)
        #expect(scene.call(request).status == 200)
        scene.pass(seconds: 1)
        #expect(scene.call(request).status == 403)
    }

    /// It may have been asked for within the last second of the caller's, and is good for an hour by its issuer's word.
    @Test(arguments: [(0, 4), (0, 4.4), (3.7, 4.1)]) func aTokenThatComesAfterTheEndOfTheCallersIsNotServed(
        asked: Double, answered: Double
    ) throws {
        let scene = try exchanging()
        scene.issuer = { _ in nil }
        let request = Wire.get("/", "Authorization: Bearer \(own(scene, seconds: 4))\r\n")
        scene.pass(seconds: asked, step: 0.1)
        let first = scene.call(request)
        scene.pass(seconds: answered - asked, step: 0.1)
        scene.issuers[0].send(Wire.bearer("made", expiresIn: "3600"))
        scene.settle()
        #expect(first.status == 403 && first.receivedText.contains("subject-refused"))
        #expect(scene.call(request).status == 403)
        #expect(scene.upstreamCalls.isEmpty && scene.issuerCalls.count == 1)
    }

    @Test func aPurgeForgetsAlsoWhomOnlyTheStoreKnows() throws {
        let names = Names()
        names.lifetime = "3600"
        let store = MemoryStore()
        let scene = try scene(names, Self.plan("subjects: 1, new_subjects_per_second: 1000"), store: store)
        for user in ["a", "b", "c"] { #expect(ask(scene, user).status == 200) }
        #expect(store.rows(RowKind.access).count == 3)
        scene.inKeeper { keeper in keeper.raiseEpoch(of: keeper.identities[0], cause: .purge) }
        scene.settle()
        #expect(store.rows(RowKind.access).isEmpty)
        #expect(ask(scene, "a").status == 200 && names.asked == ["a", "b", "c", "a"])
    }

    /// The store is looked through step by step, and a user comes before its row is reached.
    @Test func aPurgedTokenIsNotFoundBeforeTheStoreHasForgottenIt() throws {
        let names = Names()
        names.lifetime = "3600"
        let store = MemoryStore()
        let scene = try scene(names, Self.plan("subjects: 1, new_subjects_per_second: 1000"), store: store)
        for user in ["a", "b"] { #expect(ask(scene, user).status == 200) }
        store.disk = .hung
        store.start(.retain(kind: RowKind.owners) { _ in true }) { _ in }
        store.disk = .good
        scene.inKeeper { _ = $0.purge(.everything) }
        scene.settle()
        #expect(store.rows(RowKind.access).count == 1)
        #expect(ask(scene, "a").status == 200 && names.asked == ["a", "b", "a"])
        store.thaw()
        scene.pass(seconds: 1)
        // The row of the token that came meanwhile goes with the others: a row too many would be worse.
        #expect(store.rows(RowKind.access).isEmpty)
        #expect(ask(scene, "a").status == 200 && names.asked == ["a", "b", "a"])
    }
}
