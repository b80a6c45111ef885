import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// A connection of HTTP/2 whose server has answered before it took a body, and may have stopped reading.
@Suite struct DoubtedConnectionTests {
    /// `:status: 401`, and the end of the stream.
    private static func refusal(_ stream: UInt8) -> [UInt8] {
        Frames.frame(1, 5, stream, [0x08, 3] + Array("401".utf8))
    }
    private static let ping = Frames.frame(6, 0, 0, Array("12345678".utf8))

    /// A challenged upload that goes out again, and another request that stays on the first connection.
    private func play() throws -> (scene: Scene, upload: Peer, other: Peer) {
        let scene = try Scene(Plans.fixed("http: 2"))
        let slot = try scene.publish("old", generation: 1)
        // Larger than the window that a server opens by default.
        let upload = scene.call(Wire.post(String(repeating: "x", count: 200_000)))
        scene.upstreams[0].send(Frames.settings)
        scene.settle()
        let other = scene.call(Wire.get("/other"))
        #expect(scene.upstreams.count == 1)
        scene.upstreams[0].discard()
        scene.upstreams[0].send(Self.refusal(1))
        scene.settle()
        try scene.publish("new", generation: 2)
        scene.answer(try #require(scene.keeper.challenges.first?.ticket), .use(slot: slot, granted: 2))
        try #require(scene.upstreams.count == 2)
        return (scene, upload, other)
    }

    private func pings(_ peer: Peer) -> Int { Frames.read(peer.received).count { $0.type == 6 && $0.flags == 0 } }

    private func end(_ scene: Scene) {
        for upstream in scene.upstreams { upstream.finish() }
        scene.settle()
        scene.end()
    }

    /// The upload goes out elsewhere, and the server is asked whether it lives: for as long as it says anything, its
    /// requests stay.
    @Test func aServerThatLivesKeepsItsRequests() throws {
        let (scene, upload, other) = try play()
        #expect(pings(scene.upstreams[0]) == 1)
        for round in 2...3 {
            scene.pass(seconds: 4)
            scene.upstreams[0].send(Self.ping)
            scene.pass(seconds: 1.5)
            #expect(pings(scene.upstreams[0]) == round && !scene.upstreams[0].isClosed)
        }
        scene.upstreams[0].send(Frames.ok(3))
        scene.settle()
        #expect(other.status == 200 && scene.upstreams[0].isClosed, "it has carried its last request")
        scene.upstreams[1].send(Frames.settings + Frames.ok(1))
        scene.settle()
        #expect(upload.status == 200)
        end(scene)
    }

    /// A server that says nothing for five seconds has stopped: requests that may be repeated go out again.
    @Test func aServerThatIsSilentLosesThem() throws {
        let (scene, _, other) = try play()
        scene.pass(seconds: 4.5)
        #expect(!scene.upstreams[0].isClosed)
        scene.pass(seconds: 1)
        #expect(scene.upstreams[0].isClosed)
        let upstream = scene.upstreams[scene.upstreams.count - 1]
        upstream.send(Frames.settings)
        scene.settle()
        let last = try #require(Frames.read(upstream.received).last { $0.type == 1 })
        upstream.send(Frames.ok(last.stream))
        scene.settle()
        #expect(other.status == 200)
        end(scene)
    }
}
