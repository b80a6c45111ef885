import HTTP1
import Testing

@testable import HTTP2

/// A stream's account of itself, of which nothing is left when the stream is used for another request.
@Suite struct StreamStateTests {
    private let memory = HTTP2Memory()
    private let blocks = CountedBlocks(limit: 10)
    private let connection: HTTP2Connection

    init() throws {
        connection = try #require(
            HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: blocks, memory: memory))
    }

    private func stream(isLost: Bool = false) -> HTTP2Stream {
        let stream = HTTP2Stream(id: 1, connection: connection)
        if isLost { stream.connection = nil }
        return stream
    }

    private final class Listener: HTTP2StreamUser {
        func streamReady(_ stream: HTTP2Stream) {}
    }

    private static func append(_ count: Int, to stream: HTTP2Stream) -> Bool {
        [UInt8](repeating: 0x61, count: count).withUnsafeBytes { stream.input.append($0) }
    }

    // MARK: - Anew

    @Test func `a new stream is one of which nothing has come yet`() {
        let fresh = stream()
        Self.expectAnew(fresh)
        #expect(fresh.id == 1 && fresh.window.size == HTTP2Limits().firstStreamWindow)
        #expect(fresh.connection?.takeUnretainedValue() === connection)
    }

    @Test func `a stream that begins anew has nothing of its last request`() throws {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = 1000
        limits.streamWindow = 2000
        let others = CountedBlocks(limit: 10)
        let other = try #require(
            HTTP2Connection(role: .server, limits: limits, blocks: others, memory: memory))
        // A stream does not hold its connection.
        defer { withExtendedLifetime(other) {} }
        let stream = stream()
        Self.leaveAll(on: stream)
        #expect(blocks.taken == 2)
        stream.begin(3, other)
        Self.expectAnew(stream)
        #expect(stream.id == 3 && stream.connection?.takeUnretainedValue() === other)
        #expect(stream.window.size == 1000 && blocks.taken == 0)
        // The bounds are those of its new connection, and so is the memory.
        #expect(stream.window.read(1000, isShort: false) == 2000 && stream.window.read(2000, isShort: false) == nil)
        #expect(Self.append(2000, to: stream) && others.taken == 1 && blocks.taken == 0)
        #expect(stream.write(String(repeating: "b", count: 2000)) && others.taken == 2 && blocks.taken == 0)
        #expect(stream.readAll() == String(repeating: "a", count: 2000))
        stream.output.clear()
        #expect(others.taken == 0)
    }

    /// All that a request can leave.
    private static func leaveAll(on stream: HTTP2Stream) {
        stream.user = Listener()
        #expect(append(2000, to: stream))
        stream.headBytes = 5
        stream.hasHeads = true
        stream.headIndex.begin(status: 200, reason: [UInt8]().span)
        stream.headIndex.end()
        stream.hasHead = true
        stream.refusal = .tooLarge
        stream.contentLength = 5
        stream.acceptsTrailers = true
        stream.schemePort = 443
        stream.inputEnded = true
        stream.trailers = [1]
        stream.resetCode = 8
        stream.resetBy = .peer
        stream.cutCode = .cancel
        #expect([UInt8]("key".utf8).withUnsafeBytes { stream.credential.hold($0) })
        #expect([UInt8](repeating: 0x61, count: 2000).withUnsafeBytes { stream.output.append($0) })
        stream.outputEnded = true
        stream.outputTrailers = [1]
        stream.endSent = true
        stream.isAbandoned = true
        stream.isDeferred = true
        stream.isMarked = true
        stream.isLeaving = true
    }

    private static func expectAnew(_ stream: HTTP2Stream) {
        #expect(stream.user == nil && stream.input.count == 0 && stream.headBytes == 0 && !stream.hasHeads)
        let isKnown = stream.headIndex.isKnown
        #expect(!isKnown && !stream.hasHead && stream.refusal == nil && stream.contentLength == nil)
        #expect(!stream.acceptsTrailers && stream.schemePort == 0 && !stream.inputEnded && stream.trailers.isEmpty)
        #expect(stream.resetCode == nil && stream.resetBy == .us && stream.cutCode == nil)
        #expect(stream.credential.count == 0 && stream.output.count == 0 && !stream.outputEnded)
        #expect(stream.outputTrailers.isEmpty && !stream.endSent && !stream.isAbandoned && !stream.isDeferred)
        #expect(!stream.isMarked && !stream.isLeaving)
        #expect(!stream.isReset && !stream.isRefused && !stream.wasNotProcessed && !stream.isSent)
        #expect(!stream.hasBytes && !stream.isDrained && !stream.hasInput && stream.isFlushed)
        #expect(stream.pendingCount == 0 && !stream.isShort)
    }

    // MARK: - Ends

    /// The code says that a stream has ended early, unless both sides had ended it before.
    @Test(arguments: [false, true], [false, true])
    func `a stream with a code is reset unless it was over`(inputEnded: Bool, endSent: Bool) {
        let stream = stream()
        stream.inputEnded = inputEnded
        stream.endSent = endSent
        #expect(!stream.isReset)
        stream.resetCode = 0
        #expect(stream.isReset == (!inputEnded || !endSent))
    }

    @Test(arguments: [HTTP2Stream.Resetter.us, .peer, .connection], [false, true])
    func `a stream that we reset before its end is refused`(by: HTTP2Stream.Resetter, inputEnded: Bool) {
        let stream = stream()
        stream.inputEnded = inputEnded
        stream.resetBy = by
        #expect(!stream.isRefused)
        stream.resetCode = 1
        #expect(stream.isRefused == (by == .us && !inputEnded))
    }

    /// REFUSED_STREAM and HTTP_1_1_REQUIRED; every other code may stand for a request that was looked at (RFC 9113 §7).
    @Test(arguments: UInt32(0)...16) func `two codes say that a request was not processed`(code: UInt32) {
        let stream = stream()
        stream.resetCode = code
        #expect(stream.wasNotProcessed == (code == 7 || code == 13))
    }

    @Test(
        arguments: [
            (HTTP2ErrorCode.none, 0), (.protocolError, 1), (.internalError, 2), (.refusedStream, 7), (.cancel, 8),
            (.connectError, 10), (.enhanceYourCalm, 11), (.inadequateSecurity, 12), (.http11Required, 13),
        ] as [(HTTP2ErrorCode, UInt32)])
    func `codes are those of RFC 9113`(code: HTTP2ErrorCode, number: UInt32) {
        #expect(code.rawValue == number)
    }

    // MARK: - Reading

    private func reading(_ stream: HTTP2Stream) -> HTTP2Stream.Reading {
        var target = [UInt8](repeating: 0, count: 4)
        return target.withUnsafeMutableBytes { stream.read(into: $0) }
    }

    /// Bytes that have come are read first, then their end, and only then that there is no more.
    @Test(arguments: [0, 6], [nil, 8] as [UInt32?])
    func `a read ends with what came last`(bytes: Int, code: UInt32?) {
        for (isLost, ended) in [(false, false), (false, true), (true, false), (true, true)] {
            let stream = stream(isLost: isLost)
            #expect(Self.append(bytes, to: stream))
            stream.inputEnded = ended
            stream.resetCode = code
            let isOver = code != nil || isLost
            #expect(stream.hasBytes == (bytes > 0) && stream.isDrained == (bytes == 0 && ended))
            #expect(stream.hasInput == (bytes > 0 || ended || isOver))
            if bytes > 0 {
                #expect(reading(stream) == .bytes(4) && stream.hasBytes)
                #expect(reading(stream) == .bytes(2) && !stream.hasBytes)
            }
            #expect(reading(stream) == (ended ? .ended : isOver ? .reset : .notNow))
        }
    }

    // MARK: - Writing

    @Test(arguments: [0, 5], [false, true])
    func `a stream is flushed when nothing waits, its end included`(bytes: Int, endSent: Bool) {
        for (isLost, ended) in [(false, false), (false, true), (true, false), (true, true)] {
            let stream = stream(isLost: isLost)
            #expect([UInt8](repeating: 0x61, count: bytes).withUnsafeBytes { stream.output.append($0) })
            stream.outputEnded = ended
            stream.endSent = endSent
            #expect(stream.isFlushed == (isLost || bytes == 0 && (!ended || endSent)) && stream.isSent == endSent)
        }
    }

    /// The hindrances are a lost connection, a reset by anybody, and an end of our own.
    @Test func `nothing is written to a stream that takes no more`() {
        for hindrance in 0..<4 {
            let stream = stream(isLost: hindrance == 1)
            if hindrance == 2 { stream.resetCode = 0 }
            if hindrance == 3 { stream.outputEnded = true }
            #expect(stream.write("a") == (hindrance == 0) && stream.write("") == (hindrance == 0))
            #expect(stream.pendingCount == (hindrance == 0 ? 1 : 0))
            #expect([UInt8]("t: u\r\n".utf8).withUnsafeBytes { stream.end(trailers: $0) } == (hindrance == 0))
            #expect(stream.outputEnded == (hindrance == 0 || hindrance == 3))
            #expect(stream.outputTrailers.isEmpty == (hindrance != 0))
        }
    }

    @Test func `memory is short where its source says so`() throws {
        let scarce = ScarceBlocks()
        let connection = try #require(HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: scarce))
        defer { withExtendedLifetime(connection) {} }
        let stream = HTTP2Stream(id: 1, connection: connection)
        #expect(stream.isShort)
        scarce.isShort = false
        #expect(!stream.isShort)
    }

    private final class ScarceBlocks: BlockSource {
        var isShort = true
        func take() -> UnsafeMutableRawBufferPointer? { nil }
        func give(_ block: UnsafeMutableRawBufferPointer) {}
    }

    // MARK: - Rows

    private static func ids(_ row: inout StreamRow) -> [Int32] {
        var ids: [Int32] = []
        while let entry = row.popFirst() { ids.append(entry.takeUnretainedValue().id) }
        return ids
    }

    @Test func `a row has its streams in the order in which they came`() {
        let streams = (0..<4).map { HTTP2Stream(id: $0, connection: connection) }
        // A row does not hold its streams.
        defer { withExtendedLifetime(streams) {} }
        var row = StreamRow()
        #expect(row.isEmpty && row.popFirst() == nil)
        for stream in streams[..<3] { row.append(stream) }
        #expect(!row.isEmpty && row.popFirst()?.takeUnretainedValue() === streams[0])
        // A stream that has left comes again, behind those that stayed, and is the last then.
        row.append(streams[0])
        row.append(streams[3])
        #expect(Self.ids(&row) == [1, 2, 0, 3] && row.isEmpty && row.first == nil)
        row.append(streams[2])
        #expect(Self.ids(&row) == [2] && row.isEmpty)
        row.append(streams[1])
        row.append(streams[2])
        #expect(Self.ids(&row) == [1, 2])
    }
}
