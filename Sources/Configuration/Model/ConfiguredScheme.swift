/// A scheme is one way to obtain a credential, as far as a file and its checks are concerned. A value holds the settings of one identity's block.
///
/// `Configuration` decodes what all identities have in common, and knows no scheme by name: it is given the list of them.
package protocol ConfiguredScheme: Sendable {
    /// The key of an identity that chooses the scheme. Its type is a block, or a list of blocks.
    static var key: KeySpec { get }

    /// Decodes the block, and reports what is wrong with it to `keys`. What cannot be read was reported by the key's type; whatever stands
    /// in its place here is not used.
    init(_ keys: BlockReader, of identity: SchemeOwner)

    /// The secrets of the block by the names under which the handshake asks for them.
    static func secrets(_ keys: BlockReader) -> [NamedSecretReference]

    // MARK: Tokens

    /// Whether a token of one such identity may be exchanged for a token of another.
    static var isExchangeable: Bool { get }
    /// Whether there is a token at all; otherwise the connection is the credential.
    static var hasToken: Bool { get }
    /// Shown by every connection of a route that uses the identity.
    var certificates: [ClientKeyFiles] { get }
    /// Files and folders that a library reads for it, beside its secrets.
    func files(environment: (String) -> String?) -> [String]
    /// The program that brings the credential; nil where none does.
    var program: ProgramCall? { get }
    /// The lifetime of a token whose issuer names none; nil: as for all.
    static var defaultLifetime: Duration? { get }
    /// Whether a token needs data out of an upstream's challenge (docs/design/challenges.md#scout).
    var isChallengeDriven: Bool { get }
    /// The path that brings a challenge ahead of any caller.
    var probe: String? { get }
    /// Whether refusing what it sends may lock an account.
    var sendsPassword: Bool { get }
    /// The schemes of challenges that it answers (RFC 9110 §11.1), by which a list under `use` chooses it; empty: none by name.
    var challengeSchemes: [String] { get }
    /// Whether whoever reads a request with its credential has the password.
    var showsPassword: Bool { get }
    /// Whether a person has to log in.
    var needsPerson: Bool { get }
    /// The only scopes that may be asked for; nil: any.
    var allowedScopes: [String]? { get }
    /// Why no scopes may be asked for; nil where they may.
    var reasonAgainstScopes: String? { get }

    // MARK: End users

    /// The key that says which token is exchanged; nil where none is.
    var subjectKey: String? { get }
    /// The token that is exchanged; nil where it is the caller's own.
    var subjectToken: SubjectToken? { get }
    /// Whether a value of its requests takes the user's name.
    var namesSubject: Bool { get }
    /// Why a token cannot be one end user's; nil where it can.
    func reasonAgainst(_ subject: Route.Subject) -> String?

    // MARK: Checks with the rest of the file

    /// The field that carries the credential where the route does not say otherwise.
    var carrier: String { get }
    /// Further fields of the request that it writes, in lower case.
    var writtenFields: [String] { get }
    /// Looks at a route that uses the identity.
    /// - Parameter keys: of the route.
    func check(_ route: Route, _ keys: BlockReader, of identity: Identity)
    /// Looks at the whole file: above all whether there is a store.
    func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings)
    /// Why an identity cannot stand beside another one whose tokens have the same keys; nil where it can.
    func conflict(of identity: Identity, with other: Identity) -> String?
}

/// A secret of an identity's block by its name.
package struct NamedSecretReference: Sendable, Equatable {
    package var key: String
    package var reference: SecretReference

    package init(_ key: String, _ reference: SecretReference) {
        self.key = key
        self.reference = reference
    }
}

/// The facts about an identity that are known when its scheme's block is decoded.
package struct SchemeOwner {
    package let name: String
    package let network: Network
}

extension ConfiguredScheme {
    package static func secrets(_ keys: BlockReader) -> [NamedSecretReference] { keys.each.flatMap(\.writtenSecrets) }

    package static var isExchangeable: Bool { false }
    package static var hasToken: Bool { true }
    package var certificates: [ClientKeyFiles] { [] }
    package func files(environment: (String) -> String?) -> [String] { [] }
    package var program: ProgramCall? { nil }
    package static var defaultLifetime: Duration? { nil }
    package var isChallengeDriven: Bool { false }
    package var probe: String? { nil }
    package var sendsPassword: Bool { false }
    package var challengeSchemes: [String] { [] }
    package var showsPassword: Bool { false }
    package var needsPerson: Bool { false }
    package var allowedScopes: [String]? { nil }
    package var reasonAgainstScopes: String? { nil }
    package var subjectKey: String? { nil }
    package var subjectToken: SubjectToken? { nil }
    package var namesSubject: Bool { false }
    package func reasonAgainst(_ subject: Route.Subject) -> String? {
        oneForEverybody
    }
    package var oneForEverybody: String { "'\(Self.key.name)' has one credential for everybody" }
    package var carrier: String { "Authorization" }
    package var writtenFields: [String] { [] }
    package func check(_ route: Route, _ keys: BlockReader, of identity: Identity) {}
    package func check(_ configuration: Configuration, of identity: Identity, _ findings: Findings) {}

    package func conflict(of identity: Identity, with other: Identity) -> String? { likeness(of: identity, to: other) }

    /// Why two identities that their issuer cannot tell apart must not stand side by side: they share tokens, session and login.
    package func likeness(of identity: Identity, to other: Identity) -> String? {
        if needsPerson {
            return
                "identity '\(identity.name)' is the same login as '\(other.name)': a person's login is kept by what stands in its block, and the second would replace the first; use '\(other.name)' on both routes"
        }
        guard identity.secrets != other.secrets else { return nil }
        return
            "identity '\(identity.name)' differs from '\(other.name)' at most in secrets, so both would be served with the token of either; use one identity, or the same reference in both"
    }

    /// The key in the file.
    package var name: String { Self.key.name }
    package var exchangesCallersToken: Bool { subjectKey != nil && subjectToken == nil }
}
