internal import CNghttp2
public import HTTP1

/// The owner of a connection's socket, which is told when the connection has something to send.
public protocol HTTP2ConnectionHost: AnyObject {
    /// Something waits to be sent. Called once until `send` is called.
    func connectionHasOutput()
}

/// An HTTP/2 connection without its socket: bytes go in, streams change, bytes come out (RFC 9113, by nghttp2).
///
/// Not reentrant: what the peer's bytes bring about is noted while they are read, and told afterwards by `nextOpened` and
/// `tellUsers`. One loop owns it.
public final class HTTP2Connection {
    /// Fixed when the connection is made.
    public let role: Role
    /// Unchecked: the host owns the connection, and takes itself away before it goes. A weak one would send every reference count of the host
    /// through a side table.
    public unowned(unsafe) var host: (any HTTP2ConnectionHost)?
    /// The peer takes no more streams, or we do not.
    public internal(set) var isGoingAway = false

    /// The peer's first SETTINGS have come: what it offers is known.
    public internal(set) var knowsPeer = false

    let blocks: any BlockSource
    let limits: HTTP2Limits
    var streams = StreamTable()
    /// Opened streams; those from `firstOpened` on were not taken yet.
    var opened: [Unmanaged<HTTP2Stream>] = []
    private var firstOpened = 0
    /// Each once. The table holds those that stand in it; one that has left it is held here (`isLeaving`), as it has nobody else, perhaps.
    private var marked = StreamRow()
    /// Held: those that have left the table and whose users were told so, until nobody is being told of them any more.
    private var told = StreamRow()
    /// Calls of `tellUsers` that are under way: a user may end the connection, and the others are told within that.
    private var tellings = 0
    var assembly: HeadAssembly
    /// The watch of a server's connection; a client's peer is bounded by its requests' own timeouts.
    private var sections = FieldSectionWatch(preface: HTTP2Connection.prefaceSize)
    var gauge = FloodGauge()
    /// The window of a server's connection. A client's has all of its window from the start: see `dataCame`.
    var window: ReceiveWindow
    var now: UInt64 = 0
    /// On a client's side a later frame may contradict an earlier one (RFC 9113 §8.1.1). nghttp2 passes over it without a word and queues a
    /// reset, or the connection's end, whose leaving alone says for which stream: `send` is to be asked before anybody takes such an answer for
    /// a good one.
    public private(set) var owesReset = false
    /// When the last octets of a body went out; zero: none have. By the clock of `receive` and `send`.
    public internal(set) var sentDataAt: UInt64 = 0
    /// Bytes that came, less those of frames that were told of and those that may still be on their way to a stream that we closed.
    var unexplained = 0
    /// Bytes of the DATA frame that is being read, padding apart.
    var bytesOfFrame = 0
    /// Set by `send` for as long as it runs.
    var out = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    var outCount = 0
    private var isDirty = false
    var failed = false
    var isBroken = false
    var isAbandoned = false
    private var list = FieldList()
    var finishing: [HTTP2Stream] = []
    let session: OpaquePointer
    let memory: HTTP2Memory

    /// Which end of the connection this side is.
    public enum Role: Sendable { case server, client }

    /// Octets of the client's connection preface (RFC 9113 §3.4).
    private static let prefaceSize = 24

    /// - Parameters:
    ///   - blocks: where the streams' queues take their memory.
    ///   - memory: for what streams and frames need; of the same loop.
    /// - Returns: nil when there is no memory.
    public init?(role: Role, limits: HTTP2Limits, blocks: any BlockSource, memory: HTTP2Memory = HTTP2Memory()) {
        self.role = role
        self.limits = limits
        self.blocks = blocks
        self.memory = memory
        assembly = HeadAssembly(limit: limits.headerSize)
        window = ReceiveWindow(from: limits.firstConnectionWindow, to: limits.connectionWindow)
        guard let made = Self.makeSession(role, memory) else { return nil }
        session = made
        // No callback comes before the first octets do.
        nghttp2_session_set_user_data(made, Unmanaged.passUnretained(self).toOpaque())
        submitSettings()
    }

    deinit {
        streams.forEach { $0.connection = nil }
        while let stream = marked.popFirst() {
            if stream._withUnsafeGuaranteedRef({ $0.isLeaving }) { stream.release() }
        }
        while let stream = told.popFirst() { stream.release() }
        for stream in opened[firstOpened...] { stream.release() }
        nghttp2_session_del(session)
    }
}

// MARK: - Bytes

extension HTTP2Connection {
    /// Takes bytes of the peer.
    /// - Parameter now: nanoseconds of any steady clock.
    /// - Returns: false when the connection cannot go on; what `send` still gives says why to the peer.
    public func receive(_ bytes: UnsafeRawBufferPointer, now: UInt64) -> Bool {
        guard !failed else { return false }
        self.now = now
        if role == .server { sections.pass(bytes.octets) }
        let explained = unexplained
        let taken = nghttp2_session_mem_recv(
            session, bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count)
        unexplained &+= bytes.count
        if taken < 0 {
            failed = true
            // Most faults have queued a GOAWAY of their own; a callback's refusal has not.
            if taken == Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) {
                nghttp2_session_terminate_session(session, HTTP2ErrorCode.enhanceYourCalm.rawValue)
            }
        } else if unexplained > Self.ignorable {
            spendOnIgnored()
        }
        owesReset = role == .client && unexplained > explained && nghttp2_session_get_outbound_queue_size(session) > 0
        noteOutput()
        return !failed
    }

    /// nghttp2 passes over frames of streams that are closed, and nothing is called for them.
    @inline(never)
    private func spendOnIgnored() {
        unexplained -= Self.ignorable
        guard !gauge.admitIgnored(Self.ignorable, now: now) else { return }
        failed = true
        nghttp2_session_terminate_session(session, HTTP2ErrorCode.enhanceYourCalm.rawValue)
    }

    /// More than a field section may have, whose bytes count as unexplained until its end has come.
    private static let ignorable = 256 * 1024

    /// Fills `buffer` with what is to be sent.
    /// - Parameters:
    ///   - buffer: of 32 KiB at least, so that every frame fits whole.
    ///   - now: nanoseconds of the clock of `receive`; nil: as then.
    /// - Returns: bytes; 0 when there is nothing to send now.
    public func send(into buffer: UnsafeMutableRawBufferPointer, now: UInt64? = nil) -> Int {
        precondition(buffer.count >= 32 * 1024)
        if let now { self.now = now }
        isDirty = false
        guard !isBroken else { return 0 }
        out = buffer
        outCount = 0
        defer { out = UnsafeMutableRawBufferPointer(start: nil, count: 0) }
        // Not for want of room: a frame could not be made, and without it nothing that follows makes sense.
        if nghttp2_session_send(session) != 0 { isBroken = true }
        if !finishing.isEmpty {
            resetFinished()
            // Whoever is told that there is nothing asks no more.
            if outCount == 0, !isBroken, nghttp2_session_send(session) != 0 { isBroken = true }
        }
        return outCount
    }

    /// Nothing more will come of this connection.
    public var isOver: Bool {
        guard !isBroken else { return true }
        return nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
    }

    /// Streams that are neither closed nor forgotten.
    public var openStreams: Int { streams.count }

    /// Open streams of a server whose request head is complete. One head at most is not (RFC 9113 §4.3).
    public var servedStreams: Int {
        streams.count - (assembly.stream != 0 && assembly.kind == .request ? 1 : 0)
    }

    /// The field section of a server that has begun and whose end has not come, by a number that no other one has soon.
    public var unfinishedSection: UInt32? { sections.isOpen ? sections.number : nil }

    /// A stream whose head has come, in the order in which they came: a server's new request, told once.
    public func nextOpened() -> HTTP2Stream? {
        guard firstOpened < opened.count else { return nil }
        let stream = opened[firstOpened].takeRetainedValue()
        firstOpened += 1
        if firstOpened == opened.count {
            opened.removeAll(keepingCapacity: true)
            firstOpened = 0
        }
        return stream
    }

    /// Tells the users of streams on which something happened.
    public func tellUsers() {
        tellings += 1
        while let entry = marked.popFirst() {
            entry._withUnsafeGuaranteedRef { stream in
                stream.isMarked = false
                // Before its user is told: if it leaves only then, it has another mark.
                if stream.isLeaving {
                    stream.isLeaving = false
                    told.append(stream)
                }
                stream.user?.streamReady(stream)
            }
        }
        tellings -= 1
        guard tellings == 0 else { return }
        while let entry = told.popFirst() {
            let stream = entry.takeRetainedValue()
            // The streams of a lost connection may hold what nobody has read: it goes back with them.
            if !isAbandoned { memory.spare.give(stream) }
        }
    }

    /// Something waits for `nextOpened` or `tellUsers`.
    public var hasNews: Bool { !marked.isEmpty || !opened.isEmpty }

    func mark(_ stream: HTTP2Stream) {
        guard !stream.isMarked else { return }
        stream.isMarked = true
        marked.append(stream)
    }

    /// Marks a stream that has left the table, whose reference to it is the mark's from now on.
    func markLast(_ stream: HTTP2Stream) {
        stream.isLeaving = true
        mark(stream)
    }

    /// A stream for a new request: a closed one that nobody holds any more, or a new one.
    func makeStream(_ id: Int32) -> HTTP2Stream {
        guard let stream = memory.spare.take() else { return HTTP2Stream(id: id, connection: self) }
        stream.begin(id, self)
        return stream
    }

    /// The stream is closed, and has left the table.
    func letGo(_ stream: HTTP2Stream) {
        stream.connection = nil
        stream.credential.drop()
        stream.output.clear()
        // No user was told of the stream, so none clears what came of its head.
        if role == .server, !stream.hasHead { stream.input.clear() }
    }

    // MARK: - Opening

    /// Whether another request can be sent now, without waiting for one to end.
    public var hasRoom: Bool {
        guard !isGoingAway, !failed, !isBroken, nghttp2_session_check_request_allowed(session) != 0 else {
            return false
        }
        let offered = nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
        return streams.count < min(Int(offered), limits.streams)
    }

    /// The peer has taken as much of bodies as it said it would, on the connection as a whole, and has not asked for more.
    public var isWindowShut: Bool {
        nghttp2_session_get_remote_window_size(session) <= 0
    }

    /// The peer serves extended CONNECT (RFC 8441 §3).
    public var servesExtendedConnect: Bool {
        nghttp2_session_get_remote_settings(session, NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL) == 1
    }

    /// Sends a request's head.
    ///
    /// - Parameters:
    ///   - head: of one of our own requests, in HTTP/1.1's form without `Transfer-Encoding`; changed in place.
    ///   - secretName: lower case; the field that carries the credential is never indexed.
    ///   - ended: no body follows.
    /// - Returns: nil when the connection takes no more requests, or the bytes are no head.
    public func open(
        request head: UnsafeMutableRawBufferPointer, scheme: StaticString, secretName: [UInt8], secretTarget: Bool,
        acceptsTrailers: Bool, ended: Bool
    ) -> HTTP2Stream? {
        guard hasRoom,
            list.fill(
                request: head, scheme: scheme, secretName: secretName, secretTarget: secretTarget,
                acceptsTrailers: acceptsTrailers)
        else { return nil }
        return submitRequest(ended: ended)
    }

    /// Sends the head of a request that is passed on.
    ///
    /// - Parameters:
    ///   - head: as `writeRequest` writes it.
    ///   - received: the head's bytes it was written from.
    ///   - secretName: lower case; the field that carries the credential is never indexed.
    ///   - protocolName: for extended CONNECT (RFC 8441); empty otherwise.
    ///   - ended: no body follows.
    /// - Returns: nil when the connection takes no more requests.
    public func open(
        request head: borrowing OutgoingHead, received: UnsafeRawBufferPointer, scheme: StaticString,
        secretName: [UInt8], secretTarget: Bool, acceptsTrailers: Bool, protocolName: StaticString = "", ended: Bool
    ) -> HTTP2Stream? {
        guard hasRoom else { return nil }
        secretName.withUnsafeBytes {
            list.fill(
                request: head, received: received, scheme: scheme, secretName: $0, secretTarget: secretTarget,
                protocolName: protocolName, acceptsTrailers: acceptsTrailers)
        }
        return submitRequest(ended: ended)
    }

    /// - Precondition: the list is filled, and what it points at is still there.
    private func submitRequest(ended: Bool) -> HTTP2Stream? {
        let id = list.withPairs { pairs, count in
            guard !ended else { return nghttp2_submit_request(session, nil, pairs, count, nil, nil) }
            var provider = makeProvider()
            return nghttp2_submit_request(session, nil, pairs, count, &provider, nil)
        }
        guard id > 0 else { return nil }
        let stream = makeStream(id)
        stream.outputEnded = ended
        streams.insert(stream)
        noteOutput()
        if !list.held.isEmpty, !stream.credential.hold(list.held) {
            // Without it the request must not go.
            submitReset(stream, .cancel)
            return nil
        }
        return stream
    }

    func submit(response head: UnsafeMutableRawBufferPointer, on stream: HTTP2Stream, ended: Bool) -> Bool {
        guard isMine(stream), list.fill(response: head) else { return false }
        return submitResponse(on: stream, ended: ended)
    }

    func submit(
        response head: borrowing OutgoingHead, received: UnsafeRawBufferPointer, on stream: HTTP2Stream, ended: Bool
    ) -> Bool {
        guard isMine(stream) else { return false }
        list.fill(response: head, received: received)
        return submitResponse(on: stream, ended: ended)
    }

    private func submitResponse(on stream: HTTP2Stream, ended: Bool) -> Bool {
        let result = list.withPairs { pairs, count in
            guard !ended else { return nghttp2_submit_response(session, stream.id, pairs, count, nil) }
            var provider = makeProvider()
            return nghttp2_submit_response(session, stream.id, pairs, count, &provider)
        }
        guard result == 0 else { return false }
        if ended { stream.outputEnded = true }
        noteOutput()
        return true
    }

    private func isMine(_ stream: HTTP2Stream) -> Bool {
        stream.connection?.toOpaque() == Unmanaged.passUnretained(self).toOpaque()
    }

    func submit(interim head: UnsafeMutableRawBufferPointer, on stream: HTTP2Stream) -> Bool {
        guard isMine(stream), list.fill(response: head) else { return false }
        let result = list.withPairs { pairs, count in
            nghttp2_submit_headers(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, nil, pairs, count, nil)
        }
        noteOutput()
        return result == 0
    }

    /// Queues the lines behind a body; nghttp2 sends them when the body's end was read.
    func submitTrailers(of stream: HTTP2Stream) -> Bool {
        return stream.outputTrailers.withUnsafeMutableBytes { lines in
            guard list.fill(trailers: lines), !list.isEmpty else { return false }
            return list.withPairs { pairs, count in nghttp2_submit_trailer(session, stream.id, pairs, count) == 0 }
        }
    }

    func hasOutput(_ stream: HTTP2Stream) {
        if stream.isDeferred {
            stream.isDeferred = false
            nghttp2_session_resume_data(session, stream.id)
        }
        noteOutput()
    }

    /// Credit for the peer: `count` bytes of a body were read.
    func consumed(_ count: Int, of stream: HTTP2Stream) {
        if !stream.inputEnded {
            nghttp2_session_consume_stream(session, stream.id, count)
            if let size = stream.window.read(count, isShort: blocks.isShort) { setWindow(size, of: stream.id) }
        }
        if role == .server {
            nghttp2_session_consume_connection(session, count)
            if let size = window.read(count, isShort: blocks.isShort) { setWindow(size, of: 0) }
        }
        noteOutput()
    }

    func consumeConnection(_ count: Int) {
        nghttp2_session_consume_connection(session, count)
    }

    /// - Parameter stream: 0 for the connection.
    private func setWindow(_ size: Int, of stream: Int32) {
        nghttp2_session_set_local_window_size(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream, Int32(size))
    }

    func noteOutput() {
        guard !isDirty else { return }
        isDirty = true
        host?.connectionHasOutput()
    }

    private func submitSettings() {
        var settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue),
                value: UInt32(min(limits.firstStreamWindow, limits.streamWindow))),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue), value: UInt32(limits.headerSize)),
        ]
        switch role {
        case .server:
            settings.append(
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: UInt32(limits.streams))
            )
        case .client:
            settings.append(
                nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0))
        }
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
        setWindow(role == .server ? window.size : limits.connectionWindow, of: 0)
    }
}
