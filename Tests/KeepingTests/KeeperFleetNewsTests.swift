import Numbers
import ScriptedKernel
import Synchronization
import Telemetry
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// News of other gateways and of the server: a gateway looks up what they say before it counts, and brings back what the server has lost.
@Suite struct KeeperFleetNewsTests {
    private let server = MemoryServer()
    private let issuer = RotatingIssuer()
    private let secrets = Secrets(["R": "r0"])

    private func scene(
        _ yaml: String = RotatingIssuer.plan(), store: MemoryStore? = MemoryStore(),
        answers: ((Request) -> String?)? = nil, events: EventLog? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets, fleet: server, events: events)
        scene.issuer = answers ?? issuer.answer
        scene.settle()
        return scene
    }

    private func status(_ scene: KeeperScene, _ path: String = "/a/") -> Int? {
        let caller = scene.call(Wire.get(path))
        for _ in 0..<60 where caller.status == nil { scene.pass(seconds: 0.5) }
        return caller.status
    }

    private func tell(_ news: FleetNews, to scene: KeeperScene) {
        server.tell(news)
        scene.settle()
    }

    // MARK: - Sessions

    /// Gateways of the old format say that a session is over, and not which.
    @Test(arguments: [true, false]) func anEndWithoutAVersionIsLookedUp(_ isOver: Bool) throws {
        let scene = try scene()
        #expect(status(scene) == 200)
        let (name, session) = try #require(server.sessions.first)
        if isOver { server.sessions = [name: SharedSession(version: session.version, value: [])] }
        tell(.sessionEnded(name, version: nil), to: scene)
        #expect(scene.inKeeper { $0.sessions.of($0.identities[0].digest).isEmpty } == isOver)
        #expect(scene.store?.rows(RowKind.session).isEmpty == isOver)
        scene.pass(seconds: 100, step: 10)
        #expect(status(scene) == (isOver ? 503 : 200) && issuer.reuses == 0)
        #expect(issuer.uses == (isOver ? 1 : 2), "the refresh token of a session that is over is not sent")
    }

    /// A step brings something newer than the end that another gateway tells of.
    @Test func anEndThatIsToldDuringAStepEndsNothing() throws {
        let scene = try scene()
        #expect(status(scene) == 200)
        scene.pass(seconds: 100, step: 10)
        let (name, session) = try #require(server.sessions.first)
        var held: Request?
        scene.issuer = { request in
            held = request
            return nil
        }
        let caller = scene.call(Wire.get("/a/"))
        let request = try #require(held)
        tell(.sessionEnded(name, version: session.version), to: scene)
        scene.issuer = issuer.answer
        try #require(scene.issuers.last { !$0.isClosed }).send(try #require(issuer.answer(request)))
        scene.settle()
        #expect(caller.status == 200)
        scene.pass(seconds: 100, step: 10)
        #expect(status(scene) == 200 && issuer.uses == 3 && issuer.reuses == 0)
    }

    /// The step has brought a session whose row is not on disk yet when another gateway ends the login.
    @Test func aSessionThatIsEndedOnItsWayToTheDiskIsNotUsed() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        #expect(status(scene) == 200)
        scene.pass(seconds: 100, step: 10)
        store.disk = .hung
        let caller = scene.call(Wire.get("/a/"))
        #expect(caller.status == nil && issuer.uses == 2)
        let (name, session) = try #require(server.sessions.first)
        tell(.sessionEnded(name, version: session.version), to: scene)
        store.thaw()
        scene.pass(seconds: 1)
        #expect(caller.status == 503)
        #expect(scene.upstreamCalls.allSatisfy { $0.authorization != "Bearer t2" })
        scene.pass(seconds: 30)
        #expect(issuer.uses == 2 && issuer.reuses == 0, "its refresh token is not sent")
    }

    /// The gateway learns of the fleet's refresh token with its turn alone, and the issuer does not take it: the password is the way that is left.
    @Test func aRefreshTokenThatComesWithTheTurnMayFail() throws {
        let yaml = Plans.client(identity: "grant: password, username: u, password: env:P")
        var passwords = 0
        let answers: (Request) -> String? = { request in
            guard request.member("grant_type") == "password" else {
                return Wire.json(#"{"error":"invalid_grant"}"#, status: 400)
            }
            passwords += 1
            return Wire.bearer("t\(passwords)", #","refresh_token":"r\#(passwords)""#)
        }
        #expect(status(try scene(yaml, answers: answers), "/") == 200 && passwords == 1)
        let other = try scene(yaml, answers: answers)
        server.fault = .session
        #expect(status(other, "/") == 200 && passwords == 2)
        #expect(other.issuerCalls.map { $0.member("refresh_token") } == ["r1", nil])
        #expect(server.leases.isEmpty)
    }

    @Test func aServerThatWasWipedHasEverythingBack() throws {
        let scene = try scene()
        #expect(status(scene) == 200)
        let before = server.sessions
        server.sessions = [:]
        tell(.forgotten, to: scene)
        #expect(server.sessions == before && !before.isEmpty)
    }

    /// An identity that keeps nothing anywhere is no matter of the fleet's: neither its session nor the end of it.
    @Test func aSessionThatIsNotSharedIsNotBroughtBack() throws {
        let yaml = RotatingIssuer.plan(["", "extra: {x: y}"], routes: [(0, "a"), (1, "b")])
            .replacing("extra: {x: y}}\n    token: {}", with: "extra: {x: y}}\n    token: {persist: false}")
        let scene = try scene(yaml) { _ in Wire.bearer("t", #","refresh_token":"r9""#) }
        #expect(status(scene, "/b/") == 200)
        #expect(scene.inKeeper { $0.sessions.of($0.identities[1].digest).count } == 1)
        tell(.forgotten, to: scene)
        #expect(server.sessions.isEmpty)
        _ = scene.inKeeper { $0.purge(.identity("i1")) }
        scene.settle()
        #expect(server.sessions.isEmpty)
    }

    /// The turn of a step that is under way is the first thing that a server hears of that was away.
    @Test func aTurnThatIsHeldIsRenewedWhenTheServerIsBack() throws {
        let scene = try scene()
        scene.issuer = { _ in nil }
        let caller = scene.call(Wire.get("/a/"))
        #expect(caller.status == nil && server.leases.count >= 1)
        let before = server.state.withLock { $0.renewals }
        scene.inKeeper { $0.fleetChanged(nil) }
        #expect(server.state.withLock { $0.renewals } - before == server.leases.count)
    }

    // MARK: - Old formats

    /// Gateways of both formats write beside each other: whoever writes there can forge what they say, and operators are told.
    @Test func aFormatThatCanBeForgedIsToldOf() throws {
        let events = try EventLog()
        let scene = try KeeperScene(RotatingIssuer.plan(), store: MemoryStore(), secrets: secrets, events: events)
        scene.issuer = issuer.answer
        #expect(status(scene) == 200)
        let tier = try MemoryTier(server)
        scene.inKeeper { keeper in
            keeper.fleet = KeptFleet(tier: tier, address: "memory", format: .both)
            keeper.fleetChanged(nil)
        }
        let told = events.takeTold()
        #expect(told.contains("shared store connected server=memory format=both"), "\(told)")
        #expect(told.contains { $0.hasPrefix("versions and ends in the shared store can be forged") })
        #expect(server.state.withLock { $0.lookups } == 1, "the lookup puts the session into the new format too")
        let status = try #require(scene.inKeeper { SharedStatus($0.fleet, at: $0.now) })
        #expect(status.state == .serving && status.format == "both" && !status.isSealed)
    }

    @Test func operatorsSeeHowTheServerStands() throws {
        let scene = try KeeperScene(RotatingIssuer.plan())
        func status() -> SharedStatus? { scene.inKeeper { SharedStatus($0.fleet, at: $0.now) } }
        #expect(status() == nil)
        let tier = try MemoryTier(server)
        scene.inKeeper { $0.fleet = KeptFleet(tier: tier, address: "memory") }
        #expect(status()?.state == .connecting && status()?.detail == nil && status()?.isSealed == true)
        scene.inKeeper { $0.fleetChanged(SharedFault(.unavailable, "nothing listens there")) }
        #expect(status()?.state == .degraded && status()?.detail == "nothing listens there")
        scene.inKeeper { $0.fleetChanged(nil) }
        #expect(status()?.state == .serving && status()?.detail == nil)
    }

    // MARK: - Passwords

    private func gate() throws -> (KeeperScene, NumberedGate) {
        let gate = NumberedGate()
        let scene = try scene(Plans.gate("acquire_timeout: 2s, negative_for: 1s"), answers: gate.answer)
        scene.upstream = gate.guarded()
        return (scene, gate)
    }

    private func account(_ scene: KeeperScene) throws -> SharedName {
        let name = scene.inKeeper { keeper in
            keeper.fleet.tier.flatMap { tier in keeper.identities[0].account.map { tier.name(of: $0) } }
        }
        return try #require(name)
    }

    /// An operator has lifted a quarantine at another gateway.
    @Test func aResetElsewhereCountsHereForItsAccountAlone() throws {
        let (scene, gate) = try gate()
        server.state.withLock { $0.verdict = .spent }
        #expect(status(scene, "/w/x") == 503)
        server.state.withLock { $0.verdict = nil }
        scene.pass(seconds: 5)
        #expect(status(scene, "/w/x") == 503 && gate.handles == 0)
        tell(.reset(account: SharedName(Array(repeating: 7, count: 32))), to: scene)
        #expect(status(scene, "/w/x") == 503 && gate.handles == 0)
        tell(.reset(account: try account(scene)), to: scene)
        #expect(status(scene, "/w/x") == 200)
        #expect(scene.store?.rows(RowKind.attempt).isEmpty == true)
    }

    /// Nothing was held back here, so that nothing begins anew.
    @Test func aResetElsewhereOfWhatIsGoodChangesNothing() throws {
        let (scene, gate) = try gate()
        #expect(status(scene, "/w/x") == 200)
        let epoch = scene.inKeeper { $0.identities[0].epoch }
        tell(.reset(account: try account(scene)), to: scene)
        #expect(scene.inKeeper { $0.identities[0].epoch } == epoch && status(scene, "/w/x") == 200 && gate.tokens == 1)
    }

    @Test func aPasswordThatIsRefusedHereIsToldToTheFleet() throws {
        let (scene, gate) = try gate()
        gate.refusesPassword = true
        #expect(status(scene, "/w/x") == 503)
        #expect(server.state.withLock { [$0.rejected, $0.accepted, $0.refunds] } == [1, 0, 0])
        gate.refusesPassword = false
        _ = scene.inKeeper { $0.reset(identity: "w") }
        #expect(status(scene, "/w/x") == 200)
        #expect(server.state.withLock { $0.rejected } == 1 && server.state.withLock { $0.accepted } > 0)
    }

    // MARK: - Registrations

    private func registration(_ scene: KeeperScene) throws -> SharedName {
        let name = scene.inKeeper { keeper in
            keeper.fleet.tier.flatMap { tier in keeper.identities[0].sharedKey(.registration).map { tier.name(of: $0) }
            }
        }
        return try #require(name)
    }

    @Test func aRegistrationThatCannotBeReadIsNotMadeAgain() throws {
        let (scene, gate) = try gate()
        let name = try registration(scene)
        server.state.withLock { $0.claims[name] = .value([1, 2], identity: "x", left: nil) }
        #expect(status(scene, "/w/x") == 503 && gate.handles == 0)
        let told = scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" }
        #expect(told.contains("a registration in it cannot be read"), "\(told)")
        server.state.withLock { $0.claims = [:] }
        scene.pass(seconds: 5)
        #expect(status(scene, "/w/x") == 200 && gate.handles == 1)
    }

    @Test(arguments: [true, false]) func aRegistrationOfAnotherGatewayIsWaitedFor(_ isInTime: Bool) throws {
        let (scene, gate) = try gate()
        let name = try registration(scene)
        server.state.withLock { $0.claims[name] = .busy }
        let caller = scene.call(Wire.get("/w/x"))
        scene.pass(seconds: 1)
        #expect(caller.status == nil && gate.handles == 0)
        if isInTime {
            server.state.withLock { $0.claims = [:] }
            server.tell(.released(name))
            scene.settle()
            #expect(caller.status == 200 && gate.handles == 1)
            return
        }
        scene.pass(seconds: 4, step: 0.25)
        #expect(caller.status == 504 && gate.handles == 0)
        let told = scene.inKeeper { $0.tokens.all.compactMap(\.lastFailure) }
        #expect(told.contains { $0.contains("not without the shared store: another gateway registers") }, "\(told)")
    }

    @Test func aRegistrationThatCouldNotBePublishedServesHere() throws {
        let (scene, gate) = try gate()
        server.fault = .publish
        #expect(status(scene, "/w/x") == 200 && gate.handles == 1)
        #expect(scene.inKeeper { $0.fleet.server.state(at: $0.now) } == .degraded("no answer"))
        #expect(server.state.withLock { $0.published.isEmpty })
        server.fault = nil
        scene.inKeeper { $0.fleetChanged(nil) }
        let name = try registration(scene)
        #expect(server.state.withLock { $0.published[name] } != nil, "it is brought there when the server answers")
    }

    /// The registration is forgotten while the server is asked whether it may be brought back.
    @Test func aRegistrationThatGoesMeanwhileIsNotBroughtBack() throws {
        let yaml = Plans.client().replacing(
            "client_id: c, client_secret: env:S", with: "registration: {url: \"http://127.0.0.1:9100/register\"}")
        let scene = try scene(yaml) { request in
            request.path == "/register"
                ? Wire.json(#"{"client_id":"c","client_secret":"s"}"#, status: 201) : Wire.bearer("t")
        }
        let name = try registration(scene)
        #expect(status(scene, "/") == 200 && server.state.withLock { $0.published[name] } != nil)
        server.state.withLock { $0.published = [:] }
        server.hold([.claim])
        tell(.forgotten, to: scene)
        _ = scene.inKeeper { $0.beginLogout("o") }
        scene.settle()
        server.goOn()
        scene.settle()
        #expect(server.state.withLock { $0.published[name] } == nil && server.leases[name] == nil)
        #expect(status(scene, "/") == 200)
        tell(.forgotten, to: scene)
        #expect(server.state.withLock { $0.published[name] } != nil)
    }

    // MARK: - Access tokens

    /// The token of a second gateway answers a challenge only where its level is high enough.
    @Test(arguments: [2, 3]) func aTokenOfALowerLevelAnswersNoChallenge(_ level: Int) throws {
        let (first, gate) = try gate()
        #expect(status(first, "/w/x") == 200 && gate.tokens == 1)
        let name = try #require(
            first.inKeeper { keeper in
                keeper.tokens.all.first.flatMap { token in keeper.fleet.tier.map { $0.name(of: token.key) } }
            })
        let value = try #require(server.state.withLock { $0.published[name] })
        server.state.withLock {
            $0.claims[name] = .value(value, identity: "first", left: TimeSpan(nanoseconds: 100_000_000_000))
        }
        let second = try scene(Plans.gate("acquire_timeout: 2s, negative_for: 1s"), answers: gate.answer)
        second.upstream = { request in
            guard request.authorization?.hasSuffix(level == 2 ? "a1" : "a2") == true else {
                return
                    "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth realm=\"WG:\(level) /\", request-ctx=\"c\"\r\n"
                    + "Content-Length: 0\r\n\r\n"
            }
            return Wire.ok("in")
        }
        #expect(status(second, "/w/x") == 200)
        #expect(gate.tokens == level - 1 && second.inKeeper { $0.fleet.taken } == (level == 2 ? 1 : 0))
    }

    /// The lease had passed to another gateway, whose token counts for the others.
    @Test func aTokenThatComesAfterItsLeaseIsCountedAsLate() throws {
        let scene = try scene(Plans.client()) { _ in Wire.bearer("t") }
        let answer = scene.issuer
        scene.issuer = { [server] request in
            server.leases = [:]
            return answer(request)
        }
        #expect(status(scene, "/") == 200)
        #expect(scene.inKeeper { $0.fleet.late } == 1 && server.state.withLock { $0.published.isEmpty })
    }

    /// Longer than the three times that a flight may take.
    @Test func aFlightThatWaitsForAnotherGatewayEndsInTheEnd() throws {
        let scene = try scene(Plans.client("acquire_timeout: 2s")) { _ in Wire.bearer("t") }
        server.state.withLock { $0.claim = .busy }
        let caller = scene.call()
        scene.pass(seconds: 2.5)
        #expect(caller.status == 504)
        scene.pass(seconds: 4.5)
        #expect(scene.issuerCalls.isEmpty && scene.inKeeper { $0.tokens.all.first?.flightTask == nil })
        server.state.withLock { $0.claim = nil }
        scene.pass(seconds: 30)
        #expect(status(scene, "/") == 200)
    }

    /// Its failure is told when nobody waits for it any more.
    @Test func aStepThatAnotherGatewayKeepsFromBeginningIsWithheld() throws {
        let scene = try scene(RotatingIssuer.plan(token: "acquire_timeout: 2s"))
        #expect(status(scene) == 200)
        scene.pass(seconds: 100, step: 10)
        let lock = try #require(
            server.news.compactMap { if case .spending(let name, _, _) = $0 { name } else { nil } }.last)
        server.tell(.spending(lock, owner: "another", isOver: false))
        scene.settle()
        let caller = scene.call(Wire.get("/a/"))
        scene.pass(seconds: 5, step: 0.25)
        #expect(caller.status == 504 && issuer.uses == 1 && server.leases.isEmpty)
        let told = scene.inKeeper { $0.status().tokens.first?.lastFailure ?? "" }
        #expect(told.contains("another gateway is at it, or was when it ended"), "\(told)")
        #expect(scene.inKeeper { $0.fleet.withheld } == 1)
    }

    // MARK: - Beside a store

    /// `store.shared` is taken out of the configuration: the versions in the store mean nothing any more, and harm nothing.
    @Test func aGatewayThatLeavesItsFleetGoesOnFromItsStore() throws {
        let store = MemoryStore()
        let before = try scene(store: store)
        #expect(status(before) == 200 && store.rows(RowKind.version).count == 1)
        let alone = try KeeperScene(RotatingIssuer.plan(), store: store, secrets: secrets)
        alone.issuer = issuer.answer
        alone.pass(seconds: 100, step: 10)
        #expect(status(alone) == 200 && issuer.uses == 2 && issuer.reuses == 0)
    }

    /// The server does not say what it has when the login comes: the login is newer than anything that may be there.
    @Test func aLoginThatComesWhileNothingCanBeLookedUpIsTheNewest() throws {
        let yaml = Plans.client(identity: "grant: device_code, device_authorization_url: https://idp.example.com/d")
        let scene = try scene(yaml) { _ in Wire.bearer("t", #","refresh_token":"r""#) }
        server.fault = .session
        scene.inKeeper { keeper in
            let material = LayerMaterial(
                bytes: Secret("s"), obtainedAt: keeper.now, lifetime: nil, refreshToken: Secret("r"), isHuman: true)
            let identity = keeper.identities[0]
            keeper.start { await $0.keep(material, of: identity) }
        }
        let session = try #require(server.sessions.values.first)
        #expect(session.version == SessionVersion.none.beyondTheUnseen && session.version > SessionVersion.none.next)
        server.fault = nil
        #expect(status(scene, "/") == 200)
    }
}
