internal import CNghttp2
public import HTTP1

/// Who uses a stream.
public protocol HTTP2StreamUser: AnyObject {
    /// Something can be read, the end of input or a reset among it, or output has gone out. Called between two turns of the connection,
    /// never from inside one of its calls.
    func streamReady(_ stream: HTTP2Stream)
}

/// A stream of a connection, seen as a pair of byte streams in HTTP/1.1's form: what is read is the head as an HTTP/1.1 head (interim
/// ones before it), then the body's bytes without any framing, and what is written is the same.
///
/// Flow control follows the reader: credit is given to the peer when bytes are read, so that at most one window waits here.
///
/// The object is used again for another request of its loop once nobody holds it (`SpareStreams`), so that whoever does hold it never meets
/// another request's bytes.
public final class HTTP2Stream {
    /// The stream identifier (RFC 9113 §5.1.1); zero before the stream is opened.
    public private(set) var id: Int32
    /// Strong, so a cycle while it is set: `cancel` cuts it, which whoever reads a stream calls at the end. A weak one would send every
    /// reference count of the user through a side table.
    public var user: (any HTTP2StreamUser)?

    // Input.
    var window: ReceiveWindow
    var input: BlockQueue
    /// Bytes of heads in `input`; they stand before the body's.
    var headBytes = 0
    /// A head was queued, if only an interim one.
    var hasHeads = false
    /// The index of the head that the stream's bytes begin with; none behind an interim answer.
    public internal(set) var headIndex = HeadIndex()
    /// The head that a request or a final answer begins with is complete.
    public internal(set) var hasHead = false
    /// A head that cannot be served.
    public internal(set) var refusal: HeadRefusal?
    /// The head's `Content-Length`; nil when the length is not known before the end.
    public internal(set) var contentLength: UInt64?
    /// The peer's `te: trailers`.
    public internal(set) var acceptsTrailers = false
    /// The port of a request's scheme, 80 or 443 (RFC 9110 §4.2); 0 of another one, and without.
    public internal(set) var schemePort: UInt16 = 0
    /// END_STREAM has come; bytes may still wait.
    public internal(set) var inputEnded = false
    /// Field lines behind the body, each with CRLF; complete with `inputEnded`.
    public internal(set) var trailers: [UInt8] = []
    /// Why the stream ended early (RFC 9113 §7).
    public internal(set) var resetCode: UInt32?
    /// The side that reset the stream.
    public internal(set) var resetBy = Resetter.us

    // Output.
    /// The credential of the head that waits to be sent.
    var credential: HeldValue
    var output: BlockQueue
    var outputEnded = false
    var outputTrailers: [UInt8] = []
    /// The last of our bytes has been handed to the connection.
    var endSent = false
    /// The stream has no reader any more.
    var isAbandoned = false
    /// The stream is reset with this code once the waiting bytes have gone out, as far as the peer takes them.
    var cutCode: HTTP2ErrorCode?
    /// nghttp2 asked for body bytes and got none; it has to be told when there are some.
    var isDeferred = false
    /// Its user is to be told.
    var isMarked = false
    /// The stream has left the connection's table, and the reference that the table had is that of its mark.
    var isLeaving = false
    /// In the `StreamRow` that it stands in.
    var next: Unmanaged<HTTP2Stream>?
    /// Nil when the stream is closed. Not counted: a connection lets go of its open streams when it ends (`abandon`, `deinit`), and of a closed
    /// one before that.
    var connection: Unmanaged<HTTP2Connection>?

    /// Why a head was not sent. `tooLarge`: its field section exceeds what the peer takes.
    public enum HeadRefusal: Sendable { case tooLarge }

    /// Who ended a stream early: we did, for what came on it or for want of room, the peer did, or it went with its connection.
    public enum Resetter: Sendable { case us, peer, connection }

    init(id: Int32, connection: HTTP2Connection) {
        self.id = id
        self.connection = .passUnretained(connection)
        window = ReceiveWindow(from: connection.limits.firstStreamWindow, to: connection.limits.streamWindow)
        input = BlockQueue(source: connection.blocks, memory: connection.memory)
        output = BlockQueue(source: connection.blocks, memory: connection.memory)
        credential = HeldValue(memory: connection.memory)
    }

    /// Makes it a new request's, of a connection of the same loop: nothing of the last one's is left.
    func begin(_ id: Int32, _ connection: HTTP2Connection) {
        self.id = id
        self.connection = .passUnretained(connection)
        if user != nil { user = nil }
        window = ReceiveWindow(from: connection.limits.firstStreamWindow, to: connection.limits.streamWindow)
        input.begin(source: connection.blocks)
        headBytes = 0
        hasHeads = false
        headIndex.clear()
        hasHead = false
        refusal = nil
        contentLength = nil
        acceptsTrailers = false
        schemePort = 0
        inputEnded = false
        // Most often empty already: giving up even an empty array costs a locked instruction.
        if !trailers.isEmpty { trailers = [] }
        resetCode = nil
        resetBy = .us
        cutCode = nil
        credential.drop()
        output.begin(source: connection.blocks)
        outputEnded = false
        if !outputTrailers.isEmpty { outputTrailers = [] }
        endSent = false
        isAbandoned = false
        isDeferred = false
        isMarked = false
        isLeaving = false
    }

    /// Lends the connection without a reference to count: its socket holds it, and nothing that a stream asks of it ends that.
    @inline(__always)
    private func withConnection<Result>(_ body: (HTTP2Connection) -> Result) -> Result? {
        connection?._withUnsafeGuaranteedRef(body)
    }
}

// MARK: - Reading

extension HTTP2Stream {
    /// How a read ended.
    public enum Reading: Equatable, Sendable {
        case bytes(Int)
        case notNow
        /// All of it was read, trailers apart.
        case ended
        case reset
    }

    /// Copies bytes out of the queue; windows that they filled are opened again for the peer.
    public func read(into target: UnsafeMutableRawBufferPointer) -> Reading {
        if input.count > 0 {
            let count = input.read(into: target)
            let body = max(0, count - headBytes)
            headBytes = max(0, headBytes - count)
            if body > 0 { withConnection { $0.consumed(body, of: self) } }
            return .bytes(count)
        }
        if inputEnded { return .ended }
        return resetCode == nil && connection != nil ? .notNow : .reset
    }

    /// All that there is to read and will ever be, in the memory it lies in: a short message, of which nothing need be copied.
    /// - Returns: nil where more may come or the bytes lie elsewhere, and what is there is to be read. The piece is to be given back to the
    ///   loop's `HTTP2Memory`, and nothing is to be written behind the bytes.
    public func takePiece() -> (piece: UnsafeMutableRawBufferPointer, count: Int)? {
        guard inputEnded else { return nil }
        let count = input.count
        guard let piece = input.takePiece() else { return nil }
        let body = max(0, count - headBytes)
        headBytes = max(0, headBytes - count)
        if body > 0 { withConnection { $0.consumed(body, of: self) } }
        return (piece, count)
    }

    /// The stream ended early, by the peer's word or with its connection.
    public var isReset: Bool { resetCode != nil && !(inputEnded && endSent) }

    /// We reset it before its end, since what came of it breaks the protocol or found no room.
    public var isRefused: Bool { resetCode != nil && resetBy == .us && !inputEnded }

    /// The peer vouches that it did not look at the request (RFC 9113 §8.7), or wants it in another version of HTTP.
    public var wasNotProcessed: Bool {
        resetCode == HTTP2ErrorCode.refusedStream.rawValue || resetCode == HTTP2ErrorCode.http11Required.rawValue
    }

    /// Bytes wait to be read.
    public var hasBytes: Bool { input.count > 0 }
    /// Nothing is to be read, now or later.
    public var isDrained: Bool { input.count == 0 && inputEnded }
    /// A read would not end with `notNow`.
    public var hasInput: Bool { input.count > 0 || inputEnded || resetCode != nil || connection == nil }

    // MARK: - Writing

    /// Bytes that wait to be sent.
    public var pendingCount: Int { output.count }
    /// Memory is short: nothing should be added to what waits already.
    public var isShort: Bool { withConnection { $0.blocks.isShort } ?? false }
    /// Our side has ended, and all of it has gone to the connection.
    public var isSent: Bool { endSent }
    /// Everything written has gone to the connection, the end of the stream included.
    public var isFlushed: Bool { connection == nil || output.count == 0 && (!outputEnded || endSent) }

    /// Sends the head of a final answer of our own, in HTTP/1.1's form.
    ///
    /// - Parameters:
    ///   - head: is changed in place.
    ///   - ended: no body follows.
    /// - Returns: false when the stream cannot carry it.
    public func send(response head: UnsafeMutableRawBufferPointer, ended: Bool) -> Bool {
        withConnection { $0.submit(response: head, on: self, ended: ended) } ?? false
    }

    /// Sends the head of a final answer that is passed on.
    ///
    /// - Parameters:
    ///   - head: as `writeResponse` writes it.
    ///   - received: the head's bytes it was written from.
    ///   - ended: no body follows.
    /// - Returns: false when the stream cannot carry it.
    public func send(response head: borrowing OutgoingHead, received: UnsafeRawBufferPointer, ended: Bool) -> Bool {
        withConnection { $0.submit(response: head, received: received, on: self, ended: ended) } ?? false
    }

    /// Interim answers (RFC 9110 §15.2).
    public func send(interim head: UnsafeMutableRawBufferPointer) -> Bool {
        withConnection { $0.submit(interim: head, on: self) } ?? false
    }

    /// Queues bytes of the body; the caller keeps the queue short by writing only while `pendingCount` is small.
    /// - Returns: false when the stream is gone or no memory could be had.
    public func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard connection != nil, resetCode == nil, !outputEnded else { return false }
        guard bytes.count > 0 else { return true }
        guard output.append(bytes) else { return false }
        withConnection { $0.hasOutput(self) }
        return true
    }

    /// Ends the body.
    /// - Parameter trailers: field lines, each with CRLF; may be empty.
    public func end(trailers: UnsafeRawBufferPointer = .init(start: nil, count: 0)) -> Bool {
        guard connection != nil, resetCode == nil, !outputEnded else { return false }
        // There are none before the end.
        if trailers.count > 0 { outputTrailers = Array(trailers) }
        outputEnded = true
        withConnection { $0.hasOutput(self) }
        return true
    }

    /// Gives an answer up in its middle: what was written of it goes out as far as the peer takes it now, and then the reset.
    /// - Parameter code: of RFC 9113 §7, not `none`: without an error a part of an answer could be taken for a whole one.
    public func cut(_ code: HTTP2ErrorCode) {
        cutCode = code
        cancel(code)
    }

    /// Gives the stream up: it is reset unless both sides have ended it.
    /// - Parameter code: of RFC 9113 §7.
    public func cancel(_ code: HTTP2ErrorCode = .cancel) {
        if user != nil { user = nil }
        // The first code stands.
        guard !isAbandoned else { return }
        isAbandoned = true
        withConnection { connection in
            // Bytes that nobody will read give their credit back.
            let unread = max(0, input.count - headBytes)
            if unread > 0 { connection.consumed(unread, of: self) }
            connection.cancel(self, code)
        }
        input.clear()
    }
}
