internal import Tokens

extension Keeper {
    /// Another certificate is shown to the issuers of some identities from now on. Tokens may be bound to the one before (RFC 8705), so
    /// they are dropped; the next request gets one that fits.
    func clientKeysChanged(_ keys: ClientKeys) {
        for identity in identities where identity.policy.network.clientKeys === keys {
            identity.epoch += 1
            for token in tokens.values where token.identity === identity {
                apply(token.machine.epochRose(to: identity.epoch, cause: .purge, at: now), to: token)
            }
        }
    }
}
