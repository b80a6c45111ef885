import ScriptedKernel
import Testing

@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// Each end user has a lock of his own while something is under way for him. Those with nothing to remember are swept, and no other.
@Suite struct SessionLockTests {
    /// Two routes of one identity, with scopes of their own: tokens apart, one lock for both.
    private static let plan = """
        identities:
          o:
            oauth2: {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S, grant: jwt_bearer,
              assertion: env:P, extra: {act_as: '{subject}'}}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, callers: local, match: {path: "/a/"},
            scopes: [a], subject: {from_header: X-User}, name: a}
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: o, callers: local, match: {path: "/b/"},
            scopes: [b], subject: {from_header: X-User}, name: b}
        limits: {subjects: 100, new_subjects_per_second: 100000}

        """

    private func ask(_ scene: KeeperScene, _ user: String, _ path: String = "/a/") -> Peer {
        scene.call(Wire.get(path, "X-User: \(user)\r\n"))
    }

    @Test func aSweepLeavesTheLockWhereSomebodyWaits() throws {
        let scene = try KeeperScene(Self.plan)
        scene.issuer = { request in
            // His answer is on its way; the others get none that is good, and leave nothing behind.
            if request.body.contains("act_as=waits") { return nil }
            return Wire.json("{}")
        }
        let first = ask(scene, "waits")
        let second = ask(scene, "waits", "/b/")
        #expect(scene.issuerCalls.count == 1, "the second has to wait for the first one's step")
        weak let lock = scene.inKeeper { $0.sessions.locks.values.first }
        for number in 0..<1100 { #expect(ask(scene, "u\(number)").status == 503) }
        // Swept once, when there were more than 1024.
        #expect(scene.inKeeper { $0.sessions.locks.count } < 200)
        #expect(scene.inKeeper { keeper in keeper.sessions.locks.values.contains { $0 === lock } })
        // Who comes now joins those who wait; he makes no lock of his own.
        let third = ask(scene, "waits", "/b/")
        #expect(first.status == nil && second.status == nil && third.status == nil)
        var bodies: [String] = []
        scene.issuer = { request in
            bodies.append(request.body)
            return Wire.bearer("t", ",\"refresh_token\":\"r2\"")
        }
        let peer = try #require(scene.issuers.last { !$0.isClosed })
        peer.send(Wire.json(#"{"access_token":"t","token_type":"Bearer","expires_in":100,"refresh_token":"r1"}"#))
        scene.settle()
        #expect([first, second, third].map(\.status) == [200, 200, 200])
        // The assertion went out once; what came of it served the other.
        #expect(bodies.count == 1 && bodies.allSatisfy { $0.contains("refresh_token=r1") }, "\(bodies)")
    }

    /// A step that was given up by its caller is still under way: another one beside it might spend what it brings.
    @Test func aSweepLeavesTheLockWhereAStepIsUnderWay() throws {
        let scene = try KeeperScene(Self.plan)
        scene.issuer = { $0.body.contains("act_as=gone") ? nil : Wire.json("{}") }
        let caller = ask(scene, "gone")
        #expect(scene.issuerCalls.count == 1)
        caller.reset()
        scene.settle()
        for number in 0..<1100 { _ = ask(scene, "u\(number)") }
        #expect(scene.inKeeper { $0.sessions.locks.count } < 200)
        let before = scene.issuerCalls.count
        let again = ask(scene, "gone", "/b/")
        #expect(scene.issuerCalls.count == before && again.status == nil)
        scene.issuer = { _ in Wire.bearer("t") }
        let peer = try #require(scene.issuers.last { !$0.isClosed })
        peer.send(Wire.bearer("t"))
        scene.settle()
        #expect(again.status == 200)
    }

    @Test func aUserWhoIsServedLeavesNoLockBehind() throws {
        let scene = try KeeperScene(Self.plan)
        scene.issuer = { _ in Wire.bearer("t") }
        for number in 0..<1100 { #expect(ask(scene, "u\(number)").status == 200) }
        #expect(scene.inKeeper { $0.sessions.locks.count } < 200, "\(scene.inKeeper { $0.sessions.held.count })")
    }

    /// What a lock remembers of an identity is told to the lock that takes its place.
    @Test func aLockThatIsMadeAgainKnowsOfANewSecret() throws {
        let scene = try KeeperScene(Self.plan)
        scene.issuer = { _ in Wire.json("{}") }
        _ = ask(scene, "x")
        scene.secrets["P"] = "other"
        scene.pass(seconds: 2)
        for number in 0..<1100 { _ = ask(scene, "u\(number)") }
        let version = scene.inKeeper { $0.identities[0].secretVersion }
        _ = ask(scene, "x")
        #expect(
            version > 1
                && scene.inKeeper { keeper in keeper.sessions.locks.values.allSatisfy { !$0.machine.remembered.isEmpty }
                })
    }
}
