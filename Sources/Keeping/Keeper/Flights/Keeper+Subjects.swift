internal import DataPath
internal import Handshakes
internal import Tokens

/// Tokens of one identity that another one exchanges (RFC 8693).
extension Keeper {
    /// A new access token of the identity `name`, obtained for this one exchange and kept nowhere: what is exchanged does not go to
    /// an upstream, so it has no key of its own, and a new one lives as long as any.
    func subjectToken(of name: String, for user: KeptIdentity) async throws(Handshakes.GrantFailure) -> Secret {
        guard let identity = catalogue.identity(named: name), identity !== user else {
            throw .internal(reason: "no identity named \(name) to exchange a token of")
        }
        if let held = await refused(identity) { throw held.failure }
        // An exchange holds no turn of its own while it waits here, and the configuration has no circles: nobody waits for himself.
        let environment = environment(of: identity)
        defer { release(environment.claimant) }
        let wanted = Wanted(scopes: identity.scopes, upstreamOrigin: "")
        do throws(Handshakes.GrantFailure) {
            return try await identity.plan.handshake.acquire(wanted, environment: environment).token
        } catch {
            identity.note(error, asking: environment.trail.server, at: now)
            await book(error, of: identity, environment)
            throw error
        }
    }
}
