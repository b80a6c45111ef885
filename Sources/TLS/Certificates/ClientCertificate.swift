internal import COpenSSL
internal import Octets

/// A certificate with its chain and private key, to show to servers that ask for one, or to callers.
///
/// Immutable after construction, so it may be shared between threads. Key and password are never part of a description.
public final class ClientCertificate: @unchecked Sendable, CustomStringConvertible {
    let leaf: OpaquePointer
    let chain: [OpaquePointer]
    private let key: OpaquePointer

    /// The most certificates that are taken from one chain.
    static let maximumChain = 16

    /// From PEM: the leaf first, then its issuers; the key in its own bytes, or in the same ones. A password is only asked of an
    /// encrypted key.
    /// - Throws: `.configuration` when nothing usable is there, the password is wrong, or key and certificate do not belong together.
    public convenience init(certificatePEM: [UInt8], keyPEM: [UInt8], password: [UInt8] = []) throws(TLSFault) {
        try self.init(certificatePEM: certificatePEM, keyPEM: keyPEM, password: password, called: "client certificate")
    }

    /// - Parameter called: what a fault calls the certificate.
    init(certificatePEM: [UInt8], keyPEM: [UInt8], password: [UInt8], called: String) throws(TLSFault) {
        ErrorQueue.clear()
        var certificates = Self.certificates(in: certificatePEM)
        ErrorQueue.clear()
        guard !certificates.isEmpty else {
            throw TLSFault(.configuration, "\(called): no PEM certificate found")
        }
        guard let key = Self.privateKey(in: keyPEM, password: password) else {
            for certificate in certificates { X509_free(certificate) }
            if password.isEmpty, String(decoding: keyPEM, as: UTF8.self).contains("ENCRYPTED") {
                ErrorQueue.clear()
                throw TLSFault(
                    .configuration, "private key of the \(called) is encrypted and there is no password for it")
            }
            throw ErrorQueue.configurationFault("private key of the \(called) cannot be read")
        }
        leaf = certificates.removeFirst()
        chain = certificates
        self.key = key
        try requireMatch(called)
    }

    /// From PKCS#12 (RFC 7292), the form in which Windows and Java tools export.
    /// - Throws: `.configuration`, as above. Old exports encrypted with RC2 or RC4 need OpenSSL's legacy provider and fail without.
    public init(pkcs12: [UInt8], password: [UInt8]) throws(TLSFault) {
        ErrorQueue.clear()
        guard let archive = reading(pkcs12, { d2i_PKCS12_bio($0, nil) }) else {
            throw ErrorQueue.configurationFault("client certificate is no PKCS#12 archive")
        }
        defer { PKCS12_free(archive) }
        var key: OpaquePointer?
        var leaf: OpaquePointer?
        var others: OpaquePointer?
        var secret = password.map { CChar(bitPattern: $0) } + [0]
        defer { secret.wipe() }
        let parsed = PKCS12_parse(archive, secret, &key, &leaf, &others)
        var chain: [OpaquePointer] = []
        if let others {
            for index in 0..<min(OPENSSL_sk_num(others), Int32(Self.maximumChain)) {
                guard let certificate = OPENSSL_sk_value(others, index).map({ OpaquePointer($0) }) else { continue }
                X509_up_ref(certificate)
                chain.append(certificate)
            }
            while let last = OPENSSL_sk_pop(others) { X509_free(OpaquePointer(last)) }
            OPENSSL_sk_free(others)
        }
        guard parsed == 1, let leaf, let key else {
            X509_free(leaf)
            EVP_PKEY_free(key)
            for certificate in chain { X509_free(certificate) }
            throw ErrorQueue.configurationFault("client certificate in PKCS#12 cannot be used")
        }
        self.leaf = leaf
        self.key = key
        self.chain = chain
        try requireMatch("client certificate")
    }

    deinit {
        X509_free(leaf)
        EVP_PKEY_free(key)
        for certificate in chain { X509_free(certificate) }
    }

    /// Tells nothing of the certificate or its key.
    public var description: String { "ClientCertificate(••••)" }

    /// SHA-256 of the leaf's DER, as `x5t#S256` (RFC 8705 section 3.1) names a certificate.
    public var thumbprint: [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        var count: UInt32 = 32
        guard X509_digest(leaf, EVP_sha256(), &digest, &count) == 1 else { return [] }
        return digest
    }

    /// The first and the last second in which it is good, since 1970. The last may stand before the first: it was never good.
    public var validity: (first: Int64, last: Int64) {
        (seconds(X509_get0_notBefore(leaf)) ?? -1, seconds(X509_get0_notAfter(leaf)) ?? -1)
    }

    /// How long it and its chain are good, one for each subject.
    public var validities: [CertificateValidity] {
        CertificateValidity.lastOfEach(([leaf] + chain).compactMap(CertificateValidity.init(of:)))
    }

    // MARK: -

    func install(in context: OpaquePointer) throws(TLSFault) {
        guard SSL_CTX_use_certificate(context, leaf) == 1, SSL_CTX_use_PrivateKey(context, key) == 1 else {
            throw ErrorQueue.configurationFault("client certificate refused")
        }
        for certificate in chain where cardea_ctx_add_chain_certificate(context, certificate) != 1 {
            throw ErrorQueue.configurationFault("chain of the client certificate refused")
        }
    }

    /// Shows it on this connection alone.
    func use(on connection: OpaquePointer) -> Bool {
        let chain = chain.map { Optional($0) }
        return cardea_use_identity(connection, leaf, key, chain, Int32(chain.count)) == 1
    }

    /// Whether one of the authorities that the server named issued it, or a certificate of its chain.
    func isRequested(on connection: OpaquePointer) -> Bool {
        ([leaf] + chain).contains { cardea_requests_issuer_of(connection, $0) == 1 }
    }

    private func requireMatch(_ called: String) throws(TLSFault) {
        guard X509_check_private_key(leaf, key) == 1 else {
            throw ErrorQueue.configurationFault("\(called) and private key do not belong together")
        }
    }

    /// At most `limit` certificates; each is the caller's to free.
    static func certificates(in pem: [UInt8], limit: Int = maximumChain) -> [OpaquePointer] {
        reading(pem) { input in
            var found: [OpaquePointer] = []
            while found.count < limit, let certificate = PEM_read_bio_X509(input, nil, nil, nil) {
                found.append(certificate)
            }
            return found
        } ?? []
    }

    static func privateKey(in pem: [UInt8], password: [UInt8]) -> OpaquePointer? {
        reading(pem) { input in
            withUnsafePointer(to: password) { secret in
                // Without a callback OpenSSL would ask on the terminal.
                PEM_read_bio_PrivateKey(
                    input, nil,
                    { buffer, size, _, user in
                        guard let buffer, let secret = user?.assumingMemoryBound(to: [UInt8].self).pointee,
                            !secret.isEmpty, secret.count <= Int(size)
                        else { return -1 }
                        UnsafeMutableRawPointer(buffer).copyMemory(from: secret, byteCount: secret.count)
                        return Int32(secret.count)
                    }, UnsafeMutableRawPointer(mutating: secret))
            }
        }
    }
}

/// Reads octets through OpenSSL; nil, too, when it has no memory for that.
func reading<Result>(_ octets: [UInt8], _ body: (OpaquePointer) -> Result?) -> Result? {
    octets.withUnsafeBytes { octets in
        guard let input = BIO_new_mem_buf(octets.baseAddress, Int32(clamping: octets.count)) else { return nil }
        defer { BIO_free(input) }
        return body(input)
    }
}

/// The output of one of OpenSSL's encoders, which is asked for the length first; nil when it fails.
func encoded(_ write: (UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32) -> [UInt8]? {
    let count = write(nil)
    guard count > 0 else { return nil }
    var octets = [UInt8](repeating: 0, count: Int(count))
    let written = octets.withUnsafeMutableBufferPointer { buffer in
        var output = buffer.baseAddress
        return write(&output)
    }
    return written == count ? octets : nil
}
