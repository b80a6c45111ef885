internal import Octets

/// The registration of a mobile client in two legs, and the assertion that its user is known by (docs/design/wire/oam-oauth.md#mobile).
///
/// The registration runs inside a turn of the session layer, because it sends a password: one at a time for each user.
struct OAMMobileRegistration {
    let handshake: OAuth2Handshake
    let mobile: OAMMobileClient
    let trip: OAuth2Handshake.Trip

    /// The server's profile of this application (docs/design/wire/oam-oauth.md#client-profile).
    struct Profile {
        var tokenURL: IssuerURL?
        var hasServerSession: Bool?
    }

    static let userPart: DurablePart = "user_assertion"
}

// MARK: - Registration

extension OAMMobileRegistration {
    /// - Parameter before: what is no longer good, and may still be renewed without the password.
    func material(before: OAMIssuedClient?) async throws(GrantFailure) -> LayerMaterial {
        let profile = try await profile()
        var trip = trip
        if let url = profile.tokenURL { trip.endpoints.token = url }
        let answer: OAuth2Answer
        if let renewed = try await renewal(before, trip) {
            answer = renewed
        } else {
            answer = try await registered(trip)
        }
        let grant = try answer.grant()
        var kept: [String: Secret] = [:]
        kept["refresh"] = answer.refreshToken
        if let url = profile.tokenURL { kept["token_url"] = Secret(url.description) }
        let user = answer.oracleText("oracle_aux_tokens", "user_assertion", "access_token").map { Secret($0) }
        if let user, TokenAlphabet.visible.admits(user) { kept["user"] = user }
        var hasStore = mobile.usesDeviceStore ?? profile.hasServerSession ?? false
        if mobile.usesDeviceStore == nil, answer.whole?.flag(["oracle_token_in_server_device_store"]) == true {
            hasStore = true
        }
        if hasStore { kept["device_store"] = Secret("1") }
        return OAMIssuedClient.material(grant, type: answer.assertionType, others: kept)
    }

    /// Pre-authorization code, then the client assertion for it and the password.
    private func registered(_ trip: OAuth2Handshake.Trip) async throws(GrantFailure) -> OAuth2Answer {
        var first = OAuth2Request(step: "pre-authorization")
        first.isToken = false
        first.add("grant_type", "client_credentials")
        first.add("oracle_device_profile", deviceProfile)
        first.add("oracle_requested_assertions", mobile.preAssertion)
        let code = try await handshake.answer(first, trip).grant().token
        var second = OAuth2Request(step: "register")
        second.isToken = false
        second.add("oracle_pre_authz_code", code)
        second.add("oracle_device_profile", deviceProfile)
        second.add("oracle_requested_assertions", mobile.clientAssertion)
        return try await handshake.passwordAnswer(mobile.username, second, trip)
    }

    /// nil: there is nothing to renew with, or the server does not take it.
    private func renewal(
        _ before: OAMIssuedClient?, _ trip: OAuth2Handshake.Trip
    ) async throws(GrantFailure) -> OAuth2Answer? {
        guard let held = before?.refreshToken else { return nil }
        var request = OAuth2Request(step: "renew registration")
        request.isToken = false
        request.add("grant_type", "refresh_token")
        request.add("refresh_token", held)
        request.add("oracle_device_profile", deviceProfile)
        request.isSingleUse = true
        let answer = try await handshake.answer(request, trip)
        switch answer.result {
        case .success: return answer
        // Down, not refused: the password would fare no better.
        case .failure(let failure) where !answer.isJudged: throw failure
        case .failure: return nil
        }
    }

    var deviceProfile: String {
        var body = JSONBody(capacity: OAMDeviceProfile.size(mobile.deviceClaims))
        OAMDeviceProfile.write(mobile.deviceClaims, into: &body)
        return Base64.encode(body.finish())
    }
}

// MARK: - Application profile

extension OAMMobileRegistration {
    private func profile() async throws(GrantFailure) -> Profile {
        guard mobile.fetchesProfile else { return Profile() }
        let step = "application profile"
        let words = [handshake.settings.clientID, claim("ostype") ?? "", claim("osversion") ?? ""]
            .map(PercentEncoding.encode)
        let path = "appprofiles/\(words[0])?device_os=\(words[1])&os_ver=\(words[2])"
        guard let url = mobile.service.appending(path: path) else { throw .configuration(reason: "\(step): no URL") }
        let call = IssuerCall(asking: url, step: step, headers: IssuerCall.jsonHeaders)
        let answer = try await trip.environment.answer(to: call)
        let reason = "\(step): status \(answer.status)"
        switch answer.status {
        case 200: break
        case 408, 425, 429, 500..<600: throw answer.unavailable(reason)
        case 300..<500: throw .configuration(reason: "\(reason); see service_endpoint, client_id, fetch_app_profile")
        default: throw .issuerAnswerInvalid(reason: reason)
        }
        let tree: JSONTree
        do throws(JSONTree.Fault) { tree = try JSONTree(answer.body) } catch {
            throw .issuerAnswerInvalid(reason: "\(step): \(error.rawValue)")
        }
        var profile = Profile(hasServerSession: tree.flag(["server_side_sso"]))
        if let path = tree.text(["oauthTokenService"]) { profile.tokenURL = try tokenURL(path) }
        return profile
    }

    /// Relative to the server of the service: the profile must not send the password elsewhere.
    private func tokenURL(_ text: String) throws(GrantFailure) -> IssuerURL {
        let isPath = text.hasPrefix("/") && !text.hasPrefix("//")
        let url = IssuerURL(isPath ? mobile.service.origin + text : text)
        guard let url, url.origin == mobile.service.origin else {
            throw .issuerAnswerInvalid(
                reason: "application profile: oauthTokenService is at another server, or no path")
        }
        return url
    }

    private func claim(_ name: String) -> String? {
        mobile.deviceClaims[name] ?? mobile.deviceClaims[OAMDeviceProfile.prefix + name]
    }
}

// MARK: - What the user is known by

extension OAMMobileRegistration {
    /// The grant for the user's own assertion, or for the one that the server keeps.
    func userGrant(
        _ type: String, withProfile: Bool, _ client: OAMIssuedClient
    ) async throws(GrantFailure) -> OAuth2Answer {
        var refused: Secret?
        // A user assertion that has run out is replaced once, by the password.
        for _ in 0..<2 {
            var request = trip.target
            request.members.insert(("grant_type", .text(type)), at: 0)
            var held: Secret?
            if client.usesDeviceStore {
                request.add(mobile.deviceStoreParam, "true")
            } else {
                held = try await userAssertion(client, unless: refused)
                if let held { request.add("assertion", held) }
            }
            if withProfile { request.add("oracle_device_profile", deviceProfile) }
            let answer = try await handshake.answer(request, trip)
            guard answer.error == "invalid_grant" else { return answer }
            guard let held, refused == nil else {
                if client.usesDeviceStore {
                    throw .interactionRequired(
                        reason: "token: the server keeps no session of the user; see server_device_store")
                }
                _ = try answer.grant(rejecting: "invalid_grant")
                return answer
            }
            refused = held
        }
        throw .internal(reason: "no user assertion")
    }

    /// A newer one of its own before the one of the registration.
    private func userAssertion(
        _ client: OAMIssuedClient, unless refused: Secret?
    ) async throws(GrantFailure) -> Secret {
        let now = await trip.environment.now()
        let standing = await trip.environment.durable(Self.userPart)
        if let standing, standing.obtainedAt > client.material.obtainedAt {
            if standing.isLive(at: now), standing.bytes != refused { return standing.bytes }
        } else if let first = client.userAssertion, first != refused {
            return first
        }
        var request = OAuth2Request(step: "user assertion")
        request.isToken = false
        request.add("oracle_device_profile", deviceProfile)
        request.add("oracle_requested_assertions", mobile.userAssertion)
        let answer = try await handshake.passwordAnswer(mobile.username, request, trip)
        let grant = try answer.grant()
        let made = LayerMaterial(bytes: grant.token, obtainedAt: grant.sentAt, lifetime: grant.lifetime)
        try await trip.environment.commit(Self.userPart, made)
        return grant.token
    }
}
