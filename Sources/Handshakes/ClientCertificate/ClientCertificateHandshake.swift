/// `client_certificate`: mutual TLS alone. The TLS layer shows the certificate; there is no token, and nothing is put into a request.
struct ClientCertificateHandshake: Handshake {
    var scheme: String { "client_certificate" }
    /// A 401 says that the certificate does not do; there is no other one to be had.
    var statusRule: StatusRule { .refusals() }

    func acquire(
        _ wanted: Wanted, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> AccessGrant {
        throw .configuration(reason: "a certificate has no token")
    }

    func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "", value: []) }
}
