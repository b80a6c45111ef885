import Testing

@testable import Tokens

/// The places that are held (docs/design/tokens.md#rule-3), whatever the order in which refusals are told.
@Suite struct RegrantWindowsTests {
    static let limit: Nanoseconds = .seconds(30)

    /// Every order of some things.
    static func orders<Element>(_ all: [Element]) -> [[Element]] {
        guard all.count > 1 else { return [all] }
        return all.indices.flatMap { index in
            var rest = all
            let first = rest.remove(at: index)
            return orders(rest).map { [first] + $0 }
        }
    }

    /// Bursts of one generation each, by the paths that refused it; whether the route is held after them.
    static let bursts: [(paths: [[Int]], holds: Bool)] = [
        ([[1], [2], [3]], true),
        ([[1], [2], [1, 3]], true),
        ([[1], [2], [3, 2, 1]], true),
        ([[1, 2], [1, 2], [3]], true),
        ([[1, 2, 3], [1, 2, 3], [1, 2, 3]], true),
        ([[1], [1], [2], [3]], true),
        ([[1], [2], [2], [1], [3]], true),
        ([[1], [1], [2, 3]], false),
        ([[1, 2], [2, 1], [1]], false),
        ([[1, 2, 3, 4]], false),
        ([[1, 2, 3], [4, 5, 6]], false),
        ([[1], [1], [1], [1], [1]], false),
    ]

    /// A burst is told in any order, as its loops and connections happen to come, and generations that are close in any order too.
    @Test(arguments: bursts)
    func theOrderOfArrivalDecidesNothing(_ paths: [[Int]], _ holds: Bool) {
        let all = paths.enumerated().flatMap { burst in burst.element.map { (UInt64(burst.offset), $0) } }
        guard all.count <= 6 else {
            // Within each burst, of longer ones.
            for order in Self.orders([0, 1, 2]) { check(paths.map { own in order.map { own[$0] } }, holds) }
            return
        }
        for order in Self.orders(all) { check(order.map { (generation: $0.0, path: $0.1) }, holds) }
    }

    private func check(_ bursts: [[Int]], _ holds: Bool) {
        check(bursts.enumerated().flatMap { burst in burst.element.map { (UInt64(burst.offset), $0) } }, holds)
    }

    private func check(_ refusals: [(generation: UInt64, path: Int)], _ holds: Bool) {
        var windows = RegrantWindows()
        var news = 0
        for (generation, path) in refusals {
            let target = RequestTarget(path: path)
            if windows.refused(generation, at: target, limit: Self.limit, now: .seconds(5)) { news += 1 }
        }
        #expect(windows.holds(RequestTarget(path: 9), at: .seconds(5)) == holds, "\(refusals)")
        #expect(!windows.holds(RequestTarget(route: 1, path: 9), at: .seconds(5)))
        #expect(news == Set(refusals.map(\.generation)).count)
    }

    /// Three paths of route 0 refuse whatever they are sent; the last at `second`.
    static func held(at second: UInt64 = 5) -> RegrantWindows {
        var windows = RegrantWindows()
        for path in 1...3 {
            _ = windows.refused(UInt64(path), at: RequestTarget(path: path), limit: limit, now: .seconds(second))
        }
        return windows
    }

    @Test func lateReportsOfOneGenerationProlongNothing() {
        var windows = Self.held()
        for tenth in 0..<30 as Range<UInt64> {
            let now: Instant = .seconds(5) + .milliseconds(100 * tenth)
            for path in 1...4 { _ = windows.refused(3, at: RequestTarget(path: path), limit: Self.limit, now: now) }
        }
        for path in 1...3 { #expect(!windows.holds(RequestTarget(path: path), at: .seconds(8))) }
    }

    /// A route whose three paths refuse for minutes, each time that they are let.
    @Test func aHealthyPathIsShutForASecondAtMost() {
        var windows = Self.held()
        var (generation, grants) = (UInt64(3), 0)
        for tenth in 0..<3000 as Range<UInt64> {
            let now: Instant = .seconds(5) + .milliseconds(100 * tenth)
            for path in 1...3 where !windows.holds(RequestTarget(path: path), at: now) {
                generation += 1
                grants += 1
                _ = windows.refused(generation, at: RequestTarget(path: path), limit: Self.limit, now: now)
            }
            // New ones that had a success, and those that are new altogether.
            let then = now + .seconds(1)
            #expect(
                !windows.holds(RequestTarget(path: 9), at: then)
                    && !windows.holds(RequestTarget(path: 2), hadTaken: true, at: then))
        }
        #expect(grants <= 20, "\(grants)")
    }

    /// New paths without an end, of which each refuses: the windows grow for them, and for no path that had taken the token.
    @Test func newPathsThatRefuseAreTriedFourTimes() {
        var windows = RegrantWindows()
        var granted: [UInt64] = []
        for second in 5..<105 as Range<UInt64> {
            let target = RequestTarget(path: Int(second))
            guard !windows.holds(target, at: .seconds(second)) else {
                #expect(!windows.holds(RequestTarget(path: 1), hadTaken: true, at: .seconds(second)))
                continue
            }
            granted.append(second)
            _ = windows.refused(second, at: target, limit: Self.limit, now: .seconds(second))
        }
        // Three before the route is held, four trials, and the windows' ends.
        #expect(granted == [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 22, 38, 68, 98])
    }

    /// Path 1 holds the route for two seconds from 6 on, and path 2 has refused a token at 5.
    static func heldAgain() -> RegrantWindows {
        var windows = held()
        _ = windows.refused(4, at: RequestTarget(path: 1), limit: limit, now: .seconds(6))
        return windows
    }

    @Test func aPathOfWhichNothingIsToldHasTakenNoToken() {
        let target = RequestTarget(path: 2)
        let now: Instant = .seconds(7)
        var windows = Self.heldAgain()
        #expect(windows.holds(target, at: now) && !windows.holds(target, hadTaken: true, at: now))
        let passed = (0..<3).count { _ in windows.pass(at: target, now: now) }
        #expect(passed == 1, "a second window lets one step-up pass")
        let taken = (0..<3).count { _ in windows.pass(at: target, hadTaken: true, now: now) }
        #expect(taken == 3, "nothing holds it")
        for (report, isRefused) in [
            (ChallengeReport(generation: 1, target: target), true),
            (ChallengeReport(generation: 1, target: target, hadTaken: true), false),
        ] {
            var bench = Bench.warm()
            bench.machine.windows = Self.heldAgain()
            #expect((bench.challenge(0, report, at: 7).first == "answer [0] final") == isRefused)
        }
    }

    @Test func nothingPassesWithinASecondOfATokenThatWasGrantedInVain() {
        let windows = Self.held()
        let now: Instant = .seconds(5) + .milliseconds(900)
        #expect(
            windows.holds(RequestTarget(path: 9), at: now)
                && windows.holds(RequestTarget(path: 9), hadTaken: true, at: now))
    }

    @Test func ofOneSeriesTheFirstWindowLetsThreeStepUpsPassAndTheOthersOne() {
        var windows = RegrantWindows()
        let target = RequestTarget(path: 1)
        var passed: [Int] = []
        var now: Instant = .seconds(5)
        for (generation, span) in ([1, 2, 4] as [UInt64]).enumerated() {
            _ = windows.refused(UInt64(generation), at: target, limit: Self.limit, now: now)
            passed.append((0..<9).count { _ in windows.pass(at: target, now: now) })
            now += .seconds(span)
        }
        #expect(passed == [3, 1, 1])
    }
}
