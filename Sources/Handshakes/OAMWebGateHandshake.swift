/// `oam_webgate`: registration handle → user token → access token for one WebGate, the last by the context of its challenge.
public struct OAMWebGateHandshake: Handshake {
    public let settings: OAMWebGateSettings
    let endpoints: OAMWebGateSettings.Endpoints

    /// Throws `.configuration` if a setting cannot be put on the wire.
    public init(_ settings: OAMWebGateSettings) throws(GrantFailure) {
        self.settings = settings
        endpoints = try settings.endpoints()
    }

    public var scheme: String { "oam_webgate" }
    public var isChallengeDriven: Bool { true }

    public func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: settings.replayHeader, value: Array(settings.replayPrefix.utf8) + token)
    }
}

// MARK: - The ladder

extension OAMWebGateHandshake {
    /// At most `access`, `authenticate`, `register`, `authenticate`, `access`, in this order downwards: the cached user token is
    /// tried once, a cached handle once, and a user token just made is not made a second time.
    public nonisolated(nonsending) func acquire(
        _ wanted: Wanted, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> AccessGrant {
        guard let challenge = wanted.challenge, !challenge.context.isEmpty else { throw .challengeNeeded }
        var refused: LayerMaterial?
        if let cached = await session(ledger) {
            switch try await access(cached, challenge: challenge, ledger: ledger, issuer: issuer) {
            case .granted(let grant): return grant
            case .userTokenRefused, .materialGone: break
            case .handleRefused(let handle, _): await ledger.drop(.durable, ifStill: handle)
            }
            await ledger.drop(.session, ifStill: cached)
            refused = cached
        }
        let fresh = try await login(refused: refused, ledger: ledger, issuer: issuer)
        switch try await access(fresh, challenge: challenge, ledger: ledger, issuer: issuer) {
        case .granted(let grant): return grant
        case .userTokenRefused(let reason):
            throw .issuerAnswerInvalid(reason: "\(reason): refused a user token that it had just issued")
        case .handleRefused(let handle, let reason):
            // The next flight registers anew; this one has used its password step.
            await ledger.drop(.durable, ifStill: handle)
            throw .issuerAnswerInvalid(reason: "\(reason): refused the handle that it had accepted before")
        case .materialGone:
            throw .issuerUnavailable(
                retryAfterSeconds: nil, reason: "access: handle or user token was purged meanwhile")
        }
    }

    /// Brings the session layer up and no more, for a check without a challenge.
    public nonisolated(nonsending) func openSession(
        ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) {
        guard await session(ledger) == nil else { return }
        _ = try await login(refused: nil, ledger: ledger, issuer: issuer)
    }

    private var needsHandle: Bool { settings.clientAuth != .none }

    private nonisolated(nonsending) func session(_ ledger: any GrantLedger) async -> LayerMaterial? {
        let now = await ledger.now()
        guard let material = await ledger.material(.session), material.isLive(at: now),
            TokenAlphabet.visible.admits(material.bytes)
        else { return nil }
        return material
    }

    private nonisolated(nonsending) func handle(_ ledger: any GrantLedger) async -> LayerMaterial? {
        let now = await ledger.now()
        guard let material = await ledger.material(.durable), material.isLive(at: now),
            TokenAlphabet.visible.admits(material.bytes)
        else { return nil }
        return material
    }
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

    private nonisolated(nonsending) func access(
        _ userToken: LayerMaterial, challenge: Challenge, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> Access {
        var proof: LayerMaterial?
        if needsHandle {
            proof = await handle(ledger)
            guard proof != nil else { return .materialGone }
        }
        guard let current = await ledger.material(.session), current.bytes == userToken.bytes else {
            return .materialGone
        }
        var call = accessCall(userToken: userToken.bytes, handle: proof?.bytes, challenge: challenge)
        defer { call.body.wipe() }
        let answer: IssuerAnswer
        do throws(IssuerFault) {
            answer = try await issuer.send(call)
        } catch {
            throw GrantFailure(error, step: "access")
        }
        switch read(answer, step: "access", tokenType: "ACCESSTOKEN") {
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

    private func read(_ answer: IssuerAnswer, step: String, tokenType: String) -> OAMWebGateAnswer {
        OAMWebGateAnswer(
            answer, step: step, tokenType: tokenType, handleRejectedCodes: settings.handleRejectedCodes)
    }
}

// MARK: - Login

extension OAMWebGateHandshake {
    /// Authenticates with the handle at hand, registering where there is none; a handle that is refused is replaced once.
    private nonisolated(nonsending) func login(
        refused: LayerMaterial?, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> LayerMaterial {
        var proof: LayerMaterial?
        var isFresh = false
        if needsHandle {
            proof = await handle(ledger)
            if proof == nil {
                proof = try await register(refused: nil, ledger: ledger, issuer: issuer)
                isFresh = true
            }
        }
        let first = try await authenticate(
            proof, isFresh: isFresh, refused: refused, ledger: ledger, issuer: issuer)
        switch first {
        case .material(let session): return session
        case .clientRefused(let reason):
            guard let cached = proof, !isFresh else {
                throw .issuerAnswerInvalid(reason: "\(reason): refused the handle that it had just issued")
            }
            await ledger.drop(.durable, ifStill: cached)
        }
        let fresh = try await register(refused: proof, ledger: ledger, issuer: issuer)
        switch try await authenticate(fresh, isFresh: true, refused: refused, ledger: ledger, issuer: issuer) {
        case .material(let session): return session
        case .clientRefused(let reason):
            throw .issuerAnswerInvalid(reason: "\(reason): refused the handle that it had just issued")
        }
    }

    private enum Outcome {
        case material(LayerMaterial)
        case clientRefused(reason: String)
    }

    private nonisolated(nonsending) func register(
        refused: LayerMaterial?, ledger: any GrantLedger, issuer: any IssuerClient
    ) async throws(GrantFailure) -> LayerMaterial {
        let step = PasswordStep(
            name: "register", layer: .durable, tokenType: "CLIENTREGHANDLE", lifetime: nil, sendsCachedHandle: false)
        let outcome = try await take(step, refused: refused, ledger: ledger, issuer: issuer) { password in
            registerCall(password: password)
        }
        switch outcome {
        case .material(let handle): return handle
        // A registration proves no client, so its text must speak of something else.
        case .clientRefused(let reason): throw .configuration(reason: "\(reason): the client is not known")
        }
    }

    private nonisolated(nonsending) func authenticate(
        _ handle: LayerMaterial?, isFresh: Bool, refused: LayerMaterial?, ledger: any GrantLedger,
        issuer: any IssuerClient
    ) async throws(GrantFailure) -> Outcome {
        let step = PasswordStep(
            name: "authenticate", layer: .session, tokenType: settings.userTokenType, lifetime: settings.userTokenTTL,
            sendsCachedHandle: handle != nil && !isFresh)
        return try await take(step, refused: refused, ledger: ledger, issuer: issuer) { password in
            authenticateCall(password: password, handle: handle?.bytes)
        }
    }
}

// MARK: - Steps that send the password

extension OAMWebGateHandshake {
    private struct PasswordStep {
        var name: String
        /// Where its token goes.
        var layer: Layer
        var tokenType: String
        var lifetime: UInt64?
        var sendsCachedHandle: Bool
    }

    /// Secret, mark, one more look, send, settle, commit. The secret comes before the mark, because reading it may take long and
    /// fail, and a mark left behind by a crash in between costs a reset. Nothing is sent twice, whatever happened to it.
    private nonisolated(nonsending) func take(
        _ step: PasswordStep, refused: LayerMaterial?, ledger: any GrantLedger, issuer: any IssuerClient,
        call make: (Secret) -> IssuerCall
    ) async throws(GrantFailure) -> Outcome {
        let password = try await ledger.secret("password")
        guard !password.isEmpty, password.isText else {
            throw .secretUnreadable(name: "password", reason: "empty, not UTF-8, or with a control character")
        }
        try await ledger.spendAttempt(user: settings.username)
        // Another flight of this user may have finished while we waited for the mark; its token spares the password.
        let present = step.layer == .session ? await session(ledger) : await handle(ledger)
        if let present, present.bytes != refused?.bytes {
            await ledger.settleAttempt(.notSent)
            return .material(present)
        }
        var call = make(password)
        defer { call.body.wipe() }
        let answer: IssuerAnswer
        do throws(IssuerFault) {
            answer = try await issuer.send(call)
        } catch {
            await ledger.settleAttempt(error.provablyUnsent ? .notSent : .unknown)
            throw GrantFailure(error, step: step.name)
        }
        switch read(answer, step: step.name, tokenType: step.tokenType) {
        case .token(let token):
            await ledger.settleAttempt(.accepted)
            let material = LayerMaterial(bytes: token, obtainedAt: answer.sentAt, lifetime: step.lifetime)
            try await ledger.commit(step.layer, material)
            return .material(material)
        case .refused(let reason):
            await ledger.settleAttempt(.rejected)
            throw .credentialRejected(reason: reason)
        case .clientRefused(let reason):
            // A handle of yesterday explains the refusal; with a new one it may be about the password after all.
            await ledger.settleAttempt(step.sendsCachedHandle ? .notSent : .unknown)
            return .clientRefused(reason: reason)
        case .failed(let failure, let judged):
            await ledger.settleAttempt(judged ? .unknown : .notSent)
            throw failure
        }
    }
}
