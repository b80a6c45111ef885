internal import DataPath
internal import Handshakes
internal import HotCache
internal import Tokens

/// Misses, cold keys, scouts and challenges: from a loop's report to the machines and back.
extension Keeper {
    // MARK: - Misses

    func needed(_ slot: Slot, from loop: Int) {
        guard let token = tokens[slot] else {
            return order(.settled(slot: slot, .gone), to: loop)
        }
        noticeSecrets(of: token.identity) { keeper in
            // The token may have given way to another user's while secrets were read.
            guard let token = keeper.tokens[slot] else { return keeper.order(.settled(slot: slot, .gone), to: loop) }
            keeper.needed(token, from: loop)
        }
    }

    private func needed(_ token: KeptToken, from loop: Int) {
        let slot = token.slot
        if token.probation != nil {
            // Each request of an unproven secret is a login attempt, so the keeper wants to see them one by one.
            return order(.settled(slot: slot, .retry), to: loop)
        }
        if token.identity.policy.kind == .fixed, token.line == nil {
            if token.reading != nil { return token.onLoaded.append { self.needed(token, from: loop) } }
            if now > token.loadedAt + 1_000_000_000 { loadFixed(token) }
            return order(
                .settled(
                    slot: slot,
                    .fault(Fault(token.secretFault ?? .secretUnreadable, retryAfter: 1, detail: token.toldFailure))),
                to: loop)
        }
        // Served from the store's row it needs nobody; another grant does.
        if token.lacksCallerToken, token.machine.servedGeneration(at: now) == nil {
            return order(.settled(slot: slot, .gone), to: loop)
        }
        guard needsRecall(token) else { return missed(token, from: loop) }
        recall(token) { keeper, fault in
            if let fault { return keeper.order(.settled(slot: slot, .fault(fault)), to: loop) }
            keeper.missed(token, from: loop)
        }
    }

    /// An answer is for those who found no token, and for none who waits with a challenge: what is held now is what that challenge was to.
    private func missed(_ token: KeptToken, from loop: Int) {
        borrow(for: token)
        token.noteMiss(at: now)
        let outcome = apply(token.machine.missed(from: loop, at: now), to: token, direct: true)
        guard let outcome else { return }
        resources.traces?.forget(token.slot)
        order(.settled(slot: token.slot, tokenAnswer(outcome, of: token)), to: loop)
    }

    /// A request whose realm is not known, or whose token has to be fetched with a challenge.
    func cold(_ request: ParkedRequest) {
        guard let route = catalogue.routesByNumber[request.route], let identity = route.identity else {
            return answer(request.ticket, .fault(Fault(.internalFault)))
        }
        noticeSecrets(of: identity) { $0.cold(request, route, identity) }
    }

    private func cold(_ request: ParkedRequest, _ route: KeptRoute, _ identity: KeptIdentity) {
        if let handshake = identity.plan.handshake as? any OneTimeHandshake {
            return fetch(
                for: request.ticket, target: request.path, subject: request.subject, bindings: request.serverEndPoint,
                on: route, identity, by: handshake)
        }
        if let subject = request.subject {
            if route.bindsToURL { return arrived(request, at: subject.key, on: route, identity) }
            return arrived(request, for: subject, on: route, identity)
        }
        if let slot = request.slot, let token = tokens[slot], token.probation != nil {
            return arriveOnProbation(request.ticket, token)
        }
        let entry = LearnedEntry(path: path(of: request.path, on: route), method: request.method)
        switch route.table.target(of: entry) {
        case .open?: return answer(request.ticket, .bare(scout: false))
        case .realm(let index)?:
            guard let token = token(of: route.table.realms[index], on: route) else {
                return answer(request.ticket, .fault(Fault(.tooManyWaiters, retryAfter: 1)))
            }
            if needsRecall(token) {
                return recall(token) { keeper, fault in
                    if let fault { return keeper.answer(request.ticket, .fault(fault)) }
                    keeper.cold(request, route, identity)
                }
            }
            if missed(request.ticket, token) == .scouts { break }
            // Joined a flight: it is answered with the others.
            if token.machine.servedGeneration(at: now) == nil, token.machine.state(at: now) == .acquiring {
                token.tickets.append(request.ticket)
            }
            return
        case nil:
            if let held = heldBack(identity) {
                return answer(request.ticket, .fault(held.fault(of: identity.plan.name)))
            }
        }
        scout(request, entry, on: route)
    }

    enum Miss { case answered, scouts, waits }

    /// A request of its own found no token: an answer is its alone.
    func missed(_ ticket: Ticket, _ token: KeptToken) -> Miss {
        var miss = Miss.waits
        token.noteMiss(at: now)
        for action in token.machine.missed(from: ticket.loop, at: now) {
            switch action {
            case .scout: miss = .scouts
            case .answer(_, let outcome):
                miss = .answered
                answer(ticket, tokenAnswer(outcome, of: token))
            default: apply([action], to: token)
            }
        }
        return miss
    }

    func scout(_ request: ParkedRequest, _ entry: LearnedEntry, on route: KeptRoute) {
        perform(
            route.scouts.arrived(
                ScoutMachine.Parked(
                    ticket: request.ticket.scout, entry: entry,
                    isReplayable: request.isReplayable, isSafeMethod: request.isSafe)), on: route)
    }

    // MARK: - Scouts

    func left(_ ticket: Ticket) {
        resources.traces?.forget(ticket)
        if let token = users.left(ticket) { return token.drop(ticket) }
        if oneTime.tickets.remove(ticket) { return }
        tellScouts { $0.left(ticket.scout) }
        for token in tokens.shared.values {
            token.drop(ticket)
            leaveProbation(ticket, token)
        }
    }

    func foundOpen(_ ticket: Ticket) { tellScouts { $0.answeredWithoutChallenge(ticket.scout) } }

    func scoutFailed(_ ticket: Ticket) {
        tellScouts { $0.failed(ticket.scout) }
        for token in tokens.shared.values { leaveProbation(ticket, token) }
    }

    /// Tells every machine of an event of a scout; the one whose scout it is acts on it.
    private func tellScouts(_ event: (inout ScoutMachine) -> [ScoutMachine.Action]) {
        for route in catalogue.routesByNumber.values where !route.scouts.isEmpty {
            perform(event(&route.scouts), on: route)
        }
    }

    private func leaveProbation(_ ticket: Ticket, _ token: KeptToken) {
        if token.probation != nil { perform(token.probation?.left(ticket.scout) ?? [], on: token) }
    }

    private func perform(_ actions: [ScoutMachine.Action], on route: KeptRoute) {
        for action in actions {
            switch action {
            case .dispatch(let ticket):
                answer(Ticket(ticket), .bare(scout: true))
                // A scout whose word is lost on its way, in a full mailbox, must not keep the route waiting for ever.
                set(&route.alarm, at: now + route.scoutPatience) { $0.scoutFailed(Ticket(ticket)) }
            case .release(let tickets):
                for ticket in tickets { answer(Ticket(ticket), .bare(scout: false)) }
            case .learnOpen(let entry):
                learnOpen(at: entry, on: route)
            case .handOver: break
            case .refuse(let ticket):
                answer(Ticket(ticket), .fault(Fault(.tooManyWaiters, retryAfter: 1)))
            }
        }
    }

    // MARK: - Challenges

    func challenged(_ report: ChallengeOfRequest) {
        if let word = stepUpAnswer(to: report) {
            if let ticket = report.ticket { answer(ticket, word) }
            return
        }
        guard report.isFinal, let ticket = report.ticket else { return learn(of: report) }
        var unanswered = report
        unanswered.ticket = nil
        learn(of: unanswered)
        answer(ticket, .pass)
    }

    private func learn(of report: ChallengeOfRequest) {
        guard let route = catalogue.routesByNumber[report.route], let identity = route.identity else {
            if let ticket = report.ticket { answer(ticket, .pass) }
            return
        }
        if let handshake = identity.plan.handshake as? any OneTimeHandshake {
            // Refused once: another one is fetched. Refused twice: it is not the token.
            guard let ticket = report.ticket else { return }
            if report.isReplay { return answer(ticket, .final) }
            handshake.noteRefusal(of: report.subject.flatMap { EndUser($0) })
            // Made for the connection, it is asked for when there is another one.
            if handshake.bindsConnections { return answer(ticket, .anew) }
            return fetch(
                for: ticket, target: report.path, subject: report.subject, on: route, identity, by: handshake)
        }
        let token: KeptToken?
        switch identity.policy.kind {
        case .challengeDriven where route.bindsToURL: return learnURL(of: report, on: route, identity)
        case .challengeDriven:
            let realm = route.realm ?? Realm(ByteString(report.challenge.realm))
            let entry = LearnedEntry(path: path(of: report.path, on: route), method: report.method)
            if let fault = learn(realm, at: entry, on: route) {
                if let ticket = report.ticket { answer(ticket, .fault(fault)) }
                return endScout(report, on: route, joining: nil)
            }
            token = self.token(of: realm, on: route)
        case .fixed, .basic, .proactive:
            token = report.sent.flatMap { tokens[$0.slot] }
        }
        guard let token else {
            if let ticket = report.ticket { answer(ticket, .fault(Fault(.tooManyWaiters, retryAfter: 1))) }
            return endScout(report, on: route, joining: nil)
        }
        if token.probation != nil {
            refusedOnProbation(report, token)
            return
        }
        // The store may have the token, where its key had given way or was learned before a restart.
        if report.sent?.slot != token.slot, identity.policy.kind == .challengeDriven, needsRecall(token) {
            return recall(token) { keeper, _ in
                keeper.decide(report, token, on: route)
                keeper.endScout(report, on: route, joining: token)
            }
        }
        decide(report, token, on: route)
        endScout(report, on: route, joining: token)
    }

    /// - Parameter along: scopes that others who wait want beside it.
    func decide(
        _ report: ChallengeOfRequest, _ token: KeptToken, on route: KeptRoute, along: [String] = []
    ) {
        if let own = report.subject?.token { token.subject?.token = own }
        token.usedAt = now
        let actions = token.machine.challenged(
            from: report.loop, ChallengeReport(report, of: token, along: along), at: now)
        if actions.contains(.postpone) { postpone(report, token) }
        // Kept only for the flight that it starts: a context is good once, and not for long.
        let startsFlight = actions.contains { if case .startFlight = $0 { true } else { false } }
        if startsFlight {
            token.challenge = report.challenge
            token.challengedRoute = route
        }
        let outcome = apply(actions, to: token, direct: true)
        guard let ticket = report.ticket, !actions.contains(.postpone) else { return }
        if let outcome { answer(ticket, tokenAnswer(outcome, of: token)) } else { wait(ticket, for: token) }
    }

    // MARK: - Challenges that wait for another flight

    private func postpone(_ report: ChallengeOfRequest, _ token: KeptToken) {
        // No request waits for a report without a ticket: one such report is enough to have the grant made.
        if report.ticket == nil, token.postponed.contains(where: { $0.ticket == nil }) { return }
        token.postponed.append(report)
        if let ticket = report.ticket { users.waits(ticket, for: token) }
    }

    /// No flight is under way any more: those whose challenge it could not answer are looked at anew. Who asks for the highest level comes
    /// first, and all scopes are asked for together, so that one flight more serves them all.
    func reconsider(_ token: KeptToken) {
        let (reports, along) = token.takePostponed()
        for report in reports {
            if let route = catalogue.routesByNumber[report.route] {
                decide(report, token, on: route, along: along)
            } else if let ticket = report.ticket {
                answer(ticket, tokenAnswer(.moved, of: token))
            }
        }
    }

    /// The token's key is gone.
    func releasePostponed(of token: KeptToken) {
        for ticket in token.takePostponed().reports.compactMap(\.ticket) {
            answer(ticket, tokenAnswer(.moved, of: token))
        }
    }

    /// The scout has brought its challenge: those behind it wait for the same token.
    func endScout(_ report: ChallengeOfRequest, on route: KeptRoute, joining token: KeptToken?) {
        guard let scout = report.scout else { return }
        for action in route.scouts.challenged(scout.scout) {
            guard case .handOver(let tickets) = action else { continue }
            for ticket in tickets {
                let ticket = Ticket(ticket)
                guard let token else {
                    answer(ticket, .fault(Fault(.issuerUnavailable, retryAfter: 1)))
                    continue
                }
                if let outcome = apply(token.machine.missed(from: ticket.loop, at: now), to: token, direct: true) {
                    answer(ticket, tokenAnswer(outcome, of: token))
                } else {
                    wait(ticket, for: token)
                }
            }
        }
    }

    /// The path of an entry of the learned table. Where a token belongs to one URL, a slash is added, so that the entry is the whole
    /// path and not its directory.
    func path(of target: [UInt8], on route: KeptRoute) -> [UInt8] {
        let path = target.prefix { $0 != UInt8(ascii: "?") }
        return route.bindsToURL ? path + [UInt8(ascii: "/")] : Array(path)
    }

    func token(of realm: Realm, on route: KeptRoute) -> KeptToken? {
        guard let identity = route.identity, let key = route.key(of: realm) else { return nil }
        let token = token(of: key, identity: identity, wanted: route.wanted)
        if token?.route == nil { token?.route = route }
        return token
    }

    func publishTable(of route: KeptRoute) {
        guard let published = route.published else { return }
        published.publish(
            route.table.snapshot(seed: tokens.seed) { [self] realm in token(of: realm, on: route)?.slot ?? .nowhere })
        storeTable(of: route)
    }

    // MARK: - Basic

    private func arriveOnProbation(_ ticket: Ticket, _ token: KeptToken) {
        perform(token.probation?.arrived(ticket.scout) ?? [], on: token)
    }

    func accepted(_ slot: Slot, _ generation: UInt64) {
        guard let token = tokens[slot], token.line?.generation == generation else { return }
        perform(token.probation?.succeeded() ?? [], on: token)
    }

    private func refusedOnProbation(_ report: ChallengeOfRequest, _ token: KeptToken) {
        if report.sent?.generation == token.line?.generation {
            let path = report.path.prefix { $0 != UInt8(ascii: "?") }
            perform(token.probation?.refused(path: ByteString(path)) ?? [], on: token)
        }
        if token.probation?.state == .proven {
            // A success from now on clears the count of refused paths, on whichever loop it comes.
            for loop in 0..<loopCount { order(.wantsSuccess(slot: token.slot), to: loop) }
        }
        guard let ticket = report.ticket else { return }
        guard let marking = token.identity.marking else { return answer(ticket, .final) }
        token.identity.marking = nil
        start { keeper in
            await marking.value
            keeper.answer(ticket, .final)
        }
    }

    func perform(_ actions: [BasicProbation.Action], on token: KeptToken) {
        for action in actions {
            switch action {
            case .dispatch(let ticket):
                guard token.probation?.isToSend(ticket) == true else { continue }
                guard handOver.mayGrant else {
                    // A secret that has not succeeded yet is the other process's to try.
                    answer(Ticket(ticket), .fault(Self.upgrading))
                    perform(token.probation?.left(ticket) ?? [], on: token)
                    continue
                }
                guard let line = token.line else {
                    if token.reading != nil {
                        token.onLoaded.append { self.perform([action], on: token) }
                        continue
                    }
                    if now > token.loadedAt + 1_000_000_000 { loadFixed(token) }
                    // With everybody behind it: who would wait for a try that nobody makes waits in vain.
                    perform(token.probation?.withheld() ?? [], on: token)
                    continue
                }
                // Each request with it is a login attempt, whose mark is the other process's to keep.
                if let refusal = refusal(of: .password) {
                    token.failed(refusal, asking: nil, at: now)
                    token.secretFault = .storeUnusable
                    perform(token.probation?.withheld() ?? [], on: token)
                    continue
                }
                if awaitsTrial(token) { continue }
                token.probation?.sent(ticket)
                answer(Ticket(ticket), .carry(line.bytes, slot: token.slot, generation: line.generation))
            case .publish(let tickets):
                publishFixed(token)
                for ticket in tickets { answer(Ticket(ticket), .use(slot: token.slot, granted: 0)) }
            case .refuse(let tickets, let failure):
                let fault =
                    failure == .credentialRejected
                    ? (heldBack(token.identity) ?? .rejected).fault(of: token.identity.plan.name)
                    : Fault(token.secretFault ?? .issuerUnavailable, retryAfter: 1, detail: token.toldFailure)
                for ticket in tickets { answer(Ticket(ticket), .fault(fault)) }
            case .quarantine:
                cache.clear(slot: token.slot)
                token.identity.noteRefusal(byUpstream: "the upstream refused the user name or password", at: now)
                markRejected(token.identity)
                log(.credentialQuarantined, token)
            case .withdraw:
                cache.clear(slot: token.slot)
                token.identity.noteRefusal(
                    byUpstream: "the upstream refused the user name or password to another gateway", at: now)
                log(.credentialQuarantined, token)
            }
        }
        settleTrial(of: token)
    }
}
