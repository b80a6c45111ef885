public import Configuration

/// All that a way to obtain a credential is: its keys, its settings decoded from them, its handshake, and what the gateway has to know beside
/// it. One type of each scheme's folder conforms, and `Schemes.all` names it.
package protocol Scheme: ConfiguredScheme {
    /// - Parameter statuses: of a route that names its own rejected statuses.
    /// - Throws: `.configuration` where a setting cannot be put on the wire.
    func handshake(of identity: Identity, statuses: [Int]?, _ world: GrantWorld) throws(GrantFailure) -> any Handshake

    /// The facts that the keeper has to know beyond the handshake.
    func traits(of identity: Identity) -> SchemeTraits

    /// The changes in requests and answers of a route that uses the identity, beside the token.
    var edits: SchemeEdits { get }
}

extension Scheme {
    package var edits: SchemeEdits { SchemeEdits() }
}

/// The schemes that an identity may have, in the order of `cardea schema`.
package enum Schemes {
    package static let all: [any Scheme.Type] = [
        StaticScheme.self, BasicScheme.self, ClientCertificateScheme.self, OAuth2Scheme.self, OAMWebGateScheme.self,
        OAMOAuthScheme.self, MobileFirstScheme.self, MobileHubScheme.self, AdobePassScheme.self, RecipeScheme.self,
    ]
}

extension Configuration {
    /// Reads, checks and resolves a configuration. Reads no secret. All mistakes are reported at once.
    ///
    /// - Parameter environment: gives a variable's value, for `${NAME}` and the start without a file.
    public static func load(_ source: ConfigurationSource, environment: (String) -> String?) -> LoadResult {
        load(source, schemes: Schemes.all, environment: environment)
    }

    /// The JSON Schema (draft 2020-12) of the file, made from the tables that the decoder uses.
    public static func jsonSchema() -> String { jsonSchema(Schemes.all) }
}
