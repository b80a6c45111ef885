internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Reactor

/// Bodies that are signed while they pass (`PassingBody`).
extension CallerConnection {
    /// Whether the identity's signature needs no digest of this body, so that it is not waited for.
    /// - Precondition: `data.requestHead` is the request's, and its replay policy is known.
    func passesBody(for identity: IdentityPlan) -> Bool {
        guard let signer = identity.signer, signer.passesBody(of: receivedFields(signer.readFields)) else {
            return false
        }
        exchange.request.signed = .untouched
        if case .length(let length) = exchange.request.framing, length > UInt64(SignedBody.mostKept) {
            exchange.request.retainsBody = false
        }
        return true
    }

    /// - Throws: where the request has no octet of the body that its head announces.
    func sign(body signer: any BodySigner) throws(Fault) {
        switch exchange.request.framing {
        case .none, .length(0):
            throw Fault(.unsignable, detail: "its head announces a body in aws-chunked, which is not there")
        default: exchange.request.signed = .passing(PassingBody(signer, buffers))
        }
    }

    /// Moves the body to the upstream while it takes it, as `pumpRequestBody` does with others.
    /// - Precondition: the request is out, its body has not ended, and nothing holds it back.
    func pump(_ body: PassingBody, to upstream: UpstreamConnection) {
        for _ in 0..<Self.rounds {
            guard !exchange.request.isComplete, !upstream.isCongested, !upstream.outputLost else { return }
            if body.isReady || body.hasEnded {
                guard send(body, to: upstream) else { return }
                continue
            }
            if exchange.request.bodyAt < end {
                guard takePiece(for: body) else { return }
                continue
            }
            giveUpRetaining()
            if !exchange.request.retainsBody {
                end = exchange.request.headLength
                exchange.request.bodyAt = exchange.request.headLength
            }
            switch fill() {
            case .bytes: expectProgress()
            case .notNow:
                expectProgress()
                return
            case .blockFull where makeRoomBehindHead(): break
            case .blockFull, .noBuffer: return answer(Fault(.outOfMemory, retryAfter: 1))
            case .ended where stream != nil:
                guard add(UnsafeRawBufferPointer(start: nil, count: 0), to: body, ended: true) else { return }
            case .ended, .truncated, .failed: return fail(Fault(.incompleteBody))
            }
        }
        if !exchange.request.isComplete { pumpLater() }
    }

    /// Trailers of the message itself stay behind: the body has its own.
    /// - Returns: false when the exchange has ended.
    private func send(_ body: PassingBody, to upstream: UpstreamConnection) -> Bool {
        let ready = body.ready
        let count = min(ready.count, Self.pieceLimit)
        let isLast = body.hasEnded && count == ready.count
        if isLast {
            exchange.request.isComplete = true
            expectAnswer()
        }
        let sent = upstream.sendBody(
            ready, BodyReader.Step(consumed: count, data: 0..<count, ended: isLast),
            framing: exchange.request.framing == .chunked ? .chunked : .none, dropping: NameSet())
        guard sent else {
            upstream.abandonOutput()
            return false
        }
        body.sent(count)
        return true
    }

    /// - Returns: false when more octets are needed or the exchange has ended.
    private func takePiece(for body: PassingBody) -> Bool {
        guard let block else { return false }
        if !exchange.request.retainsBody { exchange.machine.body = .lost }
        let at = exchange.request.bodyAt
        let raw = UnsafeRawBufferPointer(rebasing: block[at..<min(end, at + buffers.blockSize)])
        let step: BodyReader.Step
        do throws(ChunkFault) { step = try exchange.request.body.next(raw) } catch {
            fail(Fault(.malformedRequest))
            return false
        }
        exchange.request.bodyAt += step.consumed
        exchange.request.bodyBytes &+= UInt64(step.data.count)
        guard exchange.request.bodyBytes <= data.limits.bodySize else {
            fail(Fault(.bigBody))
            return false
        }
        guard add(UnsafeRawBufferPointer(rebasing: raw[step.data]), to: body, ended: step.ended) else { return false }
        return step.consumed > 0 || step.ended || makeRoomBehindFragment()
    }

    private func add(_ piece: UnsafeRawBufferPointer, to body: PassingBody, ended: Bool) -> Bool {
        do throws(Fault) {
            try body.add(piece, ended: ended)
            return true
        } catch {
            fail(error)
            return false
        }
    }
}
