internal import Configuration
internal import Tokens
internal import XML

/// `recipe`: an in-house system, declared.
struct RecipeScheme: Scheme {
    static let key = KeySpec("recipe", .block(RecipeKeys.block), "An in-house system, declared.")

    let recipe: Recipe

    init(_ keys: BlockReader, of identity: SchemeOwner) {
        var decoder = RecipeDecoder(reader: keys, allowsCleartext: identity.network.allowCleartext)
        recipe = decoder.decode()
    }

    static func secrets(_ keys: BlockReader) -> [NamedSecretReference] {
        (keys.entry("secrets")?.value.map ?? []).compactMap { entry in
            keys.inside(entry.value, RecipeKeys.secret).secret("value").map {
                NamedSecretReference(entry.key, $0)
            }
        }
    }

    var probe: String? { recipe.probe }
    var isChallengeDriven: Bool { recipe.isChallengeDriven }
    var sendsPassword: Bool { recipe.steps.contains { !$0.secrets.isEmpty } }
    var carrier: String { recipe.inject.first?.name ?? "Authorization" }

    /// A recipe's fields go to the route's upstream: a secret in them must be allowed there, and nothing else may write them.
    func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {
        guard let origin = route.to?.origin else { return }
        for name in recipe.secretsToUpstream.sorted() {
            guard let secret = recipe.secret(named: name), !secret.to.contains(origin) else { continue }
            keys.error(
                "\(keys.place) would send secret '\(name)' of identity '\(identity.name)' to \(origin), which its 'to' does not name",
                at: "to")
        }
        guard recipe.isSigned else { return }
        if keys.has("inject") {
            keys.error(
                "'inject' of \(keys.place): the fields of identity '\(identity.name)' are signed together", at: "inject"
            )
        }
        let fields = Set(recipe.inject.map { $0.name.lowercased() })
        for name in route.headers.set.map(\.name) + route.headers.remove where fields.contains(name.lowercased()) {
            keys.error(
                "'headers' of \(keys.place) edits '\(name)', which identity '\(identity.name)' signs", at: "headers")
        }
    }

    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {
        let takes = recipe.steps.flatMap(\.take) + [recipe.attempts].compactMap(\.self)
        guard takes.contains(where: \.isXML) else { return }
        do throws(XMLFault) { try XMLDocument.requireLibrary() } catch {
            findings.warning("identity '\(identity.name)': \(error)", identity.mark)
        }
    }

    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake {
        recipe.steps.isEmpty
            ? RecipeSigningHandshake(recipe: recipe, identity: identity.name)
            : RecipeHandshake(recipe, identity: identity.name, world)
    }

    func traits(of identity: Identity) -> SchemeTraits {
        // The word of that server counts on the credential: where the first secret goes, or else the first step.
        let step = recipe.steps.first { !$0.secrets.isEmpty }
        let issuer = (step ?? recipe.steps.first).map { Tokens.Origin(file: $0.origin) }
        let kind: CredentialKind = recipe.steps.isEmpty ? .fixed : isChallengeDriven ? .challengeDriven : .proactive
        var traits = SchemeTraits(kind, issuer: issuer)
        if step != nil { traits.account = issuer.map { Account(issuer: $0, user: ByteString(recipe.accountName)) } }
        traits.attempts = attempts
        // What a signer needs goes with the token, and a secret of the configuration goes to no store.
        traits.holdsSecrets = recipe.isSigned && !recipe.secretsToUpstream.isEmpty
        traits.keepsTokens = !recipe.isSigned || recipe.secretsToUpstream.isEmpty
        return traits
    }

    /// Steps that send the same secrets are one attempt.
    private var attempts: [SchemeTraits.Attempt] {
        var attempts: [String: SchemeTraits.Attempt] = [:]
        for step in recipe.steps {
            guard let key = step.attemptKey, attempts[key] == nil else { continue }
            attempts[key] = SchemeTraits.Attempt(key: key, secrets: step.secrets.sorted())
        }
        return attempts.values.sorted { $0.key < $1.key }
    }
}
