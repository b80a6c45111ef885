import Reactor
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// A body whose two ends are never waited for takes its turn like everybody else.
@Suite struct FairTurnTests {
    private static let piece = 1_000
    private static let body = String(repeating: "0123456789", count: 50_000)

    @Test(arguments: [true, false]) func aFastAnswerLeavesTheLoopToOthers(isChunked: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get())
        let upstream = try #require(scene.upstreams.first)
        upstream.mostPerRead = Self.piece
        let size = String(Self.body.utf8.count, radix: 16)
        upstream.send(
            isChunked
                ? "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(size)\r\n\(Self.body)\r\n0\r\n\r\n"
                : Wire.ok(Self.body))
        scene.loop.turnOnce()
        #expect(caller.receivedCount > 0 && caller.receivedCount <= 2 * CallerConnection.rounds * Self.piece)
        let other = scene.call(Wire.get("/other"))
        #expect(scene.upstreams.count == 2)
        #expect(other.receivedCount == 0)
        scene.settle()
        let answer = caller.takeText()
        if isChunked {
            #expect(Wire.unchunked(answer)?.body == Self.body)
        } else {
            #expect(answer == Wire.ok(Self.body))
        }
        scene.end()
    }

    @Test func theRequestBehindALongAnswerIsRead() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call(Wire.get() + Wire.get("/other"))
        let upstream = try #require(scene.upstreams.first)
        upstream.mostPerRead = Self.piece
        upstream.send(Wire.ok(Self.body))
        scene.settle()
        #expect(caller.takeText() == Wire.ok(Self.body))
        let next = try #require(scene.upstreams.last)
        #expect(next.takeText().contains("GET /other"))
        next.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }

    @Test func aFastUploadLeavesTheLoopToOthers() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.mostPerRead = Self.piece
        caller.send(Wire.post(Self.body))
        var turns = 0
        while scene.upstreams.first?.receivedCount ?? 0 < Self.body.utf8.count, turns < 100 {
            scene.loop.turnOnce()
            turns += 1
        }
        #expect(turns > Self.body.utf8.count / Self.piece / CallerConnection.rounds && turns < 100)
        let upstream = try #require(scene.upstreams.first)
        scene.settle()
        #expect(
            upstream.takeText()
                == Wire.forwarded("POST", framing: "Content-Length: \(Self.body.utf8.count)\r\n", body: Self.body))
        upstream.send(Wire.ok())
        scene.settle()
        #expect(caller.takeText() == Wire.ok())
        scene.end()
    }
}
