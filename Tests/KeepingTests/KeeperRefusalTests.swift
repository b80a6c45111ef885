import ScriptedKernel
import Testing

@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import Tokens

/// What is held back, and what callers are told of it: a refusal is told only where somebody has refused.
@Suite struct KeeperRefusalTests {
    @Test(arguments: [401, 403]) func aPageOfAProxyRefusesNobody(_ status: Int) throws {
        let scene = try KeeperScene(Plans.client("negative_for: 10s"), store: MemoryStore())
        let issuer = NumberedIssuer()
        issuer.fails = "HTTP/1.1 \(status) No\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"
        scene.issuer = issuer.answer
        let caller = scene.call()
        #expect(caller.status == 503 && caller.receivedText.contains("problems/issuer-answer-invalid"))
        issuer.fails = nil
        scene.pass(seconds: 30, step: 1)
        #expect(scene.status() == 200)
    }

    /// Whoever asks while a refusal is being booked learns what the issuer has said, and not only that it was refused before.
    @Test func whyACredentialIsHeldBackIsKnownAtOnce() throws {
        let scene = try KeeperScene(Plans.client(), store: MemoryStore())
        let reasons = scene.inKeeper { keeper -> [String?] in
            guard let identity = keeper.catalogue.identity(named: "o") else { return [] }
            func told() -> String? {
                identity.note(.quarantined, asking: nil, at: 1)
                return identity.lastFailure
            }
            identity.heed(.credentialRejected(reason: "invalid_client"), asking: "issuer:1")
            let early = told()
            identity.note(.issuerUnavailable(retryAfterSeconds: nil, reason: "away"), asking: nil, at: 1)
            let late = told()
            identity.recovered(at: 2)
            return [early, late, told()]
        }
        #expect(reasons.map { $0?.contains("invalid_client") } == [true, true, false])
        #expect(reasons.last??.contains("refused it before") == true)
    }

    private func cutOff(_ store: MemoryStore) throws -> (KeeperScene, NumberedGate) {
        let scene = try KeeperScene(Plans.gate("acquire_timeout: 2s, negative_for: 1s"), store: store)
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        return (scene, gate)
    }

    private func passwords(_ scene: KeeperScene) -> Int {
        scene.issuerCalls.count { $0.path.hasSuffix("authenticate") }
    }

    @Test func aLoginThatWasCutOffIsToldAsThat() throws {
        let store = MemoryStore()
        let (scene, gate) = try cutOff(store)
        gate.hangs = ["register"]
        let first = scene.call(Wire.get("/w/x"))
        scene.pass(seconds: 20, step: 1)
        #expect([503, 504].contains(first.status))
        let (again, _) = try cutOff(store)
        let next = again.call(Wire.get("/w/x"))
        again.pass(seconds: 20, step: 1)
        #expect(next.status == 503 && next.receivedText.contains("problems/credential-quarantined"))
        #expect(next.receivedText.contains("cut off before its answer came") && !next.receivedText.contains("rejected"))
        #expect(again.issuerCalls.isEmpty)
    }

    /// The second restart is no third try.
    @Test func aPasswordThatWasGoodHasOneMoreTry() throws {
        let store = MemoryStore()
        #expect(try cutOff(store).0.status("/w/x") == 200)
        var sent: [Int] = []
        for _ in 0..<4 {
            let (scene, gate) = try cutOff(store)
            _ = scene.inKeeper { $0.purge(.everything) }
            gate.hangs = ["authenticate"]
            scene.call(Wire.get("/w/x"))
            scene.pass(seconds: 60, step: 1)
            sent.append(passwords(scene))
        }
        #expect(sent.reduce(0, +) == 2)
    }

    @Test func aStoreThatCannotBeReadIsNoRefusal() throws {
        let scene = try KeeperScene(
            Plans.gate(), store: MemoryStore(), state: .refused("another key"), marksUnreadable: true)
        let gate = NumberedGate()
        scene.issuer = gate.answer
        scene.upstream = gate.guarded()
        let caller = scene.call(Wire.get("/w/x"))
        #expect(caller.status == 503 && caller.receivedText.contains("problems/store-unusable"))
        let status = scene.inKeeper { $0.status() }
        #expect(status.identities.map(\.lacksStore) == [true] && status.identities.map(\.isQuarantined) == [false])
        #expect(scene.issuerCalls.isEmpty)
        // Whoever knows better says so.
        _ = scene.inKeeper { $0.reset(identity: "w") }
        #expect(scene.status("/w/x") == 200)
    }

    /// A server has forgotten the handle, and says so in words that nobody knows.
    @Test(arguments: [false, true]) func aResetLetsARegistrationGoThatAFailedStepUsed(afterARestart: Bool) throws {
        let store = MemoryStore()
        let (scene, gate) = try cutOff(store)
        #expect(scene.status("/w/x") == 200 && gate.handles == 1)
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.issuer = { request in
            request.path.hasSuffix("authenticate") && gate.handles == 1
                ? Wire.json(#"{"message":"zut"}"#, status: 401) : gate.answer(request)
        }
        #expect(scene.status("/w/x") == 503 && gate.handles == 1)
        let next = afterARestart ? try cutOff(store).0 : scene
        next.issuer = scene.issuer
        next.upstream = scene.upstream
        _ = next.inKeeper { $0.reset(identity: "w") }
        #expect(next.status("/w/x") == 200 && gate.handles == 2)
        // The new one is not doubted.
        _ = next.inKeeper { $0.reset(identity: "w") }
        _ = next.inKeeper { $0.purge(.everything) }
        #expect(next.status("/w/x") == 200 && gate.handles == 2)
    }

    /// Whoever did not answer has said nothing of it.
    @Test func aResetKeepsARegistrationThatNobodySpokeAgainst() throws {
        let (scene, gate) = try cutOff(MemoryStore())
        #expect(scene.status("/w/x") == 200 && gate.handles == 1)
        _ = scene.inKeeper { $0.purge(.everything) }
        gate.fails = Wire.unavailable
        #expect(scene.status("/w/x") == 503)
        gate.fails = nil
        _ = scene.inKeeper { $0.reset(identity: "w") }
        #expect(scene.status("/w/x") == 200 && gate.handles == 1)
    }

    @Test func wordsForAForgottenRegistrationCanBeConfigured() throws {
        let yaml = Plans.gate(identity: #"handle_unknown: [X-1, "Zut alors"]"#)
        for said in [#"{"message":"eh, zut ALORS, eh"}"#, #"{"error":"x","message":"zut alors"}"#] {
            let scene = try KeeperScene(yaml, store: MemoryStore())
            let gate = NumberedGate()
            scene.issuer = gate.answer
            scene.upstream = gate.guarded()
            #expect(scene.status("/w/x") == 200)
            _ = scene.inKeeper { $0.purge(.everything) }
            scene.issuer = { request in
                request.path.hasSuffix("authenticate") && gate.handles == 1
                    ? Wire.json(said, status: 401) : gate.answer(request)
            }
            #expect(scene.status("/w/x") == 200 && gate.handles == 2)
        }
    }

    private final class Outcomes: @unchecked Sendable {
        var words: [String] = []
    }

    /// Two flights of one account, outside of a session: the second one knows nothing of what becomes of the first.
    @Test(arguments: [false, true]) func aStepThatIsUnderWayIsNoLostAnswer(wasAccepted: Bool) throws {
        let scene = try KeeperScene(Plans.gate())
        let outcomes = Outcomes()
        _ = scene.inKeeper { keeper in
            keeper.start { keeper in
                let identity = keeper.identities[0]
                func spend() async -> AttemptMark? {
                    do throws(Handshakes.GrantFailure) {
                        let mark = try await keeper.spendAttempt(of: identity, user: "svc", secret: Secret("p"))
                        outcomes.words.append("sent")
                        return mark
                    } catch {
                        outcomes.words.append("\(error)")
                        return nil
                    }
                }
                if wasAccepted, let mark = await spend() { await keeper.settleAttempt(.accepted, of: mark) }
                _ = await spend()
                _ = await spend()
            }
        }
        scene.settle()
        #expect(outcomes.words.count { $0 == "sent" } == (wasAccepted ? 2 : 1))
        #expect(outcomes.words.last?.contains("another step with this password is under way") == true)
    }
}
