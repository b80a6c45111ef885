import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// A person's login from its beginning to its end, as the terminal and the issuer see it.
@Suite struct KeeperDialogueTests {
    /// Gives each login a code, and its tokens when the person is through.
    private final class Device {
        var isThrough = false
        var revoked: [String] = []
        /// Called before the tokens leave.
        var beforeTokens: () -> Void = {}

        func answer(_ request: Request) -> String? {
            switch request.path {
            case "/device":
                return Wire.json(
                    #"{"device_code":"d","user_code":"U","verification_uri":"https://i.example.com/d","expires_in":1200,"interval":5}"#
                )
            case "/revoke":
                revoked.append(request.member("token") ?? "")
                return Wire.ok()
            default: break
            }
            if request.member("grant_type") == "refresh_token" { return Wire.bearer("t2", #","refresh_token":"r2""#) }
            guard isThrough else { return Wire.json(#"{"error":"authorization_pending"}"#, status: 400) }
            beforeTokens()
            return Wire.bearer("t1", #","refresh_token":"r1""#)
        }
    }

    private static func plan(_ names: [String] = ["i"]) -> String {
        var text = "identities:\n  machine: {static: {value: env:V}}\n"
        for name in names {
            text += """
                  \(name):
                    oauth2:
                      {token_url: "http://127.0.0.1:9100/token", client_id: \(name), client_secret: env:S, grant: device_code,
                       device_authorization_url: "http://127.0.0.1:9100/device", revocation_url: "http://127.0.0.1:9100/revoke"}

                """
        }
        return text
            + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: \(names[0]), name: a}\n"
    }

    private let device = Device()

    private func scene(
        _ names: [String] = ["i"], store: MemoryStore? = MemoryStore(), state: StoreHealth.State? = nil,
        fleet: MemoryServer? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(Self.plan(names), store: store, state: state, fleet: fleet)
        scene.issuer = device.answer
        scene.settle()
        return scene
    }

    private func begin(_ scene: KeeperScene, _ name: String = "i") throws -> String {
        let start = scene.inKeeper { $0.beginLogin(name, redirectPort: nil) }
        scene.settle()
        guard case .started(let report) = start else {
            Issue.record("not begun: \(start)")
            return ""
        }
        return report.flow
    }

    private func report(_ scene: KeeperScene, _ flow: String) -> LoginReport? { scene.inKeeper { $0.login(flow) } }

    private func refusal(_ start: LoginStart) -> String {
        switch start {
        case .started: "started"
        case .unknown: "unknown"
        case .refused(let reason): reason
        }
    }

    // MARK: - Who may begin

    @Test func aLoginThatNobodyCanMakeIsNotBegun() throws {
        let scene = try scene()
        let told = scene.inKeeper { keeper in
            [keeper.beginLogin("nobody", redirectPort: nil), keeper.beginLogin("machine", redirectPort: nil)]
                + [keeper.beginLogout("nobody")]
        }
        #expect(told.map(refusal) == ["unknown", "identity machine needs no person", "unknown"])
        #expect(scene.issuerCalls.isEmpty)
    }

    @Test func whatCouldNotBeKeptIsNotBegun() throws {
        let scene = try scene(state: .locked("another process has it"))
        let told = scene.inKeeper { [$0.beginLogin("i", redirectPort: nil), $0.beginLogout("i")] }
        #expect(refusal(told[0]) == "what a login brings could not be kept: another process has it")
        #expect(refusal(told[1]) == "what is kept could not be forgotten: another process has it")
        let unread = try self.scene(state: .refused("another key"))
        let start = unread.inKeeper { $0.beginLogin("i", redirectPort: nil) }
        #expect(refusal(start).contains("may have a login already") && refusal(start).contains("another key"))
        #expect(scene.issuerCalls.isEmpty && unread.issuerCalls.isEmpty)
    }

    /// A login that has ended makes room for the next.
    @Test func loginsAreBounded() throws {
        let names = (0...Logins.most).map { "i\($0)" }
        let scene = try scene(names)
        let flows = try names.dropLast().map { try begin(scene, $0) }
        #expect(Set(flows).count == Logins.most)
        let last = names[Logins.most]
        let told = scene.inKeeper { [$0.beginLogin(last, redirectPort: nil), $0.beginLogout(last)] }
        #expect(told.map(refusal) == ["too many logins are under way", "too many logins are under way"])
        #expect(scene.inKeeper { $0.cancelLogin(flows[3]) }?.state == .cancelled)
        #expect(report(scene, flows[3])?.state == .cancelled, "its end can be asked for until its place is needed")
        let flow = try begin(scene, last)
        #expect(report(scene, flow)?.state == .running && report(scene, flows[3]) == nil)
        #expect(report(scene, flows[4])?.state == .running)
    }

    @Test func theEndOfALoginIsForgottenAfterAWhile() throws {
        let scene = try scene(["i", "j"])
        let flow = try begin(scene)
        _ = scene.inKeeper { $0.cancelLogin(flow) }
        scene.pass(seconds: 290, step: 10)
        _ = try begin(scene, "j")
        #expect(report(scene, flow)?.state == .cancelled)
        scene.pass(seconds: 20, step: 10)
        _ = try begin(scene, "j")
        #expect(report(scene, flow) == nil)
    }

    @Test func aFlowThatNobodyKnowsIsNone() throws {
        let scene = try scene()
        #expect(report(scene, "x") == nil)
        #expect(scene.inKeeper { $0.redirected("x", "code=1") } == nil)
        #expect(scene.inKeeper { $0.cancelLogin("x") } == nil)
    }

    // MARK: - Ends

    @Test func whoCancelsTwiceHasCancelledOnce() throws {
        let scene = try scene()
        let flow = try begin(scene)
        #expect(report(scene, flow)?.prompt?.code == "U")
        for _ in 0..<2 {
            let told = scene.inKeeper { $0.cancelLogin(flow) }
            #expect(told?.state == .cancelled && told?.detail == "cancelled where it was started")
        }
        #expect(scene.inKeeper { $0.identities.first { $0.plan.name == "i" }?.logins } == ["cancelled": 1])
        let calls = scene.issuerCalls.count
        scene.pass(seconds: 30)
        #expect(scene.issuerCalls.count == calls, "the issuer is not asked any more")
    }

    /// The issuer's answer comes when the login was cancelled: nobody is shown its code, and the issuer is not asked for what comes of it.
    @Test func aLoginThatIsCancelledBeforeItsPageIsThereShowsNone() throws {
        let scene = try scene()
        scene.issuer = { _ in nil }
        let flow = try begin(scene)
        let request = try #require(scene.issuerCalls.last)
        _ = scene.inKeeper { $0.cancelLogin(flow) }
        scene.issuer = device.answer
        try #require(scene.issuers.last).send(try #require(device.answer(request)))
        scene.settle()
        scene.pass(seconds: 30)
        let told = try #require(report(scene, flow))
        #expect(told.state == .cancelled && told.prompt == nil && scene.issuerCalls.count == 1)
    }

    /// The terminal was closed: its page is not left open for ever. One that asks on is led to its end.
    @Test func aLoginThatNobodyAsksForIsGivenUp() throws {
        let scene = try scene(["i", "j"])
        let (left, asked) = (try begin(scene), try begin(scene, "j"))
        for _ in 0..<40 {
            scene.pass(seconds: 3)
            #expect(report(scene, asked)?.state == .running)
        }
        let told = scene.inKeeper { $0.logins[left]?.report(at: $0.now) }
        #expect(told?.state == .cancelled && told?.detail == "nobody asks for it any more")
        device.isThrough = true
        scene.pass(seconds: 6)
        #expect(report(scene, asked)?.state == .done)
    }

    @Test func aDiskThatHasNotTakenTheLoginIsTold() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        let flow = try begin(scene)
        device.isThrough = true
        device.beforeTokens = { store.disk = .failing }
        scene.pass(seconds: 6)
        let told = try #require(report(scene, flow))
        #expect(told.state == .done && told.detail?.contains("the store is degraded, a restart may lose it") == true)
        #expect(scene.status() == 200)
        let memory = try self.scene(store: nil)
        let other = try begin(memory)
        memory.pass(seconds: 6)
        #expect(report(memory, other)?.detail?.contains("kept in memory only") == true)
    }

    /// The configuration has changed while the person logged in: nobody is to have what came of it.
    @Test func theLoginOfAnIdentityThatIsGoneIsRevoked() throws {
        let scene = try scene()
        let flow = try begin(scene)
        scene.inKeeper { $0.take(KeeperChange(identities: [], routes: [], keys: [], subjects: $0.users.limits)) }
        device.isThrough = true
        scene.pass(seconds: 6)
        let told = try #require(report(scene, flow))
        #expect(
            told.state == .failed && told.detail?.contains("overtaken by a logout or a changed configuration") == true)
        #expect(device.revoked == ["r1"] && scene.store?.rows(RowKind.session).isEmpty == true)
    }

    /// The tokens are on their way to the disk when somebody logs out.
    @Test func whatALogoutOvertakesIsRevoked() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        let flow = try begin(scene)
        device.isThrough = true
        device.beforeTokens = { store.disk = .hung }
        scene.pass(seconds: 6)
        #expect(report(scene, flow)?.state == .running)
        _ = scene.inKeeper { $0.beginLogout("i") }
        store.thaw()
        scene.pass(seconds: 1)
        #expect(report(scene, flow)?.state == .cancelled)
        #expect(device.revoked == ["r1"] && store.rows(RowKind.session).isEmpty)
        #expect(scene.inKeeper { $0.loginNeed(of: $0.identities[1])?.word } == .needed)
        #expect(scene.status() == 503)
    }
}
