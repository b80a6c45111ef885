public import Numbers

// Access tokens and registrations: what anybody may replace with a newer one.
extension RedisTier {
    /// See `SharedTier`.
    public func claim(
        _ name: SharedName, unless refused: String?, isDead: Bool, completion: @escaping Answer<SharedClaim>
    ) {
        let owner = newOwner()
        let dead = FleetNews.withdrawn(name, identity: refused ?? "")
        run(
            FleetScripts.claim, [key(.value, name), key(.lease, name), key(.generation, name)],
            Self.words(
                refused ?? "", isDead ? "1" : "0", owner, "\(SharedLease.duration)", format.readsOld ? "0" : "1")
                + telling(dead),
            completion
        ) { [self] answer throws(SharedFault) in
            let items = answer.items ?? []
            switch (Self.outcome(items), items.count) {
            case (0, 2):
                return .lease(
                    SharedLease(
                        name: name, owner: owner, generation: try Self.generation(items[1]), spends: false))
            case (1, 5):
                let found = try found(Array(items[1...]), name)
                return .value(found.value, identity: found.identity, left: found.left)
            case (2, _): return .busy
            default: throw Self.invalid
            }
        }
    }

    /// See `SharedTier`.
    public func value(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        run(FleetScripts.peek, [key(.value, name)], [], completion) { [self] answer throws(SharedFault) in
            guard let items = answer.items, items.count == 4 else { throw Self.invalid }
            guard items[0].bytes != nil, format.readsOld || items[2].bytes != nil else { return nil }
            let found = try found(items, name)
            return SharedSession(version: .none, value: found.value, lasts: found.left)
        }
    }

    /// - Parameter items: identity, value, sealed, and what is left of them.
    private func found(
        _ items: [RESPValue], _ name: SharedName
    ) throws(SharedFault) -> (value: [UInt8], identity: String, left: TimeSpan?) {
        guard let id = items[0].bytes else { throw Self.invalid }
        let identity = String(decoding: id.prefix(64), as: UTF8.self)
        let left = try Self.left(items[3])
        if format.readsNew, let sealed = items[2].bytes {
            // The identity beside it is for scripts to compare; another one than was sealed is none of ours.
            guard let envelope = keys.envelope(sealed, for: name), envelope.identity == identity else {
                throw SharedFault(.invalid, "a value of the shared server cannot be opened")
            }
            return (envelope.value, identity, envelope.left(left, at: now))
        }
        guard format.readsOld, let old = items[1].bytes else { throw Self.invalid }
        let value = try opened(old, name)
        putBeside(
            [], old, SealedEnvelope(end: left.map { now + $0 }, identity: identity, value: value), .value, name)
        return (value, identity, left)
    }

    /// See `SharedTier`.
    public func publish(
        _ value: [UInt8], as identity: String, under lease: SharedLease, askedFor age: TimeSpan, for life: TimeSpan?,
        completion: @escaping Answer<Bool>
    ) {
        let old: [UInt8]
        let new: [UInt8]
        do throws(SharedFault) {
            old = try sealedAlone(value, lease.name)
            new = try sealed(
                SealedEnvelope(end: life.map { now + $0 }, identity: identity, value: value), lease.name)
        } catch { return completion(.failure(error)) }
        run(
            FleetScripts.publish, [key(.value, lease.name), key(.lease, lease.name), key(.generation, lease.name)],
            Self.words(lease.owner, "\(lease.generation)", identity) + [old, new] + Self.words(Self.milliseconds(life))
                + telling(.published(lease.name, identity: identity)) + Self.words("\(max(0, age.milliseconds))"),
            completion, Self.flag)
    }

    /// See `SharedTier`.
    public func withdraw(_ name: SharedName, _ identity: String) {
        tell(
            FleetScripts.withdraw, [key(.value, name)],
            Self.words(identity) + telling(.withdrawn(name, identity: identity)))
    }
}
