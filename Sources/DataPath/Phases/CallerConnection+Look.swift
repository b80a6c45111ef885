internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Reactor

/// Holding an answer until its body has been seen. The head is not yet the exchange's business then: to the machine the upstream is
/// still about to answer.
extension CallerConnection {
    /// - Precondition: `data.responseHead` is this answer's.
    /// - Returns: whether the answer is held from here on.
    func beginLook(at status: Int, in upstream: UpstreamConnection) -> Bool {
        guard let identity = exchange.route?.identity, identity.readsAnswers || identity.answersInPlace,
            identity.inspectedStatuses.contains(status),
            !exchange.answer.body.isComplete, mattersBody(to: identity, in: upstream)
        else { return false }
        // Known from the start not to fit; the judgement without a body says the rest.
        guard holdAnswer() else {
            noteUnseen(.long)
            return false
        }
        return true
    }

    /// Holds the answer until its body has ended.
    /// - Returns: false where it is known not to fit.
    func holdAnswer() -> Bool {
        if let length = data.responseHead.declaredLength, length > UInt64(AnswerLook.limit) { return false }
        exchange.answer.look = AnswerLook(exchange.answer.body)
        expect(by: loop.now + AnswerLook.patience, kind: Deadline.look)
        return true
    }

    /// A challenge may stand in the body; or the nonce that comes with the answer is to be answered on its connection, which is free for
    /// another request when the body has been read.
    private func mattersBody(to identity: IdentityPlan, in upstream: UpstreamConnection) -> Bool {
        if identity.answersInPlace { return upstream.stream == nil && exchange.answer.isPersistent }
        guard let type = data.responseHead.first(.contentType) else { return false }
        return isJSON(upstream.input[type])
    }

    /// `application/json`, and every type whose syntax is JSON (RFC 6839 §3.1).
    private func isJSON(_ field: UnsafeRawBufferPointer) -> Bool {
        let name = mediaType(of: field)
        if equalsIgnoringCase(name, Array("application/json".utf8)) { return true }
        guard name.count > 5 else { return false }
        return equalsIgnoringCase(UnsafeRawBufferPointer(rebasing: name[(name.count - 5)...]), Array("+json".utf8))
    }

    func goOnLooking(at upstream: UpstreamConnection) -> Exchange.Action {
        guard let look = exchange.answer.look else { return .none }
        let isForNonce = exchange.route?.identity?.answersInPlace == true || asksForProxy(upstream)
        while true {
            let held = UnsafeRawBufferPointer(rebasing: upstream.input[exchange.answer.headLength...])
            do throws(ChunkFault) { try look.read(held) } catch {
                return .fault(Fault(.upstreamGarbage))
            }
            if look.isComplete || upstream.stream?.isDrained == true { return endLook(at: upstream, seen: look.body) }
            guard held.count < AnswerLook.limit else { return endLook(at: upstream, unseen: .long) }
            switch upstream.fill() {
            case .bytes: continue
            case .notNow: return .none
            case .blockFull:
                guard upstream.growBlock(to: exchange.answer.headLength + AnswerLook.limit) else {
                    return endLook(at: upstream, unseen: .noMemory)
                }
            case .noBuffer: return .fault(Fault(.outOfMemory, retryAfter: 1))
            // The head has the challenge; it is answered elsewhere.
            case .ended where isForNonce, .truncated where isForNonce, .failed where isForNonce:
                return endLook(at: upstream)
            case .ended:
                if case .untilClose = exchange.answer.body { return endLook(at: upstream, seen: look.body) }
                return .fault(Fault(.upstreamClosed))
            // Nothing of it has reached the caller, so it need not see half an answer.
            case .truncated, .failed: return .fault(Fault(.upstreamClosed))
            }
        }
    }

    /// The answer's time is over: it goes to the caller as it comes.
    func stopLooking() {
        guard exchange.answer.look != nil, let upstream = exchange.upstream, upstream.state == .busy else { return }
        perform(endLook(at: upstream, unseen: .slow))
    }

    private func endLook(
        at upstream: UpstreamConnection, seen body: [UInt8]? = nil, unseen: Unseen? = nil
    ) -> Exchange.Action {
        exchange.answer.look = nil
        if asksForProxy(upstream) { return answerProxy() }
        // The loop's scratch may have served other connections while this answer was held.
        data.restoreAnswer(of: upstream)
        var plain = body
        if let body, exchange.route?.identity?.readsAnswers == true,
            let coding = data.responseHead.first(.contentEncoding)
        {
            plain = ContentCoding.decode(body, coding: Array(upstream.input[coding]), limit: AnswerLook.limit)
            if plain == nil { noteUnseen(.coding) }
        }
        if let unseen { noteUnseen(unseen) }
        return follow(
            judge(
                exchange.answer.status, head: exchange.answer.headLength, body: plain, in: upstream, bringsNonce: false)
        )
    }

    private func noteUnseen(_ reason: Unseen) {
        guard exchange.route?.identity?.readsAnswers == true else { return }
        data.noteGlitch(.unusableChallenge, reason: reason.rawValue, of: self)
        // A refusal that cannot be read says nothing of whether the path is open.
        data.desk.scoutSawNothing(self)
    }
}
