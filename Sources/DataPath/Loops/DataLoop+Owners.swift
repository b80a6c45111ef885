internal import Tokens

extension DataLoop {
    /// Gives the caller a number: objects take one another's place in memory, and numbers never come back.
    func addOwner(_ caller: CallerConnection) {
        lastOwner += 1
        owners[ObjectIdentifier(caller)] = .caller(lastOwner)
    }

    func owner(for subject: ByteString) -> UpstreamOwner { .subject(subjects.number(of: subject, after: &lastOwner)) }

    /// Closes what an identity has authenticated and nobody uses; the rest closes when its request is over.
    func endConnections(of identity: ConnectionEpoch) {
        for group in groups { if let group, group.plan.boundTo === identity { group.closeIdle() } }
    }

    /// Closes what waits for the next request of an owner that is gone.
    func removeOwner(_ caller: CallerConnection) {
        guard let owner = owners.removeValue(forKey: ObjectIdentifier(caller)) else { return }
        for group in groups { group?.closeOwned(by: owner) }
        for open in openDestinations.values { open.group.closeOwned(by: owner) }
    }
}
