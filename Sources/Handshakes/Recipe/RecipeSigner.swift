internal import Configuration
internal import Octets

/// `recipe` with `sign`: the values of one request, each from those before it, and the fields that they go into.
struct RecipeSigner: RequestSigner {
    let recipe: Recipe
    let identity: String

    /// Parts of the material beside those that have the names of steps, which cannot be these.
    static let secretPart = "secret"
    static let tokenPart = "token"

    var fieldNames: [String] { recipe.inject.map(\.name) }

    var readsBody: Bool {
        (recipe.sign + recipe.inject).contains { $0.value.names.contains(.request(.bodySHA256)) }
    }

    func sign(
        _ request: RequestToSign, with material: UnsafeRawBufferPointer, wallSeconds: Int64, entropy: [UInt8]
    ) throws(SigningFault) -> RequestSignature {
        guard let parts = RecipeMaterial.decode(Secret(material)) else {
            throw SigningFault("the values to sign with cannot be read")
        }
        var values = RecipeValues(identity: identity, wallSeconds: wallSeconds, entropy: entropy)
        values.secrets = parts[Self.secretPart] ?? [:]
        values.token = parts[Self.tokenPart]?[Self.tokenPart]
        values.steps = parts
        values.keys = request.keys
        values.request = RecipeValues.Request(
            url: request.urlOctets, method: request.method, bodySHA256: request.bodyDigest, headers: request.headers)
        // A value computed from a secret is as good as the secret where the signature is weak.
        defer { for name in values.signed.keys { values.signed[name]?.wipe() } }
        for step in recipe.sign {
            values.signed[step.name] = try value(step, "sign.\(step.name)", .text, values)
        }
        var fields: [InjectedField] = []
        for field in recipe.inject {
            let value = try value(field, field.name, .header, values)
            guard !value.isEmpty, value.count <= TokenAlphabet.longest else {
                throw SigningFault("\(field.name): empty or too long")
            }
            fields.append(InjectedField(name: field.name, value: value))
        }
        guard request.namesSecrets else { return RequestSignature(fields, secrets: []) }
        do throws(RecipeValues.Fault) {
            return RequestSignature(fields, secrets: try values.secrets(in: recipe))
        } catch { throw SigningFault(error.reason) }
    }

    private func value(
        _ template: RecipeNamed, _ name: String, _ target: RecipeValues.Target, _ values: RecipeValues
    ) throws(SigningFault) -> [UInt8] {
        do throws(RecipeValues.Fault) { return try values.bytes(of: template.value, for: target) } catch {
            throw SigningFault("\(name): \(error.reason)")
        }
    }
}

/// `recipe` with `sign`, as the keeper sees it: its secrets are the token, and no issuer is asked.
struct RecipeSigningHandshake: Handshake {
    static let part = RecipeSigner.secretPart
    let recipe: Recipe
    let identity: String

    var signer: (any RequestSigner)? { RecipeSigner(recipe: recipe, identity: identity) }

    var scheme: String { "recipe" }
    var statusRule: StatusRule { .refusals() }

    func acquire(_ wanted: Wanted, environment: any GrantEnvironment) async throws(GrantFailure) -> AccessGrant {
        var secrets: [String: Secret] = [:]
        for name in recipe.secretsToUpstream.sorted() {
            // Again here, although the file was checked: a signature goes where its key may go.
            guard let secret = recipe.secret(named: name),
                secret.to.contains(where: { "\($0)" == wanted.upstreamOrigin })
            else { throw .configuration(reason: "secret \(name) must not go to \(wanted.upstreamOrigin)") }
            let value = try await environment.secret(name)
            guard !value.isEmpty else { throw .secretUnreadable(name: name, reason: "empty") }
            secrets[name] = value
        }
        return AccessGrant(
            token: RecipeMaterial.encode([Self.part: secrets]), tokenType: "", lifetime: AccessGrant.longestLifetime,
            sentAt: await environment.now())
    }

    /// The material behind a name: it is not spliced but given to the signer.
    func injection(for token: [UInt8]) -> InjectedField {
        InjectedField(name: recipe.inject.first?.name ?? "Authorization", value: token)
    }
}
