internal import HTTP1
internal import Handshakes
internal import TLS
import Testing

@testable import DataPath

/// Bodies that are held to be looked at or signed, fed in every cut that a network may make.
@Suite struct HeldBodyTests {
    private static let chunked = Array("3\r\nabc\r\n1;x=y\r\nd\r\nA\r\n0123456789\r\n0\r\nx: y\r\n\r\n".utf8)
    private static let plain = Array("abcd0123456789".utf8)

    private static func cut(_ bytes: [UInt8], at end: Int, _ read: (UnsafeRawBufferPointer) throws -> Void) rethrows {
        try Array(bytes[..<end]).withUnsafeBytes { try read($0) }
        try bytes.withUnsafeBytes { try read($0) }
    }

    @Test(arguments: 0...chunked.count)
    func aLookSeesWhatTheFramesCarry(cut: Int) throws {
        let look = AnswerLook(BodyReader(BodyFraming.chunked))
        try Self.cut(Self.chunked, at: cut) { try look.read($0) }
        #expect(look.isComplete && look.body == Self.plain)
    }

    @Test(arguments: 0...chunked.count)
    func aDigestIsOfWhatTheFramesCarry(cut: Int) throws {
        let body = GatheredBody(BodyReader(RequestFraming.chunked), from: 0)
        try Self.cut(Self.chunked, at: cut) { try body.read($0) }
        #expect(body.digest == sha256(Self.plain) && body.length == UInt64(Self.plain.count))
    }

    @Test func whatFollowsTheBodyIsNotOfIt() throws {
        let body = GatheredBody(BodyReader(RequestFraming.length(3)), from: 2)
        try Array("..abcGET / HTTP/1.1".utf8).withUnsafeBytes { try body.read($0) }
        #expect(body.digest == sha256(Array("abc".utf8)))
        #expect(GatheredBody(BodyReader(RequestFraming.length(0)), from: 0).digest == GatheredBody.emptyDigest)
    }

    @Test func brokenFramesAreFaults() {
        let look = AnswerLook(BodyReader(BodyFraming.chunked))
        #expect(throws: ChunkFault.self) { try Array("no\r\n".utf8).withUnsafeBytes { try look.read($0) } }
        let open = AnswerLook(BodyReader(BodyFraming.untilClose))
        #expect(throws: Never.self) { try Self.plain.withUnsafeBytes { try open.read($0) } }
        #expect(!open.isComplete && open.body == Self.plain)
    }

    @Test func codings() {
        let text = Array("{}".utf8)
        for name in ["", "identity", "IDENTITY"] {
            #expect(ContentCoding.decode(text, coding: Array(name.utf8), limit: 4) == text)
        }
        for name in ["br", "gzip, gzip", "gzip", "deflate", "x"] {
            #expect(ContentCoding.decode(text, coding: Array(name.utf8), limit: 4) == nil)
        }
        // printf '{}' | gzip -n
        let gzip: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0xAB, 0xAE, 5, 0, 0x43, 0xBF, 0xA6, 0xA3, 2, 0, 0, 0,
        ]
        #expect(ContentCoding.decode(gzip, coding: Array("X-GZIP".utf8), limit: 2) == text)
        #expect(ContentCoding.decode(gzip, coding: Array("gzip".utf8), limit: 1) == nil)
    }
}
