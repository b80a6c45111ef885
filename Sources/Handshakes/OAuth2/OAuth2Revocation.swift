// Refresh tokens of which nobody wants to hear any more (RFC 7009).
extension OAuth2Handshake {
    /// Best effort: a server that does not answer keeps a token that nobody has.
    @discardableResult
    func revoke(_ session: LayerMaterial, environment: any GrantEnvironment) async -> Revocation {
        if settings.registration != nil, client == nil {
            // The token is revoked as the client that it was given to, and as no new one.
            guard let known = await environment.durable(.registration).flatMap({ RegisteredClient($0.bytes) }) else {
                return .impossible
            }
            return await self.known(as: known).revoke(session, environment: environment)
        }
        // Where a login brought no refresh token, its access token is all there is.
        let token = session.refreshToken ?? (session.bytes.isEmpty ? nil : session.bytes)
        guard let token else { return .impossible }
        if settings.oracle?.deletesByAction == true {
            return await delete(token, environment: environment)
        }
        guard let endpoints = try? await endpoints(environment) else { return .unconfirmed }
        guard let url = endpoints.revocation else { return .impossible }
        guard let client = try? await client(environment) else { return .unconfirmed }
        var request = OAuth2Request(step: "revoke")
        request.tokenEndpoint = endpoints.token
        request.add("token", token)
        request.add("token_type_hint", session.refreshToken == nil ? "access_token" : "refresh_token")
        let answer = try? await answer(request, at: url, as: client, environment: environment)
        // 200 also for a token that the server does not know (RFC 7009 §2.2).
        return answer.map { (200..<300).contains($0.status) } == true ? .revoked : .unconfirmed
    }
}
