package import Configuration

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
