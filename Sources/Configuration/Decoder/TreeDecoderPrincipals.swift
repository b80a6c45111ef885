/// Identities that their issuer cannot tell apart: they share tokens, session and login, so what differs between them must not matter.
extension TreeDecoder {
    mutating func checkPrincipals() {
        var known: [[UInt8]: Identity] = [:]
        for identity in identities.all where !identity.canonicalForm.isEmpty {
            guard let other = known.updateValue(identity, forKey: identity.canonicalForm) else { continue }
            switch identity.handshake {
            // Its keys are those of the connection: there is no token to share.
            case .clientCertificate: continue
            // `checkDevices` says more.
            case .mobileFirst(let handshake) where handshake.mode == .registered: continue
            default: break
            }
            if identity.handshake.needsPerson {
                error(
                    "identity '\(identity.name)' is the same login as '\(other.name)': a person's login is kept by what stands in its block, and the second would replace the first; use '\(other.name)' on both routes",
                    identity.mark)
            } else if !identity.hasSecrets(of: other) {
                error(
                    "identity '\(identity.name)' differs from '\(other.name)' at most in secrets, so both would be served with the token of either; use one identity, or the same reference in both",
                    identity.mark)
            }
        }
    }
}

extension Identity {
    fileprivate func hasSecrets(of other: Identity) -> Bool {
        handshake.secrets.elementsEqual(other.handshake.secrets) { $0.key == $1.key && $0.reference == $1.reference }
    }
}

extension Handshake {
    fileprivate var needsPerson: Bool {
        guard let grant = general?.grant else { return false }
        return grant == .authorizationCode || grant == .deviceCode
    }
}
