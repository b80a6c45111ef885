public import Configuration

/// The schemes that an identity may have, in the order of `cardea schema`.
package enum Schemes {
    package static let all: [any Scheme.Type] = [
        StaticScheme.self, BasicScheme.self, DigestScheme.self, NegotiateScheme.self, NTLMScheme.self,
        AWSSigV4Scheme.self, HTTPSignatureScheme.self, ClientCertificateScheme.self,
        OAuth2Scheme.self, OAMWebGateScheme.self, OAMOAuthScheme.self, MobileFirstScheme.self, MobileHubScheme.self,
        AdobePassScheme.self, ProgramScheme.self, RecipeScheme.self,
    ]
}

extension Configuration {
    /// Reads, checks and resolves a configuration. Reads no secret. All mistakes are reported at once.
    ///
    /// - Parameter environment: gives a variable's value, for `${NAME}` and the start without a file.
    public static func load(_ source: ConfigurationSource, environment: @escaping (String) -> String?) -> LoadResult {
        load(source, schemes: Schemes.all, environment: environment)
    }

    /// The JSON Schema (draft 2020-12) of the file, made from the tables that the decoder uses.
    public static func jsonSchema() -> String { jsonSchema(Schemes.all) }
}
