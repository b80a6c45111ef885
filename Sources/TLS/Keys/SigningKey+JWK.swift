internal import COpenSSL

/// The numbers of a private JWK (RFC 7518 section 6, RFC 8037 section 2), big-endian.
public enum JWKNumbers: Sendable {
    case rsa(n: [UInt8], e: [UInt8], d: [UInt8], p: [UInt8], q: [UInt8], dp: [UInt8], dq: [UInt8], qi: [UInt8])
    case p256(x: [UInt8], y: [UInt8], d: [UInt8])
    case ed25519(d: [UInt8])
}

extension SigningKey {
    /// - Throws: `.configuration` where the numbers make no key.
    public convenience init(_ numbers: JWKNumbers) throws(TLSFault) {
        ErrorQueue.clear()
        let key: OpaquePointer?
        switch numbers {
        case .rsa(let n, let e, let d, let p, let q, let dp, let dq, let qi):
            key = Self.made(
                "RSA",
                [
                    ("n", n), ("e", e), ("d", d),
                    ("rsa-factor1", p), ("rsa-factor2", q),
                    ("rsa-exponent1", dp), ("rsa-exponent2", dq),
                    ("rsa-coefficient1", qi),
                ], point: nil)
        case .p256(let x, let y, let d):
            guard x.count == 32, y.count == 32, d.count <= 32 else {
                throw TLSFault(.configuration, "JWK: x and y of P-256 have 32 bytes")
            }
            key = Self.made("EC", [("priv", d)], point: [0x04] + x + y)
        case .ed25519(let d):
            guard d.count == 32 else { throw TLSFault(.configuration, "JWK: d of Ed25519 has 32 bytes") }
            key = EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, d, d.count)
        }
        guard let key else { throw ErrorQueue.configurationFault("JWK makes no key") }
        try self.init(owning: key, certificate: nil)
    }

    /// A pushed value is kept as a pointer until the parameters are made: names are static, everything else outlives the builder.
    private static func made(
        _ type: StaticString, _ numbers: [(name: StaticString, bytes: [UInt8])], point: [UInt8]?
    ) -> OpaquePointer? {
        guard let builder = OSSL_PARAM_BLD_new() else { return nil }
        guard let context = EVP_PKEY_CTX_new_from_name(nil, text(type), nil) else {
            OSSL_PARAM_BLD_free(builder)
            return nil
        }
        var held: [OpaquePointer] = []
        let kept = UnsafeMutableRawBufferPointer.allocate(byteCount: point?.count ?? 0, alignment: 1)
        kept.copyBytes(from: point ?? [])
        defer {
            for number in held { BN_clear_free(number) }
            kept.deallocate()
            OSSL_PARAM_BLD_free(builder)
            EVP_PKEY_CTX_free(context)
        }
        if point != nil {
            guard OSSL_PARAM_BLD_push_utf8_string(builder, text("group"), text("prime256v1"), 0) == 1,
                OSSL_PARAM_BLD_push_octet_string(builder, text("pub"), kept.baseAddress, kept.count) == 1
            else { return nil }
        }
        for number in numbers {
            guard let value = BN_bin2bn(number.bytes, Int32(clamping: number.bytes.count), nil) else { return nil }
            held.append(value)
            guard OSSL_PARAM_BLD_push_BN(builder, text(number.name), value) == 1 else { return nil }
        }
        guard let parameters = OSSL_PARAM_BLD_to_param(builder) else { return nil }
        defer { OSSL_PARAM_free(parameters) }
        var key: OpaquePointer?
        guard EVP_PKEY_fromdata_init(context) == 1,
            EVP_PKEY_fromdata(context, &key, cardea_key_pair(), parameters) == 1, let key
        else { return nil }
        // A public half that does not belong to the private one would give signatures that nobody can verify.
        guard let check = EVP_PKEY_CTX_new_from_pkey(nil, key, nil) else {
            EVP_PKEY_free(key)
            return nil
        }
        defer { EVP_PKEY_CTX_free(check) }
        guard EVP_PKEY_pairwise_check(check) == 1 else {
            EVP_PKEY_free(key)
            return nil
        }
        return key
    }

    private static func text(_ text: StaticString) -> UnsafePointer<CChar> {
        UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
    }
}
