internal import Fleet
internal import Handshakes
internal import Tokens

/// Logins of people in a fleet: one person at one gateway is enough for all of them.
extension Keeper {
    /// Rounds in which another gateway may have come in between, each with a step of its own.
    private static let offers = 3

    /// Makes what a login brought the newest of the fleet, whatever the others have; it is on disk already, and not in use here yet.
    /// - Returns: false when the fleet could not be told; it is when the server is there again.
    func offerLogin(_ material: LayerMaterial, _ key: SessionKey, of identity: KeptIdentity) async -> Bool {
        guard let tier = fleet.tier, identity.policy.sharesTokens else { return true }
        await firstConnection()
        let name = sessionName(key, tier)
        var isTold = false
        var version = SessionVersion.none
        for _ in 0..<Self.offers where !isTold {
            // The other gateways may be many steps ahead of what this gateway has seen.
            let found: Result<SharedSession?, SharedFault> = await ask { tier.session(name, completion: $0) }
            let known = max((try? found.get())?.version ?? .none, fleet.sessions.versions.newest(of: key))
            version = known.next
            if case .failure(let fault) = found {
                noteFleet(fault)
                // A login that was made meanwhile is the newest when the server is there again, also after a restart of this gateway.
                version = known.beyondTheUnseen
            }
            guard let isNewest = await offer(material, key, as: version) else { break }
            isTold = isNewest
        }
        // The session that the login replaces is no longer this gateway's; the caller takes up the new one with nothing in between.
        fleet.sessions.versions.holds(version, of: key)
        if identity.policy.access.persist { keep(versionRows(of: key, beside: material)) }
        return isTold
    }

    /// Before a logout: what is forgotten here and revoked is what the fleet uses, not what this gateway saw last.
    func freshenForLogout(of identity: KeptIdentity) async {
        for key in sessionKeys(of: identity) { await freshen(key, of: identity) }
    }

    /// After a logout: commands are answered in their order, so what was told before is done. An end takes two commands, of which the second
    /// is sent when the first is answered.
    func settleLogout(of identity: KeptIdentity) async {
        guard let tier = fleet.tier, let key = identity.sessionKey(subject: nil) else { return }
        let name = tier.name(of: key)
        for _ in 0..<2 {
            let _: Result<SharedSession?, SharedFault> = await ask { tier.session(name, completion: $0) }
        }
    }

    func sessionKeys(of identity: KeptIdentity) -> [SessionKey] {
        var keys = Set(sessions.of(identity.digest).map(\.key))
        if let own = identity.sessionKey(subject: nil) { keys.insert(own) }
        return keys.inOrder
    }

    /// Another gateway has a session, and identities here may wait for the login that brought it: nothing else would make them look, for
    /// who waits for a person asks nobody.
    /// - Parameter name: of the session; nil: any.
    func lookForLogins(_ name: SharedName?, _ tier: any SharedTier) {
        for identity in identities where identity.policy.sharesTokens && lacksLogin(identity) {
            guard let key = identity.sessionKey(subject: nil),
                name == nil || sessionName(key, tier) == name
            else { continue }
            start { await $0.freshen(key, of: identity) }
        }
    }

    /// A login that was missing here has come from the fleet, with whatever brought it: news, a reload or the flight of one token. Each token
    /// that waited for a person is asked for anew, and so is one whose flight began before the login came and would say that it is missing.
    func loginFound(of identity: KeptIdentity) {
        guard catalogue.isCurrent(identity), !lacksLogin(identity) else { return }
        identity.recovered(at: now)
        for token in tokens.of(identity) { token.lastFailure = nil }
        raiseEpoch(of: identity, cause: .reset)
        watchLogins()
    }
}
