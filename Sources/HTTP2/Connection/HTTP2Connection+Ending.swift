internal import CNghttp2

/// How streams and the connection end by our doing.
extension HTTP2Connection {
    func cancel(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        guard !stream.endSent || !stream.inputEnded else { return }
        // A complete answer stands, whatever of its request is still to come (RFC 9113 §8.1).
        let code = role == .server && stream.endSent ? .none : code
        if code == .none, stream.outputEnded {
            guard !stream.inputEnded else { return }
            if stream.endSent, stream.output.count == 0 {
                nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code.rawValue)
            } else {
                finishing.append(stream)
            }
            return noteOutput()
        }
        if stream.cutCode != nil, stream.output.count > 0 {
            finishing.append(stream)
            return noteOutput()
        }
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code.rawValue)
        noteOutput()
    }

    /// Answers are out whose requests still come: their senders are told to stop (RFC 9113 §8.1). Not before: a reset overtakes data.
    /// Answers that were cut end here too, at the latest when their peers take no more for now.
    func resetFinished() {
        finishing.removeAll { stream in
            guard stream.connection != nil else { return true }
            if let code = stream.cutCode {
                guard stream.output.count == 0 || outCount == 0 else { return false }
                submitReset(stream, code)
                return true
            }
            guard !stream.inputEnded else { return true }
            guard stream.endSent, stream.output.count == 0 else { return false }
            nghttp2_submit_rst_stream(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, HTTP2ErrorCode.none.rawValue)
            noteOutput()
            return true
        }
    }

    /// Says that no new streams are wanted (RFC 9113 §6.8): first without a bound, so that what is on its way is still served, and with
    /// the last stream's number when called again.
    public func goAway() {
        if isGoingAway {
            nghttp2_submit_goaway(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(session),
                HTTP2ErrorCode.none.rawValue, nil, 0)
        } else if role == .server {
            nghttp2_submit_shutdown_notice(session)
        }
        isGoingAway = true
        noteOutput()
    }

    /// Ends the connection with a reason.
    public func terminate(_ code: HTTP2ErrorCode) {
        nghttp2_session_terminate_session(session, code.rawValue)
        noteOutput()
    }

    /// Sends a PING (RFC 9113 §6.7).
    public func ping() {
        nghttp2_submit_ping(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
        noteOutput()
    }

    /// The connection is gone: every stream ends with `code`.
    public func abandon(_ code: HTTP2ErrorCode) {
        // A peer that broke the protocol has not just gone.
        let hasBroken = failed || nghttp2_session_want_read(session) == 0
        failed = true
        isAbandoned = true
        isGoingAway = true
        streams.removeAll { entry in
            entry._withUnsafeGuaranteedRef { stream in
                if stream.resetCode == nil, !stream.inputEnded || !stream.endSent {
                    stream.resetCode = code.rawValue
                    stream.resetBy = hasBroken ? .us : .connection
                }
                stream.connection = nil
                stream.credential.drop()
                stream.output.clear()
                markLast(stream)
            }
        }
        finishing.removeAll()
    }

    func submitReset(_ stream: HTTP2Stream, _ code: HTTP2ErrorCode) {
        nghttp2_submit_rst_stream(session, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code.rawValue)
        noteOutput()
    }
}
