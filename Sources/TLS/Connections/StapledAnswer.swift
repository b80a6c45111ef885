internal import COpenSSL
internal import World

/// A certificate's status in its authority's words (OCSP, RFC 6960), to be sent along with it (RFC 6066 section 8).
struct StapledAnswer: Sendable {
    /// DER, as it was given.
    let bytes: [UInt8]
    /// Seconds since 1970. Past it the answer stays home: a caller would refuse the connection that brings it.
    let validUntil: Int64

    /// An answer that names no end is good for this long from its making.
    private static let openEnd: Int64 = 7 * 86400

    /// - Parameter now: seconds since 1970.
    /// - Throws: `.configuration` when it is no answer, one about another certificate or by nobody who may say it, not "good", or
    ///   out of its time.
    init(_ bytes: [UInt8], for pair: ClientCertificate, now: Int64) throws(TLSFault) {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        var start: UnsafePointer<UInt8>?
        let response = bytes.withUnsafeBufferPointer { buffer -> OpaquePointer? in
            start = buffer.baseAddress
            return d2i_OCSP_RESPONSE(nil, &start, buffer.count)
        }
        guard let response else { throw Self.fault("no OCSP answer in DER") }
        defer { OCSP_RESPONSE_free(response) }
        guard OCSP_response_status(response) == OCSP_RESPONSE_STATUS_SUCCESSFUL,
            let basic = OCSP_response_get1_basic(response)
        else { throw Self.fault("the authority answered with an error") }
        defer { OCSP_BASICRESP_free(basic) }
        // Without the issuer in the chain nobody here can say who may sign; callers still check it.
        let issuer = pair.chain.first { X509_check_issued($0, pair.leaf) == X509_V_OK }
        guard let single = Self.find(in: basic, leaf: pair.leaf, issuer: issuer) else {
            throw Self.fault("it is about another certificate")
        }
        if let issuer {
            guard Self.isSigned(basic, by: issuer) else { throw Self.fault("its signature is not the authority's") }
        }
        var made: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        var ends: UnsafeMutablePointer<ASN1_GENERALIZEDTIME>?
        let status = OCSP_single_get0_status(single, nil, nil, &made, &ends)
        guard status == V_OCSP_CERTSTATUS_GOOD else {
            throw Self.fault(
                status == V_OCSP_CERTSTATUS_REVOKED ? "the certificate is revoked" : "the status is unknown")
        }
        guard let from = seconds(made) else { throw Self.fault("it has no date") }
        validUntil = seconds(ends) ?? from + Self.openEnd
        guard from <= now + 300 else { throw Self.fault("it is not valid yet") }
        guard validUntil > now else { throw Self.fault("it has expired") }
        self.bytes = bytes
    }

    // MARK: -

    private static func fault(_ reason: String) -> TLSFault {
        TLSFault(.configuration, "OCSP answer not stapled: \(reason)")
    }

    private static func find(in basic: OpaquePointer, leaf: OpaquePointer, issuer: OpaquePointer?) -> OpaquePointer? {
        for index in 0..<min(OCSP_resp_count(basic), 100) {
            guard let single = OCSP_resp_get0(basic, index), let id = OCSP_SINGLERESP_get0_id(single) else { continue }
            var digest: OpaquePointer?
            var serial: UnsafeMutablePointer<ASN1_INTEGER>?
            guard OCSP_id_get0_info(nil, &digest, nil, &serial, id) == 1, let serial,
                ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(leaf)) == 0
            else { continue }
            guard let issuer else { return single }
            guard let digest, let method = cardea_digest_of(digest),
                let own = OCSP_cert_to_id(method, leaf, issuer)
            else { continue }
            defer { OCSP_CERTID_free(own) }
            if OCSP_id_cmp(own, id) == 0 { return single }
        }
        return nil
    }

    private static func isSigned(_ basic: OpaquePointer, by issuer: OpaquePointer) -> Bool {
        guard let store = X509_STORE_new(), let helpers = OPENSSL_sk_new_null() else { return false }
        defer {
            X509_STORE_free(store)
            OPENSSL_sk_free(helpers)
        }
        guard X509_STORE_add_cert(store, issuer) == 1, OPENSSL_sk_push(helpers, UnsafeRawPointer(issuer)) > 0 else {
            return false
        }
        // The issuer is the anchor even where it is an intermediate.
        X509_STORE_set_flags(store, UInt(X509_V_FLAG_PARTIAL_CHAIN))
        return OCSP_basic_verify(basic, helpers, store, 0) == 1
    }

}

extension StapledAnswer {
    /// Gives callers that ask for it the answer of the connection's own configuration, as long as it is valid.
    static func install(in context: OpaquePointer) {
        cardea_ctx_set_status_callback(context) { connection, _ in
            guard let connection, let owner = cardea_owner(connection),
                let staple = Unmanaged<TLSConnection>.fromOpaque(owner).takeUnretainedValue().server?.staple,
                SystemTime().wallSeconds() < staple.validUntil
            else { return SSL_TLSEXT_ERR_NOACK }
            let sent = staple.bytes.withUnsafeBufferPointer { cardea_staple(connection, $0.baseAddress, $0.count) }
            return sent == 1 ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK
        }
    }
}
