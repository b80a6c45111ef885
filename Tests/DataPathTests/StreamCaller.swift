import HTTP2
import ScriptedKernel
import Testing

@testable import DataPath
@testable import Scenes

/// A caller of HTTP/2 without TLS, on its end of a connection in memory: the gateway's answers are carried to it by `settle`.
final class StreamCaller {
    let peer: Peer
    private let scene: Scene
    private let client: HTTP2Connection
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)

    /// - Parameter peer: nil: from a loopback address.
    init(_ scene: Scene, _ peer: Peer? = nil) throws {
        self.scene = scene
        self.peer = peer ?? scene.call()
        client = try #require(HTTP2Connection(role: .client, limits: HTTP2Limits(), blocks: TestBlocks()))
    }

    deinit { buffer.deallocate() }

    /// - Parameter ended: no body follows.
    func ask(_ head: String, acceptsTrailers: Bool = false, ended: Bool = true) throws -> HTTP2Stream {
        var head = Array(head.utf8)
        let stream = head.withUnsafeMutableBytes {
            client.open(
                request: $0, scheme: "http", secretName: [], secretTarget: false, acceptsTrailers: acceptsTrailers,
                ended: ended)
        }
        settle()
        return try #require(stream)
    }

    func write(_ text: String, on stream: HTTP2Stream) {
        #expect(Array(text.utf8).withUnsafeBytes { stream.write($0) })
        settle()
    }

    /// - Parameter trailers: field lines, each with CRLF.
    func end(_ stream: HTTP2Stream, trailers: String = "") {
        #expect(Array(trailers.utf8).withUnsafeBytes { stream.end(trailers: $0) })
        settle()
    }

    /// Everything that has come on a stream, as HTTP/1.1 would write it without framing.
    func read(_ stream: HTTP2Stream) -> String {
        settle()
        return stream.readText()
    }

    /// Carries octets until neither end has more.
    func settle() {
        for _ in 0..<50 {
            client.tellUsers()
            let count = client.send(into: buffer)
            if count > 0 { peer.send(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            scene.settle()
            let octets = peer.take()
            if !octets.isEmpty { #expect(octets.withUnsafeBytes { client.receive($0, now: 1) }) }
            client.tellUsers()
            if count == 0, octets.isEmpty { return }
        }
        Issue.record("the two ends do not come to rest")
    }
}

/// An upstream of HTTP/2 without TLS, on its end of a connection in memory.
final class StreamServer {
    let peer: Peer
    private let scene: Scene
    private let server: HTTP2Connection
    private let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 66 * 1024, alignment: 16)

    init(_ scene: Scene, _ peer: Peer) throws {
        self.scene = scene
        self.peer = peer
        server = try #require(HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: TestBlocks()))
        settle()
    }

    deinit { buffer.deallocate() }

    /// The next request that has come.
    func nextOpened() -> HTTP2Stream? {
        settle()
        return server.nextOpened()
    }

    func read(_ stream: HTTP2Stream) -> String {
        settle()
        return stream.readText()
    }

    func answer(_ stream: HTTP2Stream, _ head: String, body: String = "") {
        var head = Array(head.utf8)
        #expect(head.withUnsafeMutableBytes { stream.send(response: $0, ended: body.isEmpty) })
        if !body.isEmpty { #expect(Array(body.utf8).withUnsafeBytes { stream.write($0) } && stream.end()) }
        settle()
    }

    /// Carries octets until neither end has more.
    func settle() {
        for _ in 0..<50 {
            server.tellUsers()
            let count = server.send(into: buffer)
            if count > 0 { peer.send(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            scene.settle()
            let octets = peer.take()
            if !octets.isEmpty { #expect(octets.withUnsafeBytes { server.receive($0, now: 1) }) }
            server.tellUsers()
            if count == 0, octets.isEmpty { return }
        }
        Issue.record("the two ends do not come to rest")
    }
}

private final class TestBlocks: BlockSource {
    func take() -> UnsafeMutableRawBufferPointer? { .allocate(byteCount: 16 * 1024, alignment: 16) }
    func give(_ block: UnsafeMutableRawBufferPointer) { block.deallocate() }
}

extension HTTP2Stream {
    /// Everything that has come, as HTTP/1.1 would write it without framing.
    fileprivate func readText() -> String {
        var octets: [UInt8] = []
        withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 1) { buffer in
            while case .bytes(let count) = read(into: buffer) { octets += buffer[..<count] }
        }
        return String(decoding: octets, as: UTF8.self)
    }
}
