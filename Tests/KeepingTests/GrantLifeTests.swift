import TLS
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Tokens

/// How long a token counts as good, by what its issuer says, by what it says itself, and by what it was made from.
@Suite struct GrantLifeTests {
    private static let second: UInt64 = 1_000_000_000
    private static let policy = LifetimePolicy(defaultLifetime: 300 * second)

    private static func grant(
        lifetime: UInt64? = nil, stated: (issued: Int64?, expires: Int64)? = nil, notAfter: Int64? = nil
    ) -> AccessGrant {
        var grant = AccessGrant(token: Secret("t"), tokenType: "Bearer", sentAt: 10 * second)
        (grant.lifetime, grant.statedTimes, grant.notAfter) = (lifetime, stated, notAfter)
        return grant
    }

    /// Two seconds after the request was sent, by a clock at `wall` seconds.
    private static func seconds(_ grant: AccessGrant, wall: Int64 = 1000) -> Int64? {
        grant.seconds(ClockSkew(), policy, at: Moment(now: 12 * second, wall: wall * 1000))
    }

    /// Less than a second is short, and not unsaid.
    @Test(arguments: [(0, 0), (1, 1), (999_999_999, 1), (1_000_000_000, 1), (90_500_000_000, 90)])
    func aStatedLifeIsCountedInWholeSeconds(_ nanoseconds: UInt64, _ seconds: Int64) {
        #expect(Self.seconds(Self.grant(lifetime: nanoseconds)) == seconds)
    }

    @Test func aTokenThatSaysNothingHasNoLifeOfItsOwn() {
        #expect(Self.seconds(Self.grant()) == nil)
    }

    /// Its end counts from the request on, and its life is no longer than from its issue to its end.
    @Test(arguments: [(nil, 1100, 102), (980, 1100, 102), (1050, 1100, 50), (1100, 1100, 102), (1200, 1100, 102)])
    func aTokenThatSaysWhenItEndsIsBelieved(_ issued: Int64?, _ expires: Int64, _ seconds: Int64) {
        #expect(Self.seconds(Self.grant(stated: (issued, expires))) == seconds)
    }

    /// Over on arrival by our clock: then it is our clock that is wrong, and its whole life counts where that can be told.
    @Test(arguments: [(800, 900, 100), (nil, 900, nil), (900, 900, nil), (950, 900, nil), (Int64.max, Int64.min, nil)])
    func aTokenThatIsOverOnArrivalHasItsWholeLife(_ issued: Int64?, _ expires: Int64, _ seconds: Int64?) {
        #expect(Self.seconds(Self.grant(stated: (issued, expires))) == seconds)
    }

    @Test func noTokenOutlivesWhatItWasMadeFrom() {
        #expect(Self.seconds(Self.grant(lifetime: 90 * Self.second, notAfter: 1050)) == 52)
        #expect(Self.seconds(Self.grant(lifetime: 40 * Self.second, notAfter: 1050)) == 40)
        #expect(Self.seconds(Self.grant(notAfter: 1050)) == 52, "the default would be longer")
        #expect(Self.seconds(Self.grant(notAfter: 5000)) == 300)
        // An end that no clock comes to bounds nothing.
        #expect(Self.seconds(Self.grant(lifetime: 90 * Self.second, notAfter: .max), wall: 0) == 90)
        #expect(Self.seconds(Self.grant(notAfter: .max), wall: 0) == 300)
    }

    @Test(arguments: [(1001, false), (1000, true), (999, true)]) func aTokenWhoseOriginEndedIsNobodys(
        _ end: Int64, _ isLost: Bool
    ) {
        let moment = Moment(now: 12 * Self.second, wall: 1_000_000)
        #expect(Self.grant(notAfter: end).hasLostItsOrigin(ClockSkew(), at: moment) == isLost)
        // A begun second is not counted.
        let later = Moment(now: 12 * Self.second, wall: 1_000_001)
        #expect(Self.grant(notAfter: 1001).hasLostItsOrigin(ClockSkew(), at: later))
    }

    @Test func aLoginWithoutAnEndThatCanBeCountedIsGood() {
        let material = LayerMaterial(bytes: Secret("s"), obtainedAt: 2, lifetime: .max, isHuman: true)
        #expect(LoginEnd(material) == nil)
        #expect(LoginNeed(material, at: 5) == LoginNeed(word: .good, expiresIn: nil))
    }
}
