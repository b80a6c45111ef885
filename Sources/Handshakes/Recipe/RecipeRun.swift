internal import Configuration

/// A run is what one flight makes of a recipe. The lower layers are the environment's; what is sent and taken is here.
///
/// Steps that send a secret run only inside a turn of the session layer, where attempts are booked: those of the access layer take a
/// turn of their own.
final class RecipeRun {
    let handshake: RecipeHandshake
    let wanted: Wanted
    let environment: any GrantEnvironment
    var values: RecipeValues
    var trace: RunTrace

    var recipe: Recipe { handshake.recipe }
    static let part: DurablePart = "recipe"

    init(_ handshake: RecipeHandshake, wanted: Wanted, environment: any GrantEnvironment) {
        self.handshake = handshake
        self.wanted = wanted
        self.environment = environment
        values = RecipeValues(identity: handshake.identity, wallSeconds: handshake.world.wallSeconds, entropy: [])
        trace = RunTrace(startedAt: values.wallSeconds, challenge: [], steps: [], outcome: "")
        if let challenge = wanted.challenge {
            values.challenge = challenge.taken
            values.request = RecipeValues.Request(url: Array(challenge.resource.utf8), method: challenge.method)
            trace.challenge = RunTrace.Value.list(challenge.taken)
        }
    }

    /// The result of the steps of a layer.
    enum Outcome<Value> {
        case done(Value)
        /// A step was refused because of what a lower layer keeps.
        case stale(reason: String)
        /// A purge or logout took that away while something was awaited.
        case gone
    }
}

// MARK: - The ladder

extension RecipeRun {
    func grant() async throws(GrantFailure) -> AccessGrant {
        do throws(GrantFailure) {
            let grant = try await climb()
            let life = grant.lifetime.map { ", good for \($0 / 1_000_000_000) s" } ?? ""
            trace.outcome = "token of \(grant.token.count) bytes\(life)"
            await environment.tell(.run(trace))
            return grant
        } catch {
            trace.outcome = "\(error)"
            await environment.tell(.run(trace))
            throw error
        }
    }

    /// Brings the kept layers up and no more.
    func open() async throws(GrantFailure) {
        if has(.session) {
            _ = try await session(refused: nil)
        } else if has(.durable) {
            _ = try await inTurn(sends: secrets(.durable)) { () throws(GrantFailure) in try await self.loadDurable() }
        }
    }

    private func climb() async throws(GrantFailure) -> AccessGrant {
        try checkUpstream()
        var session = has(.session) ? try await session(refused: nil) : nil
        // Ends: the environment gives one flight one new session, and the durable layer is made anew once.
        var triesLeft = 3
        while true {
            triesLeft -= 1
            let reason: String
            switch try await access(session) {
            case .done(let grant): return grant
            case .stale(let said): reason = said
            case .gone: reason = "what was kept was purged meanwhile"
            }
            guard triesLeft > 0, session?.isFresh != true else {
                // After a new session the next flight also makes the durable layer anew.
                if let durable = await environment.durable(Self.part) {
                    await environment.drop(Self.part, ifStill: durable)
                }
                throw .issuerAnswerInvalid(reason: "\(reason), although it was made anew")
            }
            if let current = session {
                session = try await self.session(refused: current.material)
            } else if let durable = await environment.durable(Self.part) {
                await environment.drop(Self.part, ifStill: durable)
                triesLeft = min(triesLeft, 1)
            } else {
                throw .policyDenied(reason: reason)
            }
        }
    }

    /// Again here, although the file was checked: the route's upstream is where the token goes.
    private func checkUpstream() throws(GrantFailure) {
        for name in recipe.secretsToUpstream.sorted() {
            guard let secret = recipe.secret(named: name),
                secret.to.contains(where: { "\($0)" == wanted.upstreamOrigin })
            else { throw .configuration(reason: "secret \(name) must not go to \(wanted.upstreamOrigin)") }
        }
    }

    func has(_ layer: RecipeStep.Layer) -> Bool { recipe.steps.contains { $0.layer == layer } }

    private func secrets(_ layer: RecipeStep.Layer) -> Bool {
        recipe.steps.contains { $0.layer == layer && !$0.secrets.isEmpty }
    }

    /// Runs `work`, in a turn at the issuer where it sends a secret.
    private func inTurn<Value>(
        sends secret: Bool, work: () async throws(GrantFailure) -> Value
    ) async throws(GrantFailure) -> Value {
        guard secret else { return try await work() }
        var result: Value?
        let now = await environment.now()
        _ = try await environment.session(SessionClaim(isOwn: true)) { _, standing throws(GrantFailure) in
            result = try await work()
            // The turn is what was wanted; a session that stands stays as it is.
            return standing ?? LayerMaterial(bytes: Secret([]), obtainedAt: now, lifetime: 0)
        }
        guard let result else { throw .internal(reason: "a turn that was not taken") }
        return result
    }
}

// MARK: - Layers

extension RecipeRun {
    private func session(refused: LayerMaterial?) async throws(GrantFailure) -> SessionGrant {
        var claim = SessionClaim(refused: refused)
        // A session that cannot be read can only come from a store of before; it is as good as refused.
        if refused == nil, let stored = await environment.session(), RecipeMaterial.decode(stored.bytes) == nil {
            claim.refused = stored
        }
        return try await environment.session(claim) { _, _ throws(GrantFailure) in try await self.login() }
    }

    private func login() async throws(GrantFailure) -> LayerMaterial {
        let standing = await environment.durable(Self.part)
        if has(.durable) {
            if let standing, let kept = RecipeMaterial.decode(standing.bytes) {
                take(kept, .durable)
                if case .done(let material) = try await make(.session) { return material }
            }
            let made = try await environment.durable(Self.part, unless: standing) { () throws(GrantFailure) in
                try await self.register()
            }
            take(RecipeMaterial.decode(made.bytes) ?? [:], .durable)
        }
        switch try await make(.session) {
        case .done(let material): return material
        case .stale(let reason) where has(.durable):
            throw .issuerAnswerInvalid(reason: "\(reason), although it was made anew")
        case .stale(let reason): throw .policyDenied(reason: reason)
        case .gone: throw .issuerUnavailable(retryAfterSeconds: nil, reason: "what was kept was purged meanwhile")
        }
    }

    private func register() async throws(GrantFailure) -> LayerMaterial {
        guard case .done(let material) = try await make(.durable) else {
            throw .policyDenied(reason: "a step of the durable layer was refused")
        }
        return material
    }

    /// The durable values, made where they are not there.
    private func loadDurable() async throws(GrantFailure) -> Bool {
        guard has(.durable) else { return true }
        let standing = await environment.durable(Self.part)
        if let standing, let kept = RecipeMaterial.decode(standing.bytes) {
            take(kept, .durable)
            return true
        }
        // With a session they are made in its steps only, where the turn is.
        guard !has(.session) else { return false }
        let made = try await environment.durable(Self.part, unless: standing) { () throws(GrantFailure) in
            try await self.register()
        }
        take(RecipeMaterial.decode(made.bytes) ?? [:], .durable)
        return true
    }

    private func take(_ kept: RecipeMaterial.Values, _ layer: RecipeStep.Layer) {
        for step in recipe.steps where step.layer == layer { values.steps[step.name] = kept[step.name] ?? [:] }
    }

    /// Makes the steps of a kept layer; the material is what they took.
    private func make(_ layer: RecipeStep.Layer) async throws(GrantFailure) -> Outcome<LayerMaterial> {
        var made: RecipeMaterial.Values = [:]
        var start: UInt64?
        var lifetime: UInt64?
        for step in recipe.steps where step.layer == layer {
            switch try await perform(step) {
            case .done(let answer):
                made[step.name] = answer.taken
                start = min(start ?? .max, answer.sentAt)
                if let life = answer.lifetime { lifetime = min(lifetime ?? .max, life) }
            case .stale(let reason): return .stale(reason: reason)
            case .gone: return .gone
            }
        }
        let now = await environment.now()
        return .done(
            LayerMaterial(bytes: RecipeMaterial.encode(made), obtainedAt: start ?? now, lifetime: lifetime))
    }

    private func access(_ session: SessionGrant?) async throws(GrantFailure) -> Outcome<AccessGrant> {
        let sends = secrets(.access) || (!has(.session) && secrets(.durable))
        return try await inTurn(sends: sends) { () throws(GrantFailure) in try await self.accessSteps(session) }
    }

    private func accessSteps(_ session: SessionGrant?) async throws(GrantFailure) -> Outcome<AccessGrant> {
        guard try await loadDurable() else { return .gone }
        if let session {
            guard let current = await environment.session(), current.bytes == session.material.bytes,
                let kept = RecipeMaterial.decode(current.bytes)
            else { return .gone }
            take(kept, .session)
        }
        switch try await make(.access) {
        case .done(let made):
            let token = recipe.token == nil ? nil : try await token()
            let material = recipe.isSigned ? try await material(token) : nil
            guard let value = token ?? material else { throw .internal(reason: "a recipe without a token") }
            var grant = AccessGrant(token: value, tokenType: "", lifetime: made.lifetime, sentAt: made.obtainedAt)
            grant.material = material
            return .done(grant)
        case .stale(let reason): return .stale(reason: reason)
        case .gone: return .gone
        }
    }

    private func token() async throws(GrantFailure) -> Secret {
        guard let template = recipe.token else { throw .internal(reason: "a recipe without a token") }
        try await read(template.secrets(signed: [:]))
        var bytes: [UInt8]
        do throws(RecipeValues.Fault) { bytes = try values.bytes(of: template, for: .text) } catch {
            throw .configuration(reason: "token: \(error.reason)")
        }
        let token = Secret(taking: &bytes)
        guard TokenAlphabet.fieldValue.admits(token) else {
            throw .issuerAnswerInvalid(reason: "the token is empty, too long, or not fit for a header")
        }
        return token
    }

    /// What the signer needs: secrets, values of the steps, the token.
    private func material(_ token: Secret?) async throws(GrantFailure) -> Secret {
        let names = recipe.signedNames
        let secrets = names.compactMap { if case .secret(let name) = $0 { name } else { nil } }
        try await read(Set(secrets))
        var parts: RecipeMaterial.Values = [:]
        for name in secrets { parts[RecipeSigner.secretPart, default: [:]][name] = values.secrets[name] }
        for case .step(let step, let take) in names { parts[step, default: [:]][take] = values.steps[step]?[take] }
        if let token { parts[RecipeSigner.tokenPart] = [RecipeSigner.tokenPart: token] }
        let material = RecipeMaterial.encode(parts)
        guard material.count <= TokenAlphabet.longest else {
            throw .issuerAnswerInvalid(
                reason: "what requests are signed with is longer than \(TokenAlphabet.longest) bytes")
        }
        return material
    }

    /// Secrets for the templates at hand; one flight sees one version of each.
    func read(_ names: Set<String>) async throws(GrantFailure) {
        for name in names.sorted() where values.secrets[name] == nil {
            let secret = try await environment.secret(name)
            guard !secret.isEmpty else { throw .secretUnreadable(name: name, reason: "empty") }
            values.secrets[name] = secret
        }
    }
}
