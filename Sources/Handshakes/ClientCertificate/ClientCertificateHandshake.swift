/// `client_certificate`: mutual TLS alone. The TLS layer shows the certificate; there is no token, and nothing is put into a request.
public struct ClientCertificateHandshake: Handshake {
    public init() {}

    public var scheme: String { "client_certificate" }
    public nonisolated(nonsending) func acquire(
        _ wanted: Wanted, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> AccessGrant {
        throw .configuration(reason: "a certificate has no token")
    }

    public func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "", value: []) }
}
