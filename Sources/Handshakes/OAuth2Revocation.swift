// Refresh tokens of which nobody wants to hear any more (RFC 7009).
extension OAuth2Handshake {
    /// Best effort: a server that does not answer keeps a token that nobody has.
    public nonisolated(nonsending) func revoke(
        _ session: LayerMaterial, ledger: any GrantLedger, issuer: any IssuerClient
    ) async {
        guard let token = session.refreshToken, let endpoints = try? await endpoints(ledger, issuer),
            let url = endpoints.revocation, let client = try? await client(ledger)
        else { return }
        var request = OAuth2Request(step: "revoke")
        request.add("token", token)
        request.add("token_type_hint", "refresh_token")
        for attempt in 0..<proofs(of: client) {
            // 200 also for a token that the server does not know (RFC 7009 §2.2).
            let answer = try? await send(request, to: url, as: client, attempt: attempt, issuer: issuer)
            guard let answer, answer.status == 400 || answer.status == 401 else { return }
        }
    }
}
