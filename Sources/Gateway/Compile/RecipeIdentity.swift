internal import Configuration
internal import Handshakes
internal import Tokens

// What the keeper has to know of a recipe beyond its handshake.
extension Recipe {
    /// Whose word counts on the credential: where the first secret goes, or else the first step.
    var issuer: ConfiguredOrigin? { (steps.first { !$0.secrets.isEmpty } ?? steps.first)?.origin }

    var account: Account? {
        guard steps.contains(where: { !$0.secrets.isEmpty }), let issuer else { return nil }
        return Account(issuer: Tokens.Origin(issuer), user: ByteString(accountName))
    }

    /// The keys under which attempts are booked.
    var attemptSecrets: [String] { Set(steps.compactMap(\.attemptKey)).sorted() }

    /// Several secrets of one step, read as one value: it changes when any of them does.
    func addAttemptSecrets(to sources: inout [String: SecretSource]) {
        for step in steps {
            guard let key = step.attemptKey, sources[key] == nil else { continue }
            let parts = step.secrets.sorted().compactMap { sources[$0] }
            sources[key] = joined(parts)
        }
    }
}

extension Keeper {
    func note(_ trace: RunTrace, of identity: KeptIdentity) { identity.lastRun = trace }
}
