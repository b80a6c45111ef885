import HTTP2
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// A caller of HTTP/2 that does not take what is written to it, in virtual time.
@Suite struct UnreadHTTP2Tests {
    /// A scene in which an HTTP/2 client has asked and its answer waits: the caller's socket takes 20,000 bytes.
    private struct Play {
        let scene: Scene
        let caller: Peer
        let client: HTTP2Connection

        init() throws {
            // The exchange's own patience is longer, so that what is seen is the HTTP/2 connection's.
            scene = try Scene(Plans.open("timeouts: {idle: 1h}") + "limits: {min_rate: 100B}\n")
            let made = HTTP2Connection(role: .client, limits: HTTP2Limits(), blocks: scene.data.buffers)
            let connection = try #require(made)
            client = connection
            var head = Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
            let stream = head.withUnsafeMutableBytes {
                connection.open(
                    request: $0, scheme: "http", secretName: [], secretTarget: false, acceptsTrailers: false,
                    ended: true)
            }
            #expect(stream != nil)
            caller = scene.call()
            let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)
            defer { buffer.deallocate() }
            let count = client.send(into: buffer)
            caller.window = 20_000
            caller.send(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            scene.settle()
            let upstream = try #require(scene.upstreams.first)
            upstream.send(Wire.ok(String(repeating: "x", count: 1 << 20)))
            scene.settle()
            #expect(caller.window == 0 && scene.data.http2Callers.count == 1)
        }

        func end() {
            scene.end()
            #expect(scene.data.http2Callers.isEmpty)
        }
    }

    @Test func itIsCutWhenItTakesNothing() throws {
        let play = try Play()
        play.scene.pass(seconds: 59)
        #expect(!play.caller.isClosed)
        play.scene.pass(seconds: 2)
        #expect(play.caller.isClosed)
        play.end()
    }

    /// Frames that it sends meanwhile change nothing.
    @Test func pingsDoNotKeepIt() throws {
        let play = try Play()
        for _ in 0..<6 {
            play.caller.send([0, 0, 8, 6, 0, 0, 0, 0, 0] + Array("12345678".utf8))
            play.scene.pass(seconds: 10.5)
        }
        #expect(play.caller.isClosed)
        play.end()
    }

    /// At the least rate it goes on: 100 bytes a second are 6,000 in a look of a minute.
    @Test(arguments: [7_000, 5_000])
    func itGoesOnWhileItTakesEnough(bytes: Int) throws {
        let play = try Play()
        for _ in 0..<3 where !play.caller.isClosed {
            play.scene.pass(seconds: 30)
            play.caller.window = bytes
            play.scene.settle()
            play.scene.pass(seconds: 31)
        }
        #expect(play.caller.isClosed == (bytes < 6_000))
        play.end()
    }
}
