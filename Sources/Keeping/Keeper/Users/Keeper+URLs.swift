internal import DataPath
internal import Handshakes
internal import Tokens

/// Tokens for each URL (`token_scope: url`). They are kept as those of end users are: found by the loops under the URL's key, in number within
/// `limits.subjects`, new ones as fast as `limits.new_subjects_per_second`; the least used gives way, and comes back from the store.
/// The learned table has only the paths that need no token.
extension Keeper {
    /// A request for a URL that its loop knows no token of.
    func arrived(
        _ request: ParkedRequest, at url: ByteString, on route: KeptRoute, _ identity: KeptIdentity
    ) {
        let entry = LearnedEntry(path: path(of: request.path, on: route), method: request.method)
        if case .open? = route.table.target(of: entry) { return answer(request.ticket, .bare(scout: false)) }
        guard let token = token(ofURL: url, on: route, identity) else {
            return answer(request.ticket, .fault(tooManySubjects(1)))
        }
        guard needsRecall(token) else { return decide(request, entry, token, on: route) }
        recall(token) { keeper, fault in
            guard let fault else { return keeper.decide(request, entry, token, on: route) }
            keeper.answer(request.ticket, .fault(fault))
            keeper.forgetUnadmitted(token)
        }
    }

    /// Decides on a request for whose token the store need not be asked any more.
    private func decide(
        _ request: ParkedRequest, _ entry: LearnedEntry, _ token: KeptToken, on route: KeptRoute
    ) {
        // Another request that waited for the same row has found that there is none.
        guard tokens.holds(token) else { return scout(request, entry, on: route) }
        guard token.machine.heldGrant != nil || token.machine.isBusy else {
            // Without a grant, a request has to find out whether the URL needs a token.
            forgetUnadmitted(token)
            if let held = heldBack(token.identity) {
                return answer(request.ticket, .fault(held.fault(of: token.identity.plan.name)))
            }
            return scout(request, entry, on: route)
        }
        if let fault = admit(token) {
            answer(request.ticket, .fault(fault))
            return forgetUnadmitted(token)
        }
        switch missed(request.ticket, token) {
        case .answered: break
        case .scouts: scout(request, entry, on: route)
        // Joined a flight: it is answered with the others.
        case .waits: wait(request.ticket, for: token)
        }
    }

    /// A challenge of a URL.
    func learnURL(of report: ChallengeOfRequest, on route: KeptRoute, _ identity: KeptIdentity) {
        guard let url = report.subject?.key, let token = token(ofURL: url, on: route, identity) else {
            if let ticket = report.ticket { answer(ticket, .fault(tooManySubjects(1))) }
            return endScout(report, on: route, joining: nil)
        }
        let entry = LearnedEntry(path: path(of: report.path, on: route), method: report.method)
        if route.table.forgetOpen(entry) { publishTable(of: route) }
        guard report.sent?.slot != token.slot, needsRecall(token) else { return decideURL(report, token, on: route) }
        recall(token) { keeper, _ in
            // Given up by a request that waited for the same row and did not know of the challenge.
            guard keeper.tokens.holds(token) else {
                return keeper.learnURL(of: report, on: route, identity)
            }
            keeper.decideURL(report, token, on: route)
        }
    }

    private func decideURL(_ report: ChallengeOfRequest, _ token: KeptToken, on route: KeptRoute) {
        guard let fault = admit(token) else {
            decide(report, token, on: route)
            return endScout(report, on: route, joining: token)
        }
        if let ticket = report.ticket { answer(ticket, .fault(fault)) }
        forgetUnadmitted(token)
        endScout(report, on: route, joining: nil)
    }

    /// The URL of `probe` was challenged, before anybody asks for it.
    func warmUp(_ path: String, _ challenge: Handshakes.Challenge, on route: KeptRoute, _ identity: KeptIdentity) {
        guard let token = token(ofURL: URLKey.of(path: path), on: route, identity) else { return }
        let begin: Recalled = { keeper, _ in
            guard keeper.tokens.holds(token), keeper.admit(token) == nil else {
                return keeper.forgetUnadmitted(token)
            }
            token.challenge = challenge
            keeper.apply(token.machine.startupRequested(at: keeper.now), to: token)
        }
        if needsRecall(token) { recall(token, then: begin) } else { begin(self, nil) }
    }

    /// Where the challenge is asked for that a flight needs and nobody has brought; nil where it cannot be.
    func probePath(of token: KeptToken) -> String? {
        guard let probe = token.identity.probe, let url = token.key.subject, token.isOfURL else {
            return token.identity.probe
        }
        // Another URL's challenge would bring another URL's token.
        if url == URLKey.of(path: probe) { return probe }
        return URLKey.path(of: url)
    }

    /// Made when it is first asked for; nobody finds it before it is let in (`admit`). Nil when every slot of the hot cache is in use.
    func token(ofURL url: ByteString, on route: KeptRoute, _ identity: KeptIdentity) -> KeptToken? {
        guard var key = route.key(of: route.realmOfURLs), let space = tokens[key]?.slot else { return nil }
        key.subject = url
        let token = token(of: key, identity: identity, wanted: route.wanted)
        if token?.subject == nil { token?.subject = KeptSubject(space: space) }
        if token?.route == nil { token?.route = route }
        return token
    }
}
