import Testing

@testable import Tokens

@Suite struct LifetimeTests {
    /// life, ahead, stop: seconds and milliseconds of a lifetime (docs/design/tokens.md#times).
    @Test(
        arguments: [
            (3600, 720_000, 5_000), (100, 20_000, 5_000), (60, 12_000, 3_000), (40, 10_000, 2_000), (15, 7_500, 750),
            (10, 5_000, 500), (2, 1_000, 100), (1, 500, 50),
        ] as [(Int64, UInt64, UInt64)])
    func refreshAndStopFollowTheFormula(_ life: Int64, _ ahead: UInt64, _ stop: UInt64) {
        let lifetime = LifetimePolicy().lifetime(sentAt: .seconds(1000), expiresIn: life, jitter: 0)
        #expect(lifetime.expiresAt == .seconds(1000 + UInt64(life)))
        #expect(lifetime.expiresAt - lifetime.refreshAt == .milliseconds(ahead))
        #expect(lifetime.expiresAt - lifetime.stopServingAt == .milliseconds(stop))
    }

    @Test(arguments: [nil, 0, -1, .min] as [Int64?])
    func wish29_NoLifeOrNoneAboveZeroIsTheDefault(_ expiresIn: Int64?) {
        let lifetime = LifetimePolicy().lifetime(sentAt: 0, expiresIn: expiresIn, jitter: 0)
        #expect(lifetime.original == .seconds(300))
    }

    @Test(arguments: [1_000_000_000_000_000_000, .max, 31_622_401] as [Int64])
    func anEndlessLifeIsCutToAYear(_ expiresIn: Int64) {
        let lifetime = LifetimePolicy().lifetime(sentAt: 5, expiresIn: expiresIn, jitter: .max)
        #expect(lifetime.original == LifetimePolicy.longest)
        #expect(lifetime.refreshAt < lifetime.stopServingAt && lifetime.stopServingAt < lifetime.expiresAt)
    }

    @Test(arguments: [0, 1, 300, .max] as [Int64], [0, 1 << 31, .max] as [UInt32])
    func theOrderOfTheThreePointsHoldsAlways(_ expiresIn: Int64, _ jitter: UInt32) {
        for ahead in [RefreshAhead.percent(0), .percent(20), .percent(255), .duration(0), .duration(.max)] {
            for sentAt in [0, .seconds(10), .max - 1] as [UInt64] {
                let policy = LifetimePolicy(refreshAhead: ahead, defaultLifetime: 0)
                let lifetime = policy.lifetime(sentAt: sentAt, expiresIn: expiresIn, jitter: jitter)
                #expect(lifetime.refreshAt <= lifetime.expiresAt && lifetime.stopServingAt <= lifetime.expiresAt)
                #expect(lifetime.expiresAt - lifetime.refreshAt <= max(lifetime.original / 2, 1))
            }
        }
    }

    @Test func wish23_TheMarginIsConfigurableAsADuration() {
        let policy = LifetimePolicy(refreshAhead: .duration(.seconds(3)))
        let lifetime = policy.lifetime(sentAt: 0, expiresIn: 100, jitter: 0)
        #expect(lifetime.refreshAt == .seconds(97))
    }

    @Test func jitterRenewsEarlierByATenthOfTheMarginAtMost() {
        let lifetimes = [0, 1 << 31, .max].map { LifetimePolicy().lifetime(sentAt: 0, expiresIn: 100, jitter: $0) }
        #expect(lifetimes[0].refreshAt == .seconds(80))
        #expect(lifetimes[1].refreshAt == .seconds(79))
        #expect(lifetimes[2].refreshAt > .seconds(78) && lifetimes[2].refreshAt < .seconds(78) + .milliseconds(1))
    }

    // MARK: - Restore

    func restore(_ wallExpiry: Int64, wallNow: Int64, now: Instant = .seconds(1000)) -> Lifetime? {
        LifetimePolicy().restored(
            wallExpiry: wallExpiry, original: .seconds(100), wallNow: wallNow, now: now, jitter: 0)
    }

    @Test func aRestoredTokenKeepsWhatRemains() {
        let lifetime = restore(1_060_000, wallNow: 1_000_000)
        #expect(lifetime?.expiresAt == .seconds(1060))
        #expect(lifetime?.refreshAt == .seconds(1040))
        #expect(lifetime?.original == .seconds(100))
    }

    @Test func whatRemainsIsAtMostTheOriginalLife() {
        #expect(restore(9_000_000, wallNow: 1_000_000)?.expiresAt == .seconds(1100))
        #expect(restore(.max, wallNow: .min)?.expiresAt == .seconds(1100))
    }

    @Test func nothingRemainsAfterExpiry() {
        #expect(restore(1_000_000, wallNow: 1_000_000) == nil)
        #expect(restore(.min, wallNow: .max) == nil)
        #expect(LifetimePolicy().restored(wallExpiry: 2, original: 0, wallNow: 1, now: 0, jitter: 0) == nil)
    }

    @Test func aBootClockYoungerThanTheTokenIsNoTrouble() {
        let lifetime = restore(1_010_000, wallNow: 1_000_000, now: .seconds(1))
        #expect(lifetime?.expiresAt == .seconds(11))
        #expect(lifetime?.refreshAt == 0)
    }

    // MARK: - Clocks

    @Test func aStepOfMoreThanThirtySecondsIsAJumpASlewIsNot() {
        var watch = WallClockWatch()
        let second: Int64 = 1_000_000_000
        #expect(watch.observe(wall: 5_000 * second, boot: .seconds(100)) == false)
        #expect(watch.observe(wall: 5_040 * second, boot: .seconds(110)) == false)
        #expect(watch.observe(wall: 5_081 * second, boot: .seconds(120)) == true)
        #expect(watch.observe(wall: 5_091 * second, boot: .seconds(130)) == false)
        #expect(watch.observe(wall: 4_000 * second, boot: .seconds(140)) == true)
        #expect(watch.observe(wall: .max, boot: 0) == true)
        #expect(watch.observe(wall: .min, boot: .max) == true)
    }

    @Test func wish24_SkewIsLearnedWithinADay() {
        var skew = ClockSkew()
        #expect(skew.learn(issuerDate: 1_003, wall: 1_000) == true)
        #expect(skew.seconds == 3)
        #expect(skew.remaining(until: 1_063, wall: 1_000) == 60)
        #expect(skew.learn(issuerDate: 90_000, wall: 1_000) == false)
        #expect(skew.learn(issuerDate: .max, wall: .min) == false)
        #expect(skew.seconds == 3)
        #expect(skew.remaining(until: .min, wall: 1_000) == 0)
    }
}
