internal import Audit
internal import DataPath
internal import Handshakes
internal import HotCache
internal import Tokens

/// The acts of the keeper, as the audit log has them. An issuer's words have no place there: a failure is told by its one word.
extension Keeper {
    /// What a token's machine reports, where it is an act.
    func audit(_ event: AccessTokenMachine.Event, _ token: KeptToken) {
        guard let trail = resources.audit else { return }
        switch event {
        case .tokenAcquired: trail.note(.grant, fields(of: token))
        case .tokenRefreshed: trail.note(.refresh, fields(of: token))
        case .challengeAnswered:
            // The token that the upstream refused has gone already, and its generation with it.
            trail.note(.refusal, place(of: token) + reason("upstream"))
            trail.note(.grant, fields(of: token))
        case .renewalFailed, .acquisitionFailed: trail.note(.refusal, fields(of: token) + reason(token.failureReason))
        case .challengeRefused: trail.note(.refusal, fields(of: token) + reason("upstream"))
        case .credentialQuarantined: trail.note(.refusal, fields(of: token) + reason("quarantined"))
        case .loginNeeded:
            trail.note(.refusal, fields(of: token) + reason(GrantFailure.Reason.interactionRequired.rawValue))
        case .storeDegraded: break
        }
    }

    /// An operator's or a person's act on an identity.
    func audit(_ act: AuditAct, _ identity: KeptIdentity, _ fields: [AuditField] = []) {
        resources.audit?.note(act, [AuditField(.identity, .name(identity.plan.name))] + fields)
    }

    /// The server that a credential for one request is for, and in whose name it is.
    func fields(of need: OneTimeNeed) -> [AuditField] {
        var fields = [AuditField(.service, .name(need.resource))]
        if case .name(let name)? = need.user, let tag = resources.audit?.tag(of: name.utf8) {
            fields.append(AuditField(.subject, .subject(tag)))
        }
        return fields
    }

    /// A purge, with as many tokens as it found.
    func audit(_ scope: PurgeScope, _ report: PurgeReport) {
        guard let trail = resources.audit else { return }
        let count = AuditField(.count, .count(UInt64(clamping: report.tokens)))
        switch scope {
        case .identity(let name): trail.note(.purge, [AuditField(.identity, .name(name)), count])
        case .route(let name): trail.note(.purge, [AuditField(.route, .name(name)), count])
        case .everything: trail.note(.purge, [count])
        }
    }

    func result(_ isGood: Bool) -> AuditField { AuditField(.result, .word(isGood ? "done" : "failed")) }

    private func fields(of token: KeptToken) -> [AuditField] {
        place(of: token, generation: token.machine.heldGrant?.generation)
    }

    private func place(of token: KeptToken, generation: UInt64? = nil) -> [AuditField] {
        var fields = [
            AuditField(.identity, .name(token.identity.plan.name)),
            AuditField(.origin, .name(token.key.origin.description)),
        ]
        if let generation { fields.append(AuditField(.generation, .count(generation))) }
        if let user = token.user, let tag = resources.audit?.tag(of: user.bytes) {
            fields.append(AuditField(.subject, .subject(tag)))
        }
        return fields
    }

    func reason(_ word: String?) -> [AuditField] { word.map { [AuditField(.reason, .name($0))] } ?? [] }
}
