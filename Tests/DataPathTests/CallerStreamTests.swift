import Glibc
import Reactor
import ScriptedKernel
import TLS
import Testing

@testable import DataPath
@testable import Scenes
@testable import TLSTests

/// Callers of HTTP/2 that ask for more than there is, or are gone, as their connections end.
@Suite struct CallerStreamTests {
    private static func literal(_ name: String, _ value: String) -> [UInt8] {
        func text(_ text: String) -> [UInt8] {
            let count = text.utf8.count
            guard count >= 127 else { return [UInt8(count)] + Array(text.utf8) }
            // RFC 7541 §5.1.
            var rest = count - 127
            var octets: [UInt8] = [127]
            while rest >= 128 {
                octets.append(UInt8(rest & 127 | 128))
                rest >>= 7
            }
            return octets + [UInt8(rest)] + Array(text.utf8)
        }
        return [0] + text(name) + text(value)
    }

    /// A request's HEADERS. Methods are indexed: 2 is GET, 3 is POST.
    private static func request(
        _ stream: UInt8, method: UInt8 = 2, ends: Bool = true, _ fields: [(String, String)] = []
    ) -> [UInt8] {
        var head: [UInt8] = [0x80 | method, 0x84, 0x86]
        head += literal(":authority", "localhost")
        for field in fields { head += literal(field.0, field.1) }
        return Frames.frame(1, ends ? 5 : 4, stream, head)
    }

    private static func resets(_ caller: Peer) -> [UInt8: UInt8] {
        var codes: [UInt8: UInt8] = [:]
        for frame in Frames.read(caller.received) where frame.type == 3 { codes[frame.stream] = frame.payload.last }
        return codes
    }

    /// Streams share the memory of a loop: one that finds no room is refused so that its caller may send it again (RFC
    /// 9113 §8.7).
    @Test func streamsWithoutRoomAreRefused() throws {
        let scene = try Scene(Plans.open() + "limits: {connections: 10}\n")
        let caller = scene.call()
        caller.send(Frames.preface + (0..<20).flatMap { Self.request(UInt8(2 * $0 + 1)) })
        scene.settle()
        let refused = Self.resets(caller)
        #expect(!refused.isEmpty && refused.values.allSatisfy { $0 == 7 })
        #expect(scene.upstreams.count == 20 - refused.count && scene.upstreams.count > 1)
        #expect(scene.glitches(.streamLimit) == UInt64(refused.count))
        // A stream whose answer is there makes room for the next one.
        scene.upstreams[0].send(Wire.ok("x", "Connection: close\r\n"))
        scene.settle()
        let before = scene.upstreams.count
        caller.send(Self.request(41))
        scene.settle()
        #expect(scene.upstreams.count == before + 1)
        scene.end()
    }

    @Test func aHeadThatIsTooLargeIsAnswered() throws {
        let scene = try Scene(Plans.open() + "limits: {header_size: 4KiB}\n")
        let caller = scene.call()
        caller.send(Frames.preface + Self.request(1, [("x-fill", String(repeating: "x", count: 10_000))]))
        scene.settle()
        let frames = Frames.read(caller.received)
        let body = frames.filter { $0.type == 0 && $0.stream == 1 }.flatMap(\.payload)
        #expect(String(decoding: body, as: UTF8.self).contains("problems/big-head") && scene.upstreams.isEmpty)
        // The connection goes on.
        caller.send(Self.request(3))
        scene.settle()
        #expect(scene.upstreams.count == 1 && !caller.isClosed)
        scene.end()
    }

    /// A credential of the connection's own cannot go out beside other streams: the caller is to come back over
    /// HTTP/1.1.
    @Test func aBoundCredentialIsSentBackToHTTP1() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Frames.preface + Self.request(1, [("authorization", "Negotiate TlRMTVNTUAABAAAA")]))
        scene.settle()
        #expect(Self.resets(caller) == [1: 0xd] && scene.upstreams.isEmpty && !caller.isClosed)
        scene.end()
    }

    /// A body of an announced length has to come at the least rate. One without may be a conversation.
    @Test(arguments: [true, false]) func aBodyThatDripsIsRefusedWhereItsLengthIsKnown(isAnnounced: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        let fields = isAnnounced ? [("content-length", "1000000")] : []
        caller.send(Frames.preface + Self.request(1, method: 3, ends: false, fields))
        scene.settle()
        for _ in 0..<12 {
            caller.send(Frames.frame(0, 0, 1, [0x78]))
            scene.pass(seconds: 15)
        }
        #expect(try #require(scene.upstreams.first).isClosed == isAnnounced)
        #expect(scene.glitches(.slowTransfer) == (isAnnounced ? 1 : 0))
        let body = Frames.read(caller.received).filter { $0.type == 0 }.flatMap(\.payload)
        #expect(String(decoding: body, as: UTF8.self).contains("problems/slow-body") == isAnnounced)
        scene.end()
    }

    // MARK: - Ends

    /// The connection takes nothing more: requests that run on it are given up.
    @Test(arguments: [false, true]) func aCallerThatCannotBeWrittenToIsClosed(isFull: Bool) throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Frames.preface + Self.request(1))
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        if isFull {
            // Some of the answer waits when the socket breaks.
            caller.window = 10
            upstream.send(Wire.ok(String(repeating: "x", count: 1000)) + "more")
            scene.settle()
            #expect(!caller.isClosed)
            caller.failWrites([EPIPE])
            caller.window = .max
        } else {
            caller.failWrites([EPIPE])
            upstream.send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
        }
        scene.settle()
        #expect(caller.isClosed && upstream.isClosed)
        scene.end()
    }

    /// Answers that wait for a caller that reads nothing are bounded.
    @Test func aFloodOfPingsEndsTheConnection() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Frames.preface + Self.request(1))
        scene.settle()
        caller.window = 0
        let ping = Frames.frame(6, 0, 0, Array("12345678".utf8))
        for _ in 0..<20 where !caller.isClosed {
            for _ in 0..<1000 { caller.send(ping) }
            scene.settle()
        }
        #expect(caller.isClosed && scene.upstreams.map(\.isClosed) == [true])
        scene.end()
    }

    /// A handshake that ends after the drain has begun: its caller is told to go with the first answer.
    @Test func aConnectionThatComesDuringADrainIsToldToGo() throws {
        let scene = try Scene(ArrivalTests.secure())
        let caller = try SecureCaller(scene, scene.call(), alpn: ["h2"])
        _ = caller.tls.handshake()
        scene.settle()
        nonisolated(unsafe) var isDone = false
        scene.data.drain { isDone = true }
        #expect(caller.shake() == .done && caller.tls.negotiatedProtocol == "h2")
        #expect(caller.send(String(decoding: Frames.preface, as: UTF8.self)))
        #expect(!isDone)
        var octets: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16384)
        while case .bytes(let count) = buffer.withUnsafeMutableBytes({ caller.tls.read(into: $0) }) {
            octets += buffer.prefix(count)
        }
        // GOAWAY (RFC 9113 §6.8).
        #expect(Frames.read(octets).contains { $0.type == 7 })
        scene.pass(seconds: 1.5)
        scene.pass(seconds: 1.5)
        #expect(caller.peer.isClosed && isDone)
        scene.end()
    }

    /// A stream that comes behind a reload which took the listener away is still served by its routes.
    @Test func aStreamOfAListenerThatIsGoneIsServed() throws {
        let scene = try Scene(Plans.open())
        let caller = scene.call()
        caller.send(Frames.preface)
        scene.settle()
        try scene.reload("routes:\n  - {listen: \"127.0.0.1:8081\", to: \"http://127.0.0.1:9000\", use: none}\n")
        caller.send(Self.request(1))
        scene.settle()
        let upstream = try #require(scene.upstreams.first)
        upstream.send(Wire.ok("late"))
        scene.settle()
        let body = Frames.read(caller.received).filter { $0.type == 0 }.flatMap(\.payload)
        #expect(String(decoding: body, as: UTF8.self) == "late")
        scene.pass(seconds: 2)
        #expect(caller.isClosed)
        scene.end()
    }
}
