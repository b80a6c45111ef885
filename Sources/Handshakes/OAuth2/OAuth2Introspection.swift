// The issuer's word on a token of ours (RFC 7662). A check for operators; nothing is decided by it.
extension OAuth2Handshake {
    /// Whether every allowed issuer answers, as itself, and where metadata and configuration name different endpoints.
    func inquire(environment: any GrantEnvironment) async throws(GrantFailure) -> [String] {
        try await findAllowedIssuers(environment: environment)
        return try await endpointConflicts(environment: environment)
    }

    func tryOut(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> LiveTrial? {
        let token = try await acquire(wanted, environment: environment).token
        return try await introspect(token, environment: environment).map { isActive in
            LiveTrial(
                text: "token obtained, and the issuer calls it \(isActive ? "active" : "inactive")", isGood: isActive)
        }
    }

    /// Whether the issuer calls a token active; nil where there is nothing to ask.
    func introspect(_ token: Secret, environment: any GrantEnvironment) async throws(GrantFailure) -> Bool? {
        guard settings.introspects else { return nil }
        return try await asRegistered(environment) { handshake throws(GrantFailure) in
            try await handshake.askAbout(token, environment)
        }
    }

    var explanation: [String] {
        let issuers = settings.allowedIssuers.map(\.issuer).joined(separator: ", ")
        return (issuers.isEmpty ? [] : ["the API's metadata may lead to another issuer: " + issuers])
            + [stepUpExplanation].compactMap(\.self)
    }

    private func askAbout(_ token: Secret, _ environment: any GrantEnvironment) async throws(GrantFailure) -> Bool? {
        switch settings.oracle?.inquiry {
        case .tokenAction: return try await validate(token, environment: environment)
        case .tokenInfo: return try await readInfo(of: token, environment: environment)
        case .standard, nil: break
        }
        let endpoints = try await endpoints(environment)
        guard let url = endpoints.introspection else {
            throw .configuration(reason: "introspection: the issuer names no introspection_endpoint")
        }
        let client = try await client(environment)
        var request = OAuth2Request(step: "introspection")
        request.tokenEndpoint = endpoints.token
        request.add("token", token)
        request.add("token_type_hint", "access_token")
        let answer = try await answer(request, at: url, as: client, environment: environment)
        guard answer.status == 200 else {
            throw .configuration(reason: "introspection: status \(answer.status)")
        }
        guard let object = try? AnswerObject(answer.body), case .bool(let isActive)? = object["active"] else {
            throw .issuerAnswerInvalid(reason: "introspection: it does not say whether the token is active")
        }
        return isActive
    }
}
