import ScriptedKernel
import Synchronization
import Testing
import TokenStore

@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// An upgrade as the keeper of the old process lives through it.
@Suite struct KeeperHandOverTests {
    private final class Word: Sendable {
        private let said = Atomic(0)
        var count: Int { said.load(ordering: .relaxed) }
        func say() { said.add(1, ordering: .relaxed) }
    }

    @Test func whatHasBegunEndsFirst() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        let issuer = NumberedIssuer()
        scene.issuer = { _ in nil }
        let caller = scene.call()
        let quiet = Word()
        scene.inKeeper { $0.stopGranting { quiet.say() } }
        let follower = scene.call()
        #expect(quiet.count == 0 && caller.status == nil)
        scene.issuers[0].send(try #require(issuer.answer(scene.issuerCalls[0])))
        scene.settle()
        #expect(caller.status == 200 && follower.status == 200 && quiet.count == 1)
        #expect(scene.store?.rows(RowKind.access).count == 1)
    }

    @Test func whatIsHeldIsServedAndTheRestComesAgain() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        #expect(scene.status() == 200)
        let quiet = Word()
        scene.inKeeper { $0.stopGranting { quiet.say() } }
        #expect(quiet.count == 1 && scene.status() == 200)
        // The upstream refuses it: that takes a grant.
        scene.upstream = { $0.authorization == "Bearer t1" ? Wire.challenge : Wire.ok("in") }
        let told = scene.call()
        #expect(told.status == 503)
        #expect(told.receivedText.contains("Retry-After: 1\r\n") && told.receivedText.contains("problems/upgrading"))
        #expect(scene.issuerCalls.count == 1)
        // The other process came to nothing.
        scene.inKeeper { $0.grantAgain([], .serving) }
        #expect(scene.status() == 200 && scene.issuerCalls.count == 2)
        #expect(scene.inKeeper { $0.health.state } == .serving)
    }

    /// Who gives the store away knows that there was no login in it, and tells callers and operators the same.
    @Test func aLoginThatWasMissingIsMissingStill() throws {
        let yaml = Plans.client(identity: "grant: device_code, device_authorization_url: https://idp.example.com/d")
        let scene = try KeeperScene(yaml, store: MemoryStore())
        scene.settle()
        scene.inKeeper { $0.stopGranting {} }
        #expect(scene.inKeeper { $0.loginNeed(of: $0.identities[0])?.word } == .needed)
    }

    @Test func theStoreIsSomebodyElsesMeanwhile() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        scene.settle()
        scene.inKeeper { $0.stopGranting {} }
        guard case .locked = scene.inKeeper({ $0.health.state }) else {
            Issue.record("the store counts as ours")
            return
        }
        #expect(scene.status() == 503 && scene.issuerCalls.isEmpty)
        scene.inKeeper { $0.grantAgain([], .degraded("no disk")) }
        #expect(scene.inKeeper { $0.health.state } == .degraded("no disk"))
    }

    @Test func anUpgradeThatIsGivenUpEarlyTellsNobody() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        scene.issuer = { _ in nil }
        scene.call()
        let quiet = Word()
        scene.inKeeper { $0.stopGranting { quiet.say() } }
        scene.inKeeper { $0.keepStore() }
        scene.issuers[0].send(try #require(NumberedIssuer().answer(scene.issuerCalls[0])))
        scene.settle()
        scene.inKeeper { $0.grantAgain([], .serving) }
        #expect(quiet.count == 0 && scene.status() == 200)
        #expect(scene.inKeeper { $0.health.state } == .serving)
    }
}
