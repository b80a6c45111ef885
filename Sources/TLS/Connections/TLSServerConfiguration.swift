internal import COpenSSL
internal import Glibc

/// The server's side of what connections share: a certificate, its key, and the protocols on offer.
///
/// Nothing in it changes after construction but what OpenSSL locks itself, so that loops may share it.
public final class TLSServerConfiguration: @unchecked Sendable {
    let handle: OpaquePointer
    private let protocols: ProtocolChoice
    let tickets: TicketKeys?
    let staple: StapledAnswer?

    /// For listeners: TLS 1.2 and 1.3 with ciphers that are forward secret and authenticated.
    /// - Parameters:
    ///   - callerAuthorities: PEM; when given, a caller must show a certificate issued by one of these.
    ///   - sessionContext: at most 32 bytes; sessions of another context are not resumed.
    ///   - tickets: seal the sessions that callers may resume; nil: they resume none.
    init(
        pair: ClientCertificate, alpn: [String], callerAuthorities: [UInt8]?, sessionContext: [UInt8],
        tickets: TicketKeys?, staple: StapledAnswer?
    ) throws(TLSFault) {
        let choice = try ProtocolChoice(alpn)
        handle = try makeContext(TLS_server_method()) { context throws(TLSFault) in
            guard cardea_ctx_set_minimum_version(context, TLSVersion.v1_2.number) == 1,
                cardea_ctx_set_maximum_version(context, TLSVersion.v1_3.number) == 1
            else { throw ErrorQueue.configurationFault("TLS version not available") }
            // TLS 1.3 has no others. Order is the server's; ChaCha20 goes first with callers that put it first.
            guard SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 else {
                throw ErrorQueue.configurationFault("ciphers not available")
            }
            cardea_ctx_prefer_server_ciphers(context)
            try pair.install(in: context)
            guard SSL_CTX_set_session_id_context(context, sessionContext, UInt32(sessionContext.count)) == 1 else {
                throw ErrorQueue.configurationFault("session context")
            }
            cardea_ctx_cache_no_sessions(context)
            if let tickets { tickets.install(in: context) } else { cardea_ctx_give_no_tickets(context) }
            if staple != nil { StapledAnswer.install(in: context) }
            if let callerAuthorities { try Self.ask(callers: callerAuthorities, in: context) }
            choice.install(in: context)
        }
        protocols = choice
        self.tickets = tickets
        self.staple = staple
    }

    deinit { SSL_CTX_free(handle) }

    // MARK: -

    private static func ask(callers authorities: [UInt8], in context: OpaquePointer) throws(TLSFault) {
        let certificates = ClientCertificate.certificates(in: authorities, limit: 1000)
        defer { for certificate in certificates { X509_free(certificate) } }
        ErrorQueue.clear()
        guard !certificates.isEmpty else {
            throw TLSFault(.configuration, "authorities of callers: no PEM certificate found")
        }
        let store = SSL_CTX_get_cert_store(context)
        for certificate in certificates {
            guard X509_STORE_add_cert(store, certificate) == 1, SSL_CTX_add_client_CA(context, certificate) == 1 else {
                throw ErrorQueue.configurationFault("authorities of callers")
            }
        }
        // An operator may name an intermediate as the authority: then it alone is trusted, not what stands above it.
        X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN))
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
    }
}

/// The server's choice among a client's protocols. A client that offers protocols, none of them ours, is refused (RFC 7301 section 3.2),
/// instead of being served as if it had offered none.
private final class ProtocolChoice {
    /// Names in wire form behind their length in two bytes: OpenSSL's callback is handed one pointer, for as long as the context lives.
    private let list: UnsafeMutableBufferPointer<UInt8>
    private let isEmpty: Bool

    init(_ names: [String]) throws(TLSFault) {
        let wire = try protocolList(names)
        list = .allocate(capacity: wire.count + 2)
        _ = list.initialize(from: [UInt8(wire.count >> 8), UInt8(wire.count & 0xff)] + wire)
        isEmpty = wire.isEmpty
    }

    deinit { list.deallocate() }

    func install(in context: OpaquePointer) {
        guard !isEmpty else { return }
        SSL_CTX_set_alpn_select_cb(
            context,
            { _, chosen, length, offered, offeredCount, list in
                guard let chosen, let length, let list else { return SSL_TLSEXT_ERR_NOACK }
                let ours = list.assumingMemoryBound(to: UInt8.self)
                let count = UInt32(ours[0]) << 8 | UInt32(ours[1])
                var found: UnsafeMutablePointer<UInt8>?
                let result = SSL_select_next_proto(&found, length, ours + 2, count, offered, offeredCount)
                guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_ALERT_FATAL }
                chosen.pointee = UnsafePointer(found)
                return SSL_TLSEXT_ERR_OK
            }, list.baseAddress)
    }
}
