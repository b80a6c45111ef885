internal import DataPath
internal import Handshakes
internal import HotCache
internal import Octets
internal import Reactor
internal import Telemetry
internal import Tokens

/// Tokens for each end user: who is let in, what is kept of whom, and who gives way.
///
/// A user is known who is in memory or has a row in the store; only others count as new. Each has a machine of its own, so that
/// flights, refusals and pauses are one user's alone.
extension Keeper {
    /// A request for somebody that its loop knows no slot for, or whose token needs what only the request has.
    func arrived(_ request: ParkedRequest, for subject: RequestSubject, on route: KeptRoute, _ identity: KeptIdentity) {
        guard var key = route.key(of: route.realm ?? Realm("")), let space = tokens[key]?.slot else {
            return answer(request.ticket, .fault(Fault(.internalFault)))
        }
        // A name that is no text cannot be told to an issuer.
        guard subject.token != nil || String(validating: subject.key.bytes, as: UTF8.self) != nil else {
            return answer(request.ticket, .fault(Fault(.subjectMissing)))
        }
        key.subject = subject.key
        if let token = tokens[key] {
            if let fresh = subject.token { token.subject?.token = fresh }
            return serve(request, token)
        }
        guard let slot = cache.allocateSlot() else { return answer(request.ticket, .fault(tooManySubjects(1))) }
        let token = adopt(key: key, slot: slot, identity: identity, wanted: route.wanted)
        token.route = route
        token.subject = KeptSubject(space: space, token: subject.token)
        serve(request, token)
    }

    private func serve(_ request: ParkedRequest, _ token: KeptToken) {
        guard needsRecall(token) else { return decide(request, token) }
        recall(token) { keeper, fault in
            guard let fault else { return keeper.decide(request, token) }
            keeper.answer(request.ticket, .fault(fault))
            keeper.forgetUnadmitted(token)
        }
    }

    /// Decides on a request for whose token the store need not be asked any more.
    private func decide(_ request: ParkedRequest, _ token: KeptToken) {
        // Turned away meanwhile, as one of several requests that waited for the same row.
        guard tokens.holds(token) else { return answer(request.ticket, .fault(tooManySubjects(1))) }
        if let fault = admit(token) {
            answer(request.ticket, .fault(fault))
            return forgetUnadmitted(token)
        }
        borrow(for: token)
        // Joined a flight: it is answered with the others.
        if missed(request.ticket, token) != .answered { wait(request.ticket, for: token) }
    }

    func wait(_ ticket: Ticket, for token: KeptToken) {
        token.tickets.append(ticket)
        users.waits(ticket, for: token)
    }

    // MARK: - Who is let in

    /// Nil where the user is known, or becomes so.
    func admit(_ token: KeptToken) -> Fault? {
        guard let subject = token.subject, let name = token.key.subject, !subject.isAdmitted else { return nil }
        if token.machine.heldGrant == nil, let wait = users.subjects.admitNew(at: now) {
            noteSubjectsRefused()
            return tooManySubjects(Int(clamping: wait / 1_000_000_000 + 1))
        }
        while users.subjects.isFull {
            guard evictUser() else {
                users.subjects.noteRefusal()
                noteSubjectsRefused()
                return tooManySubjects(1)
            }
        }
        guard cache.addKey(name.bytes, in: subject.space, slot: token.slot) else { return tooManySubjects(1) }
        token.subject?.isAdmitted = true
        users.subjects.added()
        return nil
    }

    func tooManySubjects(_ seconds: Int) -> Fault { Fault(.tooManySubjects, retryAfter: seconds) }

    private func noteSubjectsRefused() {
        guard users.subjects.mayTell(at: now) else { return }
        events.warn(
            "subjects refused",
            [
                LogField("in_memory", .count(Int64(users.subjects.count))),
                LogField("refused", .count(Int64(clamping: users.subjects.refused))),
            ])
    }

    /// Somebody whom no request waits for gives way; what the store has of him comes back with his next request.
    private func evictUser() -> Bool {
        // Bounded: whoever is at work is put back among the newest.
        for _ in 0..<64 {
            guard let slot = cache.keyToGo() else { return false }
            guard let token = tokens[slot], !token.isAtWork else {
                cache.keepKey(of: slot)
                continue
            }
            forget(token)
            users.subjects.noteEviction()
            return true
        }
        return false
    }

    func forgetUnadmitted(_ token: KeptToken) {
        guard tokens.holds(token), token.subject?.isAdmitted == false, !token.isAtWork else { return }
        forget(token)
    }

    /// Memory keeps nothing of it. Its row stays.
    func forget(_ token: KeptToken) {
        apply(token.machine.retired(at: now), to: token)
        token.alarm.take()?.close()
        tokens.remove(token)
        removeKey(of: token)
        cache.releaseSlot(token.slot)
    }

    /// Before its slot is released.
    func removeKey(of token: KeptToken) {
        guard let subject = token.subject, subject.isAdmitted, let name = token.key.subject else { return }
        cache.removeKey(name.bytes, in: subject.space, slot: token.slot)
        token.subject = nil
        users.subjects.removed()
    }

    /// Rows of users, URLs and realms that have given way in memory go with a purge too.
    func dropAbsent(of identity: KeptIdentity) {
        let digest = identity.digest
        dropAbsent(of: identity) { $0.digest == digest }
    }

    func dropAbsent(of identity: KeptIdentity, where isMeant: @escaping @Sendable (AccessKey) -> Bool) {
        switch identity.policy.kind {
        case .challengeDriven: eraseAccess(where: isMeant)
        case .fixed, .basic, .proactive:
            guard identity.isPerUser else { return }
            eraseAccess { $0.subject != nil && isMeant($0) }
        }
    }

    // MARK: - Flights

    /// For whom a flight is; nil for tokens that are everybody's.
    func endUser(of token: KeptToken) throws(Handshakes.GrantFailure) -> EndUser? {
        guard let key = token.user else { return nil }
        guard key.bytes.first == SubjectPlan.digestMark else {
            return .name(String(decoding: key.bytes, as: UTF8.self))
        }
        guard let own = token.subject?.token else {
            throw .issuerUnavailable(retryAfterSeconds: 1, reason: "the caller's token is needed once more")
        }
        let user = EndUser.token(own)
        if let end = user.expiry, skew(of: token.identity).remaining(until: end, wall: wall / 1000) <= 0 {
            throw .callersTokenExpired
        }
        return user
    }

    /// Tells users apart in logs without naming them: a short hash under a key that never leaves the process.
    func pseudonym(of token: KeptToken) -> [LogField] {
        guard let subject = token.user else { return [] }
        return [LogField("subject", .name(Hexadecimal.encode(attempts.key.pseudonym(subject.bytes))))]
    }
}

extension Handshakes.GrantFailure {
    /// No token is made from a caller's that has ended, and none that was made from it is served.
    static var callersTokenExpired: Handshakes.GrantFailure { .policyDenied(reason: "the caller's token has expired") }
}
