internal import Configuration
internal import HTTP1
internal import Octets

/// `recipe` with steps: a declared exchange. What is a challenge, which requests to make, what to keep stands in the configuration;
/// here is what every such exchange has in common.
struct RecipeHandshake: Handshake {
    let recipe: Recipe
    let identity: String
    let world: GrantWorld

    /// - Parameter identity: its name, for `{identity.name}`.
    init(_ recipe: Recipe, identity: String, _ world: GrantWorld = GrantWorld()) {
        self.recipe = recipe
        self.identity = identity
        self.world = world
    }

    var scheme: String { "recipe" }
    var inspectedStatuses: [Int] { recipe.challenge.statuses }
    var readsBody: Bool { recipe.challenge.json != nil }

    /// Steps bring what each request is signed with.
    var signer: (any RequestSigner)? { recipe.isSigned ? RecipeSigner(recipe: recipe, identity: identity) : nil }

    func injection(for token: [UInt8]) -> InjectedField {
        // The signer's material behind a name: it is not spliced.
        if recipe.isSigned { return InjectedField(name: recipe.inject.first?.name ?? "Authorization", value: token) }
        guard let field = recipe.inject.first else { return InjectedField(name: "Authorization", value: token) }
        var value: [UInt8] = []
        for part in field.value.parts {
            // Checked: texts, then the token.
            if case .text(let text) = part { value += Array(text.utf8) } else { value += token }
        }
        return InjectedField(name: field.name, value: value)
    }

    func acquire(
        _ wanted: Wanted, environment: any GrantEnvironment
    ) async throws(GrantFailure) -> AccessGrant {
        if recipe.isChallengeDriven, wanted.challenge == nil { throw .challengeNeeded }
        let run = RecipeRun(self, wanted: wanted, environment: environment)
        return try await run.grant()
    }

    /// Without a challenge, brings the kept layers up and no more.
    func tryOut(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> LiveTrial? {
        guard recipe.isChallengeDriven else {
            _ = try await acquire(wanted, environment: environment)
            return nil
        }
        try await RecipeRun(self, wanted: Wanted(upstreamOrigin: ""), environment: environment).open()
        let keepsSession = recipe.steps.contains { $0.layer != .access }
        return LiveTrial(
            text: (keepsSession ? "session layer opened" : "nothing is kept below the access layer")
                + "; tokens need a challenge of the upstream and were not tried")
    }
}

// MARK: - Challenges

extension RecipeHandshake {
    func judge(_ answer: UpstreamAnswer) -> ChallengeVerdict {
        let rule = recipe.challenge
        guard rule.statuses.contains(answer.status) else { return .none }
        guard let scheme = rule.scheme else { return read(answer, challenge: nil) }
        // The first usable one counts; broken ones before it do not hide it.
        var verdict = ChallengeVerdict.none
        for item in AuthChallenge.list(answer.values(of: "WWW-Authenticate")) where item.scheme.matches(scheme) {
            let next: ChallengeVerdict =
                if let fault = item.fault { .unusable(reason: fault.rawValue) } else { read(answer, challenge: item) }
            if case .challenged = next { return next }
            if verdict == .none { verdict = next }
        }
        return verdict
    }

    private func read(_ answer: UpstreamAnswer, challenge: AuthChallenge?) -> ChallengeVerdict {
        let rule = recipe.challenge
        let reading = RecipeAnswer(answer, challenge: challenge)
        if let name = rule.header, reading[field: name] == nil { return .none }
        if let pointer = rule.json, !reading.has(pointer) { return .none }
        do throws(RecipeAnswer.Fault) {
            let values = try reading.values(of: rule.take)
            var result = Challenge(realm: try realm(of: values), resource: answer.requestURL)
            result.taken = values
            result.method = String(decoding: answer.requestMethod, as: UTF8.self)
            return .challenged(result)
        } catch {
            return .unusable(reason: error.reason)
        }
    }

    /// The values of `key` as one name. One value stands for itself; of several each is encoded, so that no two lists are one name.
    private func realm(of values: [String: Secret]) throws(RecipeAnswer.Fault) -> String {
        var parts: [[UInt8]] = []
        for name in recipe.key {
            let bytes = values[name]?.withBytes { Array($0) } ?? []
            guard bytes.count <= Recipe.Bound.key else { throw .init("'\(name)' is too long for a key") }
            parts.append(bytes)
        }
        if parts.count == 1, let only = parts.first { return only.losslessText }
        let encoded = parts.map { part in
            part.reduce(into: [UInt8]()) { $0.appendPercentEncoded($1) }
        }
        return String(decoding: Array(encoded.joined(separator: [UInt8(ascii: "&")])), as: UTF8.self)
    }
}
