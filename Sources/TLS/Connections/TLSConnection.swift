internal import COpenSSL
internal import Glibc
internal import World

/// How far a handshake got.
public enum TLSProgress: Sendable, Equatable {
    case done, wantsRead, wantsWrite
    case failed(TLSFault)
}

/// The outcome of a read or write.
public enum TLSIO: Sendable, Equatable {
    /// This many bytes of plaintext were moved.
    case bytes(Int)
    case wantsRead, wantsWrite
    /// The other side said that it sends no more (close_notify): what was received is complete.
    case closed
    /// The stream ended without close_notify: an onlooker may have cut it, so a body delimited by the end is not complete.
    case truncated
    case failed(TLSFault)
}

/// TLS over one wire. Owned by one thread; never blocks unless the wire does.
public final class TLSConnection {
    let handle: OpaquePointer
    private let client: TLSClientConfiguration?
    let server: TLSServerConfiguration?
    /// Carries the records. Unchecked: whoever carries a connection owns it.
    public unowned(unsafe) var wire: (any TLSWire)?
    /// Bytes that were received before there was a connection, and how many of them have been read.
    private var received: [UInt8] = []
    private var receivedUsed = 0
    private(set) var wireEnded = false
    /// The server's name, for faults and sessions; as a server, the other side's name in faults.
    private let name: String
    private var verifiedAt: UInt64
    private var established = false
    /// A fatal error: OpenSSL forbids any further call but freeing.
    private var fault: TLSFault?
    /// Set when the last read found no complete record, so that bytes of an incomplete one do not count as input.
    private var drained = false
    /// Octets that the read under way may still take off the wire. One call of OpenSSL reads on for as long as records bring no data.
    private var budget = Int.max
    /// Sessions that the server has given so far.
    private var tickets = 0
    /// The most octets of records without data before one with data: more than the certificates of a renegotiation.
    private static let mostWithoutData = 128 << 10
    /// The most sessions that a server gives on one connection; they cost more to take than to send, and most servers give two.
    private static let mostTickets = 64

    /// The client's side, on a connected socket that its owner reads and writes.
    /// - Parameters:
    ///   - serverName: a DNS name in A-label form, or an IP address (with or without brackets); SNI is sent for names only, and
    ///     the certificate must be for exactly this name or address.
    ///   - wire: outlives the connection, or puts another one in its place.
    /// - Throws: `.configuration` when `serverName` is neither, `.system` when memory is short.
    public init(client: TLSClientConfiguration, serverName: String, wire: any TLSWire) throws(TLSFault) {
        let expected = try ServerName(serverName)
        let carrier: OpaquePointer
        (handle, carrier) = try Self.openWire(client.handle)
        self.client = client
        server = nil
        name = expected.text
        verifiedAt = Self.seconds()
        self.wire = wire
        BIO_set_data(carrier, Unmanaged.passUnretained(self).toOpaque())
        guard expected.expect(on: handle, subjectNames: client.allowsSubjectNames) else {
            // Complete by now, so `deinit` frees the handle.
            throw ErrorQueue.configurationFault("server name cannot be verified")
        }
        SSL_set_connect_state(handle)
        if client.resumes, let entry = client.sessions.take(for: name, now: verifiedAt) {
            // A session that OpenSSL refuses costs a full handshake, nothing else.
            if SSL_set_session(handle, entry.session) == 1 { verifiedAt = entry.verifiedAt }
            SSL_SESSION_free(entry.session)
        }
        cardea_set_owner(handle, Unmanaged.passUnretained(self).toOpaque())
    }

    /// The server's side, on a socket that its owner reads and writes.
    /// - Parameters:
    ///   - wire: outlives the connection, or puts another one in its place.
    ///   - received: what has been read of the socket already, from the first record on.
    public init(
        server: TLSServerConfiguration, wire: any TLSWire, received: [UInt8] = []
    ) throws(TLSFault) {
        let carrier: OpaquePointer
        (handle, carrier) = try Self.openWire(server.handle)
        client = nil
        self.server = server
        name = "the client"
        verifiedAt = 0
        self.wire = wire
        self.received = received
        BIO_set_data(carrier, Unmanaged.passUnretained(self).toOpaque())
        cardea_set_owner(handle, Unmanaged.passUnretained(self).toOpaque())
        SSL_set_accept_state(handle)
    }

    deinit {
        // Freed without shutdown, OpenSSL would declare the session dead although nothing is wrong with it.
        if fault == nil { SSL_set_shutdown(handle, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN) }
        cardea_set_owner(handle, nil)
        SSL_free(handle)
        ErrorQueue.clear()
    }
}

// MARK: - Steps

extension TLSConnection {
    /// Goes as far as the socket allows. After `.done` and `.failed` it repeats its answer.
    public func handshake() -> TLSProgress {
        if let fault { return .failed(fault) }
        if established { return .done }
        prepare()
        let result = SSL_do_handshake(handle)
        if result == 1 {
            established = true
            // Not resumed: the chain was verified just now, whatever session had been offered.
            if client != nil, SSL_session_reused(handle) == 0 { verifiedAt = Self.seconds() }
            return .done
        }
        switch judge(result) {
        case .wantsRead: return .wantsRead
        case .wantsWrite: return .wantsWrite
        case .closed, .truncated:
            return .failed(fail(TLSFault(.closed, "\(name) closed the connection during the TLS handshake")))
        case .failed(let fault): return .failed(fault)
        case .bytes: return .wantsRead
        }
    }

    /// Reads at most one record's plaintext into `buffer`. An empty buffer answers `.bytes(0)`.
    public func read(into buffer: UnsafeMutableRawBufferPointer) -> TLSIO {
        if let fault { return .failed(fault) }
        guard buffer.count > 0 else { return .bytes(0) }
        prepare()
        budget = Self.mostWithoutData
        let result = SSL_read(handle, buffer.baseAddress, Int32(clamping: buffer.count))
        let isFlood = budget <= 0 && result <= 0
        budget = .max
        if isFlood {
            ErrorQueue.clear()
            let endless = TLSFault(.protocolError, "\(name) sends TLS records without data, and no end of them")
            return .failed(fail(endless))
        }
        drained = result <= 0
        return result > 0 ? .bytes(Int(result)) : judge(result)
    }

    /// Writes as much of `bytes` as the socket takes. After `.wantsRead` or `.wantsWrite` the next call must begin with the same
    /// bytes and bring at least as many: the record is already sealed. They may lie elsewhere in memory by then.
    public func write(_ bytes: UnsafeRawBufferPointer) -> TLSIO {
        if let fault { return .failed(fault) }
        guard bytes.count > 0 else { return .bytes(0) }
        prepare()
        let result = SSL_write(handle, bytes.baseAddress, Int32(clamping: bytes.count))
        return result > 0 ? .bytes(Int(result)) : judge(result)
    }

    /// Says once that no more will be sent (close_notify). Does not wait for the answer, and does nothing on a connection that
    /// failed or was never established.
    public func shutdown() {
        guard fault == nil, established else { return }
        prepare()
        _ = SSL_shutdown(handle)
        ErrorQueue.clear()
    }
}

// MARK: - Facts

extension TLSConnection {
    /// Why the connection is unusable; nil while it is not. In TLS 1.3 a server refuses a client certificate only after the handshake.
    public var failure: TLSFault? { fault }

    /// True when a read may give bytes without the socket becoming readable. The loop reads again before it waits.
    public var hasBufferedInput: Bool {
        fault == nil && (SSL_pending(handle) > 0 || (!drained && SSL_has_pending(handle) == 1))
    }

    /// The protocol agreed on by ALPN; nil when none was.
    public var negotiatedProtocol: String? {
        var bytes: UnsafePointer<UInt8>?
        var count: UInt32 = 0
        SSL_get0_alpn_selected(handle, &bytes, &count)
        guard let bytes, count > 0 else { return nil }
        return String(decoding: UnsafeBufferPointer(start: bytes, count: Int(count)), as: UTF8.self)
    }

    /// The names in the other side's certificate: DNS names in lower case, URIs and mail addresses among its subject's
    /// alternative names. Nil without a certificate that an authority of ours has issued.
    public var peerNames: [String]? {
        guard established, SSL_get_verify_result(handle) == Int(X509_V_OK),
            let certificate = SSL_get1_peer_certificate(handle)
        else { return nil }
        defer { X509_free(certificate) }
        return AlternativeNames(of: certificate).texts
    }

    /// The hash of the other side's certificate, by which something else can be bound to this connection (`tls-server-end-point`, RFC 5929 §4.1),
    /// of at most 64 bytes. Nil without a certificate, or where its signature has no hash of its own, as with Ed25519.
    public var serverEndPoint: [UInt8]? {
        guard established, let certificate = SSL_get1_peer_certificate(handle) else { return nil }
        defer { X509_free(certificate) }
        let hash = [UInt8](unsafeUninitializedCapacity: Int(EVP_MAX_MD_SIZE)) { buffer, count in
            count = Int(cardea_end_point(certificate, buffer.baseAddress))
        }
        return hash.isEmpty ? nil : hash
    }
}

// MARK: - The wire

extension TLSConnection {
    /// Called by OpenSSL from within a step.
    func takeFromWire(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        if receivedUsed < received.count {
            let count = min(buffer.count, received.count - receivedUsed)
            received.withUnsafeBytes {
                buffer.copyMemory(from: .init(rebasing: $0[receivedUsed..<(receivedUsed + count)]))
            }
            receivedUsed += count
            if receivedUsed == received.count { received = []; receivedUsed = 0 }
            return count
        }
        guard budget > 0 else { return Int(-EPROTO) }
        let count = wire?.receive(into: buffer) ?? Int(-EBADF)
        if count == 0 { wireEnded = true }
        if count > 0, budget != .max { budget -= count }
        return count
    }

    func giveToWire(_ bytes: UnsafeRawBufferPointer) -> Int { wire?.transmit(bytes) ?? Int(-EBADF) }
}

// MARK: - Inside

extension TLSConnection {
    /// Called by OpenSSL with each new session, in TLS 1.3 during reads after the handshake. True: the reference is ours.
    func keep(_ session: OpaquePointer) -> Bool {
        guard let client, fault == nil else { return false }
        tickets += 1
        guard tickets <= Self.mostTickets else {
            budget = 0
            return false
        }
        guard client.resumes else { return false }
        // During a full TLS 1.2 handshake this comes before `handshake` notes when the chain was verified.
        let fresh = !established && SSL_session_reused(handle) == 0
        client.sessions.insert(session, for: name, verifiedAt: fresh ? Self.seconds() : verifiedAt)
        return true
    }

    private static func openWire(
        _ context: OpaquePointer
    ) throws(TLSFault) -> (handle: OpaquePointer, carrier: OpaquePointer) {
        ErrorQueue.clear()
        guard let handle = SSL_new(context) else { throw .system(ENOMEM) }
        guard let carrier = WireBIO.make() else {
            SSL_free(handle)
            throw .system(ENOMEM)
        }
        SSL_set_bio(handle, carrier, carrier)
        return (handle, carrier)
    }

    private func prepare() {
        ErrorQueue.clear()
        errno = 0
    }

    private func fail(_ fault: TLSFault) -> TLSFault {
        self.fault = fault
        return fault
    }

    /// The meaning of a result that is no success. `errno` is read first: everything else may change it.
    private func judge(_ result: Int32) -> TLSIO {
        let number = errno
        switch SSL_get_error(handle, result) {
        case SSL_ERROR_WANT_READ: return .wantsRead
        case SSL_ERROR_WANT_WRITE: return .wantsWrite
        case SSL_ERROR_ZERO_RETURN: return .closed
        case SSL_ERROR_SYSCALL:
            ErrorQueue.clear()
            guard number != 0 else {
                _ = fail(TLSFault(.closed, "\(name) closed the connection without close_notify"))
                return .truncated
            }
            return .failed(fail(.system(number)))
        default:
            let error = ErrorQueue.take()
            if let error, error.library == ERR_LIB_SSL, error.reason == SSL_R_UNEXPECTED_EOF_WHILE_READING {
                _ = fail(TLSFault(.closed, "\(name) closed the connection without close_notify"))
                return .truncated
            }
            let verdict = SSL_get_verify_result(handle)
            if !established, verdict != Int(X509_V_OK) {
                return .failed(fail(.certificateRefused(verdict, of: name, authority: authorityOutOfTime(verdict))))
            }
            return .failed(fail(.protocolFailure(error, with: name)))
        }
    }

    /// The name of the authority that is the reason for a refusal by a date; nil where it is the server's own certificate.
    private func authorityOutOfTime(_ verdict: Int) -> String? {
        guard [X509_V_ERR_CERT_HAS_EXPIRED, X509_V_ERR_CERT_NOT_YET_VALID].contains(Int32(truncatingIfNeeded: verdict))
        else { return nil }
        var name = [CChar](repeating: 0, count: 128)
        guard cardea_authority_out_of_time(handle, &name, Int32(name.count)) == 1 else { return nil }
        // The name comes from a certificate: nothing of it may move a terminal's cursor.
        let shown = name.prefix { $0 != 0 }.map {
            (0x20...0x7E).contains($0) ? UInt8(bitPattern: $0) : UInt8(ascii: "?")
        }
        return String(decoding: shown, as: UTF8.self)
    }

    private static func seconds() -> UInt64 { SystemTime().sinceBoot() / 1_000_000_000 }
}

extension ServerName {
    /// Makes the handshake fail unless the certificate is for this name (RFC 9525) or address.
    fileprivate func expect(on connection: OpaquePointer, subjectNames: Bool) -> Bool {
        let parameters = SSL_get0_param(connection)
        guard address.isEmpty else { return X509_VERIFY_PARAM_set1_ip(parameters, address, address.count) == 1 }
        X509_VERIFY_PARAM_set_hostflags(
            parameters,
            UInt32(X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS)
                | (subjectNames ? 0 : UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT)))
        return X509_VERIFY_PARAM_set1_host(parameters, text, 0) == 1 && cardea_set_server_name(connection, text) == 1
    }
}
