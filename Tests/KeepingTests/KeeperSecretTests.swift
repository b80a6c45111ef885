import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// Secrets that cannot be read now, or are others than a moment ago.
@Suite struct KeeperSecretTests {
    private static let fixed = """
        identities: {a: {static: {value: env:V}}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: a}

        """

    private func told(_ caller: Peer) -> Bool {
        caller.status == 503 && caller.receivedText.contains("problems/secret-unreadable")
    }

    /// A secret is looked for again at most once a second, by whoever asks.
    @Test func aFixedValueThatIsMissingIsLookedForAgain() throws {
        let secrets = Secrets()
        secrets.missing = ["V"]
        let scene = try KeeperScene(Self.fixed, secrets: secrets)
        scene.settle()
        #expect(told(scene.call()) && scene.upstreamCalls.isEmpty)
        scene.pass(seconds: 2)
        #expect(told(scene.call()))
        secrets.missing = []
        scene.pass(seconds: 2)
        _ = scene.call()
        #expect(scene.status() == 200 && scene.upstreamCalls.last?.authorization == "secret")
        // The secret goes away again: the value that was read is served on, until somebody says that it has changed.
        secrets.missing = ["V"]
        scene.pass(seconds: 10)
        #expect(scene.status() == 200)
    }

    /// The thread that reads them has too much to do: that is told, and nobody waits for a reading that was never begun.
    @Test func aThreadThatTakesNoMoreReadingsIsTold() throws {
        let blocking = ScriptedWork()
        blocking.thread = .full
        let scene = try KeeperScene(Self.fixed, blocking: blocking)
        scene.settle()
        #expect(told(scene.call()))
        blocking.thread = .free
        scene.pass(seconds: 2)
        _ = scene.call()
        #expect(scene.status() == 200)
    }

    /// A slow disk: whoever asks meanwhile waits for what it says.
    @Test func whoAsksWhileAValueIsBeingReadWaitsForIt() throws {
        let blocking = ScriptedWork()
        blocking.thread = .stuck
        let scene = try KeeperScene(Self.fixed, blocking: blocking)
        let callers = (0..<3).map { _ in scene.call() }
        #expect(callers.allSatisfy { $0.status == nil })
        blocking.goOn()
        scene.settle()
        for caller in callers where caller.status == nil { scene.settle() }
        #expect(callers.map(\.status) == [200, 200, 200])
    }

    /// A client secret that cannot be read is no refusal, and costs the issuer no call.
    @Test func aClientSecretThatIsMissingIsNoRefusal() throws {
        let secrets = Secrets()
        let scene = try KeeperScene(Plans.client("negative_for: 1s"), secrets: secrets)
        let issuer = NumberedIssuer()
        scene.issuer = issuer.answer
        secrets.missing = ["S"]
        #expect(told(scene.call()) && scene.issuerCalls.isEmpty)
        #expect(scene.inKeeper { $0.status().identities.map(\.isQuarantined) } == [false])
        secrets.missing = []
        scene.pass(seconds: 10)
        #expect(scene.status() == 200)
    }

    // MARK: - Lives

    /// A token that was made from another one, by an issuer that does not say how long it is good: no longer than that one, and no longer
    /// than one of an unknown life.
    @Test func aTokenOfUnknownLifeEndsWithWhatItWasMadeFrom() throws {
        let policy = try KeeperScene(Plans.client()).inKeeper { $0.identities[0].policy.lifetime }
        let usual = Int64(policy.defaultLifetime / 1_000_000_000)
        var grant = AccessGrant(token: Secret("t"), tokenType: "Bearer", lifetime: nil, sentAt: 0)
        let moment = Moment(now: 0, wall: 1_000_000)
        #expect(grant.seconds(ClockSkew(), policy, at: moment) == nil, "the policy decides")
        grant.notAfter = 1000 + usual / 2
        #expect(grant.seconds(ClockSkew(), policy, at: moment) == usual / 2)
        grant.notAfter = 1000 + 2 * usual
        #expect(grant.seconds(ClockSkew(), policy, at: moment) == usual)
        grant.notAfter = 999
        #expect(grant.hasLostItsOrigin(ClockSkew(), at: moment))
    }
}
