import Glibc
import ScriptedKernel
import Testing

@testable import Scenes

/// Writes that fail, and heads that are refused at once.
@Suite struct BrokenWriteTests {
    /// The refusal is there to be read; the failed write of the body must not hide it.
    @Test func anEarlyRefusalIsDeliveredThoughTheBodyCannotBeSent() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
        let upstream = scene.upstreams[0]
        upstream.window = 20_000
        caller.send([UInt8](repeating: 1, count: 100_000))
        scene.settle()
        upstream.send("HTTP/1.1 413 Too Big\r\nConnection: close\r\nContent-Length: 2\r\n\r\nno")
        upstream.reset()
        scene.settle()
        #expect(caller.status == 413)
        scene.end()
    }

    /// No edge follows an interruption: the call is made again at once.
    @Test func anInterruptedWriteGoesOn() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.failWrites([EINTR])
        caller.send(Wire.get())
        scene.settle()
        scene.upstreams[0].send(Wire.ok("a"))
        scene.settle()
        #expect(caller.takeText() == Wire.ok("a"))
        scene.end()
    }

    /// A head that is refused at its first look counts like any other.
    @Test func aMalformedRequestIsCounted() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call("GET / HTTP/1.1\r\nHost : x\r\n\r\n")
        #expect(caller.status == 400)
        #expect(scene.requests(400) == 1)
        scene.end()
    }
}
