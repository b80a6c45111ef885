import Numbers
import Octets
import TLS
import Testing

@testable import Fleet

/// News in both formats, and what is none.
@Suite struct FleetNewsTests {
    private static let now = WallTime(milliseconds: 1_800_000_000_000)
    private let keys: FleetKeys
    private let all: [FleetNews]

    init() throws {
        keys = try FleetKeys(SealingKeyRing([SealingKey(bytes: (0..<32).map { UInt8($0) })]))
        let name = keys.name(.session, [1])
        all = [
            .published(name, identity: "a1"), .withdrawn(name, identity: "a1"), .released(name),
            .session(name, version: nil), .sessionEnded(name, version: SessionVersion.none.next),
            .rejected(account: name), .reset(account: name),
            .forgotten, .session(name, version: SessionVersion.none.next), .sessionMissed(name),
            .spending(name, owner: "o", isOver: false), .spending(name, owner: "o", isOver: true),
        ]
    }

    @Test func newsAreReadAsTheyWereSealed() throws {
        for news in all {
            let message = try keys.seal(news, at: Self.now)
            #expect(keys.news(message, at: Self.now)?.news == news)
            #expect(FleetNews(message) == nil, "gateways of the old format take it for their own")
        }
    }

    @Test func newsOfTheOldFormatNameNoVersion() {
        let name = keys.name(.session, [1])
        let moved = FleetNews.session(name, version: SessionVersion.none.next)
        #expect(FleetNews(Array(moved.oldMessage.utf8)) == .session(name, version: nil))
        // One that does was written by somebody else.
        for word in [
            "ended \(name.text) 9", "session \(name.text) 9", "spending \(name.text) o", "spent \(name.text) o",
        ] {
            #expect(FleetNews(Array(word.utf8)) == nil)
        }
        let ended = FleetNews.sessionEnded(name, version: SessionVersion.none.next)
        #expect(FleetNews(Array(ended.oldMessage.utf8)) == .sessionEnded(name, version: nil))
    }

    @Test(arguments: [-121_000, 121_000] as [Int64])
    func newsThatAreToldAgainTellNothing(milliseconds: Int64) throws {
        let message = try keys.seal(all[6], at: Self.now)
        #expect(keys.news(message, at: WallTime(milliseconds: Self.now.milliseconds + milliseconds)) == nil)
    }

    @Test func whatActsByItselfCountsOnce() {
        let heard = HeardNews(since: Self.now)
        let name = keys.name(.account, [1])
        let later = WallTime(milliseconds: Self.now.milliseconds + 1)
        #expect(heard.counts(.reset(account: name), sealedAt: Self.now, at: later))
        #expect(!heard.counts(.reset(account: name), sealedAt: Self.now, at: later))
        #expect(heard.counts(.reset(account: name), sealedAt: later, at: later), "another one")
        #expect(heard.counts(.rejected(account: name), sealedAt: Self.now, at: later))
        // What only leads to a look may come twice.
        for _ in 0..<2 { #expect(heard.counts(.session(name, version: nil), sealedAt: Self.now, at: later)) }
    }

    @Test func whatWasSealedBeforeAGatewayListenedIsToldAgain() {
        let before = WallTime(milliseconds: Self.now.milliseconds - 1)
        #expect(
            !HeardNews(since: Self.now).counts(
                .reset(account: keys.name(.account, [1])), sealedAt: before, at: Self.now))
    }

    @Test func whatWasHeardIsNotForgottenTooEarly() {
        let heard = HeardNews(since: Self.now)
        let names = (0...HeardNews.most).map { keys.name(.account, [UInt8($0 >> 8), UInt8($0 & 255)]) }
        for name in names.dropLast() { #expect(heard.counts(.reset(account: name), sealedAt: Self.now, at: Self.now)) }
        #expect(!heard.counts(.reset(account: names[HeardNews.most]), sealedAt: Self.now, at: Self.now))
        #expect(!heard.counts(.reset(account: names[0]), sealedAt: Self.now, at: Self.now))
        // When none of them can be told again, there is room.
        let later = WallTime(milliseconds: Self.now.milliseconds + 120_001)
        #expect(heard.counts(.reset(account: names[0]), sealedAt: later, at: later))
    }

    @Test func whatCannotBeToldAgainIsNotKept() {
        let heard = HeardNews(since: Self.now)
        for second in 0..<3600 {
            let moment = WallTime(milliseconds: Self.now.milliseconds + Int64(second) * 1000)
            #expect(heard.counts(.reset(account: keys.name(.account, [1])), sealedAt: moment, at: moment))
            // Two minutes of news, and as many again before a sweep is worth its while.
            #expect(heard.count <= 2 * 121)
        }
    }

    @Test func whatIsNotSealedByTheFleetIsNone() throws {
        let others = try FleetKeys(SealingKeyRing([SealingKey(bytes: (1..<33).map { UInt8($0) })]))
        #expect(keys.news(try others.seal(all[7], at: Self.now), at: Self.now) == nil)
        for news in all { #expect(keys.news(Array(news.oldMessage.utf8), at: Self.now) == nil) }
        // A value is no news.
        let name = keys.name(.token, [1])
        let sealed = try keys.seal(SealedEnvelope(end: nil, value: Array("1800000000000 forgotten".utf8)), for: name)
        #expect(keys.news(Array("2 ".utf8) + Array(Base64.encodeURL(sealed).utf8), at: Self.now) == nil)
    }

    @Test(arguments: [0, 1, 17, 18, 255])
    func anEnvelopeIsReadAsItWasWritten(count: Int) throws {
        let name = String(repeating: "i", count: min(count, 255))
        for end in [nil, WallTime(milliseconds: 0), WallTime(milliseconds: .max)] {
            let envelope = SealedEnvelope(
                version: SessionVersion.none.next, end: end, identity: name, value: [UInt8](repeating: 7, count: count))
            #expect(SealedEnvelope(octets: envelope.octets) == envelope)
            #expect(SealedEnvelope(octets: Array(envelope.octets.prefix(17))) == nil)
        }
    }
}
