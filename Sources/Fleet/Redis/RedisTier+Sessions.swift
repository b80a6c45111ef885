internal import Numbers

// Sessions, of which there is one line of versions.
extension RedisTier {
    /// The fields under a session's name, and the session that they mean.
    private struct Seen {
        /// The three fields as they stand; empty where there is none.
        var version: [UInt8] = []
        var value: [UInt8] = []
        var sealed: [UInt8] = []
        var session: SharedSession?
    }

    /// How often a session may change while one is offered.
    private static let offers = 4

    /// See `SharedTier`.
    public func turn(
        _ lock: SharedName, session: SharedName, spends: Bool, completion: @escaping Answer<SharedTurn>
    ) {
        let owner = newOwner()
        run(
            FleetScripts.turn,
            [
                key(.lease, lock), key(.generation, lock), key(.session, session), key(.spending, lock), settlingKey,
                epochKey,
            ],
            Self.words(owner, "\(SharedLease.duration)", spends ? "1" : "0", "\(SharedLease.silence)")
                + [spends ? sealedNews(.spending(lock, owner: owner, isOver: false)) : []] + settling,
            completion
        ) { [self] answer throws(SharedFault) in
            let items = answer.items ?? []
            switch (Self.outcome(items), items.count) {
            case (0, 6):
                let lease = SharedLease(
                    name: lock, owner: owner, generation: try Self.generation(items[1]), spends: spends)
                // A session that cannot be read counts as none: the next one replaces it, and the turn must not be lost.
                return .lease(lease, try? seen(Array(items[2...]), session).session)
            case (2, _): return .busy
            case (3, _): return .settling
            default: throw Self.invalid
            }
        }
    }

    /// See `SharedTier`.
    public func session(_ name: SharedName, completion: @escaping Answer<SharedSession?>) {
        run(FleetScripts.look, [key(.session, name)], [], completion) { [self] answer throws(SharedFault) in
            guard let items = answer.items, items.count == 4 else { throw Self.invalid }
            return try seen(items, name).session
        }
    }

    // MARK: - Reading

    /// - Parameter items: version, value, sealed, and what is left of them.
    private func seen(_ items: [RESPValue], _ name: SharedName) throws(SharedFault) -> Seen {
        let left = try Self.left(items[3])
        var seen = fields(items)
        // A session that cannot be read in one format does not hide the one in the other.
        var new: SharedSession?
        var old: SharedSession?
        var fault: SharedFault?
        do throws(SharedFault) { new = try sealedSession(seen, left, name) } catch { fault = error }
        do throws(SharedFault) { old = try oldSession(seen, left, name) } catch { fault = error }
        if new == nil, old == nil, let fault { throw fault }
        // A gateway that knows only the old format has made a step since.
        if let old, new.map({ isNewer(old, $0) }) ?? true {
            seen.session = old
            let envelope = SealedEnvelope(version: old.version, end: old.lasts.map { now + $0 }, value: old.value)
            putBeside(seen.version, seen.value, envelope, .session, name)
        } else {
            seen.session = new
        }
        return seen
    }

    /// At equal versions the ended one counts: a gateway that knows only the old format ends a session by taking its value away.
    private func isNewer(_ old: SharedSession, _ new: SharedSession) -> Bool {
        old.version > new.version || old.version == new.version && old.value.isEmpty && !new.value.isEmpty
    }

    private func fields(_ items: [RESPValue]) -> Seen {
        Seen(version: items[0].bytes ?? [], value: items[1].bytes ?? [], sealed: items[2].bytes ?? [])
    }

    private func oldSession(
        _ seen: Seen, _ left: TimeSpan?, _ name: SharedName
    ) throws(SharedFault) -> SharedSession? {
        guard format.readsOld, !seen.version.isEmpty else { return nil }
        guard let version = ReceivedNumber(decimal: seen.version).flatMap({ SessionVersion(plain: $0) }) else {
            throw Self.invalid
        }
        if seen.value.isEmpty { return SharedSession(version: version, value: []) }
        return SharedSession(version: version, value: try opened(seen.value, name), lasts: left)
    }

    private func sealedSession(
        _ seen: Seen, _ left: TimeSpan?, _ name: SharedName
    ) throws(SharedFault) -> SharedSession? {
        guard format.readsNew, !seen.sealed.isEmpty else { return nil }
        guard let envelope = keys.envelope(seen.sealed, for: name) else {
            throw SharedFault(.invalid, "a session of the shared server cannot be opened")
        }
        if envelope.value.isEmpty { return SharedSession(version: envelope.version, value: []) }
        return SharedSession(
            version: envelope.version, value: envelope.value, lasts: envelope.left(left, at: now))
    }

    // MARK: - Writing

    /// Version, value and sealed as they are to stand. One without a value is over.
    private func written(_ session: SharedSession, _ name: SharedName) throws(SharedFault) -> [[UInt8]] {
        let end = session.lasts.map { now + $0 }
        return [
            format.readsOld ? Array("\(session.version)".utf8) : [],
            session.value.isEmpty ? [] : try sealedAlone(session.value, name),
            try sealed(SealedEnvelope(version: session.version, end: end, value: session.value), name),
        ]
    }

    /// See `SharedTier`.
    public func commit(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease, completion: @escaping Answer<Bool>
    ) {
        let fields: [[UInt8]]
        do throws(SharedFault) { fields = try written(session, name) } catch { return completion(.failure(error)) }
        run(
            FleetScripts.commit, [key(.session, name), key(.lease, lease.name), key(.spending, lease.name)],
            Self.words(lease.owner) + fields + Self.words(Self.milliseconds(session.lasts))
                + telling(.session(name, version: session.version)),
            completion, Self.flag)
    }

    /// See `SharedTier`.
    public func offer(
        _ session: SharedSession, _ name: SharedName, under lease: SharedLease?, completion: @escaping Answer<Bool>
    ) {
        replace(
            name, with: session, under: lease, telling: .session(name, version: session.version), tries: Self.offers,
            completion: completion
        ) { $0.map { $0.version < session.version } ?? true }
    }

    /// See `SharedTier`.
    public func endSession(_ name: SharedName, version: SessionVersion) {
        replace(
            name, with: SharedSession(version: version, value: []), under: nil,
            telling: .sessionEnded(name, version: version), tries: Self.offers, completion: { _ in }
        ) { found in
            guard let found else { return version > .none }
            return found.version < version || found.version == version && !found.value.isEmpty
        }
    }

    /// See `SharedTier`.
    public func tell(_ news: FleetNews) { tell(FleetScripts.news, [], telling(news)) }

    /// Puts a session in the place of what stands there, where that is to give way.
    /// - Parameter givesWay: judges what stands there; it is asked again where somebody has come in between.
    private func replace(
        _ name: SharedName, with session: SharedSession, under lease: SharedLease?, telling news: FleetNews,
        tries: Int, completion: @escaping Answer<Bool>, if givesWay: @escaping @Sendable (SharedSession?) -> Bool
    ) {
        let look: Answer<Seen> = { [self] result in
            do throws(SharedFault) {
                let seen = try result.get()
                let spending = [key(.session, name), key(.spending, lease?.name ?? name)]
                let owner = Self.words(lease?.owner ?? "-")
                // Nothing is told where nothing has been spent.
                let end =
                    lease.map { $0.spends ? sealedNews(.spending($0.name, owner: $0.owner, isOver: true)) : [] } ?? []
                guard givesWay(seen.session) else {
                    if lease != nil { tell(FleetScripts.spentOut, [spending[1]], owner + [Array(channel.utf8), end]) }
                    return completion(.success(false))
                }
                let before = [seen.version, seen.value, seen.sealed]
                let after = try written(session, name)
                let arguments =
                    owner + before + after + Self.words(Self.milliseconds(session.lasts)) + telling(news) + [end]
                let done: Answer<Bool> = { [self] result in
                    guard case .success(false) = result else { return completion(result) }
                    guard tries > 1 else {
                        return completion(
                            .failure(SharedFault(.invalid, "a session changes faster than it is offered")))
                    }
                    replace(
                        name, with: session, under: lease, telling: news, tries: tries - 1, completion: completion,
                        if: givesWay)
                }
                run(FleetScripts.replace, spending, arguments, done, Self.flag)
            } catch { completion(.failure(error)) }
        }
        run(FleetScripts.look, [key(.session, name)], [], look) { [self] answer throws(SharedFault) in
            guard let items = answer.items, items.count == 4 else { throw Self.invalid }
            // A session that cannot be read gives way to one that can.
            do throws(SharedFault) { return try seen(items, name) } catch { return fields(items) }
        }
    }
}
