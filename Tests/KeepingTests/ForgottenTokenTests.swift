import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// A token that gave way to another user's, or that no configuration leads to any more, while something was under way for it.
@Suite struct ForgottenTokenTests {
    /// Nothing holds the token afterwards, so that an alarm of it would fire for nobody and end the gateway.
    @Test func aFlightThatBeginsForOneLeavesNoAlarmBehind() throws {
        let scene = try KeeperScene(Plans.client())
        scene.issuer = { _ in Wire.bearer("t", expiresIn: "100") }
        scene.settle()
        #expect(scene.status() == 200)
        let calls = scene.issuerCalls.count
        scene.inKeeper { keeper in
            let token = keeper.tokens.shared.values.first!
            keeper.forget(token)
            keeper.apply(token.machine.missed(from: 0, at: keeper.now), to: token)
        }
        scene.settle()
        #expect(scene.issuerCalls.count == calls + 1)
        scene.pass(seconds: 300, step: 10)
        #expect(scene.inKeeper { $0.tokens.shared.isEmpty })
    }
}
