import ScriptedKernel
import Testing

@testable import Scenes

/// An HTTP/2 connection whose server has opened every window and does not read its socket.
@Suite struct StalledHTTP2Tests {
    /// SETTINGS with the largest window for streams, and the rest of it for the connection.
    private static let wide: [UInt8] =
        [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff] + [0, 0, 4, 8, 0, 0, 0, 0, 0, 0x7f, 0xff, 0, 0]

    /// `:status: 200`, END_STREAM set.
    private static func ok(_ stream: UInt8) -> [UInt8] { [0, 0, 1, 1, 5, 0, 0, 0, stream, 0x88] }

    @Test func othersGoOnElsewhere() throws {
        let scene = try Scene(Plans.open("http: \"2\""))
        let body = String(repeating: "b", count: 1 << 20)
        let first = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(body.utf8.count)\r\n\r\n")
        let server = try #require(scene.upstreams.first)
        server.send(Self.wide)
        scene.settle()
        server.window = 20_000
        first.send(body)
        scene.settle()
        #expect(server.window == 0)
        // For a moment nothing can be known of it.
        scene.pass(seconds: 0.5)
        _ = scene.call(Wire.get("/at-once"))
        #expect(scene.upstreams.count == 1)
        scene.pass(seconds: 1)
        let other = scene.call(Wire.get("/other"))
        try #require(scene.upstreams.count == 2)
        scene.upstreams[1].send(Self.wide + Self.ok(1))
        scene.settle()
        #expect(other.status == 200)
        // It carries what it has, and nothing more.
        server.window = .max
        scene.settle()
        server.send(Self.ok(1) + Self.ok(3))
        scene.settle()
        #expect(first.status == 200 && server.isClosed)
        scene.upstreams[1].finish()
        scene.settle()
        scene.end()
    }
}
