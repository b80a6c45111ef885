internal import Octets

/// `oam_webgate`: registration handle → user token → access token for one WebGate, the last by the context of its challenge.
struct OAMWebGateHandshake: Handshake {
    let settings: OAMWebGateSettings
    let endpoints: OAMWebGateSettings.Endpoints

    /// Throws `.configuration` if a setting cannot be put on the wire.
    init(_ settings: OAMWebGateSettings) throws(GrantFailure) {
        self.settings = settings
        endpoints = try settings.endpoints()
    }

    var scheme: String { "oam_webgate" }

    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: settings.replayHeader, value: Array(settings.replayPrefix.utf8) + token)
    }
}

// MARK: - The ladder

extension OAMWebGateHandshake {
    /// At most `access`, `authenticate`, `register`, `authenticate`, `access`, in this order downwards: the cached user token is
    /// tried once, a cached handle once, and a user token just made is not made a second time.
    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        guard let challenge = wanted.challenge, !challenge.context.isEmpty else { throw .challengeNeeded }
        var session = try await session(refused: nil, environment: environment)
        // Ends: the environment gives one flight one new session, and what is refused after that ends it.
        while true {
            let reason: String
            switch try await access(session.material, challenge: challenge, environment: environment) {
            case .granted(let grant): return grant
            case .userTokenRefused(let said): reason = "\(said): refused a user token that it had just issued"
            case .handleRefused(let handle, let said):
                // After a new login the next flight registers anew; this one has used its password step.
                await environment.drop(.registration, ifStill: handle)
                reason = "\(said): refused the handle that it had accepted before"
            case .materialGone:
                guard !session.isFresh else {
                    throw .issuerUnavailable(
                        retryAfterSeconds: nil, reason: "access: handle or user token was purged meanwhile")
                }
                reason = ""
            }
            guard !session.isFresh else { throw .issuerAnswerInvalid(reason: reason) }
            session = try await self.session(refused: session.material, environment: environment)
        }
    }

    /// Brings the session layer up and no more.
    func tryOut(
        _ wanted: Wanted, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LiveTrial? {
        _ = try await session(refused: nil, environment: environment)
        return LiveTrial(text: "logged in; access tokens need a challenge of the upstream and were not tried")
    }

    private func session(
        refused: LayerMaterial?, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> SessionGrant {
        var claim = SessionClaim(refused: refused)
        // A user token that does not fit a request can only come from a store of before; it is as good as refused.
        if refused == nil, let stored = await environment.session(), !TokenAlphabet.visible.admits(stored.bytes) {
            claim.refused = stored
        }
        return try await environment.session(claim) { _, _ throws(GrantFailure) in
            try await login(environment: environment)
        }
    }

    private var needsHandle: Bool { settings.clientAuth != .none }
}

// MARK: - Access

extension OAMWebGateHandshake {
    private enum Access {
        case granted(AccessGrant)
        case userTokenRefused(reason: String)
        case handleRefused(LayerMaterial, reason: String)
        /// A purge or logout took handle or user token away while something was awaited.
        case materialGone
    }

    private func access(
        _ userToken: LayerMaterial, challenge: Challenge, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> Access {
        var proof: LayerMaterial?
        if needsHandle {
            proof = await environment.durable(.registration)
            guard let proof, TokenAlphabet.visible.admits(proof.bytes) else { return .materialGone }
        }
        guard let current = await environment.session(), current.bytes == userToken.bytes else {
            return .materialGone
        }
        var call = accessCall(userToken: userToken.bytes, handle: proof?.bytes, challenge: challenge)
        defer { call.body.wipe() }
        let answer = try await environment.answer(to: call)
        switch read(answer, step: "access", tokenType: "ACCESSTOKEN", sendsPassword: false) {
        case .token(let token):
            return .granted(
                AccessGrant(
                    token: token, tokenType: settings.challengeScheme, lifetime: nil, sentAt: answer.sentAt,
                    level: challenge.level))
        case .refused(let reason): return .userTokenRefused(reason: reason)
        case .clientRefused(let reason):
            guard let proof else { return .userTokenRefused(reason: reason) }
            return .handleRefused(proof, reason: reason)
        case .failed(let failure, _): throw failure
        }
    }

    private func read(
        _ answer: IssuerAnswer, step: String, tokenType: String, sendsPassword: Bool = true
    ) -> OAMWebGateAnswer {
        OAMWebGateAnswer(
            answer, step: step, tokenType: tokenType, sendsPassword: sendsPassword,
            handleRejectedCodes: settings.handleRejectedCodes,
            phrases: settings.handleRejectedPhrases)
    }
}

// MARK: - Login

extension OAMWebGateHandshake {
    /// Authenticates with the handle at hand, registering where there is none; a handle that is refused is replaced once.
    private func login(environment: any GrantEnvironment) async throws(GrantFailure) -> LayerMaterial {
        guard needsHandle else {
            return try await authenticate(nil, isFresh: true, environment: environment)
        }
        let standing = await environment.durable(.registration)
        if let standing, TokenAlphabet.visible.admits(standing.bytes) {
            switch try await tryToAuthenticate(standing, isFresh: false, environment: environment) {
            case .material(let session): return session
            case .clientRefused: break
            }
        }
        let fresh = try await environment.durable(.registration, unless: standing) { () throws(GrantFailure) in
            try await register(environment: environment)
        }
        return try await authenticate(fresh, isFresh: true, environment: environment)
    }

    private enum Outcome {
        case material(LayerMaterial)
        case clientRefused(reason: String)
    }

    private func register(environment: any GrantEnvironment) async throws(GrantFailure) -> LayerMaterial {
        let step = PasswordStep(name: "register", tokenType: "CLIENTREGHANDLE", lifetime: nil, sendsCachedHandle: false)
        let outcome = try await take(step, environment: environment) { password in
            registerCall(password: password)
        }
        switch outcome {
        case .material(let handle): return handle
        // A registration proves no client, so its text must speak of something else.
        case .clientRefused(let reason): throw .configuration(reason: "\(reason): the client is not known")
        }
    }

    private func tryToAuthenticate(
        _ handle: LayerMaterial?, isFresh: Bool, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> Outcome {
        let step = PasswordStep(
            name: "authenticate", tokenType: settings.userTokenType, lifetime: settings.userTokenTTL,
            sendsCachedHandle: !isFresh)
        return try await take(step, environment: environment) { password in
            authenticateCall(password: password, handle: handle?.bytes)
        }
    }

    private func authenticate(
        _ handle: LayerMaterial?, isFresh: Bool, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> LayerMaterial {
        switch try await tryToAuthenticate(handle, isFresh: isFresh, environment: environment) {
        case .material(let session): return session
        case .clientRefused(let reason):
            throw .issuerAnswerInvalid(reason: "\(reason): refused the handle that it had just issued")
        }
    }
}

// MARK: - Steps that send the password

extension OAMWebGateHandshake {
    private struct PasswordStep {
        var name: String
        var tokenType: String
        var lifetime: UInt64?
        var sendsCachedHandle: Bool
    }

    /// Secret, mark, send, settle. The secret comes before the mark, because reading it may take long and fail, and a mark left behind
    /// by a crash in between costs a reset. Nothing is sent twice, whatever happened to it.
    private func take(
        _ step: PasswordStep, environment: any GrantEnvironment,
        call make: (Secret) -> IssuerCall
    ) async throws(GrantFailure) -> Outcome {
        let password = try await environment.text("password")
        try await environment.spendAttempt(user: settings.username)
        var call = make(password)
        defer { call.body.wipe() }
        let answer: IssuerAnswer
        do throws(IssuerFault) {
            answer = try await environment.send(call)
        } catch {
            await environment.settleAttempt(error.provablyUnsent ? .notSent : .unknown)
            throw GrantFailure(error, step: step.name)
        }
        switch read(answer, step: step.name, tokenType: step.tokenType) {
        case .token(let token):
            await environment.settleAttempt(.accepted)
            return .material(LayerMaterial(bytes: token, obtainedAt: answer.sentAt, lifetime: step.lifetime))
        case .refused(let reason):
            await environment.settleAttempt(.rejected)
            throw .credentialRejected(reason: reason)
        case .clientRefused(let reason):
            // A handle of yesterday explains the refusal; with a new one it may be about the password after all.
            await environment.settleAttempt(step.sendsCachedHandle ? .notSent : .unknown)
            return .clientRefused(reason: reason)
        case .failed(let failure, let judged):
            await environment.settleAttempt(judged ? .unknown : .notSent)
            throw failure
        }
    }
}
