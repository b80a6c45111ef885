import ScriptedKernel
import Telemetry
import Testing

@testable import DataPath
@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A login through the browser: the page that a person is sent to, and the ways in which the browser comes back, or does not.
@Suite struct KeeperRedirectTests {
    /// Gives a login for the code `good`.
    private final class Issuer {
        var revocations = Wire.ok()
        var logins = 0

        func answer(_ request: Request) -> String? {
            if request.path == "/revoke" { return revocations }
            if request.member("grant_type") == "refresh_token" { return Wire.bearer("t2", #","refresh_token":"r2""#) }
            guard request.member("code") == "good" else { return Wire.json(#"{"error":"invalid_grant"}"#, status: 400) }
            logins += 1
            return Wire.bearer("t1", #","refresh_token":"r\#(logins)""#)
        }
    }

    private static let plan = """
        identities:
          i:
            oauth2:
              {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S, grant: authorization_code,
               authorization_url: "http://127.0.0.1:9100/authorize", revocation_url: "http://127.0.0.1:9100/revoke"}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: i}

        """

    private let issuer = Issuer()

    private func scene(
        store: MemoryStore? = MemoryStore(), fleet: MemoryServer? = nil, events: EventLog? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(Self.plan, store: store, fleet: fleet, events: events)
        scene.issuer = issuer.answer
        scene.settle()
        return scene
    }

    /// The flow of a login that has begun, and the state that its page hands to the issuer.
    private func begin(_ scene: KeeperScene, port: UInt16? = 4711) throws -> (flow: String, state: String) {
        let start = scene.inKeeper { $0.beginLogin("i", redirectPort: port) }
        scene.settle()
        guard case .started(let report) = start else {
            Issue.record("not begun: \(start)")
            return ("", "")
        }
        let page = try #require(self.report(scene, report.flow)?.prompt?.url)
        let state = try #require(page.split(separator: "&").first { $0.hasPrefix("state=") }).dropFirst(6)
        return (report.flow, String(state))
    }

    private func report(_ scene: KeeperScene, _ flow: String) -> LoginReport? { scene.inKeeper { $0.login(flow) } }

    private func comeBack(_ scene: KeeperScene, _ flow: String, _ query: String) -> RedirectReply? {
        let reply = scene.inKeeper { $0.redirected(flow, query) }
        scene.settle()
        return reply
    }

    // MARK: - The way there

    @Test(arguments: [
        (UInt16(4711), "http%3A%2F%2F127.0.0.1%3A4711%2Fcallback"), (nil, "http%3A%2F%2F127.0.0.1%2Fcallback"),
    ])
    func thePageSendsTheBrowserBackToThePortThatListens(_ port: UInt16?, _ address: String) throws {
        let scene = try scene()
        let (flow, _) = try begin(scene, port: port)
        let prompt = try #require(report(scene, flow)?.prompt)
        #expect(prompt.url.hasPrefix("http://127.0.0.1:9100/authorize?") && prompt.awaitsRedirect)
        #expect(prompt.url.contains("redirect_uri=\(address)&"), "\(prompt.url)")
        #expect(prompt.secondsLeft == 600)
    }

    // MARK: - The way back

    @Test func theCodeThatTheBrowserBringsIsTheLogin() throws {
        let scene = try scene()
        let (flow, state) = try begin(scene)
        let reply = try #require(comeBack(scene, flow, "state=\(state)&code=good"))
        #expect(reply.isAnswer && reply.text.hasPrefix("the answer has arrived"))
        #expect(report(scene, flow)?.state == .done && scene.status() == 200)
        #expect(scene.store?.rows(RowKind.session).count == 1)
        let again = try #require(comeBack(scene, flow, "state=\(state)&code=good"))
        #expect(!again.isAnswer && again.text == "nothing waits for this answer")
        #expect(scene.issuerCalls.count { $0.member("code") != nil } == 1)
    }

    /// Any page may send a browser to the address: no such request ends the login.
    @Test func anAnswerThatIsNotTheIssuersEndsNothing() throws {
        let scene = try scene()
        let (flow, state) = try begin(scene)
        for query in ["code=good", "state=other&code=good", "state=\(state)&code=a&code=b"] {
            let reply = try #require(comeBack(scene, flow, query))
            #expect(!reply.isAnswer, "\(query)")
        }
        #expect(report(scene, flow)?.state == .running && scene.issuerCalls.isEmpty)
        #expect(comeBack(scene, flow, "state=\(state)&code=good")?.isAnswer == true)
        #expect(report(scene, flow)?.state == .done)
    }

    @Test func aPersonWhoSaysNoHasEndedTheLogin() throws {
        let events = try EventLog()
        let scene = try scene(events: events)
        let (flow, state) = try begin(scene)
        _ = events.takeTold()
        let reply = try #require(comeBack(scene, flow, "state=\(state)&error=access_denied"))
        #expect(reply.isAnswer && reply.text.hasPrefix("the login failed"))
        let told = try #require(report(scene, flow))
        #expect(told.state == .failed && told.reason == "policy_denied" && told.prompt == nil)
        #expect(told.detail?.contains("access_denied") == true)
        #expect(scene.inKeeper { $0.identities[0].logins } == ["policy_denied": 1])
        #expect(events.takeTold().contains { $0.hasPrefix("login ended identity=i reason=") })
        #expect(scene.issuerCalls.isEmpty && scene.status() == 503)
    }

    @Test func aCodeThatTheIssuerDoesNotTakeEndsTheLoginWithItsWords() throws {
        let scene = try scene()
        let (flow, state) = try begin(scene)
        _ = comeBack(scene, flow, "state=\(state)&code=bad")
        let told = try #require(report(scene, flow))
        #expect(told.state == .failed && told.detail?.contains("127.0.0.1:9100") == true, "\(told)")
        #expect(scene.store?.rows(RowKind.session).isEmpty == true)
    }

    /// The terminal asks on all the time, and nobody comes back from the page.
    @Test func aPageThatNobodyComesBackFromExpires() throws {
        let scene = try scene()
        let (flow, state) = try begin(scene)
        for _ in 0..<29 {
            scene.pass(seconds: 20, step: 20)
            #expect(report(scene, flow)?.state == .running)
        }
        scene.pass(seconds: 21, step: 21)
        let told = try #require(report(scene, flow))
        #expect(told.state == .expired && told.detail == "login: timed out")
        #expect(scene.inKeeper { $0.identities[0].logins } == ["expired": 1])
        #expect(comeBack(scene, flow, "state=\(state)&code=good")?.isAnswer == false)
        #expect(scene.issuerCalls.isEmpty)
    }

    /// A redirect alone asks for the login, too.
    @Test func aRedirectShowsThatSomebodyIsThere() throws {
        let scene = try scene()
        let (flow, state) = try begin(scene)
        for _ in 0..<6 {
            scene.pass(seconds: 50, step: 10)
            #expect(comeBack(scene, flow, "state=other")?.isAnswer == false)
        }
        #expect(comeBack(scene, flow, "state=\(state)&code=good")?.isAnswer == true)
        #expect(report(scene, flow)?.state == .done)
    }

    /// The person has logged in once more: until that is on disk, nothing is made of the login before.
    @Test func aRequestWaitsForALoginThatIsOnItsWayToTheDisk() throws {
        let store = MemoryStore()
        let scene = try loggedIn(store)
        scene.pass(seconds: 120, step: 10)
        let (flow, state) = try begin(scene)
        store.disk = .hung
        _ = comeBack(scene, flow, "state=\(state)&code=good")
        let caller = scene.call()
        #expect(caller.status == nil && report(scene, flow)?.state == .running)
        let sent = { scene.issuerCalls.compactMap { $0.member("refresh_token") } }
        let before = sent()
        store.thaw()
        scene.pass(seconds: 1)
        #expect(caller.status == 200 && report(scene, flow)?.state == .done)
        #expect(sent().dropFirst(before.count) == ["r2"], "\(sent())")
    }

    // MARK: - Fleets

    @Test func aFleetThatCouldNotBeToldIsSaid() throws {
        let server = MemoryServer()
        let scene = try scene(fleet: server)
        let (flow, state) = try begin(scene)
        server.fault = .offer
        _ = comeBack(scene, flow, "state=\(state)&code=good")
        let told = try #require(report(scene, flow))
        #expect(told.state == .done && told.detail == "the fleet could not be told, its other gateways wait for it")
        #expect(server.sessions.isEmpty)
        server.fault = nil
        scene.inKeeper { $0.fleetChanged(nil) }
        #expect(server.sessions.count == 1, "the login goes there when the server answers again")
        #expect(scene.status() == 200)
    }

    /// The login's offer is under way when somebody logs out: neither the fleet nor this gateway has it afterwards.
    @Test func aLogoutOvertakesALoginOnItsWayToTheFleet() throws {
        let server = MemoryServer()
        let scene = try scene(fleet: server)
        let (flow, state) = try begin(scene)
        server.hold([.offer])
        _ = comeBack(scene, flow, "state=\(state)&code=good")
        #expect(report(scene, flow)?.state == .running)
        _ = scene.inKeeper { $0.beginLogout("i") }
        scene.pass(seconds: 1)
        server.goOn()
        scene.pass(seconds: 1)
        #expect(report(scene, flow)?.state == .cancelled)
        #expect(!server.sessions.isEmpty && server.sessions.values.allSatisfy { $0.value.isEmpty })
        #expect(scene.issuerCalls.filter { $0.path == "/revoke" }.map { $0.member("token") } == ["r1"])
        #expect(scene.store?.rows(RowKind.session).isEmpty == true && scene.status() == 503)
    }

    // MARK: - Logouts

    private func loggedIn(_ store: MemoryStore? = MemoryStore()) throws -> KeeperScene {
        let scene = try scene(store: store)
        let (flow, state) = try begin(scene)
        _ = comeBack(scene, flow, "state=\(state)&code=good")
        #expect(scene.status() == 200)
        return scene
    }

    private func logOut(_ scene: KeeperScene) throws -> String {
        guard case .started(let report) = scene.inKeeper({ $0.beginLogout("i") }) else { return "not begun" }
        scene.settle()
        return report.flow
    }

    @Test func anIssuerThatDoesNotConfirmIsToldOfAndForgottenAllTheSame() throws {
        let scene = try loggedIn()
        issuer.revocations = Wire.unavailable
        let told = report(scene, try logOut(scene))
        #expect(told?.state == .done)
        #expect(told?.detail == "forgotten here; the issuer did not confirm that it has revoked it")
        #expect(scene.status() == 503 && scene.store?.rows(RowKind.session).isEmpty == true)
    }

    /// The row of a token that memory does not hold any more goes with the logout, and those of other identities stay.
    @Test func aLogoutForgetsTheRowsOfItsIdentityAlone() throws {
        let store = MemoryStore()
        let other = try KeeperScene(Plans.client(), store: store)
        other.issuer = NumberedIssuer().answer
        #expect(other.status() == 200 && store.rows(RowKind.access).count == 1)
        let row = try #require(store.rows(RowKind.access).first)
        let scene = try loggedIn(store)
        store.commit([.put(row)]) { _ in }
        #expect(store.rows(RowKind.access).count == 2)
        _ = try logOut(scene)
        #expect(store.rows(RowKind.access) == [row])
    }

    /// The logout waits for the issuer when its person begins to log in again: what it has still to say is of no interest.
    @Test func aLogoutThatGivesWayToALoginSaysNothingMore() throws {
        let scene = try loggedIn()
        scene.issuer = { _ in nil }
        let out = try logOut(scene)
        #expect(scene.issuerCalls.last?.path == "/revoke")
        scene.issuer = issuer.answer
        let (flow, state) = try begin(scene)
        #expect(report(scene, out)?.state == .cancelled)
        try #require(scene.issuers.last { !$0.isClosed }).send(Wire.ok())
        scene.settle()
        let told = try #require(report(scene, out))
        #expect(told.state == .cancelled && told.detail == "another login was begun" && told.progress == nil)
        _ = comeBack(scene, flow, "state=\(state)&code=good")
        #expect(report(scene, flow)?.state == .done && scene.status() == 200)
    }
}
