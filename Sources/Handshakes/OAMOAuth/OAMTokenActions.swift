// The actions that OAM 11g has at its token endpoint instead of endpoints for revocation and introspection
// (docs/design/wire/oam-oauth.md#token-action), and the place where 12c tells what it knows of a token
// (docs/design/wire/oam-oauth.md#token-info).
extension OAuth2Handshake {
    static let oamTokenAction = "oracle-idm:/oauth/grant-type/resource-access-token/jwt"

    /// Each token is deleted by itself: the access token, then the refresh token (docs/design/wire/oam-oauth.md#token-action).
    var revokesAccessTokens: Bool { settings.oracle?.deletesByAction == true }

    /// Best effort, as any revocation.
    func delete(_ token: Secret, environment: any GrantEnvironment) async -> Revocation {
        guard case .tokenURL = settings.location, (try? await client(environment)) != nil else { return .impossible }
        let answer: IssuerAnswer
        do throws(GrantFailure) {
            answer = try await act("delete", on: token, environment: environment)
        } catch { return .unconfirmed }
        return answer.saysSuccessful ? .revoked : .unconfirmed
    }

    /// Whether the server calls a token good.
    func validate(_ token: Secret, environment: any GrantEnvironment) async throws(GrantFailure) -> Bool {
        let answer = try await act("validate", on: token, environment: environment)
        switch answer.status {
        // A 200 that does not say so is a no (docs/design/wire/oam-oauth.md#token-action), but it has to be an answer.
        case 200:
            _ = try answer.object("validate token")
            return answer.saysSuccessful
        default: throw .configuration(reason: "validate token: status \(answer.status)")
        }
    }

    private func act(
        _ action: String, on token: Secret, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> IssuerAnswer {
        guard case .tokenURL(var url) = settings.location else { throw .internal(reason: "no endpoint") }
        var client = try await client(environment)
        // The standing registration is used: to register a client for the sake of this would make no sense.
        if settings.oracle?.issued != nil, let material = await environment.durable(.registration),
            let issued = OAMIssuedClient(material)
        {
            client = .issued(issued)
            url = issued.tokenURL ?? url
        }
        var request = OAuth2Request(step: "\(action) token")
        request.add("grant_type", Self.oamTokenAction)
        request.add("oracle_token_action", action)
        request.add("assertion", token)
        return try await answer(request, at: url, as: client, environment: environment)
    }

    /// Asks whether the server knows a token that is shown to it; without a proof of the client, which it does not take here.
    func readInfo(of token: Secret, environment: any GrantEnvironment) async throws(GrantFailure) -> Bool {
        let step = "token info"
        guard let url = settings.introspectionURL else { throw .internal(reason: "no endpoint for \(step)") }
        var headers = settings.headers
        if let domain = settings.identityDomain { headers.append((settings.identityDomainHeader, domain)) }
        // In the header: a query would stand in the server's log.
        let bearer = "Bearer " + token.text
        headers += [(name: "Authorization", value: bearer), IssuerCall.acceptsJSON]
        let call = IssuerCall(asking: url, step: step, headers: headers)
        let answer = try await environment.answer(to: call)
        switch answer.status {
        case 200:
            let object = try answer.object(step)
            guard object["exp"] != nil || object["iss"] != nil else {
                throw .issuerAnswerInvalid(reason: "\(step): it says nothing of a token")
            }
            return true
        // 12c refuses what it does not know, in either shape of its errors.
        case 400, 401, 403: return false
        default: throw .configuration(reason: "\(step): status \(answer.status)")
        }
    }
}

extension IssuerAnswer {
    fileprivate var saysSuccessful: Bool {
        status == 200 && (try? JSONTree(body))?.flag(["successful"]) == true
    }
}
