internal import CNghttp2
internal import HTTP1

/// Callbacks of nghttp2 while bytes are read or written. Everything here only notes: a user that is told inside a callback could submit
/// to a connection that is not ready for it.
extension HTTP2Connection {
    static func makeSession(_ role: Role, _ memory: HTTP2Memory) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        guard nghttp2_session_callbacks_new(&callbacks) == 0 else { return nil }
        defer { nghttp2_session_callbacks_del(callbacks) }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, frame, user in
            HTTP2Connection.with(user) { $0.headersBegan(frame!) }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) {
            _, frame, name, nameCount, value, valueCount, _, user in
            HTTP2Connection.with(user) {
                $0.field(
                    frame!, UnsafeRawBufferPointer(start: name, count: nameCount),
                    UnsafeRawBufferPointer(start: value, count: valueCount))
            }
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            HTTP2Connection.with(user) { $0.frameCame(frame!) }
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, id, bytes, count, user in
            HTTP2Connection.with(user) { $0.dataCame(id, UnsafeRawBufferPointer(start: bytes, count: count)) }
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, user in
            HTTP2Connection.with(user) { $0.streamClosed(id, code) }
        }
        nghttp2_session_callbacks_set_send_callback(callbacks) { _, bytes, count, _, user in
            HTTP2Connection.with(user) { $0.put(UnsafeRawBufferPointer(start: bytes, count: count)) }
        }
        nghttp2_session_callbacks_set_send_data_callback(callbacks) { _, frame, head, count, _, user in
            HTTP2Connection.with(user) { $0.putData(frame!, head!, count) }
        }
        nghttp2_session_callbacks_set_on_frame_send_callback(callbacks) { _, frame, user in
            HTTP2Connection.with(user) { $0.frameWent(frame!) }
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, _, _, user in
            // nghttp2 answers each of these; without a count they would be free.
            HTTP2Connection.with(user) { $0.admitFrame() }
        }
        // Called for the types of the options below, before `on_frame_recv`, which is left out.
        nghttp2_session_callbacks_set_unpack_extension_callback(callbacks) { _, _, head, user in
            HTTP2Connection.with(user) { $0.unknownFrameCame(head!.pointee.length) }
        }

        var options: OpaquePointer?
        guard nghttp2_option_new(&options) == 0 else { return nil }
        defer { nghttp2_option_del(options) }
        // Credit follows the reader of a stream, not the parser.
        nghttp2_option_set_no_auto_window_update(options, 1)
        // Closed streams are of use only to priorities, which we do not serve, and for the exact word on a frame that comes too late: with
        // them it would be STREAM_CLOSED (RFC 9113 §5.1). Kept, they are 128 nghttp2 streams for each connection, idle ones too, and their
        // lists are gone through with every request (docs/design/decisions.md#http2-closed-streams). So a frame of a stream that is closed,
        // or of a number that was passed by (RFC 9113 §5.1.1: PROTOCOL_ERROR), is passed over as one that crossed our reset has to be, and
        // bounded (`spendOnIgnored`). HEADERS or DATA behind END_STREAM while the answer runs are told as they should be, and so is every
        // frame of a stream that is idle.
        nghttp2_option_set_no_closed_streams(options, 1)
        // Frames of types that nobody knows are passed over (RFC 9113 §5.5), but not without a count. ALTSVC, ORIGIN and PRIORITY_UPDATE are
        // among them: we have no use for what they say.
        for type in UInt8(NGHTTP2_CONTINUATION.rawValue + 1)...UInt8.max {
            nghttp2_option_set_user_recv_extension_type(options, type)
        }
        nghttp2_option_set_max_outbound_ack(options, 1000)
        // Until the peer's SETTINGS are there; RFC 9113 §6.5.2 advises no less than 100.
        nghttp2_option_set_peer_max_concurrent_streams(options, 100)

        var session: OpaquePointer?
        var functions = memory.functions
        let result =
            role == .server
            ? nghttp2_session_server_new3(&session, callbacks, nil, options, &functions)
            : nghttp2_session_client_new3(&session, callbacks, nil, options, &functions)
        return result == 0 ? session : nil
    }

    /// No reference is counted: whoever called nghttp2 holds the connection until that returns.
    @inline(__always)
    private static func with<Result>(
        _ user: UnsafeMutableRawPointer?, _ body: (HTTP2Connection) -> Result
    ) -> Result {
        Unmanaged<HTTP2Connection>.fromOpaque(user!)._withUnsafeGuaranteedRef(body)
    }

    private static let accepted: Int32 = 0
    private static let refused = Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)
    private static let resetsStream = Int32(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    private static let wouldBlock = Int(NGHTTP2_ERR_WOULDBLOCK.rawValue)

    // MARK: - Heads

    private func headersBegan(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        guard cardea_frame_type(frame) == UInt8(NGHTTP2_HEADERS.rawValue) else { return Self.accepted }
        let id = cardea_frame_stream(frame)
        if let hasHead = streams.with(id, { $0?.hasHead }) {
            assembly.begin(hasHead ? .trailers : .answer, of: id)
        } else if role == .server {
            streams.insert(makeStream(id))
            assembly.begin(.request, of: id)
        } else {
            assembly.leave()
        }
        return Self.accepted
    }

    private func field(
        _ frame: UnsafePointer<nghttp2_frame>, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer
    ) -> Int32 {
        guard assembly.stream == cardea_frame_stream(frame) else { return Self.accepted }
        assembly.add(name: name, value: value)
        // The rest of the block has to be decoded for the sake of HPACK's tables, but not without end.
        return assembly.flaw == .flood ? Self.refused : Self.accepted
    }

    private func finishHead(of stream: HTTP2Stream) -> Int32 {
        guard assembly.stream == stream.id else { return Self.accepted }
        assembly.finish()
        switch assembly.flaw {
        case nil: break
        case .tooLarge where role == .server && assembly.kind == .request:
            // Answered like any large head: the caller learns why.
            stream.refusal = .tooLarge
        default:
            // A message that ends with a refused section is not whole.
            stream.inputEnded = false
            submitReset(stream, .protocolError)
            return Self.accepted
        }
        switch assembly.kind {
        case .trailers:
            stream.trailers = Array(assembly.text.bytes)
        case .request:
            guard stream.refusal == nil else { break }
            stream.acceptsTrailers = assembly.acceptsTrailers
            stream.schemePort = assembly.schemePort
            guard queueHead(on: stream) else { return Self.accepted }
        case .answer:
            guard queueHead(on: stream) else { return Self.accepted }
            guard assembly.status >= 200 else {
                mark(stream)
                return Self.accepted
            }
        }
        if assembly.kind != .trailers {
            stream.contentLength = assembly.contentLength
            stream.hasHead = true
            if assembly.kind == .request { opened.append(.passRetained(stream)) }
        }
        mark(stream)
        return Self.accepted
    }

    private func queueHead(on stream: HTTP2Stream) -> Bool {
        // Heads have no window: interim ones without end would fill our memory before their reader has its turn.
        guard stream.headBytes <= limits.headerSize, queue(assembly.text.bytes, on: stream) else {
            // Nothing of a request has been seen yet.
            submitReset(stream, assembly.kind == .request ? .refusedStream : .enhanceYourCalm)
            return false
        }
        // An index is of the bytes that a stream begins with: behind an interim answer there is none.
        if stream.hasHeads { stream.headIndex.clear() } else { swap(&stream.headIndex, &assembly.text.index) }
        stream.hasHeads = true
        stream.headBytes += assembly.text.bytes.count
        return true
    }

    private func queue(_ head: UnsafeRawBufferPointer, on stream: HTTP2Stream) -> Bool {
        let length = stream.inputEnded ? 0 : assembly.contentLength ?? 0
        return stream.input.append(head, following: Int(clamping: length))
    }

    // MARK: - Frames

    private func frameCame(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        unexplained &-= Self.frameHead &+ cardea_frame_length(frame)
        let ends = cardea_frame_flags(frame) & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(cardea_frame_type(frame)) {
        case NGHTTP2_HEADERS.rawValue:
            guard let entry = streams.entry(cardea_frame_stream(frame)) else { return Self.accepted }
            return entry._withUnsafeGuaranteedRef { stream in
                if ends { stream.inputEnded = true }
                return finishHead(of: stream)
            }
        case NGHTTP2_DATA.rawValue:
            if ends, let entry = streams.entry(cardea_frame_stream(frame)) {
                bytesOfFrame = 0
                entry._withUnsafeGuaranteedRef { stream in
                    stream.inputEnded = true
                    mark(stream)
                }
                return Self.accepted
            }
            // By what it brought and not by its length: padding counts for that, and moves nothing.
            let isEmpty = bytesOfFrame == 0
            bytesOfFrame = 0
            return isEmpty ? admitFrame() : Self.accepted
        case NGHTTP2_SETTINGS.rawValue where cardea_frame_flags(frame) & UInt8(NGHTTP2_FLAG_ACK.rawValue) == 0:
            knowsPeer = true
            return admitFrame()
        case NGHTTP2_RST_STREAM.rawValue:
            // Before nghttp2 closes the stream with this code, and calls that of others the same.
            streams.with(cardea_frame_stream(frame)) { $0?.resetBy = .peer }
            return admitFrame()
        case NGHTTP2_GOAWAY.rawValue:
            isGoingAway = true
            return admitFrame()
        default:
            return admitFrame()
        }
    }

    /// Bytes of what goes before a frame's payload (RFC 9113 §4.1).
    private static let frameHead = 9

    private func unknownFrameCame(_ length: Int) -> Int32 {
        unexplained &-= Self.frameHead &+ length
        return gauge.admitFrame(now: now) ? Int32(NGHTTP2_ERR_CANCEL.rawValue) : Self.refused
    }

    private func admitFrame() -> Int32 { gauge.admitFrame(now: now) ? Self.accepted : Self.refused }

    private func dataCame(_ id: Int32, _ bytes: UnsafeRawBufferPointer) -> Int32 {
        gauge.moved(bytes.count)
        bytesOfFrame += bytes.count
        // The connection's credit comes back at once where its streams belong to different callers: one that does not read must not
        // hold up the others. A caller's own connection is its own matter.
        if role == .client { consumeConnection(bytes.count) }
        let isTaken = streams.entry(id)?._withUnsafeGuaranteedRef {
            $0.resetCode == nil && !$0.isAbandoned && take(bytes, for: $0)
        }
        if isTaken != true, role == .server { consumeConnection(bytes.count) }
        return Self.accepted
    }

    /// Bytes that may be on their way to closed streams, at most: as many windows as there are streams.
    private static let ignoredCredit = 1 << 26

    /// - Returns: false when it has no room.
    private func take(_ bytes: UnsafeRawBufferPointer, for stream: HTTP2Stream) -> Bool {
        guard stream.input.append(bytes) else {
            submitReset(stream, .enhanceYourCalm)
            return false
        }
        mark(stream)
        return true
    }

    private func streamClosed(_ id: Int32, _ code: UInt32) -> Int32 {
        guard let stream = streams.remove(id) else { return Self.accepted }
        return stream._withUnsafeGuaranteedRef { leave($0, code) }
    }

    private func leave(_ stream: HTTP2Stream, _ code: UInt32) -> Int32 {
        // Also where the connection ends with it: nobody would find it any more.
        markLast(stream)
        defer { letGo(stream) }
        // A section of it that comes to its end now is passed over, and nothing is called for that.
        if assembly.stream == stream.id { assembly.leave() }
        // The peer may have sent this much before it heard of the end.
        if !stream.inputEnded { unexplained = max(unexplained - stream.window.size, -Self.ignoredCredit) }
        if code != HTTP2ErrorCode.none.rawValue || !stream.inputEnded {
            stream.resetCode = code
            // A stream that we gave up ourselves, because its upstream failed, is not the caller's doing.
            if role == .server, !stream.endSent, !stream.isAbandoned, !gauge.admitReset(now: now) {
                return Self.refused
            }
        }
        // Unread bytes give their credit back now, however the stream ended: a reader of a closed stream finds no connection to give
        // it to, and the connection's window would shrink for good.
        let unread = max(0, stream.input.count - stream.headBytes)
        if role == .server, unread > 0 { consumeConnection(unread) }
        return Self.accepted
    }

    // MARK: - Sending

    /// A frame, or what goes before the first one. Never a part of one: `send` was given room for any.
    private func put(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count <= out.count - outCount else { return Self.wouldBlock }
        if role == .client, let written = putHead(bytes) { return written }
        UnsafeMutableRawBufferPointer(rebasing: out[outCount..<(outCount + bytes.count)]).copyMemory(from: bytes)
        outCount += bytes.count
        return bytes.count
    }

    /// A request's head whose credential is held here.
    /// - Returns: what nghttp2 is to be told; nil for all that is no such head.
    private func putHead(_ frame: UnsafeRawBufferPointer) -> Int? {
        guard frame.count > 9, frame[3] == UInt8(NGHTTP2_HEADERS.rawValue) else { return nil }
        let number = UInt32(bigEndian: frame.loadUnaligned(fromByteOffset: 5, as: UInt32.self))
        return streams.with(Int32(truncatingIfNeeded: number)) { stream in
            guard let stream, stream.credential.count > 0 else { return nil }
            let room = UnsafeMutableRawBufferPointer(rebasing: out[outCount...])
            guard room.count >= frame.count + stream.credential.count + 5 else { return Self.wouldBlock }
            // Without its credential it must not go. Of a stream that has closed while its head waited the head does go, with an empty value,
            // for the sake of HPACK's tables, and nobody reads it: the peer itself has ended the stream, or has said that it would not look.
            guard let count = stream.credential.write(into: frame, room) else { return Int(Self.refused) }
            outCount += count
            return frame.count
        }
    }

    private func putData(_ frame: UnsafePointer<nghttp2_frame>, _ head: UnsafePointer<UInt8>, _ count: Int) -> Int32 {
        guard out.count - outCount >= 9 + count else { return Int32(Self.wouldBlock) }
        guard let entry = streams.entry(cardea_frame_stream(frame)) else { return Self.resetsStream }
        return entry._withUnsafeGuaranteedRef { stream in
            out.baseAddress?.advanced(by: outCount).copyMemory(from: head, byteCount: 9)
            outCount += 9
            let target = UnsafeMutableRawBufferPointer(rebasing: out[outCount..<(outCount + count)])
            guard stream.output.read(into: target) == count else { return Self.refused }
            outCount += count
            gauge.moved(count)
            sentDataAt = now
            if stream.output.count == 0 { mark(stream) }
            return Self.accepted
        }
    }

    /// Only a frame that has left ends a stream: a reset drops those that wait, a head without a body or trailers among them.
    private func frameWent(_ frame: UnsafePointer<nghttp2_frame>) -> Int32 {
        let type = UInt32(cardea_frame_type(frame))
        guard type == NGHTTP2_HEADERS.rawValue || type == NGHTTP2_DATA.rawValue,
            cardea_frame_flags(frame) & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        else { return Self.accepted }
        streams.with(cardea_frame_stream(frame)) { stream in
            guard let stream else { return }
            stream.endSent = true
            mark(stream)
        }
        return Self.accepted
    }

    /// Where nghttp2 asks for body bytes. They are copied once, from the queue behind the frame's head.
    func makeProvider() -> nghttp2_data_provider {
        nghttp2_data_provider(source: nghttp2_data_source()) { session, id, _, room, flags, _, user in
            HTTP2Connection.with(user) { $0.offer(id, room, flags!) }
        }
    }

    private func offer(_ id: Int32, _ room: Int, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
        streams.entry(id)?._withUnsafeGuaranteedRef { offer(of: $0, room, flags) }
            ?? Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }

    private func offer(of stream: HTTP2Stream, _ room: Int, _ flags: UnsafeMutablePointer<UInt32>) -> Int {
        let count = min(room, stream.output.count)
        if count > 0 { flags.pointee |= NGHTTP2_DATA_FLAG_NO_COPY.rawValue }
        guard count == stream.output.count, stream.outputEnded else {
            if count == 0 {
                stream.isDeferred = true
                return Int(NGHTTP2_ERR_DEFERRED.rawValue)
            }
            return count
        }
        flags.pointee |= NGHTTP2_DATA_FLAG_EOF.rawValue
        if !stream.outputTrailers.isEmpty, submitTrailers(of: stream) {
            flags.pointee |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue
        }
        return count
    }
}
