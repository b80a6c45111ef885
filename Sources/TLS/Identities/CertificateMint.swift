internal import COpenSSL
internal import Glibc

/// An authority that signs certificates for hosts whose connections we open, and nothing else: its own certificate says for which
/// hosts it may speak (RFC 5280 section 4.2.1.10), so that a stolen key cannot speak for others.
public final class CertificateMint: @unchecked Sendable {
    // OpenSSL counts references itself; nothing here changes after construction.
    private let certificate: OpaquePointer
    private let key: OpaquePointer
    /// All leaves have this one key: it never leaves this process, and a new one each time would cost more than the signature.
    private let leafKey: OpaquePointer
    /// Seconds since 1970.
    public let notAfter: Int64
    /// How long the authority is good.
    public let validity: CertificateValidity

    /// How long a leaf is good for, in seconds, and how far back it begins: callers' clocks differ.
    static let leafLife: Int64 = 24 * 3600
    static let leeway: Int64 = 3600

    /// - Parameter pem: the authority's certificate and its key, as `makeAuthority` writes them.
    /// - Throws: `.configuration` when it holds no usable pair.
    public init(pem: [UInt8]) throws(TLSFault) {
        ErrorQueue.clear()
        guard let certificate = ClientCertificate.certificates(in: pem, limit: 1).first else {
            throw ErrorQueue.configurationFault("no certificate of an authority in PEM")
        }
        guard let key = ClientCertificate.privateKey(in: pem, password: []) else {
            X509_free(certificate)
            throw ErrorQueue.configurationFault("no private key of the authority in PEM")
        }
        guard X509_check_private_key(certificate, key) == 1, X509_check_ca(certificate) == 1,
            let leafKey = Self.makeKey()
        else {
            X509_free(certificate)
            EVP_PKEY_free(key)
            throw ErrorQueue.configurationFault("the certificate is no authority's, or the key is not its own")
        }
        validity =
            CertificateValidity(of: certificate) ?? CertificateValidity(subject: "", notBefore: 0, notAfter: 0)
        notAfter = validity.notAfter
        self.certificate = certificate
        self.key = key
        self.leafKey = leafKey
    }

    deinit {
        X509_free(certificate)
        EVP_PKEY_free(key)
        EVP_PKEY_free(leafKey)
    }
}

// MARK: - Leaves

extension CertificateMint {
    /// A certificate for one host, with the authority's behind it.
    /// - Parameters:
    ///   - host: a DNS name in A-label form, or an IP address.
    ///   - now: seconds since 1970.
    /// - Throws: `.configuration` when the host cannot stand in a certificate.
    public func leaf(for host: String, now: Int64) throws(TLSFault) -> ServerIdentity.Material {
        let isAddress =
            host.utf8.contains(UInt8(ascii: ":")) || host.utf8.allSatisfy { $0 == 0x2e || (0x30...0x39).contains($0) }
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f && $0 != 0x2c && $0 != 0x22 && $0 != 0x5c }) else {
            throw TLSFault(.configuration, "no certificate can be made for this host")
        }
        // OpenSSL holds a subject against the authority's names, for which an address would be none that is allowed.
        let leaf = try Self.make(
            subject: host.utf8.count <= 64 && !isAddress ? host : "host", issuer: certificate, subjectKey: leafKey,
            signingKey: key, from: now - Self.leeway, to: min(now + Self.leafLife, notAfter),
            extensions: [
                (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
                (NID_ext_key_usage, "serverAuth"),
                (NID_subject_alt_name, (isAddress ? "IP:" : "DNS:") + host),
                (NID_authority_key_identifier, "keyid"),
            ])
        defer { X509_free(leaf) }
        return ServerIdentity.Material(
            certificate: try Self.text {
                PEM_write_bio_X509($0, leaf) == 1 && PEM_write_bio_X509($0, certificate) == 1
            },
            key: try Self.text { PEM_write_bio_PrivateKey($0, leafKey, nil, nil, 0, nil, nil) == 1 })
    }

    /// The mask of one address in the form of its family; nil when the host is no address.
    private static func mask(of host: String) -> String? {
        var room = in6_addr()
        if inet_pton(AF_INET, host, &room) == 1 { return "255.255.255.255" }
        if inet_pton(AF_INET6, host, &room) == 1 { return "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" }
        return nil
    }

    // MARK: - The authority

    /// A new authority.
    ///
    /// - Parameters:
    ///   - name: what people read in their trust stores.
    ///   - hosts: DNS names, of which one that begins with `*.` or `.` stands for every name below it, and single IP addresses.
    ///   - days: it lives for.
    ///   - now: seconds since 1970.
    /// - Returns: the certificate for trust stores, and certificate and key together for us; both PEM.
    /// - Throws: `.configuration` when a host cannot be a constraint.
    public static func makeAuthority(
        name: String, hosts: [String], days: Int, now: Int64
    ) throws(TLSFault) -> (certificate: [UInt8], pair: [UInt8]) {
        ErrorQueue.clear()
        guard !hosts.isEmpty, days > 0, name.utf8.count <= 64, let key = makeKey() else {
            throw TLSFault(.configuration, "an authority needs a short name, hosts and days")
        }
        defer { EVP_PKEY_free(key) }
        var constraints: [String] = []
        var hasAddresses = false
        for host in hosts {
            if let mask = mask(of: host) {
                hasAddresses = true
                constraints.append("permitted;IP:\(host)/\(mask)")
                continue
            }
            let bare =
                host.hasPrefix("*.") ? String(host.dropFirst(2)) : host.hasPrefix(".") ? String(host.dropFirst()) : host
            guard !bare.isEmpty, bare.utf8.count <= 253,
                bare.utf8.allSatisfy({
                    $0 == 0x2e || $0 == 0x2d || ($0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a) || (0x30...0x39).contains($0)
                })
            else { throw TLSFault(.configuration, "'\(host)' is no host name") }
            constraints.append("permitted;DNS:\(bare)")
        }
        // Each kind is free of which nothing is said (RFC 5280 §4.2.1.10).
        if !hasAddresses {
            constraints += ["excluded;IP:0.0.0.0/0.0.0.0", "excluded;IP:0:0:0:0:0:0:0:0/0:0:0:0:0:0:0:0"]
        }
        // OpenSSL writes no empty constraint, so that all names but those which nobody can have (RFC 6761 §6.4) are left out.
        if constraints.allSatisfy({ $0.hasPrefix("permitted;IP") }) { constraints.append("permitted;DNS:invalid") }
        let certificate = try make(
            subject: name, issuer: nil, subjectKey: key, signingKey: key, from: now - leeway,
            to: now + Int64(days) * 86_400,
            extensions: [
                (NID_basic_constraints, "critical,CA:TRUE,pathlen:0"),
                (NID_key_usage, "critical,keyCertSign,cRLSign"), (NID_subject_key_identifier, "hash"),
                (NID_name_constraints, "critical," + constraints.joined(separator: ",")),
            ])
        defer { X509_free(certificate) }
        let shown = try text { PEM_write_bio_X509($0, certificate) == 1 }
        return (shown, shown + (try text { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) == 1 }))
    }

    // MARK: - OpenSSL

    private static func makeKey() -> OpaquePointer? { cardea_make_p256_key() }

    private static func make(
        subject: String, issuer: OpaquePointer?, subjectKey: OpaquePointer, signingKey: OpaquePointer, from: Int64,
        to: Int64, extensions: [(Int32, String)]
    ) throws(TLSFault) -> OpaquePointer {
        guard let made = X509_new() else { throw TLSFault(.configuration, "no memory for a certificate") }
        var context = X509V3_CTX()
        X509V3_set_ctx(&context, issuer ?? made, made, nil, nil, 0)
        // 16 random octets with the sign bit clear: positive, unique, and not guessable (RFC 5280 section 4.1.2.2).
        var serial = SystemRandom().bytes(16)
        serial[0] &= 0x7f
        let number = BN_bin2bn(serial, 16, nil)
        defer { BN_free(number) }
        var done =
            X509_set_version(made, 2) == 1 && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(made)) != nil
            && ASN1_TIME_set(X509_getm_notBefore(made), Int(from)) != nil
            && ASN1_TIME_set(X509_getm_notAfter(made), Int(to)) != nil
            && X509_set_pubkey(made, subjectKey) == 1
            && X509_NAME_add_entry_by_txt(
                X509_get_subject_name(made), "CN", Int32(MBSTRING_UTF8), subject, -1, -1, 0) == 1
            && X509_set_issuer_name(made, X509_get_subject_name(issuer ?? made)) == 1
        for (kind, value) in extensions where done {
            guard let entry = X509V3_EXT_conf_nid(nil, &context, kind, value) else {
                done = false
                break
            }
            done = X509_add_ext(made, entry, -1) == 1
            X509_EXTENSION_free(entry)
        }
        guard done, X509_sign(made, signingKey, EVP_sha256()) > 0 else {
            X509_free(made)
            throw ErrorQueue.configurationFault("a certificate could not be made")
        }
        return made
    }

    private static func text(_ body: (OpaquePointer) -> Bool) throws(TLSFault) -> [UInt8] {
        guard let output = BIO_new(BIO_s_mem()) else { throw TLSFault(.configuration, "no memory for a certificate") }
        defer { BIO_free(output) }
        var piece = [UInt8](repeating: 0, count: 4096)
        guard body(output) else { throw ErrorQueue.configurationFault("a certificate could not be written") }
        var bytes: [UInt8] = []
        while true {
            let count = BIO_read(output, &piece, Int32(piece.count))
            guard count > 0 else { return bytes }
            bytes += piece[..<Int(count)]
        }
    }
}
