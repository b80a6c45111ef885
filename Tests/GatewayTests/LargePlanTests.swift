import Testing

@testable import DataPath
@testable import Gateway
@testable import Scenes

/// Plans of thousands of routes, upstreams and identities. What a plan takes a constant number of steps for per route is done here in a
/// second or two; in pairs of routes it would not come to its end within the limit, by far.
@Suite(.timeLimit(.minutes(2))) struct LargePlanTests {
    private static let count = 3000

    /// - Parameter order: of the routes in the file.
    private static func file(_ order: some Sequence<Int>) -> String {
        var text = "identities:\n"
        for index in 0..<count { text += "  i\(index): {static: {value: env:S\(index)}}\n" }
        text += "routes:\n"
        for index in order {
            text +=
                "  - {name: r\(index), listen: \"127.0.0.1:8080\", match: {path: /r\(index)/}, to: \"http://127.0.0.1:\(10_000 + index)\", use: i\(index)}\n"
        }
        return text
    }

    /// Every upstream, slot and number goes on where the file is turned over; the loops take all of it up.
    @Test func aLargePlanIsMadeAndMadeAnew() throws {
        let scene = try Scene(Self.file(0..<Self.count), slots: 2 * Self.count)
        let before = scene.data.plan
        #expect(before.upstreams.map(\.index) == Array(0..<Self.count))
        #expect(before.routes.map { $0.identity?.name } == (0..<Self.count).map { "i\($0)" })
        try scene.reload(Self.file((0..<Self.count).reversed()))
        let after = scene.data.plan
        #expect(
            after.upstreams.map { ObjectIdentifier($0) } == before.upstreams.reversed().map { ObjectIdentifier($0) })
        #expect(after.routes.map(\.number) == before.routes.reversed().map(\.number))
        #expect(after.routes.map(\.slot) == before.routes.reversed().map(\.slot))
        let places = after.upstreams.map { after.position(of: $0) }
        #expect(places == (0..<Self.count).map { $0 })
        scene.end()
    }
}
