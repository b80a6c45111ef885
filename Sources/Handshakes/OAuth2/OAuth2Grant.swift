internal import Configuration

// How an access token is had: with the refresh token at hand, else by the configured grant; one rung down, never back up.
extension OAuth2Handshake {
    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        try await atIssuer(for: wanted, environment) { chosen throws(GrantFailure) in
            try await chosen.asRegistered(environment) { handshake throws(GrantFailure) in
                try await handshake.acquire(wanted, as: environment)
            }
        }
    }

    private func acquire(
        _ wanted: Wanted, as environment: any GrantEnvironment
    ) async throws(GrantFailure) -> AccessGrant {
        // Before anything is asked of the issuer: what only a person can mend is said also while it is down.
        if needsPerson, await !environment.hasLogin() {
            throw .interactionRequired(reason: "a person must log in")
        }
        let trip = try await trip("token", wanted, user: wanted.user, environment)
        var grant = try await grant(for: wanted, trip)
        if let key = trip.proofKey { grant.material = BoundToken.encode(grant.token, boundTo: key) }
        return grant
    }

    private func grant(for wanted: Wanted, _ trip: Trip) async throws(GrantFailure) -> AccessGrant {
        let keeps = settings.grant.keepsRefreshToken && !settings.ignoresRefreshTokens
        guard keeps || settings.oracle?.issuesForPassword == true else {
            var grant = try await proven(trip) { trip throws(GrantFailure) in try await fullGrant(trip) }.grant()
            grant.notAfter = wanted.user?.expiry
            return grant
        }
        if needsPerson, let grant = try await lastingGrant(wanted, trip.environment) { return grant }
        return try await acquireInTurn(trip)
    }

    /// The parts that every step of one flight needs.
    struct Trip {
        /// The members that say what the token is for.
        let target: OAuth2Request
        /// For whom, where each end user has a token.
        let user: EndUser?
        var client: OAuth2Client
        /// The key that the token will be bound to.
        let proofKey: DPoPKey?
        var endpoints: OAuth2Endpoints
        let environment: any GrantEnvironment
    }

    /// - Parameter step: what is asked for, as failures name it.
    func trip(
        _ step: String, _ wanted: Wanted, user: EndUser?, _ environment: any GrantEnvironment
    ) async throws(GrantFailure) -> Trip {
        var target = OAuth2Request(step: step)
        try addTarget(wanted, to: &target)
        return Trip(
            target: target, user: user, client: try await client(environment),
            proofKey: try await proofKey(environment), endpoints: try await endpoints(environment),
            environment: environment)
    }

    /// In the turn of the identity's session: two flights that use one refresh token at once look like a theft to a server that
    /// rotates. What a step brings is committed before the access token beside it is used (docs/design/tokens.md#rule-4).
    private func acquireInTurn(_ trip: Trip) async throws(GrantFailure) -> AccessGrant {
        // A step that ends the flight with a failure still leaves a session behind, so its outcome goes round it.
        var outcome: Result<AccessGrant, GrantFailure> = .failure(.internal(reason: "no step was made"))
        var refusal: RefreshRefusal?
        let isFirstConfigured = settings.grant == .refreshToken
        _ = try await trip.environment.session(SessionClaim(canGrantFully: !needsPerson, isOwn: true)) {
            rung, standing throws(GrantFailure) -> LayerMaterial in
            let answer: OAuth2Answer
            if rung == .refreshToken, let held = standing?.refreshToken {
                do throws(GrantFailure) {
                    answer = try await proven(trip) { trip throws(GrantFailure) in try await refresh(held, trip) }
                } catch {
                    refusal = RefreshRefusal(token: held, reason: error)
                    throw error
                }
                outcome = answer.result
            } else {
                let said = refusal
                answer = try await proven(trip) { trip throws(GrantFailure) in try await fullGrant(trip, after: said) }
                outcome = answer.result
                if answer.refreshToken == nil { _ = try answer.grant() }
            }
            // A server that does not rotate leaves the one that was sent in force.
            let kept = answer.refreshToken ?? (rung == .refreshToken ? standing?.refreshToken : nil)
            let isReplaced = answer.refreshToken != nil
            var material = LayerMaterial(
                bytes: Secret([]), obtainedAt: answer.sentAt, lifetime: nil, refreshToken: kept,
                // A configured refresh token was brought by a person too, and only a person brings another one.
                isHuman: standing?.isHuman ?? false || isFirstConfigured,
                // An answer that says how long a refresh token lives says it also of one that stays; silence changes nothing.
                refreshLife: answer.refreshLife ?? (isReplaced ? nil : standing?.refreshLife(from: answer.sentAt)))
            if isFirstConfigured, isReplaced, answer.sentRefreshToken != answer.refreshToken {
                material.spent = answer.sentRefreshToken
            }
            return material
        }
        return try outcome.get()
    }

    /// The access token of the login itself, where the issuer gave nothing to renew it with. Once it was refused, only a person helps.
    private func lastingGrant(_ wanted: Wanted, _ environment: any GrantEnvironment) async throws(GrantFailure)
        -> AccessGrant?
    {
        guard let session = await environment.session(), session.refreshToken == nil, !session.bytes.isEmpty else {
            return nil
        }
        guard wanted.challenge == nil else {
            let claim = SessionClaim(refused: session, canGrantFully: false, isOwn: true)
            _ = try await environment.session(claim) { _, _ throws(GrantFailure) in
                throw .internal(reason: "no step is left")
            }
            return nil
        }
        return AccessGrant(
            token: session.bytes, tokenType: "Bearer", lifetime: session.lifetime ?? AccessGrant.longestLifetime,
            sentAt: session.obtainedAt)
    }
}

// MARK: - Refresh (RFC 6749 §6)

extension OAuth2Handshake {
    /// Throws what ends the rung: the refresh token is refused for good, or does not reach what is wanted. Any other trouble is in the
    /// answer: it speaks neither against the refresh token nor for sending more.
    private func refresh(_ held: Secret, _ trip: Trip) async throws(GrantFailure) -> OAuth2Answer {
        var request = trip.target
        request.members.insert(("grant_type", .text("refresh_token")), at: 0)
        request.members.insert(("refresh_token", .secret(held)), at: 1)
        // A server that rotates takes a second use for theft, and revokes everything that was ever given for the first.
        request.isSingleUse = true
        request.replacesRefreshToken = true
        var answer = try await answer(request, trip)
        answer.sentRefreshToken = held
        // Given to us, used by nobody here, and refused: what a server says, too, when it takes a second use for theft.
        if answer.error == "invalid_grant" { await trip.environment.tell(.refused(refreshToken: held)) }
        switch answer.error {
        case "invalid_grant", "invalid_scope", "invalid_target", "interaction_required", "login_required",
            "consent_required":
            _ = try answer.grant(rejecting: "invalid_grant")
        default: break
        }
        return answer
    }

    func answer(_ request: OAuth2Request, _ trip: Trip) async throws(GrantFailure) -> OAuth2Answer {
        do throws(OAuth2SendFailure) {
            return try await ask(request, trip)
        } catch {
            throw error.grantFailure(step: request.step)
        }
    }

    /// With each of the client's keys until one is accepted: while keys are being replaced, the issuer may not know the new one yet, or
    /// no longer the old. What a refused client sent beside its proof was not judged.
    func ask(_ request: OAuth2Request, _ trip: Trip) async throws(OAuth2SendFailure) -> OAuth2Answer {
        var attempt = 0
        var request = request
        request.proofKey = trip.proofKey
        while true {
            let raw = try await send(
                request, to: trip.endpoints.token, as: trip.client, for: trip.user, attempt: attempt,
                environment: trip.environment)
            var answer = OAuth2Answer(raw, boundTo: trip.proofKey, isToken: request.isToken)
            answer.besidesPassword = request.carriesPassword
            if settings.oracle?.issued != nil { answer.whole = try? JSONTree(raw.body) }
            // The endpoint has moved, or was never there.
            if !answer.isTokenEndpoint { discovery?.forget() }
            if answer.error == "invalid_client" { client?.refusal.set() }
            attempt += 1
            if let advice = basicAdvice(for: trip.client, on: answer) { answer.advise(advice) }
            guard attempt < proofs(of: trip.client), answer.refusesClient else { return answer }
        }
    }
}

// MARK: - The grant itself

extension OAuth2Handshake {
    /// A refresh token that did not bring what was wanted in this flight, and what the issuer said.
    private struct RefreshRefusal {
        let token: Secret
        let reason: GrantFailure
    }

    private func fullGrant(
        _ trip: Trip, after refusal: RefreshRefusal? = nil
    ) async throws(GrantFailure) -> OAuth2Answer {
        switch settings.grant {
        case .clientCredentials:
            return try await plain("client_credentials", [], trip)
        case .password(let username):
            return try await passwordGrant(username, trip)
        case .refreshToken:
            return try await firstRefresh(trip, after: refusal)
        case .authorizationCode, .deviceCode:
            throw .interactionRequired(reason: "a person must log in")
        case .jwtBearer:
            let assertion = try await trip.environment.text("assertion")
            return try await assertionGrant("urn:ietf:params:oauth:grant-type:jwt-bearer", assertion, trip)
        case .mintedJWT(let claims):
            return try await mintedGrant(claims, trip)
        case .saml2Bearer:
            let assertion = try SAMLAssertion.encoded(try await trip.environment.secret("assertion"))
            return try await assertionGrant("urn:ietf:params:oauth:grant-type:saml2-bearer", assertion, trip)
        case .tokenExchange(let exchange):
            return try await exchangeGrant(exchange, trip)
        case .oamUser: return try await userGrant("urn:ietf:params:oauth:grant-type:jwt-bearer", trip)
        case .oamCredentials:
            return try await userGrant("oracle-idm:/oauth/grant-type/oam_credentials", withProfile: true, trip)
        }
    }

    private func userGrant(
        _ type: String, withProfile: Bool = false, _ trip: Trip
    ) async throws(GrantFailure) -> OAuth2Answer {
        guard case .issued(let client) = trip.client, case .mobile(let mobile)? = settings.oracle?.issued else {
            throw .internal(reason: "a user's grant without a mobile client")
        }
        let registration = OAMMobileRegistration(handshake: self, mobile: mobile, trip: trip)
        return try await registration.userGrant(type, withProfile: withProfile, client)
    }

    private func plain(
        _ type: String, _ members: [(name: String, value: OAuth2Request.Value)], _ trip: Trip,
        isSingleUse: Bool = false
    ) async throws(GrantFailure) -> OAuth2Answer {
        var request = trip.target
        request.members.insert(contentsOf: [("grant_type", .text(type))] + members, at: 0)
        request.isSingleUse = isSingleUse
        return try await answer(request, trip)
    }

    /// The configured refresh token, or what has replaced it. One that is spent is not sent, whoever spent it: another identity, or this
    /// one before its settings changed.
    private func firstRefresh(_ trip: Trip, after refusal: RefreshRefusal?) async throws(GrantFailure) -> OAuth2Answer {
        let first = try await trip.environment.text("refresh_token")
        let held: Secret
        switch await trip.environment.standing(ofFirst: first, beside: refusal?.token) {
        // After a refusal it is another one, perhaps of a grant for more.
        case .unspent: held = first
        case .replaced(let current): held = current
        case .spent: throw Self.firstIsSpent
        case .uncertain: throw Self.firstIsUncertain
        }
        // A token that was refused for another reason than itself, such as an unknown scope, is still good; nothing else is to be tried.
        guard refusal?.token != held else { throw refusal?.reason ?? Self.firstIsSpent }
        return try await refresh(held, trip)
    }

    private static let firstIsSpent = GrantFailure.credentialRejected(
        reason: "token: the configured refresh_token was replaced by its use, and what replaced it is no longer good; "
            + "put a new one in its place")

    private static let firstIsUncertain = GrantFailure.interactionRequired(
        reason:
            "token: the configured refresh_token is not sent: the store has a login of this client from settings that are "
            + "no longer configured, and it may have begun with it; go back to those settings, or if this token was never "
            + "used: cardea reset IDENTITY")

    private func assertionGrant(
        _ type: String, _ assertion: Secret, _ trip: Trip
    ) async throws(GrantFailure) -> OAuth2Answer {
        let answer = try await plain(type, [("assertion", .secret(assertion))], trip)
        if answer.error == "invalid_grant" { _ = try answer.grant(rejecting: "invalid_grant") }
        return answer
    }

    private static let userRefused = GrantFailure.policyDenied(reason: "token: the issuer refuses this subject")

    private func mintedGrant(_ claims: [NamedValue], _ trip: Trip) async throws(GrantFailure) -> OAuth2Answer {
        let keys = try await signingKeys(trip.environment)
        let certificate = try await certificate(trip.environment)
        var others: [(name: String, value: String)] = []
        for claim in claims { others.append((claim.name, try Self.filled(claim.value, for: trip.user))) }
        var subject = settings.clientID
        if case .name(let name)? = trip.user, !claims.contains(where: { $0.value.contains(EndUser.placeholder) }) {
            subject = name
        }
        let all = JWTClaims(
            issuer: settings.clientID, subject: subject, audience: try audience(of: trip.endpoints.token),
            others: others)
        for (index, key) in keys.enumerated() {
            let proof = try assertion(all, with: key, certificate: certificate)
            let answer = try await plain(
                "urn:ietf:params:oauth:grant-type:jwt-bearer", [("assertion", .secret(proof))], trip, isSingleUse: true)
            // The issuer may not know this key; the next one is tried, as with the proofs of a client.
            guard answer.error == "invalid_grant" else { return answer }
            guard index == keys.count - 1 else { continue }
            // The user is one of many: the issuer need not have refused our key, so the refusal is no reason to give up the others.
            if trip.user != nil { throw Self.userRefused }
            _ = try answer.grant(rejecting: "invalid_grant")
            return answer
        }
        throw .internal(reason: "no signing key")
    }

    private func exchangeGrant(
        _ exchange: OAuth2Settings.TokenExchange, _ trip: Trip
    ) async throws(GrantFailure) -> OAuth2Answer {
        let subject: Secret
        switch exchange.subject {
        case .secret: subject = try await trip.environment.text("subject_token")
        case .identity(let name): subject = try await trip.environment.token(of: name)
        case .caller:
            guard case .token(let token)? = trip.user else {
                throw .configuration(reason: "subject_token: the route does not take the caller's own")
            }
            subject = token
        }
        var members: [(name: String, value: OAuth2Request.Value)] = [
            ("subject_token", .secret(subject)), ("subject_token_type", .text(exchange.subjectType)),
        ]
        if let type = exchange.actorType {
            members.append(("actor_token", .secret(try await trip.environment.text("actor_token"))))
            members.append(("actor_token_type", .text(type)))
        }
        if let type = exchange.requestedType { members.append(("requested_token_type", .text(type))) }
        let answer = try await plain("urn:ietf:params:oauth:grant-type:token-exchange", members, trip)
        if exchange.subject == .caller, ["invalid_request", "invalid_grant", "invalid_token"].contains(answer.error) {
            throw Self.userRefused
        }
        // RFC 8693 §2.2.2 has `invalid_request` for a token that is not valid; but so is said of everything else, and servers were
        // seen to say `invalid_grant`.
        if exchange.subject == .secret, answer.error == "invalid_grant" {
            _ = try answer.grant(rejecting: "invalid_grant")
        }
        return answer
    }
}

// MARK: - Password (RFC 6749 §4.3)

extension OAuth2Handshake {
    /// Secret, mark, send, settle. The secret comes before the mark, because reading it may take long and fail, and a mark left behind
    /// by a crash in between costs a reset. Whatever happens to it, the password is not sent twice.
    private func passwordGrant(_ username: String, _ trip: Trip) async throws(GrantFailure) -> OAuth2Answer {
        try await passwordAnswer(username, trip.target, trip)
    }

    /// Sends a request with the user's password.
    func passwordAnswer(
        _ username: String, _ target: OAuth2Request, _ trip: Trip
    ) async throws(GrantFailure) -> OAuth2Answer {
        let password = try await trip.environment.text("password")
        try await trip.environment.spendAttempt(user: username)
        var request = target
        request.members.insert(
            contentsOf: [
                ("grant_type", .text("password")), ("username", .text(username)), ("password", .secret(password)),
            ], at: 0)
        request.isSingleUse = true
        request.carriesPassword = true
        let answer: OAuth2Answer
        do throws(OAuth2SendFailure) {
            answer = try await ask(request, trip)
        } catch {
            if case .fault(let fault) = error, !fault.provablyUnsent {
                await trip.environment.settleAttempt(.unknown)
            } else {
                await trip.environment.settleAttempt(.notSent)
            }
            throw error.grantFailure(step: request.step)
        }
        let outcome = outcome(of: answer)
        await trip.environment.settleAttempt(outcome)
        if outcome == .rejected { _ = try answer.grant(rejecting: answer.error) }
        return answer
    }

    private func outcome(of answer: OAuth2Answer) -> AttemptOutcome {
        if case .success = answer.result { return .accepted }
        guard answer.isJudged else { return .notSent }
        switch answer.error {
        // Servers were seen that say `invalid_request` of a wrong password.
        case "invalid_grant", "invalid_request", "IDAAS-62001": return .rejected
        // The client or what it asks for was refused, not the user.
        case "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope", "invalid_target",
            "temporarily_unavailable", "server_error", "slow_down":
            return .notSent
        default: return .unknown
        }
    }
}
