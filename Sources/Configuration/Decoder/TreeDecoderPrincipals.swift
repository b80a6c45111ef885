/// Identities that their issuer cannot tell apart: they share tokens, session and login, so what differs between them must not matter.
extension TreeDecoder {
    mutating func checkPrincipals() {
        var known: [[UInt8]: Identity] = [:]
        for identity in identities.all where !identity.canonicalForm.isEmpty {
            guard let other = known.updateValue(identity, forKey: identity.canonicalForm) else { continue }
            if let message = identity.scheme.conflict(of: identity, with: other) { error(message, identity.mark) }
        }
    }
}
