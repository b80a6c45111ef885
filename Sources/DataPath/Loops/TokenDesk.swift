internal import HTTP1
internal import Handshakes
internal import HotCache
internal import Reactor
internal import Telemetry
internal import Tokens

/// Where the exchanges of one loop get their tokens: from the hot cache, or by waiting for the keeper.
package final class TokenDesk {
    // Unchecked: a loop lives as long as the process, and a check here would be a locked instruction for every request.
    unowned(unsafe) let data: DataLoop
    private let keeper: any KeeperInbox
    private let loopIndex: Int

    /// Requests that wait for a slot. One mail stands for all of them.
    private var waiting: [Slot: WaitingLine<CallerConnection>] = [:]
    /// Requests that the keeper knows one by one.
    private(set) var parked: [UInt64: CallerConnection] = [:]
    private var lastTicket: UInt64 = 0
    private(set) var waiters = 0
    /// The paths of routes where tokens were refused lately; empty on most days.
    private var takenPaths = TakenPaths() {
        didSet { data.watchesPaths = !takenPaths.isEmpty }
    }

    init(data: DataLoop, keeper: any KeeperInbox, loopIndex: Int) {
        self.data = data
        self.keeper = keeper
        self.loopIndex = loopIndex
    }

    // MARK: - Looking up

    /// A token that is served should be renewed by now.
    func askForRefresh(_ slot: Slot, generation: UInt64) {
        if !keeper.send(.refreshDue(slot: slot, generation: generation), from: loopIndex) {
            data.reader.refreshNotAsked(slot)
        }
    }

    func lookUpLearned(
        _ route: RoutePlan, path: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer, caller: CallerConnection
    ) -> Exchange.Lookup {
        // A list has no token of its own, and is looked up here, where no hit with a known key comes by.
        guard route.identity != nil, let learned = route.learned else { return route.isList ? .open : .cold }
        if let urls = route.urls,
            let slot = URLKey.with(path, on: route, { data.reader.slot(of: $0, in: urls) })
        {
            return caller.lookUp(slot)
        }
        var path = UnsafeRawBufferPointer(rebasing: path.prefix { $0 != UInt8(ascii: "?") })
        if route.urls != nil {
            // A path that needs no token says nothing of those below it, so the whole path is looked up.
            var cursor = OutputCursor(data.buffers.scratch)
            cursor.append(path.octets)
            cursor.append("/")
            path = cursor.written(in: data.buffers.scratch)
        }
        let found = data.reader.withSnapshot(learned) { $0.verdict(path: path, method: method) }
        switch found {
        case .slot(let slot)?: return caller.lookUp(slot)
        case .open?: return .open
        case .cold?, nil: return .cold
        }
    }

    // MARK: - Waiting

    /// - Returns: what there is to do at once.
    func wait(_ caller: CallerConnection, slot: Slot) -> Exchange.Action {
        guard hasRoom else { return refuse(caller) }
        caller.exchange.token.waitsFor = slot
        count(caller)
        let isFirst = waiting[slot] == nil
        // As many as a grant's span points at.
        if data.traces != nil, waiting[slot].map({ $0.count < SpanRecord.mostLinks }) ?? true {
            tellTrace(of: caller, at: .slot(slot))
        }
        waiting[slot, default: WaitingLine()].append(caller)
        waiters += 1
        guard isFirst, !keeper.send(.needed(slot: slot), from: loopIndex) else { return .none }
        // Not through `settle`: it would read the next request from within this one, and so on down the stack.
        leave(caller)
        return refuse(caller)
    }

    func parkCold(_ caller: CallerConnection) -> Exchange.Action {
        guard hasRoom else { return refuse(caller) }
        guard let route = caller.exchange.route else { return .none }
        let ticket = park(caller)
        var request = ParkedRequest(
            ticket: ticket, route: route.number, slot: route.slot, path: Array(caller.heldPath),
            method: Array(caller.heldMethod),
            isReplayable: caller.exchange.machine.replay == .once
                && (caller.exchange.machine.body == .none || caller.exchange.request.retainsBody
                    || caller.exchange.caution.way != .send),
            isSafe: caller.exchange.request.method != .other, subject: caller.subject(on: route))
        if caller.exchange.machine.credential == .awaitsConnection, let upstream = caller.exchange.upstream {
            request.serverEndPoint = caller.beginNegotiation(on: upstream)
        }
        if keeper.send(.cold(request), from: loopIndex) { return .none }
        unpark(caller)
        return refuse(caller)
    }

    /// Another request may wait.
    private var hasRoom: Bool { waiters + parked.count < data.limits.waiters }

    private func refuse(_ caller: CallerConnection) -> Exchange.Action {
        caller.exchange.machine.on(.refused(Fault(.tooManyWaiters, retryAfter: 1)))
    }

    private func park(_ caller: CallerConnection) -> Ticket {
        // An odd number where the request was challenged: the keeper counts those that it sends out again.
        lastTicket += (lastTicket & 1 == 1) == (caller.exchange.machine.phase == .parked) ? 2 : 1
        caller.exchange.token.ticket = lastTicket
        count(caller)
        parked[lastTicket] = caller
        let ticket = Ticket(loop: loopIndex, number: lastTicket)
        if data.traces != nil { tellTrace(of: caller, at: .ticket(ticket)) }
        return ticket
    }

    /// Before the report of the wait itself. Not told when the mailbox is full: a link is missing then.
    private func tellTrace(of caller: CallerConnection, at place: TracedWait.Place) {
        caller.settleTrace()
        let trace = caller.exchange.correlation.trace
        guard trace.isSampled, trace.span != 0 else { return }
        let span = SpanLink(traceHigh: trace.high, traceLow: trace.low, span: trace.span)
        _ = keeper.send(.traced(TracedWait(place: place, span: span)), from: loopIndex)
    }

    private func unpark(_ caller: CallerConnection) {
        guard caller.exchange.token.ticket != 0 else { return }
        parked[caller.exchange.token.ticket] = nil
        caller.exchange.token.ticket = 0
        uncount(caller)
    }

    private func count(_ caller: CallerConnection) {
        guard caller.exchange.token.countedAt == nil, let identity = caller.exchange.route?.identity?.index else {
            return
        }
        caller.exchange.token.countedAt = identity
        caller.exchange.token.countedSince = data.loop.now
        data.count(for: caller.exchange.route) { $0.waitBegan(identity: identity) }
    }

    private func uncount(_ caller: CallerConnection) {
        guard let identity = caller.exchange.token.countedAt else { return }
        caller.exchange.token.countedAt = nil
        let since = caller.exchange.token.countedSince
        let time = data.loop.now - min(data.loop.now, since)
        caller.exchange.record.noteWait(since: since, until: data.loop.now)
        data.count(for: caller.exchange.route) { $0.waitEnded(identity: identity, nanoseconds: time) }
    }

    /// The caller's exchange no longer waits, whatever it waited for. Safe to call when it does not.
    func leave(_ caller: CallerConnection) {
        if let slot = caller.exchange.token.waitsFor {
            caller.exchange.token.waitsFor = nil
            uncount(caller)
            waiters -= 1
            waiting[slot]?.remove(caller)
            if waiting[slot]?.isEmpty == true { waiting[slot] = nil }
        }
        if caller.exchange.token.ticket != 0 {
            let ticket = Ticket(loop: loopIndex, number: caller.exchange.token.ticket)
            unpark(caller)
            _ = keeper.send(.left(ticket: ticket), from: loopIndex)
        }
        scoutSawNothing(caller)
    }

    /// The ticket under which the keeper waits for what the caller's request finds out, which is reported once.
    private func takeScoutTicket(of caller: CallerConnection) -> Ticket? {
        guard caller.exchange.token.scoutTicket != 0 else { return nil }
        defer { caller.exchange.token.scoutTicket = 0 }
        return Ticket(loop: loopIndex, number: caller.exchange.token.scoutTicket)
    }

    // MARK: - Reporting

    /// A challenge. The request waits for the keeper's word on it.
    func report(_ caller: CallerConnection) -> Exchange.Action {
        if let negotiation = caller.exchange.negotiation, let token = negotiation.take() {
            return report(negotiation, token, of: caller)
        }
        guard let route = caller.exchange.route, let challenge = caller.exchange.record.challenge?.challenge else {
            return .none
        }
        // At the bound the keeper hears even so of what goes out no more, or the refused token would be served on.
        let waits = !caller.exchange.machine.isFinal || hasRoom
        if waits, !hasRoom { return refuse(caller) }
        if let sent = caller.exchange.machine.credential.sent { reported[sent.slot] = nil }
        let ticket = waits ? park(caller) : nil
        let report = ChallengeOfRequest(
            ticket: ticket, scout: takeScoutTicket(of: caller), loop: loopIndex, route: route.number,
            path: Array(caller.heldPath),
            method: Array(caller.heldMethod), challenge: challenge, sent: caller.exchange.machine.credential.sent,
            isReplay: caller.exchange.machine.replayed, isFinal: caller.exchange.machine.isFinal,
            justGranted: caller.exchange.sendsJustGranted, hadTaken: hadTaken(caller),
            subject: caller.subject(on: route))
        if keeper.send(.challenged(report), from: loopIndex), waits { return .none }
        unpark(caller)
        return refuse(caller)
    }

    /// The server's word in a negotiation. The request waits for ours.
    private func report(
        _ negotiation: UpstreamNegotiation, _ token: [UInt8], of caller: CallerConnection
    ) -> Exchange.Action {
        guard let route = caller.exchange.route, let begun = negotiation.exchange, hasRoom else {
            return refuse(caller)
        }
        let report = NegotiationOfRequest(
            ticket: park(caller), route: route.number, negotiation: begun, token: token,
            isLast: negotiation.isLast,
            isReplay: caller.exchange.machine.replayed || caller.exchange.machine.replay != .once,
            subject: caller.subject(on: route))
        if keeper.send(.negotiated(report), from: loopIndex) { return .none }
        unpark(caller)
        return refuse(caller)
    }

    func reportOpen(_ caller: CallerConnection) {
        guard let ticket = takeScoutTicket(of: caller) else { return }
        _ = keeper.send(.foundOpen(ticket: ticket), from: loopIndex)
    }

    func reportSuccess(_ caller: CallerConnection) {
        caller.exchange.token.scoutTicket = 0
        guard let (slot, generation) = caller.exchange.machine.credential.sent, reported[slot] != generation else {
            return
        }
        if keeper.send(.accepted(slot: slot, generation: generation), from: loopIndex) { reported[slot] = generation }
    }
    /// Generations whose success was told and not followed by a refusal since.
    private var reported: [Slot: UInt64] = [:]

    /// The answer is no refusal, and some route is watched.
    func noteTaken(_ caller: CallerConnection) {
        guard let sent = caller.exchange.machine.credential.sent, let route = caller.exchange.route else { return }
        takenPaths.note(caller.heldPath, slot: sent.slot, route: route.number, now: data.loop.now)
    }

    private func hadTaken(_ caller: CallerConnection) -> Bool {
        guard !takenPaths.isEmpty, let sent = caller.exchange.machine.credential.sent,
            let route = caller.exchange.route
        else { return false }
        return takenPaths.contains(
            caller.heldPath, slot: sent.slot, route: route.number, forgets: caller.exchange.machine.replayed)
    }

    func scoutSawNothing(_ caller: CallerConnection) {
        guard let ticket = takeScoutTicket(of: caller) else { return }
        // Not sent when the mailbox is full: the keeper then finds out by its own deadline.
        _ = keeper.send(.scoutFailed(ticket: ticket), from: loopIndex)
    }

    // MARK: - The keeper's orders

    package func open(_ order: KeeperOrder) {
        switch order {
        case .settled(let slot, let answer): settle(slot, answer)
        case .wantsSuccess(let slot): reported[slot] = nil
        case .watch(let slot, let route, let until):
            takenPaths.watch(slot: slot, route: route, until: until, now: data.loop.now)
        case .ended(let connections): data.endConnections(of: connections)
        case .request(let ticket, let answer):
            guard let caller = parked[ticket.number] else {
                // Its caller left while the order was on its way; `left` has told the keeper.
                return
            }
            unpark(caller)
            deliver(answer, to: caller, ticket: ticket.number)
        }
    }

    private func settle(_ slot: Slot, _ answer: TokenAnswer) {
        guard var line = waiting.removeValue(forKey: slot) else { return }
        waiters -= line.count
        // First all of them are taken off the desk: one that finds the token gone again must become the first of a new wait.
        var callers: [CallerConnection] = []
        callers.reserveCapacity(line.count)
        while let caller = line.first {
            line.remove(caller)
            caller.exchange.token.waitsFor = nil
            uncount(caller)
            callers.append(caller)
        }
        for caller in callers { deliver(answer, to: caller, ticket: 0) }
    }

    private func deliver(_ answer: TokenAnswer, to caller: CallerConnection, ticket: UInt64) {
        caller.perform(action(for: answer, to: caller, ticket: ticket))
        caller.continueIfReading()
    }

    private func action(
        for answer: TokenAnswer, to caller: CallerConnection, ticket: UInt64
    ) -> Exchange.Action {
        let isParked = caller.exchange.machine.phase == .parked
        let event: Exchange.Event
        switch answer {
        case .use(let slot, let granted):
            caller.exchange.token.justGranted = granted
            let credential = Exchange.Credential.token(slot: slot, generation: 0)
            event = isParked ? .verdict(.replay(credential)) : .granted(credential)
        case .bare(let scout):
            if scout { caller.exchange.token.scoutTicket = ticket }
            let credential = Exchange.Credential.bare(scout: scout)
            event = isParked ? .verdict(.replay(credential)) : .granted(credential)
        case .carry(let line, let slot, let generation):
            caller.exchange.token.carried = line
            // The ticket stays known: if the exchange ends without an answer, the next request tries the secret.
            caller.exchange.token.scoutTicket = ticket
            event = .granted(.carried(slot: slot, generation: generation))
        case .once(let line, let negotiation):
            caller.exchange.token.carried = line
            let credential = Exchange.Credential.carried(slot: .nowhere, generation: 0)
            if let negotiation { caller.exchange.negotiation?.begin(negotiation) }
            if !isParked {
                event = .granted(credential)
            } else {
                event = .verdict(caller.exchange.negotiation == nil ? .replay(credential) : .proceed(credential))
            }
        case .anew:
            event = isParked ? .verdict(.replay(.awaitsConnection)) : .refused(Fault(.internalFault))
        case .retry: return parkCold(caller)
        case .gone:
            // Somebody else's token took its place in memory.
            let route = caller.exchange.route
            if route?.subject != nil || route?.learned != nil { return parkCold(caller) }
            event = .refused(Fault(.issuerUnavailable, retryAfter: 1))
        case .pass: event = isParked ? .verdict(.pass) : .refused(Fault(.internalFault))
        case .final: event = isParked ? .verdict(.final) : .refused(Fault(.upstreamRefusedCredential))
        case .refused(let reason):
            caller.exchange.record.challenge?.reason = reason
            event =
                isParked ? .verdict(.final) : .refused(Fault(.upstreamRefusedCredential, detail: reason))
        case .fault(let fault): event = isParked ? .verdict(.fault(fault)) : .refused(fault)
        }
        return caller.exchange.machine.on(event)
    }
}

extension CallerConnection: Waiter {
    var waitingIndex: Int? {
        get { exchange.token.waitingIndex }
        set { exchange.token.waitingIndex = newValue }
    }
}
