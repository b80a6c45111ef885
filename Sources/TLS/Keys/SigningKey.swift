internal import COpenSSL
internal import Octets

/// A private key that signs: RSA, EC on P-256 or P-384, or Ed25519.
///
/// Immutable after construction, so it may be shared between threads. Neither key nor password is part of any description or error.
public final class SigningKey: @unchecked Sendable, CustomStringConvertible {
    let key: OpaquePointer
    /// Decides which algorithms the key may sign with.
    public let kind: Kind
    /// DER of the certificate that came with the key, if one did.
    public let certificate: [UInt8]?

    /// RSA of 2048 bits or more, ECDSA over one of two curves, or Ed25519.
    public enum Kind: Sendable, Equatable {
        case rsa, p256, p384, ed25519

        /// The kinds that sign JWTs here.
        public static let ofJWS: [Kind] = [.rsa, .p256, .ed25519]
        /// The kinds that sign messages of HTTP (RFC 9421 section 3.3).
        public static let ofHTTP: [Kind] = [.rsa, .p256, .p384, .ed25519]
    }

    /// Fewer bits are refused: RFC 7518 section 3.3 demands 2048.
    static let leastRSABits: Int32 = 2048

    /// Takes the key over.
    /// - Parameter kinds: that are admitted.
    init(owning key: OpaquePointer, certificate: [UInt8]?, of kinds: [Kind] = Kind.ofJWS) throws(TLSFault) {
        self.key = key
        self.certificate = certificate
        if EVP_PKEY_is_a(key, "RSA") == 1 || EVP_PKEY_is_a(key, "RSA-PSS") == 1 {
            kind = .rsa
            // Freed by deinit from here on, also when this throws.
            guard EVP_PKEY_get_bits(key) >= Self.leastRSABits else {
                throw TLSFault(.configuration, "RSA key shorter than 2048 bits")
            }
        } else if EVP_PKEY_is_a(key, "ED25519") == 1 {
            kind = .ed25519
        } else if let kind = Self.kind(ofCurve: key) {
            self.kind = kind
        } else {
            kind = .ed25519
            throw Self.unfit(kinds)
        }
        // Freed by deinit from here on, also when this throws.
        guard kinds.contains(kind) else { throw Self.unfit(kinds) }
    }

    deinit { EVP_PKEY_free(key) }

    /// The kind of the key alone.
    public var description: String { "SigningKey(\(kind))" }

    /// A public number of the key, by OpenSSL's name for it.
    func number(_ name: String) -> [UInt8]? {
        var number: OpaquePointer?
        guard EVP_PKEY_get_bn_param(key, name, &number) == 1, let number else { return nil }
        defer { BN_clear_free(number) }
        var bytes = [UInt8](repeating: 0, count: (Int(BN_num_bits(number)) + 7) / 8)
        return BN_bn2bin(number, &bytes) == bytes.count ? bytes : nil
    }

    private static func unfit(_ kinds: [Kind]) -> TLSFault {
        let curves = kinds.contains(.p384) ? "P-256 or P-384" : "P-256"
        return TLSFault(.configuration, "a signing key is RSA, EC on \(curves), or Ed25519")
    }

    private static func kind(ofCurve key: OpaquePointer) -> Kind? {
        guard EVP_PKEY_is_a(key, "EC") == 1 else { return nil }
        var name = [CChar](repeating: 0, count: 64)
        var length = 0
        guard EVP_PKEY_get_group_name(key, &name, name.count, &length) == 1 else { return nil }
        return switch String(decoding: name.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self) {
        case "prime256v1": .p256
        case "secp384r1": .p384
        default: nil
        }
    }
}

// MARK: - Reading

extension SigningKey {
    /// From a file: PEM (PKCS#8, also with a passphrase, PKCS#1, SEC 1; a certificate may stand beside it), PKCS#12, or PKCS#8 in DER.
    /// - Parameters:
    ///   - password: of an encrypted key or archive; not looked at otherwise.
    ///   - kinds: that are admitted.
    /// - Throws: `.configuration`.
    public convenience init(
        file: [UInt8], password: [UInt8] = [], of kinds: [Kind] = Kind.ofJWS
    ) throws(TLSFault) {
        ErrorQueue.clear()
        if file.first == 0x30 {
            try self.init(der: file, password: password, of: kinds)
            return
        }
        guard let key = ClientCertificate.privateKey(in: file, password: password) else {
            let isEncrypted = String(decoding: file.prefix(65_536), as: UTF8.self).contains("ENCRYPTED")
            throw ErrorQueue.configurationFault(
                isEncrypted ? "signing key cannot be opened with this passphrase" : "signing key cannot be read")
        }
        ErrorQueue.clear()
        let certificates = ClientCertificate.certificates(in: file, limit: 1)
        ErrorQueue.clear()
        defer { for certificate in certificates { X509_free(certificate) } }
        try self.init(owning: key, certificate: certificates.first.flatMap(Self.encoding), of: kinds)
    }

    private convenience init(der file: [UInt8], password: [UInt8], of kinds: [Kind]) throws(TLSFault) {
        // Readers of secrets trim one line end, LF or CR LF, and an archive may end in these very octets. DER says how long it is.
        var bytes = file
        defer { bytes.wipe() }
        switch Self.length(of: file).map({ $0 - file.count }) {
        case 1: bytes.append(0x0A)
        case 2: bytes += [0x0D, 0x0A]
        default: break
        }
        var secret = password.map { CChar(bitPattern: $0) } + [0]
        defer { secret.wipe() }
        var start = bytes.withUnsafeBufferPointer(\.baseAddress)
        let archive = bytes.withUnsafeBufferPointer { raw in
            start = raw.baseAddress
            return d2i_PKCS12(nil, &start, raw.count)
        }
        if let archive {
            defer { PKCS12_free(archive) }
            var key: OpaquePointer?
            var leaf: OpaquePointer?
            guard PKCS12_parse(archive, secret, &key, &leaf, nil) == 1, let key else {
                X509_free(leaf)
                throw ErrorQueue.configurationFault("signing key in PKCS#12 cannot be read")
            }
            defer { X509_free(leaf) }
            try self.init(owning: key, certificate: leaf.flatMap(Self.encoding), of: kinds)
            return
        }
        ErrorQueue.clear()
        let plain = bytes.withUnsafeBufferPointer { raw in
            start = raw.baseAddress
            return d2i_AutoPrivateKey(nil, &start, raw.count)
        }
        guard let key = plain ?? Self.encrypted(bytes, &secret) else {
            throw ErrorQueue.configurationFault("signing key in DER cannot be read")
        }
        try self.init(owning: key, certificate: nil, of: kinds)
    }

    private static func encrypted(_ der: [UInt8], _ secret: inout [CChar]) -> OpaquePointer? {
        ErrorQueue.clear()
        return reading(der) { input in
            // Without a callback the last argument is the passphrase.
            secret.withUnsafeMutableBytes { d2i_PKCS8PrivateKey_bio(input, nil, nil, $0.baseAddress) }
        }
    }

    /// Bytes of the outermost DER element, its header included.
    private static func length(of der: [UInt8]) -> Int? {
        guard der.count > 2 else { return nil }
        if der[1] < 0x80 { return 2 + Int(der[1]) }
        let digits = Int(der[1] & 0x7F)
        guard (1...4).contains(digits), der.count > 2 + digits else { return nil }
        return 2 + digits + der[2..<(2 + digits)].reduce(0) { $0 << 8 | Int($1) }
    }

    fileprivate static func encoding(_ certificate: OpaquePointer) -> [UInt8]? {
        encoded { i2d_X509(certificate, $0) }
    }
}

// MARK: - Signing

extension SigningKey {
    /// The algorithm that the key signs JWTs with unless it is told otherwise; nil for a kind that signs none here.
    public var algorithm: JWSAlgorithm? {
        switch kind {
        case .rsa: .rs256
        case .p256: .es256
        case .p384: nil
        case .ed25519: .edDSA
        }
    }

    /// Whether the key's kind fits the algorithm (RFC 7518 §3.1, RFC 8037 §3.1).
    public func signs(_ algorithm: JWSAlgorithm) -> Bool {
        switch algorithm {
        case .rs256, .ps256: kind == .rsa
        case .es256: kind == .p256
        case .edDSA: kind == .ed25519
        case .hs256: false
        }
    }

    /// The signature in the form of JWS (RFC 7518 section 3.4: two numbers of 32 bytes for ES256).
    public func sign(_ bytes: [UInt8], _ algorithm: JWSAlgorithm) throws(TLSFault) -> [UInt8] {
        guard signs(algorithm) else {
            throw TLSFault(.configuration, "\(algorithm.rawValue) does not go with this kind of key")
        }
        return try sign(
            bytes, hash: algorithm == .edDSA ? nil : EVP_sha256(), isPSS: algorithm == .ps256,
            width: algorithm == .es256 ? 32 : nil)
    }

    /// - Parameters:
    ///   - hash: nil for algorithms that bring their own.
    ///   - isPSS: the padding of RSA, with a salt as long as the hash (RFC 7518 section 3.5).
    ///   - width: of each of the two numbers of ECDSA, in octets, which stand behind one another; nil for other keys.
    func sign(_ bytes: [UInt8], hash: OpaquePointer?, isPSS: Bool, width: Int?) throws(TLSFault) -> [UInt8] {
        ErrorQueue.clear()
        guard let context = EVP_MD_CTX_new() else { throw ErrorQueue.configurationFault("signature") }
        defer { EVP_MD_CTX_free(context) }
        var parameters: OpaquePointer?
        guard EVP_DigestSignInit(context, &parameters, hash, nil, key) == 1 else {
            throw ErrorQueue.configurationFault("signature")
        }
        if isPSS {
            guard EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING) == 1,
                EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST) == 1
            else { throw ErrorQueue.configurationFault("PSS") }
        }
        var count = 0
        guard EVP_DigestSign(context, nil, &count, bytes, bytes.count) == 1, count > 0 else {
            throw ErrorQueue.configurationFault("signature")
        }
        var signature = [UInt8](repeating: 0, count: count)
        guard EVP_DigestSign(context, &signature, &count, bytes, bytes.count) == 1 else {
            throw ErrorQueue.configurationFault("signature")
        }
        signature.removeLast(signature.count - count)
        return if let width { try Self.fixed(signature, width) } else { signature }
    }

    private static func fixed(_ der: [UInt8], _ width: Int) throws(TLSFault) -> [UInt8] {
        let fixed = der.withUnsafeBufferPointer { raw -> [UInt8]? in
            var start = raw.baseAddress
            guard let parsed = d2i_ECDSA_SIG(nil, &start, raw.count) else { return nil }
            defer { ECDSA_SIG_free(parsed) }
            var bytes = [UInt8](repeating: 0, count: 2 * width)
            let done = bytes.withUnsafeMutableBufferPointer { buffer in
                let count = Int32(clamping: width)
                return BN_bn2binpad(ECDSA_SIG_get0_r(parsed), buffer.baseAddress, count) == count
                    && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), buffer.baseAddress?.advanced(by: width), count) == count
            }
            return done ? bytes : nil
        }
        guard let fixed else { throw ErrorQueue.configurationFault("ECDSA") }
        return fixed
    }
}

/// DER of the first certificate in PEM text; nil if there is none.
public func certificateDER(inPEM pem: [UInt8]) -> [UInt8]? {
    ErrorQueue.clear()
    let found = ClientCertificate.certificates(in: pem, limit: 1)
    ErrorQueue.clear()
    defer { for certificate in found { X509_free(certificate) } }
    return found.first.flatMap(SigningKey.encoding)
}
