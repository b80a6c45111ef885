import ScriptedKernel
import Testing

@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// More realms than a route holds: what was used least gives way, and comes back.
@Suite struct KeeperRealmTests {
    /// An upstream with a realm for each directory, which takes that realm's tokens alone.
    private final class Site {
        let scene: KeeperScene
        private(set) var grants = 0

        init(_ identity: String = "", store: MemoryStore? = nil) throws {
            scene = try KeeperScene(Plans.gate(identity: identity), store: store)
            let gate = NumberedGate()
            scene.issuer = { request in
                guard request.path.hasSuffix("/access") else { return gate.answer(request) }
                self.grants += 1
                let place = request.body.split(separator: "ctx-").dropFirst().first?.prefix { $0.isNumber } ?? ""
                return Wire.idaas("ACCESSTOKEN", "t.\(place).e")
            }
            scene.upstream = { request in
                let place = request.path.split(separator: "/").dropFirst().first ?? ""
                if request.authorization?.contains("t.\(place).e") == true { return Wire.ok() }
                return
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth realm=\"WG\(place):2 /\", request-ctx=\"ctx-\(place)\"\r\n"
                    + "Content-Length: 0\r\n\r\n"
            }
        }

        func status(_ place: Int) -> Int { scene.status("/w/\(place)/x") }
    }

    @Test func theTableNeverFillsForGood() throws {
        let site = try Site(store: MemoryStore())
        let places = 40
        for place in 0..<places {
            #expect(site.status(place) == 200, "\(place)")
            site.scene.pass(seconds: 0.2, step: 0.2)
        }
        #expect(site.grants == places)
        // One that was used all the time has stayed; one that gave way has its token in the store.
        for place in [places - 1, 1, 2, places - 1] {
            #expect(site.status(place) == 200, "\(place)")
            site.scene.pass(seconds: 0.2, step: 0.2)
        }
        #expect(site.grants == places)
    }

    /// Also those that memory does not hold.
    @Test func aPurgeForgetsTheRealmsThatGaveWay() throws {
        let site = try Site(store: MemoryStore())
        for place in 0..<30 {
            #expect(site.status(place) == 200)
            site.scene.pass(seconds: 0.2, step: 0.2)
        }
        #expect(site.status(1) == 200 && site.grants == 30)
        site.scene.pass(seconds: 0.2, step: 0.2)
        _ = site.scene.inKeeper { $0.purge(.identity("w")) }
        site.scene.settle()
        for place in [1, 2, 29] {
            #expect(site.status(place) == 200)
            site.scene.pass(seconds: 0.2, step: 0.2)
        }
        #expect(site.grants == 33)
    }

    /// Whose token is on its way keeps its place, however many come meanwhile.
    @Test func whoWaitsIsNotPushedOut() throws {
        let site = try Site()
        #expect(site.status(0) == 200)
        let answer = site.scene.issuer
        var held: Request?
        site.scene.issuer = { request in
            guard request.path.hasSuffix("/access"), request.body.contains("ctx-1") else { return answer(request) }
            held = request
            return nil
        }
        let caller = site.scene.call(Wire.get("/w/1/x"))
        let call = try #require(held)
        site.scene.issuer = answer
        let peer = try #require(site.scene.issuers.last)
        for place in 20..<60 {
            #expect(site.status(place) == 200)
            site.scene.pass(seconds: 0.1, step: 0.1)
        }
        #expect(caller.status == nil)
        peer.send(try #require(answer(call)))
        site.scene.settle()
        #expect(caller.status == 200)
    }

    @Test func whatIsUsedStays() throws {
        let site = try Site()
        for place in 0..<60 {
            #expect(site.status(place) == 200 && site.status(1) == 200)
            site.scene.pass(seconds: 0.2, step: 0.2)
        }
        #expect(site.grants == 60)
    }

    /// An upstream that makes realms up costs no more than so many new ones a second.
    @Test func newRealmsComeAtAPace() throws {
        let site = try Site()
        var found: [Int: Int] = [:]
        for place in 0..<100 { found[site.status(place), default: 0] += 1 }
        #expect(found == [200: 16 + 10, 503: 100 - 26])
        #expect(site.scene.callers.last?.receivedText.contains("Retry-After") == true)
        site.scene.pass(seconds: 1)
        #expect(site.status(99) == 200)
    }
}
