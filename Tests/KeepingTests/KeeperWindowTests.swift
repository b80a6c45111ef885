import HotCache
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// Paths that refuse whatever they are sent, beside healthy ones of the same route: a revocation shuts those for a second at most, and the
/// others cost little.
@Suite struct KeeperWindowTests {
    /// Who else calls while the token is good.
    enum Others: CaseIterable {
        /// Three URLs, again and again.
        case three
        /// As many as there are requests.
        case endless
    }

    /// A healthy path that is asked for all the time, and one of which nothing was seen since before the others began.
    @Test(arguments: Others.allCases)
    func othersRefusalsShutAHealthyPathForASecondAtMost(_ others: Others) throws {
        for isBusy in [true, false] where isBusy || others == .three {
            let scene = try KeeperScene(Plans.client(), loops: 1)
            let issuer = NumberedIssuer()
            issuer.expiresIn = "36000"
            scene.issuer = issuer.answer
            var revoked = ""
            scene.upstream = {
                $0.path.hasPrefix("/bad") || $0.authorization == revoked ? Wire.challenge : Wire.ok("in")
            }
            #expect(scene.status("/healthy") == 200)
            for round in 0..<6 {
                for turn in 0..<120 {
                    let path = others == .three ? "/bad/\(turn % 3)" : "/bad/\(round)/\(turn)"
                    #expect(scene.status(path) == 502)
                    if isBusy { #expect(scene.status("/healthy") == 200) }
                    scene.pass(seconds: 0.25, step: 0.25)
                }
                revoked = "Bearer t\(issuer.granted)"
                var shut = 0
                while scene.status("/healthy") == 502 {
                    shut += 1
                    #expect(scene.status("/bad/0") == 502)
                    scene.pass(seconds: 0.25, step: 0.25)
                    guard shut < 200 else { break }
                }
                #expect(shut <= 4, "\(others), busy: \(isBusy), round \(round): \(shut) quarters of a second")
            }
            // Of 720 requests in 180 s.
            #expect(issuer.granted <= 40, "\(others): \(issuer.granted)")
        }
    }

    @Test(arguments: [0.1, 1])
    func anUpstreamThatRefusesEverythingCostsTwentyGrantsAtAnyPace(_ pace: Double) throws {
        for paths in [1, 3, 10, 1000] {
            let scene = try KeeperScene(Plans.client())
            let issuer = NumberedIssuer()
            issuer.expiresIn = "36000"
            scene.issuer = issuer.answer
            // Healthy until now, as the loops have seen.
            scene.upstream = { _ in Wire.ok("in") }
            for number in 0..<150 { #expect(scene.status("/\(number % paths)") == 200) }
            scene.upstream = { _ in Wire.challenge }
            for number in 0..<150 {
                #expect(scene.status("/\(number % paths)") == 502)
                scene.pass(seconds: pace, step: pace)
            }
            #expect(issuer.granted <= 21, "\(paths) paths: \(issuer.granted)")
        }
    }

    @Test func whatWasTakenIsKnownByPathAndOnlyWhileItIsWatched() {
        var taken = TakenPaths()
        let slot = Slot.nowhere
        func path(_ text: StaticString) -> UnsafeRawBufferPointer {
            UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
        }
        func has(_ text: StaticString, route: Int = 1, forgets: Bool = false) -> Bool {
            taken.contains(path(text), slot: slot, route: route, forgets: forgets)
        }
        taken.note(path("/a"), slot: slot, route: 1, now: 5)
        #expect(taken.isEmpty && !has("/a"))
        taken.watch(slot: slot, route: 1, until: 10, now: 5)
        taken.note(path("/a?x=1"), slot: slot, route: 1, now: 5)
        taken.note(path("/a"), slot: slot, route: 2, now: 5)
        #expect(has("/a") && has("/a?y") && !has("/b") && !has("/a", route: 2))
        #expect(has("/a", forgets: true) && !has("/a"))
        taken.note(path("/a"), slot: slot, route: 1, now: 10)
        #expect(taken.isEmpty)
        // As many as there is room for; each remembers what fits.
        for route in 0..<1000 { taken.watch(slot: slot, route: route, until: 20, now: 11) }
        taken.note(path("/a"), slot: slot, route: 63, now: 12)
        taken.note(path("/a"), slot: slot, route: 64, now: 12)
        #expect(has("/a", route: 63) && !has("/a", route: 64))
    }
}
