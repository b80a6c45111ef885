import Testing
import TokenStore
import Tokens

@testable import Handshakes
@testable import Keeping

@Suite struct LoginEndTests {
    private static let day: UInt64 = 86_400_000_000_000

    private static func material(_ lifetime: UInt64?, refresh: RefreshLife? = nil, hasToken: Bool = true)
        -> LayerMaterial
    {
        LayerMaterial(
            bytes: Secret("s"), obtainedAt: day, lifetime: lifetime, refreshToken: hasToken ? Secret("r") : nil,
            isHuman: true, refreshLife: refresh)
    }

    @Test(arguments: [(50, 10), (35, 7), (30, 6), (365, 7)])
    func theLastFifthIsWorthAWarningAtMostAWeek(_ days: UInt64, _ ahead: UInt64) throws {
        let whole = days * Self.day
        let end = try #require(LoginEnd(Self.material(nil, refresh: RefreshLife(left: whole, whole: whole))))
        #expect(end.end == whole + Self.day)
        #expect(end.warning == end.end - min(ahead, 7) * Self.day)
        #expect(end.next(after: 0) == end.warning)
        #expect(end.next(after: end.warning) == end.end)
        #expect(end.next(after: end.end) == .max)
    }

    @Test func whatALoginNeedsFollowsFromItsEnd() {
        let life = RefreshLife(left: 10 * Self.day, whole: 10 * Self.day)
        let material = Self.material(nil, refresh: life)
        #expect(LoginNeed(material, at: 2 * Self.day).word == .good)
        #expect(LoginNeed(material, at: 9 * Self.day).word == .soon)
        #expect(LoginNeed(material, at: 11 * Self.day) == LoginNeed(word: .needed, expiresIn: 0))
        #expect(LoginNeed(nil, at: 0) == LoginNeed(word: .needed, expiresIn: nil))
        #expect(LoginNeed(Self.material(nil), at: .max) == LoginNeed(word: .good, expiresIn: nil))
        #expect(LoginNeed(Self.material(Self.day, hasToken: false), at: 2 * Self.day).word == .needed)
    }

    @Test func jobsOfAPurgeWaitForEachOther() async {
        var erasures = Erasures()
        let all: @Sendable (AccessKey) -> Bool = { _ in true }
        erasures.begin()
        #expect(erasures.add(all) == true)
        #expect(erasures.add(all) == false, "the first is under way")
        let purge = erasures.end()
        #expect(erasures.first != nil)
        erasures.removeFirst().ended(.success(()))
        erasures.removeFirst().ended(.failure(StoreFault(.io, "no disk")))
        #expect(erasures.first == nil)
        #expect(await purge.outcome() != nil, "the last fault counts")
    }

    /// A disk that hangs must not let repeated purges grow without end: the one too many hears so, and the others are done.
    @Test func purgesBeyondTheBoundFailAtOnce() async {
        var erasures = Erasures()
        let all: @Sendable (AccessKey) -> Bool = { _ in true }
        for number in 0..<16_384 { #expect(erasures.add(all) == (number == 0)) }
        erasures.begin()
        #expect(erasures.add(all) == false)
        #expect(await erasures.end().outcome()?.kind == .queueFull)
        #expect(erasures.first != nil)
    }
}
