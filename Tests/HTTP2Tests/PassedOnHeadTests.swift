import HTTP1
import Testing

@testable import HTTP2

/// A head that is passed on field by field needs a connection that takes it, as any head does.
@Suite final class PassedOnHeadTests {
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)

    deinit { memory.deallocate() }

    private func open(_ pair: Pair, lines: String = "") throws -> HTTP2Stream? {
        let bytes = Array("GET /a HTTP/1.1\r\nhost: a\r\n\(lines)\r\n".utf8)
        var head = RequestHead(maxFields: 256)
        #expect(try head.parse(bytes.span, limits: HeadLimits(fields: 256)) == bytes.count)
        var output = OutgoingHead()
        output.begin(in: memory)
        writeRequest(head, bytes: bytes.span, edits: RequestEdits(), credential: nil, framing: .none, into: &output)
        return bytes.withUnsafeBytes {
            pair.client.open(
                request: output, received: $0, scheme: "https", secretName: [], secretTarget: false,
                acceptsTrailers: false, ended: true)
        }
    }

    private func respond(_ stream: HTTP2Stream) throws -> Bool {
        let bytes = Array("HTTP/1.1 200 OK\r\nx: y\r\n\r\n".utf8)
        var head = ResponseHead(maxFields: 8)
        #expect(try head.parse(bytes.span, limits: HeadLimits()) == bytes.count)
        var output = OutgoingHead()
        output.begin(in: memory)
        writeResponse(
            head, bytes: bytes.span, edits: ResponseEdits(), callerOrigin: [UInt8]().span, isPrivate: false,
            lines: [UInt8]().span, framing: .none, into: &output)
        return bytes.withUnsafeBytes { stream.send(response: output, received: $0, ended: true) }
    }

    @Test func `a connection that has as many streams as it may takes no head more`() throws {
        var limits = HTTP2Limits()
        limits.streams = 2
        let pair = Pair(limits: limits)
        pair.exchange()
        let first = try #require(try open(pair))
        _ = try #require(try open(pair))
        #expect(try open(pair) == nil && pair.client.openStreams == 2)
        pair.exchange()
        let opened = pair.server.takeOpened()
        #expect(opened.count == 2)
        #expect(try respond(opened[0]))
        pair.exchange()
        #expect(first.readAll().hasPrefix("HTTP/1.1 200 "))
        #expect(try open(pair) != nil, "there is room again")
    }

    @Test func `an answer on a lost connection is not sent`() throws {
        let pair = Pair()
        _ = try #require(try open(pair))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        pair.server.abandon(.internalError)
        #expect(try !respond(stream))
    }

    @Test func `every field of a head with more of them than there was room for arrives`() throws {
        let pair = Pair()
        let lines = (0..<200).map { "x-\($0): \($0)\r\n" }.joined()
        _ = try #require(try open(pair, lines: lines))
        pair.exchange()
        #expect(try #require(pair.server.takeOpened().first).readAll() == "GET /a HTTP/1.1\r\n\(lines)host: a\r\n\r\n")
    }

    // MARK: - Streams that are used again

    private final class Listener: HTTP2StreamUser {
        private(set) var told = 0
        func streamReady(_ stream: HTTP2Stream) { told += 1 }
    }

    @Test func `a stream that is used again tells its last user nothing`() throws {
        let pair = Pair()
        let listener = Listener()
        var last: ObjectIdentifier?
        for round in 0..<2 {
            let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
            if round == 0 { asked.user = listener } else { #expect(ObjectIdentifier(asked) == last) }
            last = ObjectIdentifier(asked)
            pair.exchange()
            #expect(
                try #require(pair.server.takeOpened().first).respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
            pair.exchange()
            pair.client.tellUsers()
            pair.server.tellUsers()
            #expect(listener.told == 1, "only of its own request")
        }
    }

    /// What closes at once after a burst is kept for the next requests, and not without end.
    @Test func `no more than 512 closed streams are kept`() throws {
        var limits = HTTP2Limits()
        limits.streams = 700
        let pair = Pair(limits: limits)
        pair.exchange()
        var closed: [() -> HTTP2Stream?] = []
        for _ in 0..<600 {
            let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
            closed.append { [weak asked] in asked }
        }
        pair.exchange()
        for stream in pair.server.takeOpened() {
            #expect(stream.respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
        }
        pair.exchange()
        pair.client.tellUsers()
        #expect(pair.client.openStreams == 0)
        #expect(closed.filter { $0() != nil }.count == 512)
    }
}
