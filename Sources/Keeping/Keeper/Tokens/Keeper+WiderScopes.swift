internal import DataPath
internal import Handshakes
internal import HotCache
internal import Telemetry
internal import Tokens

/// A valid token that was granted more scopes serves a key that wants fewer (docs/design/keys.md#superset), and a grant of fewer is told.
extension Keeper {
    /// Looked for before a grant is asked for, never on a hit: from then on the key has the bytes in a slot of its own, with the lender's
    /// times. Its refusal is this key's alone, and is answered with a grant of its own.
    func borrow(for token: KeptToken) {
        guard token.machine.servedGeneration(at: now) == nil, !token.machine.isBusy,
            token.identity.policy.kind == .proactive,
            let (lender, held) = tokens.lender(for: token, on: routes, at: now), held.generation != token.borrowed,
            let line = line(of: lender, held.generation)
        else { return }
        let generation = tokens.nextGeneration()
        token.borrowed = held.generation
        token.line = (generation, line)
        apply(
            token.machine.adopted(
                Grant(generation: generation, lifetime: held.lifetime, level: held.level, granted: held.granted),
                from: .configuration, at: now), to: token)
        guard token.machine.heldGrant?.generation == generation else {
            token.line = nil
            return
        }
        token.identity.borrowings += 1
        events.debug(
            "wider token used",
            [token.identity.logged, LogField("scopes", .name("\(token.key.scopes)"))]
                + pseudonym(of: token))
    }

    func line(of token: KeptToken, _ generation: UInt64) -> Secret? {
        if let line = token.line, line.generation == generation { return line.bytes }
        guard let record = cache.record(in: token.slot), record.generation == generation else { return nil }
        return Secret(record.bytes)
    }

    /// RFC 6749 §3.3: an issuer may grant less than was asked for, and says so. The token is used, since it is all that is to be had,
    /// but it counts for what it was granted.
    func noteGranted(_ granted: ScopeSet, asked: ScopeSet, for token: KeptToken) {
        let isNarrower = !granted.isSuperset(of: asked)
        defer { token.isNarrower = isNarrower }
        guard isNarrower else { return }
        token.identity.narrowerGrants += 1
        guard !token.isNarrower else { return }
        events.warn(
            "granted fewer scopes than asked for",
            [
                token.identity.logged,
                LogField("upstream", .name(token.key.origin.description)), LogField("asked", .name("\(asked)")),
                LogField("granted", .name("\(granted)")),
            ] + pseudonym(of: token))
    }
}
