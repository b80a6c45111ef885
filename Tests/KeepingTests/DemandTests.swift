import ScriptedKernel
import Testing

@testable import DataPath
@testable import Keeping
@testable import Reactor
@testable import Scenes
@testable import Tokens

/// Requests that need different levels or scopes of one key: each waits only for what can be its answer. Three callers in every combination
/// of what they need, when they come and what is held before, in virtual time.
@Suite struct DemandTests {
    /// What is held when the first of them comes.
    enum Before: CaseIterable { case nothing, least, revokedMost }

    /// Every way to give each of three callers one of three things. Of times: a caller comes when so many grants have been made since the
    /// first one came.
    static let triples: [[Int]] = (0..<27).map { [$0 / 9, $0 / 3 % 3, $0 % 3] }

    /// An issuer whose grants are made when the test says so, and an upstream that takes those which have what the path needs. One identity
    /// for each of the triples.
    final class Play {
        let scene: KeeperScene
        private(set) var grants = 0
        private(set) var newest = ""
        var revoked = ""
        private var holdsBack = false
        /// What the grant that is held back will bring.
        private var waiting: String?

        init(_ yaml: String) throws { scene = try KeeperScene(yaml) }

        /// - Parameter token: what the issuer grants, without its number.
        func grant(_ token: String, _ answer: (String) -> String) -> String? {
            grants += 1
            newest = "\(grants).\(token)"
            waiting = answer(newest)
            return holdsBack ? nil : release()
        }

        private func release() -> String? {
            defer { waiting = nil }
            return waiting
        }

        /// - Returns: whether one was held back.
        private func goOn() -> Bool {
            guard let text = release(), let peer = scene.issuers.last(where: { !$0.isClosed }) else { return false }
            peer.send(text)
            scene.settle()
            return true
        }

        /// Sends the three, and lets grants through until nobody waits.
        /// - Returns: what they got, and how many grants it took.
        func run(
            paths: [String], waves: [Int], afterTheFirst interruption: () -> Void = {}
        ) -> (statuses: [Int?], grants: Int) {
            holdsBack = true
            defer { holdsBack = false }
            let before = grants
            var callers: [Peer] = []
            for wave in 0...2 {
                for (path, own) in zip(paths, waves) where own == wave {
                    callers.append(scene.call(Wire.get(path), settles: false))
                }
                scene.settle()
                if wave == 0 { interruption() }
                _ = goOn()
            }
            for _ in 0..<8 where goOn() {}
            return (callers.map(\.status), grants - before)
        }
    }

    private static let names = triples.indices.map { "n\($0)" }

    // MARK: - Levels

    /// Tokens are `NUMBER.LEVEL`; paths end in the level that they need.
    private static func levels(identity: String = "") throws -> Play {
        let play = try Play(Plans.gate(identity: identity, names: names))
        let gate = NumberedGate()
        play.scene.issuer = { request in
            guard request.path.hasSuffix("/access") else { return gate.answer(request) }
            let level = (1...3).first { request.body.contains("ctx\($0)") } ?? 0
            return play.grant("\(level)") { Wire.idaas("ACCESSTOKEN", $0) }
        }
        play.scene.upstream = { request in
            let need = request.path.last?.wholeNumberValue ?? 0
            let sent = request.authorization ?? ""
            let isEnough = (need...3).contains { sent.contains(".\($0)") }
            if isEnough, play.revoked.isEmpty || !sent.contains(play.revoked) { return Wire.ok() }
            return
                "HTTP/1.1 401 No\r\nWWW-Authenticate: OAM-Auth realm=\"WG:\(need) /\", request-ctx=\"ctx\(need)\"\r\n"
                + "Content-Length: 0\r\n\r\n"
        }
        return play
    }

    @Test(arguments: Before.allCases)
    func everyoneGetsTheLevelThatHeNeeds(_ before: Before) throws {
        for waves in Self.triples {
            let play = try Self.levels()
            for (name, needs) in zip(Self.names, Self.triples) {
                switch before {
                case .nothing: break
                case .least: #expect(play.scene.status("/\(name)/1") == 200)
                case .revokedMost:
                    #expect(play.scene.status("/\(name)/3") == 200)
                    play.revoked = play.newest
                }
                let found = play.run(paths: needs.map { "/\(name)/\($0 + 1)" }, waves: waves)
                #expect(found.statuses == [200, 200, 200], "needs \(needs), waves \(waves)")
                // One for each level at most, however they come: a higher one serves the lower ones.
                #expect(found.grants <= Set(needs).count, "needs \(needs), waves \(waves)")
            }
        }
    }

    /// A flight that a reset cuts off is taken up with the challenge that it was to answer: the probe's would bring the least.
    @Test(arguments: [true, false])
    func aFlightThatWasCutOffBringsTheLevelThatItWasFor(_ holdsOne: Bool) throws {
        let play = try Self.levels(identity: "probe: /1")
        if holdsOne { #expect(play.scene.status("/n0/1") == 200) }
        let found = play.run(paths: ["/n0/3", "/n0/3", "/n0/2"], waves: [0, 0, 1]) {
            #expect(play.scene.inKeeper { $0.reset(identity: "n0") })
            play.scene.settle()
        }
        #expect(found.statuses == [200, 200, 200])
        let before = play.grants
        #expect(play.scene.status("/n0/3") == 200 && play.grants == before)
    }

    // MARK: - Scopes

    /// Tokens are `NUMBER.SCOPES`; paths end in the scope that they need, or in n.
    private static func scopes() throws -> Play {
        var yaml = "identities:\n"
        var routes = "routes:\n"
        for name in names {
            yaml += "  \(name): {oauth2: {token_url: \"http://127.0.0.1:9100/\(name)\", client_id: c, "
            yaml += "client_secret: env:S, allowed_scopes: [a, b]}}\n"
            routes += "  - {listen: \"127.0.0.1:8080\", to: \"http://127.0.0.1:9000\", use: \(name), "
            routes += "match: {path: \"/\(name)/\"}, name: r-\(name)}\n"
        }
        let play = try Play(yaml + routes)
        play.scene.issuer = { request in
            let scope = request.body.split(separator: "&").first { $0.hasPrefix("scope=") }?.dropFirst(6) ?? ""
            return play.grant(scope.filter { "ab".contains($0) }) { Wire.bearer($0) }
        }
        play.scene.upstream = { request in
            let need = String(request.path.suffix(1))
            let sent = String(request.authorization?.dropFirst("Bearer ".count) ?? "")
            guard !sent.isEmpty, sent != play.revoked else { return Wire.challenge }
            if need == "n" || sent.contains(need) { return Wire.ok() }
            return "HTTP/1.1 403 No\r\nWWW-Authenticate: Bearer error=\"insufficient_scope\", scope=\"\(need)\"\r\n"
                + "Content-Length: 0\r\n\r\n"
        }
        return play
    }

    @Test(arguments: Before.allCases)
    func everyoneGetsTheScopeThatHeNeeds(_ before: Before) throws {
        for waves in Self.triples {
            let play = try Self.scopes()
            for (name, needs) in zip(Self.names, Self.triples) {
                switch before {
                case .nothing: break
                case .least: #expect(play.scene.status("/\(name)/n") == 200)
                case .revokedMost:
                    #expect(play.scene.status("/\(name)/a") == 200 && play.scene.status("/\(name)/b") == 200)
                    play.revoked = play.newest
                }
                let found = play.run(paths: needs.map { "/\(name)/" + ["n", "a", "b"][$0] }, waves: waves)
                #expect(found.statuses == [200, 200, 200], "needs \(needs), waves \(waves)")
                // The one that all begin with, and one for each scope beyond it at most.
                let own = Set(needs).subtracting([0]).count
                #expect(found.grants <= (before == .revokedMost ? 1 : 1 + own), "needs \(needs), waves \(waves)")
            }
        }
    }
}
