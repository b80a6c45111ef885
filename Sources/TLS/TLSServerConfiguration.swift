internal import COpenSSL
internal import Glibc

/// The server's side of what connections share: a certificate, its key, and the protocols on offer.
///
/// Serves simulated systems and tests; like the client's, it belongs to one thread, except that a server on blocking sockets may
/// share it between threads, because nothing in it changes after construction but what OpenSSL locks itself.
public final class TLSServerConfiguration: @unchecked Sendable {
    let handle: OpaquePointer
    /// ALPN names in wire form behind their length in two bytes: OpenSSL's callback is handed one pointer, for as long as the
    /// context lives.
    private let protocols: UnsafeMutableBufferPointer<UInt8>

    /// - Parameters:
    ///   - certificateFile: PEM, the leaf first, then its chain.
    ///   - keyFile: PEM, not encrypted.
    ///   - alpn: protocol names in order of the server's preference.
    ///   - clientAuthorityFile: when given, a client must show a certificate issued by one of these.
    /// - Throws: `.configuration` when a file cannot be used.
    public init(
        certificateFile: String, keyFile: String, alpn: [String] = [], minimumVersion: TLSVersion = .v1_2,
        maximumVersion: TLSVersion = .v1_3, clientAuthorityFile: String? = nil
    ) throws(TLSFault) {
        let names = try ProtocolList(alpn)
        let protocols = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: names.wire.count + 2)
        _ = protocols.initialize(from: [UInt8(names.wire.count >> 8), UInt8(names.wire.count & 0xff)] + names.wire)
        do throws(TLSFault) {
            handle = try makeContext(TLS_server_method()) { context throws(TLSFault) in
                guard cardea_ctx_set_minimum_version(context, minimumVersion.number) == 1,
                    cardea_ctx_set_maximum_version(context, maximumVersion.number) == 1
                else { throw ErrorQueue.configurationFault("TLS version not available") }
                guard SSL_CTX_use_certificate_chain_file(context, certificateFile) == 1 else {
                    throw ErrorQueue.configurationFault("certificate \(certificateFile)")
                }
                guard SSL_CTX_use_PrivateKey_file(context, keyFile, SSL_FILETYPE_PEM) == 1 else {
                    throw ErrorQueue.configurationFault("private key \(keyFile)")
                }
                let name = Array("cardea".utf8)
                SSL_CTX_set_session_id_context(context, name, UInt32(name.count))
                if let clientAuthorityFile {
                    guard SSL_CTX_load_verify_file(context, clientAuthorityFile) == 1 else {
                        throw ErrorQueue.configurationFault("certificate authorities in \(clientAuthorityFile)")
                    }
                    SSL_CTX_set_client_CA_list(context, SSL_load_client_CA_file(clientAuthorityFile))
                    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nil)
                }
                guard !names.wire.isEmpty else { return }
                SSL_CTX_set_alpn_select_cb(
                    context,
                    { _, chosen, length, offered, offeredCount, list in
                        guard let chosen, let length, let list else { return SSL_TLSEXT_ERR_NOACK }
                        let ours = list.assumingMemoryBound(to: UInt8.self)
                        let count = UInt32(ours[0]) << 8 | UInt32(ours[1])
                        var found: UnsafeMutablePointer<UInt8>?
                        let result = SSL_select_next_proto(&found, length, ours + 2, count, offered, offeredCount)
                        guard result == OPENSSL_NPN_NEGOTIATED else { return SSL_TLSEXT_ERR_NOACK }
                        chosen.pointee = UnsafePointer(found)
                        return SSL_TLSEXT_ERR_OK
                    }, protocols.baseAddress)
            }
        } catch {
            protocols.deallocate()
            throw error
        }
        self.protocols = protocols
    }

    deinit {
        SSL_CTX_free(handle)
        protocols.deallocate()
    }
}
