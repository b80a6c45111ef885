// What OAM 11g has at its token endpoint instead of an endpoint for revocation (protocols/oam.md §3.6).
extension OAuth2Handshake {
    static let oamTokenAction = "oracle-idm:/oauth/grant-type/resource-access-token/jwt"

    /// Best effort, as any revocation.
    nonisolated(nonsending) func delete(
        _ token: Secret, ledger: any GrantLedger, issuer: any IssuerClient
    ) async -> Revocation {
        guard case .tokenURL(var url) = settings.location, var client = try? await client(ledger) else {
            return .impossible
        }
        // As it stands: to register a client in order to log it out would make no sense.
        if settings.oracle?.issued != nil, let material = await ledger.durable(.registration),
            let issued = OAMIssuedClient(material)
        {
            client = .issued(issued)
            url = issued.tokenURL ?? url
        }
        var request = OAuth2Request(step: "delete token")
        request.add("grant_type", Self.oamTokenAction)
        request.add("oracle_token_action", "delete")
        request.add("assertion", token)
        for attempt in 0..<proofs(of: client) {
            guard let answer = try? await send(request, to: url, as: client, attempt: attempt, issuer: issuer) else {
                return .unconfirmed
            }
            guard answer.status == 400 || answer.status == 401 else {
                // A 200 that does not say so is none (§3.6).
                guard answer.status == 200, case .bool(true)? = try? JSONTree(answer.body).value(at: ["successful"])
                else { return .unconfirmed }
                return .revoked
            }
        }
        return .unconfirmed
    }
}
