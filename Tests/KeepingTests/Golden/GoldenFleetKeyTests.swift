import Fleet
import GoldenFiles
import Synchronization
import Testing

@testable import Scenes

/// The keys that names on the shared server are made of: what two gateways call the same.
@Suite struct GoldenFleetKeyTests {
    @Test func everyThingHasTheKeyThatItHad() throws {
        let server = MemoryServer()
        let scene = try KeeperScene(Plans.gate(), store: MemoryStore(), secrets: Secrets(["P": "pw"]), fleet: server)
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        scene.settle()
        #expect(scene.status("/w/x") == 200)
        let named = server.state.withLock { $0.named }
        var lines: [String] = []
        for (kind, keys) in named { lines += keys.map { "\(Self.word(of: kind)): \(readable($0))" } }
        #expect(named.count == 6, "a kind is not in the scene")
        let file = GoldenFile(
            "fleet-keys.txt",
            "Kind of what a fleet shares, and the key that its name is made of, for a WebGate, the user svc and the password pw.",
            cost:
                "gateways of two versions find neither each other's sessions nor leases nor attempts: two of them may send one refused password "
                + "or one refresh token.")
        if let difference = file.difference(from: lines.sorted()) { Issue.record("\(difference)") }
    }

    /// A new case ends the compilation here, so that it is brought into the scene.
    private static func word(of kind: SharedKind) -> String {
        switch kind {
        case .token: "token"
        case .session: "session"
        case .lock: "lane"
        case .durable: "durable"
        case .account: "account"
        case .secret: "secret"
        }
    }
}
