import HotCache
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// Tokens by key and slot, and requests that wait for them, without the keeper.
@Suite struct TokenTableTests {
    private let identity: KeptIdentity
    private let cache = HotCache(readers: 1, slots: 16, byteLimit: 1 << 16)

    init() throws {
        let scene = try KeeperScene(Plans.client())
        identity = try #require(scene.inKeeper { $0.identities }.first)
    }

    private func token(_ realm: Realm = "", of user: ByteString? = nil) throws -> KeptToken {
        let key = AccessKey(
            digest: identity.digest, origin: Origin(scheme: "http", host: "in", port: 80), realm: realm, subject: user)
        return KeptToken(
            key: key, slot: try #require(cache.allocateSlot()), identity: identity,
            machine: AccessTokenMachine(policy: identity.policy.access, standing: identity.standing, seed: 1),
            wanted: Wanted(upstreamOrigin: ""))
    }

    @Test func aTokenIsFoundByKeyAndSlotUntilItIsRemoved() throws {
        var table = TokenTable(seed: 1)
        let (shared, own) = (try token(), try token(of: "ann"))
        table.add(shared)
        table.add(own)
        #expect(table[shared.key] === shared && table[own.slot] === own && table.count == 2)
        #expect(table.shared.count == 1 && table.of(identity).count == 2)
        table.remove(own)
        #expect(table[own.key] == nil && table[own.slot] == nil && !table.holds(own) && table.holds(shared))
        let another = try token(of: "ann")
        table.add(another)
        #expect(!table.holds(own), "another token has its key")
    }

    @Test func aTokenThatNoRouteLeadsToIsSetAsideAndTakenBack() throws {
        var table = TokenTable(seed: 1)
        let (first, other, user) = (try token("a"), try token("b"), try token("a", of: "ann"))
        for token in [first, other, user] { table.add(token) }
        table.retire(keeping: [first.key])
        #expect(!first.isRetired && other.isRetired && !user.isRetired, "a key stands for those of all its subjects")
        #expect(table.hasRetired && table.holds(other), "exchanges that began with it still find it")
        table.retire(keeping: [first.key, other.key])
        #expect(!other.isRetired && !table.hasRetired)
        table.retire(keeping: [])
        table.remove(user)
        #expect(Set(table.takeRetired().map(\.key)) == [first.key, other.key], "what was removed is not set aside")
        #expect(!table.hasRetired && table.count == 2)
    }

    @Test func theRealmThatWasUsedLeastGivesWay() throws {
        let route = try #require(try KeeperScene(Plans.client()).inKeeper { $0.routes }.first)
        var table = TokenTable(seed: 1)
        for (number, realm) in (["first", "a", "b", "c"] as [Realm]).enumerated() {
            let entry = LearnedEntry(path: Array("/\(number)/".utf8), method: Array("GET".utf8))
            #expect(route.table.learnChallenge(of: realm, at: entry) == .learned)
            let key = try #require(route.key(of: realm))
            let token = KeptToken(
                key: key, slot: try #require(cache.allocateSlot()), identity: identity,
                machine: AccessTokenMachine(policy: identity.policy.access, standing: identity.standing, seed: 1),
                wanted: Wanted(upstreamOrigin: ""))
            // The first realm is the whole route's, however little it is used.
            token.usedAt = [0, 5, 3, 4][number]
            table.add(token)
        }
        let keys = route.table.realms.compactMap { route.key(of: $0) }
        #expect(table.leastUsedRealm(of: route) == 2)
        table[keys[2]]?.tickets = [Ticket(loop: 0, number: 1)]
        #expect(table.leastUsedRealm(of: route) == 3, "somebody waits for the other one")
        for key in keys { table[key]?.tickets = [Ticket(loop: 0, number: 1)] }
        #expect(table.leastUsedRealm(of: route) == nil)
    }

    @Test func challengesThatWaitedAreTakenByLevel() throws {
        let token = try token()
        func report(_ number: UInt64, level: Int?, scopes: [String]) -> ChallengeOfRequest {
            ChallengeOfRequest(
                ticket: Ticket(loop: 0, number: number), scout: nil, loop: 0, route: 0, path: [], method: [],
                challenge: Handshakes.Challenge(level: level, resource: "", scopes: scopes), sent: nil, isReplay: false,
                isFinal: false, justGranted: false, hadTaken: false, subject: nil)
        }
        token.postponed = [
            report(1, level: nil, scopes: ["a"]), report(2, level: 2, scopes: ["b"]), report(3, level: 2, scopes: []),
        ]
        let taken = token.takePostponed()
        #expect(taken.reports.map { $0.ticket?.number } == [2, 3, 1] && taken.scopes == ["b", "a"])
        #expect(token.postponed.isEmpty)
    }

    @Test func aGenerationIsNeverGivenTwice() {
        var table = TokenTable(seed: 1)
        let given = (0..<100).map { _ in table.nextGeneration() }
        #expect(Set(given).count == 100 && !given.contains(0))
    }

    @Test func aRequestOfAnEndUserIsFoundByItsTicket() throws {
        var users = Users(SubjectBook.Limits(subjects: 10, perSecond: 10))
        let (shared, own) = (try token(), try token(of: "ann"))
        let (first, second) = (Ticket(loop: 0, number: 1), Ticket(loop: 0, number: 2))
        users.waits(first, for: shared)
        #expect(users.waitingCount == 0 && users.left(first) == nil)
        own.tickets = [first, second]
        for ticket in own.tickets { users.waits(ticket, for: own) }
        #expect(users.left(first) === own && users.left(first) == nil)
        own.drop(first)
        #expect(own.tickets == [second] && own.isAwaited(by: second) && !own.isAwaited(by: first))
    }

    @Test func requestsThatWereAnsweredAreSwept() throws {
        var users = Users(SubjectBook.Limits(subjects: 10, perSecond: 10))
        let own = try token(of: "ann")
        let waiting = Ticket(loop: 0, number: 5000)
        own.tickets = [waiting]
        users.waits(waiting, for: own)
        for number in 0..<1200 as Range<UInt64> { users.waits(Ticket(loop: 0, number: number), for: own) }
        #expect(users.waitingCount < 400)
        #expect(users.left(waiting) === own)
    }

    @Test func aTicketKeepsNobodyInMemory() throws {
        var users = Users(SubjectBook.Limits(subjects: 10, perSecond: 10))
        let ticket = Ticket(loop: 0, number: 1)
        users.waits(ticket, for: try token(of: "ann"))
        #expect(users.left(ticket) == nil)
    }

    @Test func bothBooksHaveTheLimits() {
        var users = Users(SubjectBook.Limits(subjects: 1, perSecond: 1))
        users.limits = SubjectBook.Limits(subjects: 7, perSecond: 3)
        #expect(users.subjects.limits.subjects == 7 && users.realms.limits.perSecond == 3)
    }
}
