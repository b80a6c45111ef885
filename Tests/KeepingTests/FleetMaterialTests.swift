import Numbers
import TLS
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Material and names as gateways of a fleet share them, and what a gateway knows of the fleet's sessions, without the keeper.
@Suite struct FleetMaterialTests {
    private static let second: UInt64 = 1_000_000_000
    private static let first = SessionVersion.none.next

    private static func material(_ lifetime: UInt64?, refreshToken: String? = nil, human: Bool = false) -> LayerMaterial
    {
        LayerMaterial(
            bytes: Secret("s"), obtainedAt: 10 * second, lifetime: lifetime,
            refreshToken: refreshToken.map { Secret($0) }, isHuman: human)
    }

    private static func identity() throws -> KeptIdentity {
        try #require(try KeeperScene(Plans.client(), store: MemoryStore()).inKeeper { $0.identities }.first)
    }

    private static func key(_ subject: String? = "ann") throws -> SessionKey {
        SessionKey(
            digest: try #require(IdentityDigest(Array(repeating: 7, count: 32))),
            issuer: Origin(scheme: "https", host: "issuer", port: 443), subject: subject.map { ByteString($0) })
    }

    private static func name(_ number: UInt8) -> SharedName { SharedName(Array(repeating: number, count: 32)) }

    // MARK: - Sessions on the server

    /// The clocks of two gateways differ: only what is left counts, and it cannot be more than the whole life.
    @Test(arguments: [(nil, 60), (25, 25), (90, 60)]) func aSessionLastsAsLongAsTheServerSays(
        _ left: Int64?, _ seconds: UInt64
    ) throws {
        let life = Self.material(60 * Self.second)
        var shared = SharedSession(life, version: Self.first, at: 30 * Self.second)
        #expect(shared.lasts?.nanoseconds == 40 * Self.second, "twenty seconds have passed")
        shared.lasts = left.map { TimeSpan(nanoseconds: UInt64($0) * Self.second) }
        let found = try #require(shared.material(at: 500))
        #expect(found.lifetime == seconds * Self.second && found.obtainedAt == 500 && found.bytes == Secret("s"))
    }

    /// A refresh token brings another session: nobody counts what is left of the one beside it.
    @Test func aSessionBesideARefreshTokenIsNotUsedElsewhere() throws {
        let life = Self.material(60 * Self.second, refreshToken: "r", human: true)
        let shared = SharedSession(life, version: Self.first, at: 30 * Self.second)
        #expect(shared.lasts == nil)
        let found = try #require(shared.material(at: 500))
        #expect(found.lifetime == 0 && !found.isLive(at: 500) && found.refreshToken == Secret("r") && found.isHuman)
        let endless = SharedSession(Self.material(nil), version: Self.first, at: 30 * Self.second)
        #expect(try #require(endless.material(at: 500)).lifetime == nil && endless.lasts == nil)
    }

    @Test(arguments: [[], [1], [0xFF, 0xFF, 0xFF]]) func aValueThatNoGatewayWroteIsNoSession(_ value: [UInt8]) {
        #expect(SharedSession(version: Self.first, value: value).material(at: 1) == nil)
    }

    // MARK: - Names

    @Test func usersOfAnIssuerHaveLocksOfTheirOwn() throws {
        let tier = try MemoryTier(MemoryServer())
        let names = [try Self.key(), try Self.key("bob"), try Self.key(nil), try Self.key("")].map { tier.lock(of: $0) }
        #expect(Set(names).count == 4, "no name at all is another than an empty one")
        #expect(tier.lock(of: try Self.key()) == names[0])
    }

    /// A key that tokens are bound to is of use to its own gateway alone.
    @Test func aProofKeyHasNoNameInTheFleet() throws {
        let identity = try Self.identity()
        #expect(identity.sharedKey(.registration) == identity.durableKey(.registration))
        #expect(identity.sharedKey(.registration) != nil && identity.durableKey(.proofKey) != nil)
        #expect(identity.sharedKey(.proofKey) == nil)
    }

    /// Tokens come and go, and their names are not kept for ever.
    @Test func namesOfTokensThatAreGoneAreDropped() throws {
        let scene = try KeeperScene(Plans.client())
        let token = try #require(scene.inKeeper { $0.tokens.all.first })
        let table = scene.inKeeper { $0.tokens }
        var fleet = KeptFleet()
        fleet.met(Self.name(1), token.key, beside: table)
        var gone = token.key
        gone.subject = "gone"
        let names = (0..<1100).map { number in
            SharedName([UInt8(number & 0xFF), UInt8(number >> 8), 2] + Array(repeating: 0, count: 29))
        }
        for name in names { fleet.met(name, gone, beside: table) }
        #expect(fleet.token(Self.name(1), in: table) === token)
        // News under a name that was dropped are about nothing, also when a token has its key again.
        var back = TokenTable(seed: 1)
        back.add(
            KeptToken(
                key: gone, slot: token.slot, identity: token.identity, machine: token.machine, wanted: token.wanted))
        #expect(fleet.token(names[0], in: back) == nil)
        #expect(fleet.token(names[1099], in: back) != nil, "met since")
    }

    // MARK: - Versions

    /// Nothing is held here, and an operator says that nothing newer is waited for: it counts as over.
    @Test func anOperatorSettlesForNothing() throws {
        var versions = FleetVersions()
        let key = try Self.key()
        #expect(versions.settleFor(held: key) == false, "nothing is known")
        #expect(versions.saw(Self.first, of: key, at: 5) == true)
        #expect(versions.settleFor(held: key) == true)
        #expect(versions[key]?.isEnded == true && versions.newest(of: key) == Self.first)
        #expect(versions.settleFor(held: key) == false, "it was over before")
        // An operator settles for what is held, too.
        versions.holds(Self.first, of: key)
        #expect(versions.settleFor(held: key) == false, "it is the newest")
        #expect(versions.saw(Self.first.next, of: key, at: 6) == true)
        #expect(versions.settleFor(held: key) == true && versions.holdsNewest(of: key))
        #expect(versions.newest(of: key) == Self.first)
    }

    /// The server has lost the session of a login that only a person brings, and this gateway has the newest one without a refresh token: the
    /// others are asked before a step takes its place.
    @Test func theNewestLoginIsAskedForBeforeItIsReplaced() throws {
        var fleet = FleetSessions()
        let key = try Self.key()
        fleet.versions.holds(Self.first, of: key)
        let step = FleetSessions.Step(
            key: key, rung: .fullGrant, standing: Self.material(nil), found: nil, newer: nil,
            claim: SessionClaim(canGrantFully: true), isIrreplaceable: true, hasRefreshToken: false)
        #expect(fleet.start(step, at: 0) == .askOthers)
        #expect(fleet.start(step, at: 1) == .from(.fullGrant, Self.material(nil)))
    }

    // MARK: - Rows

    /// A row without its whole life is as old as its end says.
    @Test func aRowWithoutItsWholeLifeEndsAtItsEnd() throws {
        let row = LayerRow(material: Secret("s"), refreshToken: nil, isHuman: false, wallExpiry: 9000, original: nil)
        let found = try #require(row.material(at: Moment(now: 5, wall: 4000)))
        #expect(found.lifetime == 5 * Self.second && found.obtainedAt == 5)
        #expect(row.material(at: Moment(now: 5, wall: 9000)) == nil)
    }

    @Test func aLoginIsAPersonsOnlyWithItsRefreshToken() {
        #expect(Self.material(nil, refreshToken: "r", human: true).nature == .humanRefreshToken)
        #expect(Self.material(nil, human: true).nature == .session)
        #expect(Self.material(nil, refreshToken: "r").nature == .session)
    }
}
