import Numbers
import TLS
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// The start of a step in a fleet, and the action that news of a session ask for, without the keeper.
@Suite struct FleetSessionsTests {
    private static let second: UInt64 = 1_000_000_000
    private static let first = SessionVersion.none.next
    private let key: SessionKey
    private let name: SharedName
    private let identity: KeptIdentity

    init() throws {
        identity = try #require(try KeeperScene(Plans.client()).inKeeper { $0.identities }.first)
        let issuer = Origin(scheme: "https", host: "issuer", port: 443)
        key = SessionKey(digest: identity.digest, issuer: issuer, subject: "ann")
        name = try FleetKeys(SealingKeyRing([SealingKey(bytes: (0..<32).map { UInt8($0) })])).name(.session, [1])
    }

    private static func material(_ text: String, refreshToken: String? = "r") -> LayerMaterial {
        LayerMaterial(
            bytes: Secret(text), obtainedAt: 0, lifetime: nil, refreshToken: refreshToken.map { Secret($0) })
    }

    private func step(
        _ rung: SessionRung = .refreshToken, found: SessionVersion? = nil, newer: LayerMaterial? = nil,
        isEmpty: Bool = false, irreplaceable: Bool = false, fully: Bool = true
    ) -> FleetSessions.Step {
        FleetSessions.Step(
            key: key, rung: rung, standing: Self.material("here"),
            found: found.map { SharedSession(version: $0, value: isEmpty ? [] : [1]) }, newer: newer,
            claim: SessionClaim(canGrantFully: fully), isIrreplaceable: irreplaceable, hasRefreshToken: true)
    }

    /// The session as the keeper holds it.
    private func sessions() -> Sessions {
        var sessions = Sessions()
        sessions[key] = KeptSession(key: key, generation: 1, material: Self.material("here"))
        return sessions
    }

    // MARK: - Steps

    @Test func whatAnotherGatewayHasBroughtIsWhereAStepStarts() {
        var fleet = FleetSessions()
        let (renewable, bare) = (Self.material("new"), Self.material("new", refreshToken: nil))
        #expect(fleet.start(step(newer: renewable), at: 0) == .from(.refreshToken, renewable))
        #expect(fleet.start(step(newer: bare), at: 0) == .from(.fullGrant, bare))
    }

    @Test func theVersionThatIsHeldIsSound() {
        var fleet = FleetSessions()
        fleet.versions.holds(Self.first, of: key)
        #expect(fleet.start(step(found: Self.first), at: 0) == .from(.refreshToken, Self.material("here")))
        // A grant that any secret can make anew spends nothing, whatever the server has.
        fleet.versions.ended(Self.first.next, of: key, at: 1)
        #expect(fleet.start(step(.fullGrant), at: 0) == .from(.fullGrant, Self.material("here")))
    }

    @Test func theOthersAreAskedOnceForWhatTheServerDoesNotHave() {
        var fleet = FleetSessions()
        fleet.versions.holds(Self.first, of: key)
        #expect(fleet.start(step(), at: Self.second) == .askOthers)
        #expect(fleet.start(step(), at: 2 * Self.second) == .from(.refreshToken, Self.material("here")))
        let later = Self.second + FleetSessions.recallInterval
        #expect(fleet.start(step(), at: later) == .askOthers)
    }

    @Test(arguments: [(true, false), (true, true), (false, false)]) func whatIsLostIsMadeAnewWhereThatTakesNobody(
        fully: Bool, irreplaceable: Bool
    ) {
        var fleet = FleetSessions()
        fleet.versions.holds(Self.first, of: key)
        _ = fleet.versions.saw(Self.first.next, of: key, at: 1)
        let step = step(found: Self.first, irreplaceable: irreplaceable, fully: fully)
        #expect(fleet.start(step, at: 0) == .askOthers)
        #expect(fleet.start(step, at: 1) == (fully && !irreplaceable ? .from(.fullGrant, nil) : .lost))
        #expect(fleet.noteLost(key) == true, "an operator is told")
        #expect(fleet.noteLost(key) == false, "once")
    }

    @Test func theRefreshTokenOfAnEndedSessionIsNotSent() {
        var fleet = FleetSessions()
        fleet.versions.holds(Self.first, of: key)
        #expect(fleet.start(step(found: Self.first, isEmpty: true), at: 0) == .askOthers)
        #expect(fleet.start(step(found: Self.first, isEmpty: true), at: 1) == .from(.fullGrant, nil))
    }

    // MARK: - News

    private func known(held: SessionVersion?) -> FleetSessions {
        var fleet = FleetSessions()
        fleet.met(name, key, beside: Sessions(), at: 0)
        if let held { fleet.versions.holds(held, of: key) }
        return fleet
    }
    private var catalogue: Catalogue { Catalogue(identities: [identity], routes: []) }

    @Test func aSessionThatMovesIsFollowedWhereItIsHeld() {
        var fleet = known(held: Self.first)
        #expect(fleet.moved(name, to: Self.first.next, at: 1, catalogue, Sessions()) == .nothing)
        fleet = known(held: Self.first)
        #expect(fleet.moved(name, to: Self.first.next, at: 1, catalogue, sessions()) == .follow(key))
        #expect(fleet.moved(name, to: Self.first.next, at: 1, catalogue, sessions()) == .nothing, "known already")
        let gone = Catalogue(identities: [], routes: [])
        #expect(fleet.moved(name, to: Self.first.next.next, at: 1, gone, sessions()) == .nothing)
    }

    @Test func whoTellsAnOlderVersionIsGivenTheNewest() {
        var fleet = known(held: Self.first.next)
        #expect(fleet.moved(name, to: Self.first, at: 1, catalogue, sessions()) == .offer(key, Self.first.next))
        #expect(fleet.missed(name, sessions()) == .offer(key, Self.first.next))
        #expect(fleet.missed(name, Sessions()) == .nothing, "nothing is here that could be given")
        #expect(fleet.noteEnded(key, Self.first.next, at: 5) == true)
        #expect(fleet.noteEnded(key, Self.first.next, at: 5) == false, "known already")
        #expect(fleet.missed(name, Sessions()) == .end(Self.first.next))
    }

    @Test func newsOfASessionThatIsMetLaterCount() {
        var fleet = FleetSessions()
        #expect(fleet.moved(name, to: Self.first, at: 1, catalogue, Sessions()) == .nothing)
        #expect(fleet.ended(name, Self.first.next) == .nothing)
        fleet.met(name, key, beside: Sessions(), at: 2)
        #expect(fleet.versions[key]?.isTold == true && fleet.versions.newest(of: key) == Self.first.next)
    }

    @Test func anEndWithoutAVersionIsOnlyLookedAt() {
        var fleet = known(held: Self.first)
        #expect(fleet.ended(name, nil) == .look(key))
        #expect(fleet.ended(name, Self.first) == .drop(key, Self.first))
    }

    // MARK: - The server, and who waits

    @Test func aServerThatFailsIsToldOnce() {
        var server = FleetServer()
        #expect(server.connected() == .connected)
        #expect(server.connected() == nil)
        #expect(server.failed(SharedFault(.slow, "no answer"), at: 0) == "no answer")
        #expect(server.failed(SharedFault(.refused, "full"), at: 0) == nil && server.state(at: 0) == .degraded("full"))
        #expect(server.failed(SharedFault(.unavailable, "not connected"), at: 0) == nil)
        #expect(server.state(at: 0) == .degraded("full"))
        #expect(server.connected() == .worksAgain)
    }

    @Test func aValueThatCannotBeOpenedCountsForAWhile() {
        var server = FleetServer()
        let spoiled = SharedFault(.invalid, "cannot be opened")
        _ = server.connected()
        #expect(server.failed(spoiled, at: 1) == "cannot be opened")
        #expect(server.failed(spoiled, at: Self.second) == nil)
        #expect(server.state(at: 60 * Self.second) == .degraded("cannot be opened"))
        #expect(server.state(at: 61 * Self.second) == .serving)
        // The connection stands: nothing tells when it is over.
        #expect(server.connected() == nil)
        #expect(server.failed(spoiled, at: 62 * Self.second, isLost: true) == "cannot be opened")
        #expect(server.state(at: 200 * Self.second) == .degraded("cannot be opened"))
    }

    @Test func newsReachWhoStillWaitsForThem() {
        var waits = NewsWaits()
        let (one, other, third) = (Wait<Void>(), Wait<Void>(), Wait<Void>())
        waits.add(one, for: name)
        waits.add(other, for: name)
        waits.add(third, for: nil)
        waits.giveUp(one, for: name)
        #expect(waits.came(name).map(ObjectIdentifier.init) == [ObjectIdentifier(other)])
        #expect(waits.came(name).isEmpty)
        #expect(waits.came(nil).count == 1)
    }

    // MARK: - Material

    @Test func aSessionIsTheSameBehindTheServer() throws {
        var given = Self.material("s", refreshToken: nil)
        given.lifetime = 10 * Self.second
        let shared = SharedSession(given, version: Self.first, at: 4 * Self.second)
        #expect(shared.lasts == TimeSpan(6, .seconds))
        let found = try #require(shared.material(at: 100))
        #expect(found.bytes == given.bytes && found.obtainedAt == 100 && found.lifetime == 6 * Self.second)
        let renewable = try #require(SharedSession(Self.material("s"), version: .none, at: 0).material(at: 0))
        #expect(renewable.refreshToken == Secret("r") && renewable.lifetime == nil)
    }
}
