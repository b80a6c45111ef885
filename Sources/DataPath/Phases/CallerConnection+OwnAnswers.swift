internal import HTTP1
internal import Reactor

/// Answers that are the gateway's own.
extension CallerConnection {
    // Off the way of what goes well, into which it would otherwise be copied at each of its calls.
    @inline(never)
    func answer(_ fault: Fault) {
        respond(status: fault.answer.status, closes: fault.answer.closes, fault: fault.kind) { closes in
            fault.message(
                pseudonym: data.pseudonym, route: exchange.route?.name, requestID: requestIDText,
                tellsID: exchange.route?.answerNotes.contains(.requestID) == true,
                headOnly: exchange.request.method == .head, close: closes)
        }
    }

    /// The upstream refuses for good: its answer, or ours in its place.
    func refuseFinally() -> Exchange.Action {
        guard let route = exchange.route else { return .none }
        // A 403 is an answer about the user's rights, which the caller can understand; only a 401 asks for what it cannot give. Where the
        // route itself counts it as a refusal, it is one.
        let isAnswer = exchange.answer.status == 403 && route.identity?.isRefusedBy403 != true
        let passes = route.passesFinalRefusal || isAnswer || exchange.nonces?.passesRefusal == true
        if passes, exchange.upstream != nil { return relayAnswer() }
        return .fault(
            Fault(
                .upstreamRefusedCredential, receivedStatus: exchange.answer.status,
                detail: exchange.record.challenge?.reason))
    }

    /// A request that may be forwarded no further is ours to answer (RFC 9110 section 7.6.2). What an OPTIONS asks for can be told; a
    /// TRACE would show the caller what proxies before us added, so it is refused here as it is on routes with an identity.
    /// - Returns: false when the request goes on.
    func answeredAsLastHop() -> Bool {
        guard data.requestHead.maxForwards(in: input.octets) == 0 else { return false }
        if data.requestHead.knownMethod == .trace {
            answer(Fault(.traceRefused))
        } else {
            respond(status: 200, closes: false, fault: nil) { closes in
                Array(
                    ("HTTP/1.1 200 OK\r\nAllow: \(Fault.allowedMethods)\r\nContent-Length: 0\r\n"
                        + (closes ? "Connection: close\r\n\r\n" : "\r\n")).utf8)
            }
        }
        return true
    }

    /// The word that a sender waits for (RFC 9110 §10.1.1), where no upstream can give it: its body is wanted before the head leaves.
    /// - Returns: false when the connection is lost.
    func sendContinue() -> Bool {
        guard exchange.request.expectsContinue, end == exchange.request.headLength, !exchange.request.isComplete else {
            return true
        }
        exchange.request.expectsContinue = false
        var cursor = OutputCursor(buffers.scratch)
        cursor.append("HTTP/1.1 100 Continue\r\n\r\n")
        return sendInterim(cursor, in: buffers.scratch)
    }

    func respond(status: Int, closes: Bool, fault: Fault.Kind?, _ message: (Bool) -> [UInt8]) {
        guard stage != .closed, stage != .closing else { return }
        guard !isRedirected else { return close() }
        // A connection whose credential could not be had is untouched; after a request its answer would be the next one's.
        if exchange.machine.credential == .awaitsConnection, let upstream = exchange.upstream { giveBack(upstream) }
        releaseUpstream(reusable: false)
        leaveDesk()
        expectNothing()
        let closes = closes || !exchange.request.keepsAlive || !requestIsConsumed || isLast
        let message = message(closes)
        exchange.record.fault = fault
        exchange.answer.status = status
        exchange.request.keepsAlive = exchange.request.keepsAlive && !closes
        isLastWrite = !exchange.request.keepsAlive
        // Old callers send an empty line behind a body (RFC 9112 section 2.2). An upstream takes longer to answer than it takes to come.
        if exchange.request.framing != .none { exchange.request.asksToClose = false }
        guard sendMessage(message) else { return close() }
        exchange.answer.hasBegun = true
        exchange.machine = Exchange()
        nextRequest()
    }
}
