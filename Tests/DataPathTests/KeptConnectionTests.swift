import ScriptedKernel
import Testing

@testable import Scenes

/// How long connections to an upstream are kept, and which requests go out on them.
@Suite struct KeptConnectionTests {
    private func answer(_ scene: Scene, _ fields: String = "") {
        scene.upstreams[scene.upstreams.count - 1].send(Wire.ok("x", fields))
        scene.settle()
    }

    struct Span: Sendable {
        var route = ""
        var fields = ""
        /// Seconds; zero: not kept at all.
        let kept: Double
    }

    static let spans = [
        Span(kept: 60),
        Span(route: "timeouts: {idle: 20s}", kept: 20),
        Span(route: "timeouts: {idle: 20s, keep_alive: 5s}", kept: 5),
        Span(route: "timeouts: {keep_alive: 90s}", kept: 90),
        // A second before the upstream, or half of a short time.
        Span(fields: "Keep-Alive: timeout=5, max=100\r\n", kept: 4),
        Span(fields: "keep-alive: max=9 ,\tTimeout = 2\r\n", kept: 1),
        Span(fields: "Keep-Alive: timeout=1\r\n", kept: 0.5),
        Span(fields: "Keep-Alive: timeout=9\r\nKeep-Alive: timeout=7\r\n", kept: 6),
        Span(fields: "Keep-Alive: timeout=0\r\n", kept: 0),
        Span(route: "timeouts: {keep_alive: 3s}", fields: "Keep-Alive: timeout=5\r\n", kept: 3),
        // What cannot be read, or is too long to matter, announces nothing.
        Span(fields: "Keep-Alive: timeout=99999999999999999999\r\n", kept: 60),
        Span(fields: "Keep-Alive: timeout=9223372036854775807\r\n", kept: 60),
        Span(fields: "Keep-Alive: timeout=-1, timeouts=2, 3, timeout\r\n", kept: 60),
    ]

    @Test(arguments: spans) func itIsKeptAsLongAsBothSidesWant(_ known: Span) throws {
        let scene = try Scene(Plans.open(known.route))
        _ = scene.call(Wire.get())
        answer(scene, known.fields)
        #expect(scene.idleUpstreams == (known.kept > 0 ? 1 : 0))
        scene.pass(seconds: known.kept * 0.9)
        #expect(scene.idleUpstreams == (known.kept > 0 ? 1 : 0))
        scene.pass(seconds: known.kept * 0.2 + 0.1)
        #expect(scene.idleUpstreams == 0)
        scene.end()
    }

    struct Reuse: Sendable {
        let request: String
        var route = ""
        var pause = 1.5
        let isReused: Bool
    }

    static let reuses = [
        Reuse(request: Wire.get(), isReused: true),
        Reuse(request: "DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", isReused: true),
        Reuse(request: Wire.post("x"), isReused: false),
        Reuse(request: Wire.post("x"), pause: 0.5, isReused: true),
        Reuse(request: Wire.post("x"), route: "timeouts: {reuse: 5s}", isReused: true),
        Reuse(request: Wire.post("x"), route: "timeouts: {reuse: 0s}", pause: 0.1, isReused: false),
        Reuse(request: "PATCH / HTTP/1.1\r\nHost: localhost\r\n\r\n", isReused: false),
        // Its method may be repeated, and its body is not there any more.
        Reuse(request: Wire.chunkedPost(["x"], method: "PUT"), isReused: false),
    ]

    @Test(arguments: reuses) func onlyARequestThatMayBeRepeatedGoesOutOnAnOldOne(_ known: Reuse) throws {
        let scene = try Scene(Plans.open(known.route))
        _ = scene.call(Wire.get())
        answer(scene)
        scene.pass(seconds: known.pause)
        let caller = scene.call(known.request)
        #expect(scene.upstreams.count == (known.isReused ? 1 : 2))
        answer(scene)
        #expect(caller.status == 200)
        scene.end()
    }

    /// A body that is kept for a replay can be sent again after a loss, too.
    @Test func aBodyThatIsKeptMayBeRepeated() throws {
        let scene = try Scene(Plans.fixed())
        try scene.publish("k", generation: 1)
        _ = scene.call(Wire.get())
        answer(scene)
        scene.pass(seconds: 1.5)
        _ = scene.call(Wire.chunkedPost(["x"], method: "PUT"))
        #expect(scene.upstreams.count == 1)
        scene.end()
    }

    /// At the bound the old connection gives way to a new one.
    @Test func atTheBoundAnOldConnectionIsReplaced() throws {
        let scene = try Scene(Plans.open("limits: {connections: 1}"))
        _ = scene.call(Wire.get())
        answer(scene)
        scene.pass(seconds: 1.5)
        let caller = scene.call(Wire.post("x"))
        #expect(scene.upstreams.count == 2 && scene.upstreams[0].isClosed)
        answer(scene)
        #expect(caller.status == 200)
        scene.end()
    }

    /// Who waits for a connection takes one that has just become free.
    @Test func aWaiterTakesWhatBecomesFree() throws {
        let scene = try Scene(Plans.open("limits: {connections: 1}"))
        _ = scene.call(Wire.get())
        let waiter = scene.call(Wire.post("x"))
        scene.pass(seconds: 1.5)
        answer(scene)
        #expect(scene.upstreams.count == 1)
        answer(scene)
        #expect(waiter.status == 200)
        scene.end()
    }
}
