/// `client_certificate`: mutual TLS alone. The TLS layer shows the certificate; there is no token, and nothing is put into a request.
public struct ClientCertificateHandshake: Handshake {
    public init() {}

    public var scheme: String { "client_certificate" }
    public var isChallengeDriven: Bool { false }
    public var inspectedStatuses: [Int] { [401] }

    /// A 401 says that the certificate does not do; there is no other one to be had.
    public func judge(
        status: Int, wwwAuthenticate: [[UInt8]], location: [UInt8]?, requestURL: String
    ) -> ChallengeVerdict {
        status == 401 ? .challenged(Challenge(resource: requestURL)) : .none
    }

    public nonisolated(nonsending) func acquire(
        _ wanted: Wanted, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> AccessGrant {
        throw .configuration(reason: "a certificate has no token")
    }

    public func injection(for token: [UInt8]) -> InjectedField { InjectedField(name: "", value: []) }
}
