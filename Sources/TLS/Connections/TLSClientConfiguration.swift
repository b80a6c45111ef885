internal import COpenSSL
internal import Glibc

/// Whom a client trusts.
public enum CertificateAuthority: Sendable, Hashable {
    /// The distribution's store, or what `SSL_CERT_FILE` and `SSL_CERT_DIR` name. Read when a chain first needs it.
    case system
    /// A PEM file of one or more certificates, each of them trusted, also one that is not self-signed.
    case file(String)
    /// The same, read before.
    case bundle(AuthorityBundle)
}

/// Versions of TLS that are spoken at all: 1.2 or better (docs/security/guarantees.md#invariant-6).
public enum TLSVersion: Sendable, Comparable {
    // The names of the protocol, for which its own spelling is the plain one.
    // swift-format-ignore: AlwaysUseLowerCamelCase
    case v1_2, v1_3

    var number: Int32 { self == .v1_2 ? TLS1_2_VERSION : TLS1_3_VERSION }
}

/// Everything that connections to one route or issuer have in common: trust, versions, protocols, and the sessions to resume.
///
/// Holds an `SSL_CTX`, which is expensive (tens of thousands of allocations) and whose session cache is unlocked: make one per loop
/// and route or issuer, and use it and its connections on that thread only. It is `Sendable` so that it can be built on one
/// thread and handed to its loop; that hand-over is the only crossing allowed.
public final class TLSClientConfiguration: @unchecked Sendable {
    let handle: OpaquePointer
    let allowsSubjectNames: Bool
    var sessions = SessionCache()
    /// A connection may go on with the session of another one, and then sees the server's certificate of that time.
    let resumes: Bool
    /// OpenSSL holds a pointer to it.
    private let choice: IdentityChoice

    /// - Parameters:
    ///   - authorities: whose certificates are accepted; at least one.
    ///   - legacy: lowers OpenSSL's security level to 0 (small keys, SHA-1), allows the renegotiation that RFC 5746 replaced, and
    ///     accepts a host name in the certificate's subject. For servers that cannot be changed; the versions stay as they are.
    ///   - alpn: protocol names in order of preference, each 1 to 255 bytes; empty: the extension is not sent.
    ///   - identities: what to show a server that asks for a client certificate. One is always shown; of several the first that was
    ///     issued by an authority which the server names, else the first: servers often name the root alone, and files lack what
    ///     stands between.
    ///   - resumes: sessions are resumed. Without that each connection shows the certificate that the server has now.
    /// - Throws: `.configuration` when a file or a value cannot be used.
    public init(
        authorities: [CertificateAuthority] = [.system], minimumVersion: TLSVersion = .v1_2, legacy: Bool = false,
        alpn: [String] = [], identities: [ClientCertificate] = [], resumes: Bool = true
    ) throws(TLSFault) {
        self.resumes = resumes
        guard !authorities.isEmpty else { throw TLSFault(.configuration, "no certificate authority is trusted") }
        let protocols = try protocolList(alpn)
        let choice = IdentityChoice(identities)
        self.choice = choice
        handle = try makeContext(TLS_client_method()) { context throws(TLSFault) in
            guard cardea_ctx_set_minimum_version(context, minimumVersion.number) == 1 else {
                throw ErrorQueue.configurationFault("TLS version not available")
            }
            if legacy {
                cardea_ctx_allow_legacy(context)
                guard SSL_CTX_set_cipher_list(context, "DEFAULT:@SECLEVEL=0") == 1 else {
                    throw ErrorQueue.configurationFault("legacy ciphers not available")
                }
            }
            SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nil)
            for authority in authorities { try trust(authority, in: context) }
            // Lets an operator pin an intermediate or a server's own certificate by naming it as authority.
            X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(context), UInt(X509_V_FLAG_PARTIAL_CHAIN))
            if !protocols.isEmpty {
                // This call alone answers 0 for success.
                guard SSL_CTX_set_alpn_protos(context, protocols, UInt32(protocols.count)) == 0 else {
                    throw ErrorQueue.configurationFault("ALPN list refused")
                }
            }
            if let only = identities.first, identities.count == 1 {
                try only.install(in: context)
            } else if !identities.isEmpty {
                choice.install(in: context)
            }
            cardea_ctx_cache_client_sessions_outside(context)
            SSL_CTX_sess_set_new_cb(context) { connection, session in
                guard let connection, let session, let owner = cardea_owner(connection) else { return 0 }
                // The callback runs inside a call made by the owner, which is therefore alive.
                return Unmanaged<TLSConnection>.fromOpaque(owner).takeUnretainedValue().keep(session) ? 1 : 0
            }
        }
        allowsSubjectNames = legacy
    }

    deinit { SSL_CTX_free(handle) }
}

// MARK: -

/// Picks one of several client certificates when a server asks.
private final class IdentityChoice: Sendable {
    private let identities: [ClientCertificate]

    init(_ identities: [ClientCertificate]) { self.identities = identities }

    /// The receiver must live as long as the context and its connections.
    func install(in context: OpaquePointer) {
        let callback: @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32 = { connection, owner in
            guard let connection, let owner else { return 0 }
            return Unmanaged<IdentityChoice>.fromOpaque(owner).takeUnretainedValue().choose(on: connection) ? 1 : 0
        }
        SSL_CTX_set_cert_cb(context, callback, Unmanaged.passUnretained(self).toOpaque())
    }

    private func choose(on connection: OpaquePointer) -> Bool {
        let requested = identities.first { $0.isRequested(on: connection) }
        return (requested ?? identities.first)?.use(on: connection) ?? false
    }
}

/// Names for ALPN in wire form (RFC 7301 section 3.1): each preceded by its length.
func protocolList(_ names: [String]) throws(TLSFault) -> [UInt8] {
    var wire: [UInt8] = []
    for name in names {
        guard (1...255).contains(name.utf8.count) else {
            throw TLSFault(.configuration, "an ALPN name has 1 to 255 bytes")
        }
        wire.append(UInt8(name.utf8.count))
        wire += name.utf8
    }
    guard wire.count <= 1024 else { throw TLSFault(.configuration, "ALPN list is longer than 1024 bytes") }
    return wire
}

/// A context with the settings that client and server share; freed again when `configure` throws.
func makeContext(
    _ method: OpaquePointer?, _ configure: (OpaquePointer) throws(TLSFault) -> Void
) throws(TLSFault) -> OpaquePointer {
    ErrorQueue.clear()
    guard let context = SSL_CTX_new(method) else { throw ErrorQueue.configurationFault("OpenSSL context") }
    cardea_ctx_set_modes(context)
    cardea_ctx_harden(context)
    do throws(TLSFault) {
        try configure(context)
    } catch {
        SSL_CTX_free(context)
        throw error
    }
    ErrorQueue.clear()
    return context
}

private func trust(_ authority: CertificateAuthority, in context: OpaquePointer) throws(TLSFault) {
    ErrorQueue.clear()
    switch authority {
    case .system:
        guard SSL_CTX_set_default_verify_paths(context) == 1 else {
            throw ErrorQueue.configurationFault("system certificate authorities")
        }
    case .file(let path):
        guard !path.isEmpty, access(path, R_OK) == 0 else {
            throw TLSFault(.configuration, "certificate authorities in \(path) cannot be read")
        }
        guard SSL_CTX_load_verify_file(context, path) == 1 else {
            throw ErrorQueue.configurationFault("certificate authorities in \(path)")
        }
    case .bundle(let bundle): try bundle.trust(in: context)
    }
}
