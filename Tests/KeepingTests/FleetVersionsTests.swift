import TLS
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// A gateway's memory of the fleet's sessions is bounded, and loses first what costs the least.
@Suite struct FleetVersionsTests {
    private static let second: UInt64 = 1_000_000_000
    private static let first = SessionVersion.none.next

    private func key(_ subject: String) throws -> SessionKey {
        SessionKey(
            digest: try #require(IdentityDigest(Array(repeating: 7, count: 32))),
            issuer: Origin(scheme: "https", host: "issuer", port: 443), subject: ByteString(subject))
    }

    private static func name(_ number: Int) -> SharedName {
        SharedName((0..<32).map { UInt8(truncatingIfNeeded: number >> (8 * min($0, 7))) })
    }

    private func lease(_ lock: SharedName, _ owner: String) -> SharedLease {
        SharedLease(name: lock, owner: owner, generation: 1, spends: true)
    }

    // MARK: - Versions

    /// Their rows are told to go, and those that ended last are remembered.
    @Test func theEndsOfTheLongestAgoGiveWay() throws {
        var versions = FleetVersions()
        let most = FleetVersions.mostOver + FleetVersions.mostOver / 8
        let keys = try (0...most).map { try key("u\($0)") }
        for (number, key) in keys.enumerated() {
            #expect(versions.takeDropped().isEmpty)
            versions.ended(Self.first, of: key, at: Int64(number + 1))
        }
        let dropped = versions.takeDropped()
        #expect(Set(dropped) == Set(keys.prefix(most + 1 - FleetVersions.mostOver)))
        #expect(versions.count == FleetVersions.mostOver && versions.takeDropped().isEmpty)
        #expect(versions[keys[0]] == nil && versions[keys[most]]?.isTold == true)
    }

    @Test func aSessionThatTheFleetNeverCountedMayBeOffered() throws {
        var versions = FleetVersions()
        let key = try key("ann")
        #expect(versions.offered(key) == SessionVersion.none)
        versions.holds(.none, of: key)
        #expect(versions.offered(key) == SessionVersion.none && versions.count == 1)
        // Its end is nothing that anybody has to remember.
        versions.ended(.none, of: key, at: 1)
        #expect(versions[key] == nil && versions.count == 0)
        // A session that was counted is not forgotten by an end that names no version.
        versions.holds(Self.first, of: key)
        versions.ended(.none, of: key, at: 1)
        #expect(versions.held(of: key) == Self.first)
    }

    /// A row of the store is older than what is known by now, and its end counts unless something newer came.
    @Test(arguments: [(1, true), (2, true), (3, false)]) func anEndOfTheStoreCountsUnlessSomethingIsNewer(
        _ seen: Int, _ isEnded: Bool
    ) throws {
        let key = try key("ann")
        var before = FleetVersions()
        before.ended(Self.first.next, of: key, at: 5)
        let row = try #require(before[key]?.octets)
        var versions = FleetVersions()
        let version = (1..<seen).reduce(Self.first) { version, _ in version.next }
        #expect(versions.saw(version, of: key, at: 9) == true)
        versions.restore(row, of: key, replacing: false)
        #expect(versions[key]?.isEnded == isEnded)
        #expect(versions.newest(of: key) == max(version, Self.first.next))
        versions.restore(row, of: key, replacing: true)
        #expect(versions[key] == before[key], "the store was another process's meanwhile")
    }

    @Test func whatNoGatewayWritesIsNoVersion() throws {
        let key = try key("ann")
        var known = FleetVersions.Known(newest: Self.first.next, held: Self.first)
        #expect(FleetVersions.Known(octets: known.octets) == known)
        known = FleetVersions.Known(newest: Self.first, isEnded: true, moment: 77)
        #expect(FleetVersions.Known(octets: known.octets) == known)
        let impossible = Array(repeating: UInt8(0xFF), count: 8)
        let rows: [[UInt8]] = [
            [], [1], impossible, [9] + known.octets.dropFirst(), [2] + impossible + impossible,
            [1] + Self.first.octets + impossible, known.octets + [0],
        ]
        for row in rows {
            var versions = FleetVersions()
            versions.restore(row, of: key, replacing: true)
            #expect(versions[key] == nil, "\(row)")
        }
    }

    // MARK: - Sessions that were heard of

    @Test func atLeastHalfOfWhatWasHeardOfIsRemembered() {
        var heard = HeardSessions()
        let half = HeardSessions.most / 2
        for number in 0..<2 * half + 1 { heard.note(Self.first, of: Self.name(number), isOver: false) }
        #expect(heard.count == half + 1)
        #expect(heard.take(Self.name(0)) == nil)
        let remembered = HeardSessions.Heard(version: Self.first, isOver: false)
        #expect(heard.take(Self.name(half)) == remembered && heard.take(Self.name(2 * half)) == remembered)
        #expect(heard.take(Self.name(half)) == nil, "taken")
    }

    @Test func oldNewsChangeNothing() {
        var heard = HeardSessions()
        heard.note(Self.first.next, of: Self.name(1), isOver: true)
        heard.note(Self.first, of: Self.name(1), isOver: false)
        heard.note(Self.first.next, of: Self.name(1), isOver: false)
        #expect(heard.take(Self.name(1)) == HeardSessions.Heard(version: Self.first.next, isOver: true))
    }

    // MARK: - Turns

    /// A publisher tells as many sessions as he likes.
    @Test func turnsAreBoundedUntilTheirGatewaysAreTakenForDead() {
        var turns = SpendingTurns()
        for number in 0..<4096 { turns.began(Self.name(number), "x", at: Self.second) }
        turns.began(Self.name(5000), "x", at: Self.second)
        #expect(!turns.isTaken(beside: lease(Self.name(5000), "me"), at: Self.second), "no room for another lock")
        #expect(turns.isTaken(beside: lease(Self.name(7), "me"), at: Self.second), "what was told first counts")
        #expect(!turns.isTaken(beside: lease(Self.name(7), "x"), at: Self.second), "it is his own")
        let late = Self.second + UInt64(SharedLease.silence) * 1_000_000
        turns.began(Self.name(5000), "x", at: late)
        #expect(turns.isTaken(beside: lease(Self.name(5000), "me"), at: late), "the dead have made room")
        #expect(!turns.isTaken(beside: lease(Self.name(7), "me"), at: late))
    }

    @Test func oneLockHasFewTurns() {
        var turns = SpendingTurns()
        let lock = Self.name(1)
        for number in 0..<40 { turns.began(lock, "o\(number)", at: Self.second) }
        for number in 0..<16 { turns.ended(lock, "o\(number)") }
        #expect(!turns.isTaken(beside: lease(lock, "me"), at: Self.second))
    }

    // MARK: - What the fleet is asked for

    private func lostStep(_ key: SessionKey) -> FleetSessions.Step {
        FleetSessions.Step(
            key: key, rung: .refreshToken, standing: nil, found: nil, newer: nil,
            claim: SessionClaim(canGrantFully: false), isIrreplaceable: true, hasRefreshToken: true)
    }

    /// Far more sessions than are remembered: each is asked for, once in its interval as long as it is remembered.
    @Test func whomTheOthersWereAskedForIsForgottenWhenHisTimeIsOver() throws {
        var fleet = FleetSessions()
        for number in 0..<1500 {
            let key = try key("u\(number)")
            #expect(fleet.start(lostStep(key), at: 1) == .askOthers)
        }
        let last = try lostStep(key("u1499"))
        #expect(fleet.start(last, at: 2) != .askOthers)
        let later = 1 + FleetSessions.recallInterval
        let new = try lostStep(key("new"))
        #expect(fleet.start(new, at: later) == .askOthers)
        #expect(fleet.start(last, at: later) == .askOthers, "his interval is over")
    }

    @Test func operatorsAreToldOfEachLossOfEachVersion() throws {
        var fleet = FleetSessions()
        for number in 0..<1200 {
            let key = try key("u\(number)")
            fleet.versions.holds(Self.first, of: key)
            #expect(fleet.noteLost(key) == true)
            #expect(fleet.noteLost(key) == false)
        }
        let key = try key("u1199")
        fleet.versions.holds(Self.first.next, of: key)
        #expect(fleet.noteLost(key) == true, "a newer one is lost")
    }

    /// The server has nothing, and the end is known here: a refresh token is not sent, a login by a person begins.
    @Test func afterAnEndThatTheServerHasForgottenNoRefreshTokenIsSent() throws {
        var fleet = FleetSessions()
        let key = try key("ann")
        fleet.versions.ended(Self.first, of: key, at: 1)
        #expect(fleet.start(lostStep(key), at: 1) == .askOthers)
        #expect(fleet.start(lostStep(key), at: 2) == .lost)
        let grant = FleetSessions.Step(
            key: key, rung: .fullGrant, standing: nil, found: nil, newer: nil,
            claim: SessionClaim(canGrantFully: true), isIrreplaceable: true, hasRefreshToken: false)
        #expect(fleet.start(grant, at: 3) == .from(.fullGrant, nil))
    }

    @Test func aServerThatComesUpEmptyIsToldTheEnd() throws {
        var fleet = FleetSessions()
        let (key, name) = (try key("ann"), Self.name(3))
        fleet.met(name, key, beside: Sessions(), at: 1)
        #expect(fleet.missed(name, Sessions()) == .nothing)
        #expect(fleet.noteEnded(key, Self.first, at: 1) == true)
        #expect(fleet.missed(name, Sessions()) == .end(Self.first))
        #expect(fleet.missed(Self.name(4), Sessions()) == .nothing, "nobody has met that name")
    }

    /// Names of sessions that are gone do not pile up, and those of sessions that are known stay.
    @Test func namesOfSessionsThatAreGoneAreDropped() throws {
        var fleet = FleetSessions()
        let known = try key("known")
        fleet.met(Self.name(0), known, beside: Sessions(), at: 1)
        #expect(fleet.noteEnded(known, Self.first, at: 1) == true)
        let gone = try key("gone")
        for number in 1..<1200 { fleet.met(Self.name(number), gone, beside: Sessions(), at: 1) }
        #expect(fleet.ended(Self.name(0), nil) == .look(known))
        #expect(fleet.ended(Self.name(1), nil) == .nothing, "dropped")
        #expect(fleet.ended(Self.name(1199), nil) == .look(gone), "met since")
    }
}
