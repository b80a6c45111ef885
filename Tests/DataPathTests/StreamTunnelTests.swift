import ScriptedKernel
import Testing

@testable import Scenes

/// Tunnels through a stream of HTTP/2 (RFC 9113 §8.5): how they end.
@Suite struct StreamTunnelTests {
    private static let plan = """
        listeners:
          edge: {address: "127.0.0.1:8080", mode: forward_proxy, unmatched: tunnel}
        routes:
          - {name: a, listen: edge, match: {host: api.test}, to: "http://127.0.0.1:9000", use: none}

        """

    private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + frame(4, 0, 0)

    private static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        [0, 0, UInt8(payload.count), type, flags, 0, 0, 0, stream] + payload
    }

    private static func connect(_ authority: String) -> [UInt8] {
        let method = [0x02, 7] + Array("CONNECT".utf8)
        return frame(1, 4, 1, method + [0x01, UInt8(authority.utf8.count)] + Array(authority.utf8))
    }

    /// What came of stream 1.
    private struct Seen {
        var text = ""
        var isEnded = false
        var resetCode: UInt8?

        init(_ octets: [UInt8]) {
            var rest = octets[...]
            while rest.count >= 9 {
                let frame = Array(rest.prefix(9))
                let length = Int(frame[0]) << 16 | Int(frame[1]) << 8 | Int(frame[2])
                let payload = rest.dropFirst(9).prefix(length)
                rest = rest.dropFirst(9 + length)
                guard frame[8] == 1 else { continue }
                if frame[3] == 0 { text += String(decoding: payload, as: UTF8.self) }
                if frame[3] < 2, frame[4] & 1 != 0 { isEnded = true }
                if frame[3] == 3 { resetCode = payload.last }
            }
        }
    }

    /// A tunnel that stands, and its two ends.
    private func tunnel() throws -> (scene: Scene, caller: Peer, far: Peer) {
        let scene = try Scene(Self.plan)
        let caller = scene.call()
        caller.send(Self.preface + Self.connect("203.0.113.5:80"))
        scene.settle()
        caller.send(Self.frame(0, 0, 1, Array("hello".utf8)))
        scene.settle()
        #expect(try #require(scene.upstreams.first).receivedText == "hello")
        return (scene, caller, scene.upstreams[0])
    }

    @Test(arguments: [true, false], [true, false])
    func bothSidesEndInOrder(callerFirst: Bool, isSlow: Bool) throws {
        let (scene, caller, far) = try tunnel()
        if isSlow { caller.window = 0 }
        if callerFirst { caller.send(Self.frame(0, 1, 1)) }
        scene.settle()
        far.send("bye")
        far.finish()
        scene.settle()
        if !callerFirst { caller.send(Self.frame(0, 1, 1)) }
        scene.settle()
        if isSlow { caller.window = .max }
        scene.settle()
        let seen = Seen(caller.received)
        #expect(seen.text == "bye" && seen.isEnded && seen.resetCode == nil)
        #expect(far.sawEnd && far.isClosed)
        scene.end()
    }

    /// RFC 9113 §8.5: an error of the far connection is one of type CONNECT_ERROR.
    @Test func aLostFarSideIsToldAsSuch() throws {
        let (scene, caller, far) = try tunnel()
        far.send("half")
        far.reset()
        scene.settle()
        let seen = Seen(caller.received)
        #expect(seen.text == "half" && !seen.isEnded && seen.resetCode == 0xa)
        scene.end()
    }
}
