import CNghttp2

/// An HTTP/2 connection without its wire, by the system's nghttp2: octets go in, events and octets come out (RFC 9113).
///
/// Nobody is called while nghttp2 reads or writes. What happens is noted, and the owner takes the notes afterwards, when it may say
/// something in return. Credit for bodies goes back when the owner says that it has used them (`consume`).
final class HTTP2Session {
    enum Role { case client, server }

    typealias Field = (name: String, value: String)

    /// What a peer is offered in the first SETTINGS.
    struct Offer {
        /// Streams that the peer may have open at once.
        var streams: UInt32 = 100
        /// Octets of a body that may be on their way on each stream.
        var window: UInt32 = 65_535
    }

    /// What goes out behind a head.
    struct Body {
        var octets: [UInt8]
        /// Nothing is added any more.
        var isWhole: Bool
        /// The end of the stream goes in a DATA frame of its own, without octets.
        var endsApart = false
        /// Behind the body.
        var trailers: [Field] = []
        fileprivate var sent = 0
        /// nghttp2 has found nothing to send, and asks again only when it is told to.
        fileprivate var isDeferred = false

        init(_ octets: [UInt8] = [], isWhole: Bool = true) {
            self.octets = octets
            self.isWhole = isWhole
        }
    }

    enum Event {
        /// A field section has come, pseudo-fields first: a request, an answer, an interim answer or trailers.
        case fields(Int32, [Field])
        case data(Int32, [UInt8])
        /// The peer has said all that it has to say on a stream.
        case ended(Int32)
        /// A stream is over for both.
        /// - Parameter byPeer: the peer has reset it.
        case closed(Int32, code: UInt32, byPeer: Bool)
        /// The peer takes no more streams than those up to the number.
        case goingAway(last: Int32, code: UInt32)
        /// The peer has broken the protocol.
        case flaw(String)
    }

    private let role: Role
    private var session: OpaquePointer?
    private var events: [Event] = []
    /// Bodies of streams that are open; looked up by number, never iterated.
    private var bodies: [Int32: Body] = [:]
    private var section: [Field] = []
    private var peerResets: Set<Int32> = []
    /// Why nghttp2 did not like a frame, in its own words.
    private var words = ""
    private var hasFailed = false

    init(_ role: Role, _ offer: Offer) {
        self.role = role
        session = Self.makeSession(role, Unmanaged.passUnretained(self).toOpaque())
        var settings = [
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: offer.window),
            nghttp2_settings_entry(
                settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: offer.streams),
        ]
        // Nobody is to push, and a server does not say so.
        if role == .client {
            settings.append(
                nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0))
        }
        nghttp2_submit_settings(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    }

    deinit { nghttp2_session_del(session) }

    /// What has happened since the last call, in its order.
    func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    /// Both have said that they go, and nothing is under way.
    var isOver: Bool { nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0 }

    // MARK: - Octets

    func receive(_ octets: [UInt8]) {
        guard !hasFailed else { return }
        let taken = withExtendedLifetime(self) { nghttp2_session_mem_recv(session, octets, octets.count) }
        guard taken < 0 else { return }
        hasFailed = true
        note(flaw: Int32(taken))
    }

    /// All that may be sent now; empty where nothing may.
    func output() -> [UInt8] {
        var all: [UInt8] = []
        withExtendedLifetime(self) {
            while true {
                var octets: UnsafePointer<UInt8>?
                let count = nghttp2_session_mem_send(session, &octets)
                if count < 0 { note(flaw: Int32(count)) }
                guard count > 0, let octets else { return }
                all.append(contentsOf: UnsafeBufferPointer(start: octets, count: count))
            }
        }
        return all
    }

    // MARK: - Saying something

    /// - Parameter body: nil: the head ends the stream.
    /// - Returns: the stream's number; nil where no more can be opened.
    func request(_ fields: [Field], _ body: Body?) -> Int32? {
        let id = Self.withList(fields) { list, count in
            guard body != nil else { return nghttp2_submit_request(session, nil, list, count, nil, nil) }
            var provider = Self.provider
            return nghttp2_submit_request(session, nil, list, count, &provider, nil)
        }
        guard id > 0 else { return nil }
        bodies[id] = body
        return id
    }

    /// - Parameter body: nil: the head ends the stream.
    func answer(_ id: Int32, _ fields: [Field], _ body: Body?) {
        bodies[id] = body
        Self.withList(fields) { list, count in
            guard body != nil else { return nghttp2_submit_response(session, id, list, count, nil) }
            var provider = Self.provider
            return nghttp2_submit_response(session, id, list, count, &provider)
        }
    }

    /// An answer before the answer.
    func inform(_ id: Int32, _ fields: [Field]) {
        Self.withList(fields) { list, count in
            nghttp2_submit_headers(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, nil, list, count, nil)
        }
    }

    /// More of a body. Of a stream that is closed nothing is sent.
    func add(_ id: Int32, _ octets: [UInt8], isWhole: Bool) {
        guard let waits = bodies[id]?.isDeferred else { return }
        bodies[id]?.octets += octets
        bodies[id]?.isWhole = isWhole
        bodies[id]?.isDeferred = false
        if waits { nghttp2_session_resume_data(session, id) }
    }

    func reset(_ id: Int32, _ code: nghttp2_error_code) {
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, code.rawValue)
    }

    /// - Parameter last: streams of the peer above it were not looked at; nil: all that have come will be served.
    func goAway(last: Int32? = nil) {
        let number = last ?? nghttp2_session_get_last_proc_stream_id(session)
        nghttp2_submit_goaway(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), number, NGHTTP2_NO_ERROR.rawValue, nil, 0)
    }

    /// Octets of a body are used, and as many may come again.
    func consume(_ id: Int32, _ count: Int) { nghttp2_session_consume(session, id, count) }

    // MARK: - Notes

    fileprivate func beginSection() { section = [] }

    fileprivate func note(field: Field) { section.append(field) }

    fileprivate func note(data octets: [UInt8], of id: Int32) { events.append(.data(id, octets)) }

    fileprivate func note(_ frame: UnsafePointer<nghttp2_frame>) {
        let id = cardea_frame_stream(frame)
        let ends = cardea_frame_flags(frame) & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
        switch UInt32(cardea_frame_type(frame)) {
        case NGHTTP2_HEADERS.rawValue:
            events.append(.fields(id, section))
            section = []
            if ends { events.append(.ended(id)) }
        case NGHTTP2_DATA.rawValue:
            if ends { events.append(.ended(id)) }
        case NGHTTP2_RST_STREAM.rawValue:
            peerResets.insert(id)
        case NGHTTP2_GOAWAY.rawValue:
            let farewell = frame.pointee.goaway
            events.append(.goingAway(last: farewell.last_stream_id, code: farewell.error_code))
        default: break
        }
    }

    fileprivate func noteClosed(_ id: Int32, _ code: UInt32) {
        bodies[id] = nil
        events.append(.closed(id, code: code, byPeer: peerResets.remove(id) != nil))
    }

    fileprivate func note(words: String) { self.words = words }

    fileprivate func note(flaw error: Int32) {
        let name = String(cString: nghttp2_strerror(error))
        events.append(.flaw(words.isEmpty ? name : "\(name): \(words)"))
        words = ""
    }

    /// Where nghttp2 asks for octets of a body.
    fileprivate func offer(_ id: Int32, _ room: UnsafeMutableRawBufferPointer, _ flags: inout UInt32) -> Int {
        guard var body = bodies[id] else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
        defer { bodies[id] = body }
        let count = min(room.count, body.octets.count - body.sent)
        room.copyBytes(from: body.octets[body.sent..<body.sent + count])
        body.sent += count
        guard body.isWhole, body.sent == body.octets.count, count == 0 || !body.endsApart else {
            guard count == 0 else { return count }
            body.isDeferred = true
            return Int(NGHTTP2_ERR_DEFERRED.rawValue)
        }
        flags |= NGHTTP2_DATA_FLAG_EOF.rawValue
        guard !body.trailers.isEmpty else { return count }
        let result = Self.withList(body.trailers) { list, count in nghttp2_submit_trailer(session, id, list, count) }
        if result == 0 { flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM.rawValue }
        return count
    }
}

// MARK: - nghttp2

extension HTTP2Session {
    fileprivate static func makeSession(_ role: Role, _ user: UnsafeMutableRawPointer) -> OpaquePointer? {
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        defer { nghttp2_session_callbacks_del(callbacks) }
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks) { _, _, user in
            HTTP2Session.with(user) { $0.beginSection() }
        }
        nghttp2_session_callbacks_set_on_header_callback(callbacks) { _, _, name, nameCount, value, count, _, user in
            HTTP2Session.with(user) { $0.note(field: (text(name, nameCount), text(value, count))) }
        }
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks) { _, frame, user in
            HTTP2Session.with(user) { session in if let frame { session.note(frame) } }
        }
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks) { _, _, id, octets, count, user in
            HTTP2Session.with(user) { $0.note(data: Array(UnsafeBufferPointer(start: octets, count: count)), of: id) }
        }
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks) { _, id, code, user in
            HTTP2Session.with(user) { $0.noteClosed(id, code) }
        }
        nghttp2_session_callbacks_set_error_callback2(callbacks) { _, _, words, count, user in
            HTTP2Session.with(user) { session in
                let octets = UnsafeRawBufferPointer(start: words, count: count)
                session.note(words: String(decoding: octets, as: UTF8.self))
            }
        }
        nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks) { _, _, error, user in
            // More streams than were offered are refused without a fault of the peer, who had not heard of the offer yet.
            guard error != NGHTTP2_ERR_REFUSED_STREAM.rawValue else { return 0 }
            return HTTP2Session.with(user) { $0.note(flaw: error) }
        }
        var options: OpaquePointer?
        nghttp2_option_new(&options)
        defer { nghttp2_option_del(options) }
        nghttp2_option_set_no_auto_window_update(options, 1)
        var session: OpaquePointer?
        let result =
            switch role {
            case .client: nghttp2_session_client_new2(&session, callbacks, user, options)
            case .server: nghttp2_session_server_new2(&session, callbacks, user, options)
            }
        precondition(result == 0 && session != nil, "no memory for a session")
        return session
    }

    /// The session is alive: nghttp2 calls back only within a call of one of its methods.
    private static func with(_ user: UnsafeMutableRawPointer?, _ body: (HTTP2Session) -> Void) -> Int32 {
        guard let user else { return Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
        body(Unmanaged<HTTP2Session>.fromOpaque(user).takeUnretainedValue())
        return 0
    }

    fileprivate static var provider: nghttp2_data_provider {
        nghttp2_data_provider(source: nghttp2_data_source()) { _, id, room, count, flags, _, user in
            guard let user, let flags else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
            let session = Unmanaged<HTTP2Session>.fromOpaque(user).takeUnretainedValue()
            return session.offer(id, UnsafeMutableRawBufferPointer(start: room, count: count), &flags.pointee)
        }
    }

    /// Names and values stay where they are while `body` runs; nghttp2 copies them.
    @discardableResult
    fileprivate static func withList(
        _ fields: [Field], _ body: (UnsafePointer<nghttp2_nv>?, Int) -> Int32
    ) -> Int32 {
        var octets: [UInt8] = []
        for field in fields { octets += Array(field.name.utf8) + Array(field.value.utf8) }
        return octets.withUnsafeMutableBufferPointer { memory in
            var list: [nghttp2_nv] = []
            var offset = 0
            for field in fields {
                let name = memory.baseAddress.map { $0 + offset }
                offset += field.name.utf8.count
                let value = memory.baseAddress.map { $0 + offset }
                offset += field.value.utf8.count
                list.append(
                    nghttp2_nv(
                        name: name, value: value, namelen: field.name.utf8.count, valuelen: field.value.utf8.count,
                        flags: UInt8(NGHTTP2_NV_FLAG_NONE.rawValue)))
            }
            return body(list, list.count)
        }
    }
}

private func text(_ start: UnsafePointer<UInt8>?, _ count: Int) -> String {
    String(decoding: UnsafeBufferPointer(start: start, count: count), as: UTF8.self)
}
