import ScriptedKernel
import Synchronization
import Testing

@testable import Fleet
@testable import Handshakes
@testable import Keeping
@testable import Scenes
@testable import TokenStore
@testable import Tokens

/// What a gateway of a fleet starts from when the shared server does not have what it had: no refresh token that may be spent is sent.
@Suite struct FleetSessionTests {
    /// Replaces the refresh token at each use, and ends the login when a spent one comes.
    private final class RotatingIssuer {
        var current = "r0"
        var uses = 0
        var reuses = 0
        var passwords = 0

        func answer(_ request: Request) -> String? {
            if request.member("grant_type") == "password" {
                passwords += 1
                current = "r\(uses)"
            } else {
                guard let sent = request.member("refresh_token"), sent == current else {
                    reuses += 1
                    current = "ended"
                    return Wire.json(#"{"error":"invalid_grant"}"#, status: 400)
                }
            }
            uses += 1
            current = "r\(uses)"
            return Wire.bearer("t\(uses)", #","refresh_token":"\#(current)""#)
        }
    }

    private static func plan(_ grant: String) -> String {
        """
        identities:
          i0:
            oauth2:
              {token_url: "http://127.0.0.1:9100/token", client_id: c, client_secret: env:S, \(grant)}
        routes:
          - {listen: "127.0.0.1:8080", to: "http://127.0.0.1:9000", use: i0, scopes: [a]}

        """
    }
    private static let first = plan("grant: refresh_token, refresh_token: env:R")
    private static let password = plan("grant: password, username: u, password: env:P")

    private let issuer = RotatingIssuer()
    private let server = MemoryServer()
    private let secrets = Secrets(["R": "r0"])

    private func gateway(_ yaml: String = first, store: MemoryStore? = MemoryStore()) throws -> KeeperScene {
        let scene = try KeeperScene(yaml, store: store, secrets: secrets, fleet: server)
        scene.issuer = issuer.answer
        scene.settle()
        return scene
    }

    /// Asks when nothing that is held is good any more; all of them hear what is told meanwhile.
    private func step(_ scene: KeeperScene, others: [KeeperScene] = []) -> Int {
        scene.pass(seconds: 100, step: 10)
        let caller = scene.call()
        for _ in 0..<20 where caller.status == nil {
            for other in others { other.settle() }
            scene.pass(seconds: 0.5)
        }
        for other in others { other.settle() }
        return caller.status ?? 0
    }

    /// What was told of the last step.
    private var newest: FleetNews? {
        server.news.last {
            if case .session = $0 { true } else { false }
        }
    }

    private func issues(_ scene: KeeperScene) -> [String?] { scene.issuerCalls.map { $0.member("refresh_token") } }

    /// Two gateways of which the second has made the newest step and the first has not heard of it; and what the server had before.
    private func apart(_ yaml: String) throws -> (
        behind: KeeperScene, ahead: KeeperScene, before: [SharedName: SharedSession]
    ) {
        let behind = try gateway(yaml)
        let ahead = try gateway(yaml)
        #expect(step(behind, others: [ahead]) == 200)
        let before = server.sessions
        server.isSilent = true
        #expect(step(ahead) == 200)
        server.isSilent = false
        return (behind, ahead, before)
    }

    enum Loss: CaseIterable { case deleted, putBack }

    @Test(arguments: [first, password], Loss.allCases) func whatTheServerHasLostComesFromWhoeverHasIt(
        yaml: String, loss: Loss
    ) throws {
        let (behind, ahead, before) = try apart(yaml)
        switch loss {
        case .deleted: server.sessions = [:]
        case .putBack:
            server.sessions = before
            // It was away when it did not hear, and is back.
            behind.inKeeper { $0.fleetChanged(nil) }
            for gateway in [ahead, behind] { gateway.settle() }
        }
        #expect(step(behind, others: [ahead]) == 200)
        #expect(step(ahead, others: [behind]) == 200)
        #expect(issuer.reuses == 0 && issuer.passwords <= 1)
    }

    @Test func oneThatWasHeardOfIsFetchedAtOnce() throws {
        let behind = try gateway()
        do {
            let ahead = try gateway()
            #expect(step(behind, others: [ahead]) == 200)
            #expect(step(ahead, others: [behind]) == 200)
        }
        // The one that made it is gone for good, and the server comes up empty.
        server.state.withLock { _ = $0.listeners.removeLast() }
        server.sessions = [:]
        #expect(step(behind) == 200)
        #expect(issuer.reuses == 0 && issues(behind).last == "r2")
    }

    /// A gateway that nobody has asked for the session yet has heard how far it is, and is not given an older one.
    @Test(arguments: [first, password], [false, true]) func whatIsPutBackDoesNotCountForWhoComesLate(
        yaml: String, isOver: Bool
    ) throws {
        let late = try gateway(yaml)
        let ahead = try gateway(yaml)
        #expect(step(ahead) == 200)
        let before = server.sessions
        #expect(step(ahead) == 200)
        if isOver {
            ahead.inKeeper { _ = $0.purge(.everything) }
            ahead.settle()
        }
        // Only what is told is heard: a late one looks nothing up by itself.
        late.settle()
        server.sessions = before
        _ = step(late, others: [ahead])
        #expect(issuer.reuses == 0)
    }

    /// The server has lost the mark of a step that this gateway has heard to have begun: it is believed in for as long as a silence lasts, and
    /// the turn that is given meanwhile is given back without being taken again at once.
    @Test func whoBelievesInAnothersStepDoesNotAskWithoutAPause() throws {
        let behind = try gateway()
        #expect(step(behind) == 200)
        let lock = try #require(
            server.news.compactMap { if case .spending(let name, _, _) = $0 { name } else { nil } }.last)
        behind.pass(seconds: 3600, step: 3600)
        server.tell(.spending(lock, owner: "another", isOver: false))
        behind.settle()
        let before = server.state.withLock { $0.turns }
        let caller = behind.call(settles: true)
        behind.pass(seconds: 5, step: 0.25)
        let turns = server.state.withLock { $0.turns } - before
        #expect(turns > 2 && turns <= 30, "\(turns) turns in five seconds")
        server.tell(.spending(lock, owner: "another", isOver: true))
        behind.pass(seconds: 1, step: 0.25)
        #expect(caller.status == 200 && issuer.reuses == 0)
    }

    @Test func aServerThatComesUpEmptyNeedsNobody() throws {
        let (behind, ahead, _) = try apart(Self.first)
        server.sessions = [:]
        for gateway in [behind, ahead] { gateway.inKeeper { $0.fleetChanged(nil) } }
        #expect(step(behind, others: [ahead]) == 200)
        #expect(issuer.reuses == 0)
    }

    /// Known to have been, and nobody has it: an operator is told, and decides.
    @Test(arguments: [true, false]) func oneThatIsLostIsNotReplacedByAnOlderOne(restarted: Bool) throws {
        let store = MemoryStore()
        var behind = try gateway(store: store)
        do {
            let ahead = try gateway()
            #expect(step(behind, others: [ahead]) == 200)
            server.isSilent = true
            #expect(step(ahead) == 200)
            server.isSilent = false
        }
        server.state.withLock { _ = $0.listeners.removeLast() }
        let news = try #require(newest)
        let before = server.sessions
        server.sessions = [:]
        server.tell(news)
        behind.settle()
        if restarted {
            server.state.withLock { $0.listeners = [] }
            behind = try gateway(store: store)
        }
        for found in [[:], before.mapValues { SharedSession(version: .none.next, value: $0.value) }] {
            server.sessions = found
            #expect(step(behind) == 503)
        }
        #expect(issuer.reuses == 0 && behind.issuerCalls.count == (restarted ? 0 : 1))
        let told = behind.inKeeper { $0.status().tokens.first?.lastFailure ?? "" }
        #expect(told.contains("cardea reset i0"), "\(told)")
        // It comes back with whoever has it.
        server.sessions = before
        _ = behind.inKeeper { $0.reset(identity: "i0") }
        behind.pass(seconds: 60, step: 10)
        #expect(step(behind) == 200 && issuer.reuses == 0)
    }

    @Test func anOperatorMayHaveItSent() throws {
        let (behind, _, _) = try apart(Self.first)
        let news = try #require(newest)
        server.sessions = [:]
        server.tell(news)
        behind.settle()
        #expect(step(behind) == 503 && issuer.reuses == 0)
        _ = behind.inKeeper { $0.reset(identity: "i0") }
        // Some issuers do not replace what was used.
        issuer.current = "r1"
        #expect(step(behind) == 200)
    }

    @Test func aPasswordMakesALostOneAnew() throws {
        let (behind, _, _) = try apart(Self.password)
        let news = try #require(newest)
        server.sessions = [:]
        server.tell(news)
        behind.settle()
        #expect(step(behind) == 200)
        #expect(issuer.passwords == 2 && issuer.reuses == 0)
    }

    /// Another gateway has sent the first refresh token, this one what came of it.
    @Test(arguments: [true, false]) func whatAnotherGatewayHasSentIsNotSentAgain(used: Bool) throws {
        let store = MemoryStore()
        let (one, other) = (try gateway(), try gateway(store: store))
        #expect(step(one, others: [other]) == 200)
        if used { #expect(step(other, others: [one]) == 200) }
        #expect(used || other.issuerCalls.isEmpty)
        server.state.withLock { $0.listeners = [] }
        // Other settings, another identity.
        let changed = try gateway(
            Self.plan("grant: refresh_token, refresh_token: env:R, extra: {x: y}"), store: store)
        #expect(step(changed) == 200)
        #expect(issuer.reuses == 0 && issues(changed) == [used ? "r2" : "r1"])
    }

    // MARK: - Leases

    /// Whoever writes to the server ends the lease of a step that is under way.
    @Test(arguments: [first, password]) func aLeaseThatIsTakenAwayIsNoTurnForAnother(yaml: String) throws {
        let (one, other) = (try gateway(yaml), try gateway(yaml))
        #expect(step(one, others: [other]) == 200)
        #expect(step(other, others: [one]) == 200)
        for gateway in [one, other] { gateway.pass(seconds: 100, step: 10) }
        var held: [Request] = []
        one.issuer = { request in
            held.append(request)
            return nil
        }
        let caller = one.call()
        #expect(held.count == 1)
        server.leases = [:]
        other.settle()
        let calls = other.issuerCalls.count
        let waiting = other.call()
        other.pass(seconds: 1)
        #expect(other.issuerCalls.count == calls && waiting.status == nil)
        // Its outcome counts although its lease is gone.
        let peer = try #require(one.issuers.last { !$0.isClosed })
        peer.send(try #require(issuer.answer(held[0])))
        one.settle()
        one.issuer = issuer.answer
        other.pass(seconds: 2)
        #expect(caller.status == 200 && waiting.status == 200)
        #expect(issuer.reuses == 0 && issuer.passwords <= 1)
    }

    // MARK: - After an end

    /// The version is on disk and the session is not: the others have it still.
    @Test func aVersionWithoutItsSessionEndsNothing() throws {
        let store = MemoryStore()
        let (one, other) = (try gateway(store: store), try gateway())
        #expect(step(one, others: [other]) == 200)
        for row in store.rows(RowKind.session) { store.commit([.delete(kind: row.kind, key: row.key)]) { _ in } }
        let again = try gateway(store: store)
        #expect(!server.sessions.isEmpty && server.sessions.values.allSatisfy { !$0.value.isEmpty })
        #expect(step(again, others: [other]) == 200 && issuer.reuses == 0)
    }

    @Test(arguments: [false, true]) func whatIsPutBackAfterALogoutDoesNotCount(restarted: Bool) throws {
        let store = MemoryStore()
        var scene = try gateway(store: store)
        #expect(step(scene) == 200)
        let before = server.sessions
        _ = scene.inKeeper { $0.beginLogout("i0") }
        scene.pass(seconds: 5)
        if restarted {
            server.state.withLock { $0.listeners = [] }
            scene = try gateway(store: store)
        }
        server.sessions = before
        let calls = scene.issuerCalls.count
        #expect(step(scene) == 503)
        #expect(scene.issuerCalls.count == calls, "\(issues(scene))")
    }

    @Test func anOldEndDoesNotEndWhatCameAfterIt() throws {
        let scene = try gateway(Self.password)
        #expect(step(scene) == 200)
        _ = scene.inKeeper { $0.purge(.everything) }
        scene.settle()
        let ended = server.sessions
        #expect(ended.values.allSatisfy { $0.value.isEmpty } && !ended.isEmpty)
        #expect(step(scene) == 200 && issuer.passwords == 2)
        server.sessions = ended
        for news in server.news { server.tell(news) }
        #expect(step(scene) == 200)
        #expect(issuer.passwords == 2 && issuer.reuses == 0)
    }
}
