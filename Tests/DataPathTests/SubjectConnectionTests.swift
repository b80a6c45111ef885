import ScriptedKernel
import Testing

@testable import DataPath
@testable import Handshakes
@testable import Scenes
@testable import Tokens

/// Connections that are authenticated in the name of end users serve each user alone, with keeper, server and library played by the test.
@Suite struct SubjectConnectionTests {
    private final class Played: Negotiation {
        let scheme = "negotiate"
        let wantsProof = false
        let lifetime: UInt64?
        init(_ lifetime: UInt64?) { self.lifetime = lifetime }
        func answer(_ token: [UInt8], isLast: Bool) async throws(Handshakes.GrantFailure) -> Secret? { nil }
    }

    /// The kernel of tests says that every caller is user 1000.
    private static func plan(_ route: String = "") -> String {
        "identities:\n  a: {negotiate: {keytab: file:/k, mutual: off, for_users: {realm: R, allow: \"*\"}}}\n"
            + "routes: [{listen: \"unix:/run/x.sock\", to: \"http://127.0.0.1:9000\", use: a, "
            + "subject: {from_header: X-User}, callers: {unix_users: \"1000\"}\(route)}]\n"
    }

    /// A whole exchange of a user.
    /// - Returns: the connection that it went out on.
    private static func exchange(
        _ scene: Scene, _ user: String, method: String = "GET", lifetime: UInt64? = nil
    ) throws -> Int {
        for upstream in scene.upstreams { _ = upstream.take() }
        let before = scene.keeper.cold.count
        let caller = scene.call("\(method) / HTTP/1.1\r\nHost: h\r\nX-User: \(user)\r\n\r\n")
        try #require(scene.keeper.cold.count == before + 1)
        let asked = try #require(scene.keeper.cold.last)
        #expect(asked.subject?.key == ByteString(user))
        scene.answer(
            asked.ticket, .once(Secret("Authorization: Negotiate \(before)\r\n"), negotiation: Played(lifetime)))
        let index = try #require(scene.upstreams.firstIndex { $0.receivedCount > 0 })
        let sent = scene.upstreams[index].takeText()
        #expect(sent.contains("Negotiate \(before)\r\n") && !sent.contains("X-User"))
        scene.upstreams[index].send(Wire.ok("x"))
        scene.settle()
        #expect(caller.status == 200)
        caller.reset()
        scene.settle()
        return index
    }

    private static func endConnections(of scene: Scene) throws {
        let connections = try #require(scene.plan.routes[0].identity?.connections)
        connections.rise()
        scene.data.desk.open(.ended(connections))
        scene.settle()
    }

    /// Users' connections outlive the callers that brought them.
    private static func end(_ scene: Scene) throws {
        try endConnections(of: scene)
        scene.end()
    }

    @Test func aUserComesBackToHisOwnConnectionAndNobodyElseDoes() throws {
        let scene = try Scene(Self.plan())
        let users = ["anna", "bert", "anna", "Anna", "bert", "anna", "carl"]
        let found = try users.map { try Self.exchange(scene, $0) }
        #expect(found == [0, 1, 0, 2, 1, 0, 3])
        #expect(scene.idleUpstreams == 0)
        try Self.end(scene)
    }

    @Test func aConnectionEndsWithItsTickets() throws {
        let scene = try Scene(Self.plan())
        #expect(try Self.exchange(scene, "anna", lifetime: 2_000_000_000) == 0)
        scene.pass(seconds: 3)
        #expect(scene.upstreams[0].isClosed)
        #expect(try Self.exchange(scene, "anna") == 1)
        try Self.end(scene)
    }

    /// Its server may have closed it, and the request could not be sent again.
    @Test func aRequestThatIsSentOnceTakesNoOldConnection() throws {
        let scene = try Scene(Self.plan())
        #expect(try Self.exchange(scene, "anna") == 0)
        scene.pass(seconds: 5)
        #expect(try Self.exchange(scene, "anna", method: "POST") == 1)
        try Self.end(scene)
    }

    @Test func whatAnOperatorEndsEndsForAllUsers() throws {
        let scene = try Scene(Self.plan())
        _ = try ["anna", "bert"].map { try Self.exchange(scene, $0) }
        try Self.endConnections(of: scene)
        #expect(scene.upstreams.map(\.isClosed) == [true, true])
        scene.end()
    }

    @Test func aConnectionThatNobodyAuthenticatedIsAnybodys() throws {
        let scene = try Scene(Self.plan())
        let refused = scene.call("GET / HTTP/1.1\r\nHost: h\r\nX-User: eve\r\n\r\n")
        scene.answer(try #require(scene.keeper.cold.last?.ticket), .fault(Fault(.subjectRefused, detail: "no")))
        #expect(refused.status == 403 && scene.upstreams.count == 1 && scene.upstreams[0].receivedCount == 0)
        #expect(try Self.exchange(scene, "anna") == 0)
        #expect(try Self.exchange(scene, "bert") == 1)
        try Self.end(scene)
    }

    @Test func numbersNeverComeBack() {
        var subjects = SubjectNumbers()
        var last: UInt64 = 7
        #expect(subjects.number(of: "anna", after: &last) == 8)
        #expect(subjects.number(of: "bert", after: &last) == 9)
        #expect(subjects.number(of: "anna", after: &last) == 8)
        for index in 0..<SubjectNumbers.most { _ = subjects.number(of: ByteString("\(index)"), after: &last) }
        let again = subjects.number(of: "anna", after: &last)
        #expect(again > 9 && again <= last)
    }
}
