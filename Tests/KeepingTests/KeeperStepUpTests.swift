import ScriptedKernel
import Telemetry
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// An upstream that wants its user authenticated in another way (RFC 9470), as callers, the person and the issuer meet it.
@Suite struct KeeperStepUpTests {
    /// Gives tokens for codes and refresh tokens, each with the number of the login that it came of.
    private final class Device {
        var logins = 0
        var refreshes = 0
        var asked: [String] = []

        func answer(_ request: Request) -> String? {
            if request.path == "/device" {
                asked.append(
                    ["acr_values", "max_age"].compactMap { name in request.member(name).map { "\(name)=\($0)" } }
                        .joined(separator: " "))
                return Wire.json(
                    #"{"device_code":"d","user_code":"U","verification_uri":"https://i.example.com/d","expires_in":1200,"interval":5}"#
                )
            }
            if request.member("grant_type") == "refresh_token" {
                refreshes += 1
                return Wire.bearer("login-\(logins)-\(refreshes)", #","refresh_token":"r\#(logins)-\#(refreshes)""#)
            }
            logins += 1
            return Wire.bearer("unused", #","refresh_token":"r\#(logins)""#)
        }
    }

    private let device = Device()
    private static let error = "Bearer error=\"insufficient_user_authentication\""

    private static func plan(_ more: String = "step_up: {acr_values: [mfa, hw], max_age: 60s},", route: String = "")
        -> String
    {
        """
        identities:
          i:
            oauth2:
              {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S, \(more) grant: device_code,
               device_authorization_url: "http://127.0.0.1:9100/device"}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: i, name: a\(route)}

        """
    }

    /// - Parameter needs: the login from which on `/strong` is served.
    private func scene(
        _ plan: String = plan(), store: MemoryStore? = nil, needs: Int = 2, asks: String = "acr_values=\"mfa\"",
        events: EventLog? = nil
    ) throws -> KeeperScene {
        let scene = try KeeperScene(plan, store: store, events: events)
        scene.issuer = device.answer
        scene.upstream = { request in
            let login =
                request.authorization.flatMap { $0.split(separator: "-").dropFirst().first.flatMap { Int($0) } } ?? 0
            guard request.path == "/strong", login < needs else { return Wire.ok("in") }
            return "HTTP/1.1 401 No\r\nWWW-Authenticate: \(Self.error), \(asks)\r\nContent-Length: 0\r\n\r\n"
        }
        scene.settle()
        try logIn(scene)
        #expect(scene.status() == 200 && device.refreshes == 1)
        return scene
    }

    private func logIn(_ scene: KeeperScene) throws {
        let start = scene.inKeeper { $0.beginLogin("i", redirectPort: nil) }
        guard case .started(let report) = start else {
            Issue.record("not begun: \(start)")
            return
        }
        scene.pass(seconds: 6)
        #expect(scene.inKeeper { $0.login(report.flow) }?.state == .done)
    }

    @Test func callersAreToldThatALoginIsNeededAndNothingIsSpent() throws {
        let events = try EventLog()
        let scene = try scene(events: events)
        _ = events.takeTold()
        for _ in 0..<5 {
            let caller = scene.call(Wire.get("/strong"))
            #expect(caller.status == 503)
            #expect(caller.receivedText.contains("urn:cardea:problems/login-required"))
            #expect(caller.receivedText.contains("acr_values 'mfa')"))
            #expect(caller.receivedText.contains("cardea login i"))
            #expect(caller.receivedText.contains("received-status=401"))
            #expect(scene.status() == 200, "the login that is there goes on")
        }
        #expect(device.refreshes == 1 && scene.upstreamCalls.count == 11)
        let told = events.takeTold()
        #expect(told.count == 1 && told.first?.hasPrefix("login needed identity=i reason=the upstream wants") == true)
        #expect(told.first?.contains("cardea login i") == true)
        let need = scene.inKeeper { keeper in keeper.status().identities[0].login }
        #expect(need?.word == .soon && need?.asked == "acr_values 'mfa'")
    }

    @Test func theNextLoginAsksForItAndItsTokensAreUsedAtOnce() throws {
        let store = MemoryStore()
        let scene = try scene(store: store)
        #expect(scene.status("/strong") == 503)
        try logIn(scene)
        #expect(device.asked == ["", "acr_values=mfa"])
        #expect(scene.status() == 200 && scene.status("/strong") == 200)
        #expect(device.refreshes == 2 && scene.upstreamCalls.last?.authorization == "Bearer login-2-2")
        #expect(
            scene.upstreamCalls.filter { $0.path == "/strong" }.count == 2,
            "the token of the login before is not sent again")
        #expect(scene.inKeeper { keeper in keeper.status().identities[0].login?.word } == .good)
        try logIn(scene)
        #expect(device.asked.last == "")
    }

    @Test func anUpstreamThatIsNeverContentGetsNoLoginForEachRequest() throws {
        let events = try EventLog()
        let scene = try scene(needs: 99, events: events)
        #expect(scene.status("/strong") == 503)
        try logIn(scene)
        _ = events.takeTold()
        for _ in 0..<5 {
            let caller = scene.call(Wire.get("/strong"))
            #expect(caller.status == 502)
            #expect(caller.receivedText.contains("although the last login was made for that"))
        }
        #expect(device.refreshes == 2 && device.logins == 2)
        #expect(events.takeTold().filter { $0.hasPrefix("login needed") }.isEmpty)
        #expect(scene.status() == 200 && device.refreshes == 2)
        #expect(scene.inKeeper { keeper in keeper.status().identities[0].login?.word } == .good)
        // A wish is passed on once more after an operator has reset the identity.
        #expect(scene.inKeeper { $0.reset(identity: "i") })
        #expect(scene.status("/strong") == 503)
    }

    @Test func anAgeIsMetForAsLongAsItSays() throws {
        let scene = try scene(needs: 99, asks: "max_age=100")
        #expect(
            scene.status("/strong") == 503, "the login was a moment ago, but perhaps by somebody who came long before")
        try logIn(scene)
        #expect(device.asked == ["", "max_age=100"])
        #expect(scene.status("/strong") == 502)
        scene.pass(seconds: 60, step: 10)
        #expect(scene.status("/strong") == 502)
        scene.pass(seconds: 60, step: 10)
        #expect(scene.status("/strong") == 503)
    }

    @Test func whatIsNotAllowedIsARefusalThatCostsNothing() throws {
        for (plan, asks) in [
            (Self.plan(""), "acr_values=\"mfa\""), (Self.plan(), "acr_values=\"low\""), (Self.plan(), "max_age=5"),
            (Self.plan(), "acr_values=\"a\\\\b\""), (Self.plan(), "max_age=-1"), (Self.plan(), "realm=\"r\""),
        ] {
            let scene = try scene(plan, needs: 99, asks: asks)
            for _ in 0..<3 {
                let caller = scene.call(Wire.get("/strong"))
                #expect(caller.status == 502, "\(asks)")
                #expect(caller.receivedText.contains("insufficient_user_authentication"), "\(asks)")
            }
            #expect(device.refreshes == 1, "\(asks)")
            #expect(scene.inKeeper { keeper in keeper.status().identities[0].login?.word } == .good)
            device.refreshes = 0
        }
    }

    @Test func aRefusalThatPassesIsPassedAndALoginThatIsNeededIsSaid() throws {
        let refused = try scene(Self.plan("", route: ", on_rejected: {final: pass}"), needs: 99)
        let caller = refused.call(Wire.get("/strong"))
        #expect(caller.status == 401 && caller.receivedText.contains("insufficient_user_authentication"))
        device.refreshes = 0
        let asked = try scene(Self.plan(route: ", on_rejected: {final: pass}"), needs: 99)
        #expect(asked.status("/strong") == 503)
    }

    /// A body that is gone cannot be sent again; that a person has to log in is said all the same.
    @Test func aRequestThatCannotBeSentAgainIsToldTheSame() throws {
        let scene = try scene(Self.plan(route: ", on_rejected: {replay: never}"))
        let caller = scene.call(Wire.post("abc", path: "/strong"))
        #expect(caller.status == 503 && caller.receivedText.contains("login-required"), "\(caller.receivedText)")
        #expect(device.refreshes == 1)
    }

    @Test func aTokenThatWasReplacedMeanwhileIsNoReasonForALogin() throws {
        let scene = try scene()
        let answer = scene.upstream
        scene.upstream = { _ in nil }
        let caller = scene.call(Wire.get("/strong"))
        #expect(caller.status == nil)
        // Somebody logs in, and the tokens are purged, while the upstream still thinks about the one before.
        scene.upstream = answer
        #expect(scene.status("/strong") == 503)
        try logIn(scene)
        #expect(scene.status() == 200)
        let peer = try #require(scene.loops[0].kernel.connections.first { !$0.isClosed })
        peer.send("HTTP/1.1 401 No\r\nWWW-Authenticate: \(Self.error), acr_values=\"mfa\"\r\nContent-Length: 0\r\n\r\n")
        scene.settle()
        #expect(caller.status == 200 && device.refreshes == 2)
    }

    @Test func aLogoutEndsTheWishAndSoDoesADay() throws {
        let scene = try scene(needs: 99)
        #expect(scene.status("/strong") == 503)
        scene.pass(seconds: 86_000, step: 1000)
        #expect(scene.inKeeper { keeper in keeper.status().identities[0].login?.asked } != nil)
        scene.pass(seconds: 1000, step: 1000)
        #expect(scene.inKeeper { keeper in keeper.status().identities[0].login?.asked } == nil)
        #expect(scene.status("/strong") == 503)
        _ = scene.inKeeper { $0.beginLogout("i") }
        scene.settle()
        #expect(
            scene.inKeeper { keeper in keeper.status().identities[0].login } == LoginNeed(word: .needed, expiresIn: nil)
        )
        try logIn(scene)
        #expect(device.asked.last == "")
    }

    /// The wish that another upstream had while the person was on the way stands.
    @Test func aLoginThatMeetsAnotherWishLeavesTheOther() throws {
        let scene = try scene(needs: 99)
        #expect(scene.status("/strong") == 503)
        let start = scene.inKeeper { $0.beginLogin("i", redirectPort: nil) }
        guard case .started = start else { return }
        scene.upstream = { _ in
            "HTTP/1.1 401 No\r\nWWW-Authenticate: \(Self.error), acr_values=\"mfa\", max_age=60\r\nContent-Length: 0\r\n\r\n"
        }
        scene.pass(seconds: 120, step: 10)
        #expect(scene.status("/strong") == 503)
        try logIn(scene)
        #expect(device.asked.last == "acr_values=mfa max_age=60")
    }
}

/// An identity without a person's login.
@Suite struct KeeperStepUpWithoutPersonTests {
    @Test func itIsAnOrdinaryRefusalThatNamesItself() throws {
        let scene = try KeeperScene(
            "identities: {o: {oauth2: {token_url: \"http://127.0.0.1:9100/token\", client_id: c, client_secret: env:S}}}\n"
                + "routes:\n  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: o}\n")
        scene.issuer = { _ in Wire.bearer("t") }
        scene.upstream = { _ in
            "HTTP/1.1 401 No\r\nWWW-Authenticate: Bearer error=\"insufficient_user_authentication\", acr_values=\"mfa\"\r\n"
                + "Content-Length: 0\r\n\r\n"
        }
        let caller = scene.call()
        #expect(caller.status == 502)
        #expect(caller.receivedText.contains("(insufficient_user_authentication: acr_values 'mfa')"))
        #expect(caller.receivedText.contains("come from no person's login"))
        #expect(scene.issuerCalls.count == 2 && scene.upstreamCalls.count == 2, "one grant and one replay")
        #expect(scene.status() == 502 && scene.issuerCalls.count == 2, "and then a window")
    }
}
