import Glibc
import ScriptedKernel
import TLS
import Testing

@testable import Scenes
@testable import TLSTests

/// An upstream that speaks TLS, played over its end of a connection in memory.
final class SecureUpstream: TLSWire {
    let peer: Peer
    private let scene: Scene
    private(set) var tls: TLSConnection! = nil
    private var inbox: [UInt8] = []

    /// - Parameter callers: the authority of the certificate that it asks for.
    init(
        _ scene: Scene, _ peer: Peer, leaf: String = "good", alpn: [String] = ["http/1.1"], callers: String? = nil
    ) throws {
        self.scene = scene
        self.peer = peer
        let files = try Certificates.shared.get()
        let server = try TLSServerConfiguration(
            certificate: files.bytes("\(leaf).pem"), key: files.bytes("\(leaf).key"), alpn: alpn,
            callerAuthorities: callers.map { files.bytes($0) })
        tls = try TLSConnection(server: server, wire: self)
    }

    func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        inbox += peer.take()
        if inbox.isEmpty { return peer.sawEnd ? 0 : Int(-EAGAIN) }
        let count = min(buffer.count, inbox.count)
        buffer.copyBytes(from: inbox.prefix(count))
        inbox.removeFirst(count)
        return count
    }

    func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        peer.send(bytes)
        return bytes.count
    }

    @discardableResult
    func shake() -> TLSProgress {
        for _ in 0..<100 {
            let progress = tls.handshake()
            scene.settle()
            if progress != .wantsRead, progress != .wantsWrite { return progress }
        }
        return .wantsRead
    }

    func send(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { tls.write($0) }
        scene.settle()
    }

    func send(_ text: String) { send(Array(text.utf8)) }

    /// Everything that is there, and whether its sender has said that no more comes.
    func receive() -> (octets: [UInt8], isEnded: Bool) {
        var octets: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16384)
        while true {
            switch buffer.withUnsafeMutableBytes({ tls.read(into: $0) }) {
            case .bytes(let count): octets += buffer.prefix(count)
            case .closed: return (octets, true)
            default: return (octets, false)
            }
        }
    }

    func receiveText() -> String { String(decoding: receive().octets, as: UTF8.self) }
}

/// Frames of HTTP/2 (RFC 9113 §4.1), and what is in those that were received.
enum Frames {
    static func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8] = []) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 0xff), type, flags, 0, 0, 0, stream] + payload
    }

    static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + settings
    static let settings = frame(4, 0, 0)

    /// `:status 200`, and the end of the stream.
    static func ok(_ stream: UInt8) -> [UInt8] { frame(1, 5, stream, [0x88]) }

    static func reset(_ stream: UInt8, _ code: UInt8) -> [UInt8] { frame(3, 0, stream, [0, 0, 0, code]) }

    struct Frame {
        let type: UInt8
        let flags: UInt8
        let stream: UInt8
        let payload: [UInt8]
    }

    static func read(_ octets: [UInt8]) -> [Frame] {
        var rest = octets[...]
        if rest.starts(with: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)) { rest = rest.dropFirst(24) }
        var frames: [Frame] = []
        while rest.count >= 9 {
            let head = Array(rest.prefix(9))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            frames.append(
                Frame(
                    type: head[3], flags: head[4], stream: head[8], payload: Array(rest.dropFirst(9).prefix(length))))
            rest = rest.dropFirst(9 + length)
        }
        return frames
    }
}
