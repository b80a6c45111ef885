internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import HotCache
internal import Reactor

/// The request's way to the upstream.
extension CallerConnection {
    @inline(never)
    func sendRequest() -> Exchange.Action {
        guard let upstream = exchange.upstream else { return .none }
        return sendRequest(to: upstream)
    }

    /// Writes the edited head, then as much of the body as is there.
    /// - Parameter upstream: the exchange's, which the caller holds.
    func sendRequest(to upstream: UpstreamConnection) -> Exchange.Action {
        guard let route = exchange.route else { return .none }
        guard !exchange.request.opensTunnel else {
            openTunnel()
            return .none
        }
        rewindBody()
        if exchange.caution.way != .send { beginCaution(before: upstream, on: route) }
        if route.correlation.traces { exchange.correlation.trace.sends &+= 1 }
        let asFields = upstream.shared != nil
        var cursor = OutputCursor(buffers.scratch)
        if asFields { buffers.outgoing.begin(in: buffers.scratch) }
        var withdrawn: Slot?
        if case .token(let slot, _) = exchange.machine.credential {
            // Spliced here and not at the lookup: between the two lies a connect, and an expired token must not leave.
            let found = data.reader.lookup(slot, now: loop.now)
            // The token may have become due since the first lookup, or the mail of that one met a full mailbox.
            if case .refreshDue(let token) = found { data.desk.askForRefresh(slot, generation: token.generation) }
            switch found {
            case .miss: withdrawn = slot
            case .hit(let token), .refreshDue(let token):
                exchange.machine.spliced(generation: token.generation)
                do throws(Fault) {
                    try splice(token.bytes, token.generation, on: route, asFields: asFields, into: &cursor)
                } catch { return refuse(error, before: upstream) }
            }
        } else {
            let carried = exchange.token.carried
            if case .carried(_, let generation) = exchange.machine.credential, let carried {
                do throws(Fault) {
                    try carried.withBytes { ready throws(Fault) in
                        try splice(ready, generation, on: route, asFields: asFields, into: &cursor)
                    }
                } catch { return refuse(error, before: upstream) }
            } else {
                composeHead(route: route, credential: nil, asFields: asFields, into: &cursor)
            }
        }
        if let withdrawn {
            giveBack(upstream)
            return exchange.machine.on(.withdrawn(slot: withdrawn))
        }
        // A tunnel has told the proxy already, and what goes through it is the upstream's.
        if upstream.group.plan.isReadByProxy, !addProxyLine(to: upstream, into: &cursor) {
            return .fault(Fault(.proxyRefused))
        }
        guard !(asFields ? buffers.outgoing.overflowed : cursor.overflowed) else { return .fault(Fault(.bigHead)) }
        if exchange.negotiation != nil { bind(upstream) }
        if exchange.bindsConnection {
            guard upstream.shared == nil else { return .fault(Fault(.connectionShared)) }
            own(upstream)
        }
        upstream.requests += 1
        if exchange.record.sentAt != 0 { exchange.record.noteFirstSend(at: loop.now) }
        exchange.record.sentAt = loop.now
        exchange.pace = TransferPace()
        expectFirstAnswer(on: route)
        let isSent =
            asFields
            ? upstream.sendHead(
                received: UnsafeRawBufferPointer(rebasing: input[..<exchange.request.headLength]), route: route,
                acceptsTrailers: acceptsTrailers, connects: exchange.request.upgrades,
                ended: exchange.caution.isProbe || exchange.request.isComplete && !exchange.request.upgrades)
            : upstream.send(cursor.written(in: buffers.scratch))
        guard isSent else {
            upstream.lose(Fault(.upstreamClosed, retry: asFields ? .unsent : .ifRepeatable))
            return .none
        }
        pumpRequestBody(to: upstream)
        // An answer may be there already: a pooled connection tells of it by an edge that came before this request had a reader.
        return upstream.canRead ? pumpAnswer(of: upstream) : .none
    }

    /// `TE: trailers`, which a connection-specific field would not survive (RFC 9110 §10.1.4).
    private var acceptsTrailers: Bool {
        if let stream { return stream.acceptsTrailers }
        guard let field = data.requestHead.first(.te) else { return false }
        return input[field].elementsEqual("trailers".utf8)
    }

    /// Writes the head with its credential. The use is noted when there is something to be used: a request that cannot be signed, or that
    /// waits for a nonce, uses nothing.
    @inline(__always)
    private func splice(
        _ ready: UnsafeRawBufferPointer, _ generation: UInt64, on route: RoutePlan, asFields: Bool,
        into cursor: inout OutputCursor
    ) throws(Fault) {
        let line = try credential(around: ready, of: route)
        if route.conceals { try prepareConcealment(of: ready, as: line, on: route) }
        guard line.isEmpty || isAudited(on: route, generation: generation) else { throw .unaudited }
        composeHead(route: route, credential: line, asFields: asFields, into: &cursor)
    }

    /// Takes a place in the audit log, where there is one, before the credential is added.
    @inline(__always)
    private func isAudited(on route: RoutePlan, generation: UInt64) -> Bool {
        guard let uses = data.uses else { return true }
        return uses.note(self, of: route, generation: generation)
    }

    /// Its connection serves the next request: thousands of refusals are no reason to connect thousands of times.
    private func refuse(_ fault: Fault, before upstream: UpstreamConnection) -> Exchange.Action {
        giveBack(upstream)
        return .fault(fault)
    }

    /// Where nothing was sent on it, the next request can have it.
    func giveBack(_ upstream: UpstreamConnection) {
        guard
            upstream.isUntouched
                || upstream.mayBeReused(answerComplete: true, requestComplete: true, persistent: true)
        else { return }
        exchange.upstream = nil
        upstream.group.give(upstream)
    }

    /// - Parameter asFields: into `buffers.outgoing` and not into `cursor`.
    func composeHead(
        route: RoutePlan, credential: UnsafeRawBufferPointer?, asFields: Bool = false, into cursor: inout OutputCursor
    ) {
        data.restoreHead(of: self)
        let head = UnsafeRawBufferPointer(rebasing: input[..<exchange.request.headLength])
        let framing: BodyFraming =
            switch exchange.request.framing {
            case _ where exchange.caution.isProbe: .none
            case .none: .none
            case .length(let length): .length(length)
            case .chunked where exchange.upstream?.shared != nil: .none
            case .chunked: exchange.request.gatheredLength.map { .length($0) } ?? .chunked
            }
        // A replay sends what it has of the body at once; asking the upstream again would only cost a round trip.
        let expects =
            exchange.caution.holds
            || (exchange.request.expectsContinue && end == exchange.request.headLength && !exchange.caution.isProbe)
        let hop = forwardedHop(for: route)
        if asFields {
            writeRequest(
                data.requestHead, bytes: head.octets, edits: route.edits, credential: credential?.octets, hop: hop,
                framing: framing, expectContinue: expects, asHEAD: exchange.caution.isProbe, into: &buffers.outgoing)
        } else {
            writeRequest(
                data.requestHead, bytes: head.octets, edits: route.edits, credential: credential?.octets, hop: hop,
                framing: framing, expectContinue: expects, upgrade: exchange.request.upgrades,
                asHEAD: exchange.caution.isProbe,
                into: &cursor)
        }
        if !route.correlation.written.isEmpty {
            if asFields {
                buffers.outgoing.addFields(correlationLines(of: route).octets)
            } else {
                cursor.reopenHead()
                appendCorrelation(of: route, to: &cursor)
                cursor.endHead()
            }
        }
    }

    /// Back to the body's first byte, for a replay or a retry.
    func rewindBody() {
        guard exchange.request.retainsBody || exchange.request.bodyAt == exchange.request.headLength else { return }
        exchange.request.bodyAt = exchange.request.headLength
        beginRequestBody()
    }

    /// Over HTTP/2 the end of a body is told beside it, whatever length was announced; nghttp2 compares the two.
    func beginRequestBody() {
        exchange.request.bodyBytes = 0
        exchange.request.body =
            stream == nil || exchange.request.framing == .none ? BodyReader(exchange.request.framing) : .untilClose
        exchange.request.isComplete = exchange.request.body.isComplete
    }

    /// Moves body bytes to the upstream while it takes them.
    /// - Parameter upstream: the exchange's, which the caller holds.
    func pumpRequestBody(to upstream: UpstreamConnection?) {
        guard !exchange.request.isComplete,
            exchange.machine.phase == .asking || exchange.machine.phase == .relaying,
            let upstream, upstream.state == .busy
        else {
            return
        }
        guard !exchange.caution.holds, !exchange.caution.isProbe else { return }
        if exchange.request.signed != nil, let body = exchange.request.passing { return pump(body, to: upstream) }
        for _ in 0..<Self.rounds {
            guard !exchange.request.isComplete, !upstream.isCongested, !upstream.outputLost else { return }
            if exchange.request.bodyAt < end {
                guard forwardBody(to: upstream) else { return }
                continue
            }
            giveUpRetaining()
            if !exchange.request.retainsBody {
                end = exchange.request.headLength
                exchange.request.bodyAt = exchange.request.headLength
                if upstream.mayPass(from: self, left: exchange.request.body.opaque, isAnnounced: true),
                    let goesOn = passRequestBody(to: upstream)
                {
                    if goesOn { continue }
                    return
                }
            }
            switch fill() {
            case .bytes: expectProgress()
            case .notNow:
                expectProgress()
                return
            case .blockFull where makeRoomBehindHead(): break
            case .blockFull, .noBuffer: return answer(Fault(.outOfMemory, retryAfter: 1))
            case .ended where stream != nil: return endRequestBody(to: upstream)
            case .ended, .truncated, .failed:
                // A body shorter than promised: the upstream must not take it for a whole one.
                return fail(Fault(.incompleteBody))
            }
        }
        if !exchange.request.isComplete { pumpLater() }
    }

    /// A body that has outgrown what is kept for a replay is kept no longer.
    /// - Precondition: everything that was received of it has been forwarded.
    @inline(__always)
    func giveUpRetaining() {
        guard exchange.request.retainsBody, let block, end == block.count, !isWholePiece, !growForReplay(block.count)
        else { return }
        // Everything so far has been forwarded, so the block may be used again from behind the head.
        exchange.request.retainsBody = false
        exchange.machine.body = .lost
        shrinkToHead()
    }

    /// Lets the kernel move the next piece.
    /// - Returns: whether the body goes on now; nil when this piece has to be copied.
    private func passRequestBody(to upstream: UpstreamConnection) -> Bool? {
        let passage = upstream.pass(from: self, atMost: exchange.request.body.opaque)
        switch passage {
        case .moved(let count):
            exchange.machine.body = .lost
            exchange.request.bodyBytes &+= UInt64(count)
            exchange.request.body.passed(count)
            if exchange.request.body.isComplete {
                exchange.request.isComplete = true
                expectAnswer()
            } else {
                expectProgress()
            }
            return true
        case .notNow:
            expectProgress()
            return false
        case .ended, .sourceFailed:
            fail(Fault(.incompleteBody))
            return false
        case .targetFailed:
            exchange.machine.body = .lost
            upstream.abandonOutput()
            return false
        case .unavailable: return nil
        }
    }

    /// The body of an HTTP/2 stream ends beside its bytes, and its trailers come with the end.
    private func endRequestBody(to upstream: UpstreamConnection) {
        exchange.request.isComplete = true
        expectAnswer()
        let trailers = stream?.trailers ?? []
        let end = BodyReader.Step(trailers: ByteRange(0..<trailers.count), ended: true)
        let sent = trailers.withUnsafeBytes { raw in
            upstream.sendBody(
                raw, end, framing: exchange.request.isSentInChunks ? .chunked : .none,
                dropping: exchange.route?.edits.drop ?? NameSet())
        }
        if !sent { upstream.abandonOutput() }
    }

    /// Bytes of a body that are decoded and sent at a time.
    static let pieceLimit = 64 * 1024

    /// Gives a large block back once its body is on its way; the head stays, for the record.
    private func shrinkToHead() {
        guard let large = block, large.count > buffers.blockSize, exchange.request.headLength <= buffers.blockSize / 2,
            let small = buffers.take()
        else { return }
        small.put(UnsafeRawBufferPointer(rebasing: large[..<exchange.request.headLength]), at: 0)
        buffers.give(large)
        block = small
        exchange.request.bodyAt = exchange.request.headLength
        end = exchange.request.headLength
    }

    private func growForReplay(_ size: Int) -> Bool {
        guard let route = exchange.route else { return false }
        let isWhole = exchange.request.signed == nil || exchange.request.gathered != nil
        let most = isWhole ? route.replayBody : min(route.replayBody, SignedBody.mostKept)
        guard size - exchange.request.headLength < most else { return false }
        return growBlock(to: min(size * 4, exchange.request.headLength + most + buffers.blockSize))
    }

    /// Decodes the next piece and sends it on.
    /// - Returns: false when more bytes are needed or the exchange has ended.
    private func forwardBody(to upstream: UpstreamConnection) -> Bool {
        guard let block else { return false }
        // From here on some of the body is gone, unless it stays in the block.
        if !exchange.request.retainsBody { exchange.machine.body = .lost }
        // In pieces, even when a retained body has made the block large: what a slow upstream leaves of a piece has to be kept.
        let raw = UnsafeRawBufferPointer(
            rebasing: block[exchange.request.bodyAt..<min(end, exchange.request.bodyAt + Self.pieceLimit)])
        do throws(ChunkFault) {
            let step = try exchange.request.body.next(raw)
            exchange.request.bodyAt += step.consumed
            exchange.request.bodyBytes &+= UInt64(step.data.count)
            guard exchange.request.bodyBytes <= data.limits.bodySize else {
                fail(Fault(.bigBody))
                return false
            }
            if step.ended {
                exchange.request.isComplete = true
                expectAnswer()
            }
            let sent = upstream.sendBody(
                raw, step, framing: exchange.request.isSentInChunks ? .chunked : .none,
                dropping: exchange.route?.edits.drop ?? NameSet())
            guard sent else {
                upstream.abandonOutput()
                return false
            }
            if step.consumed == 0, !step.ended {
                // An incomplete chunk line: it stays where it is until more has come.
                return makeRoomBehindFragment()
            }
            return true
        } catch {
            fail(Fault(.malformedRequest))
            return false
        }
    }

    /// The block may end in the middle of a chunk's line. Moves the fragment to the front of the body's part and reads on behind it.
    func makeRoomBehindFragment() -> Bool {
        guard let block else { return false }
        if !exchange.request.retainsBody, exchange.request.bodyAt > exchange.request.headLength {
            let count = end - exchange.request.bodyAt
            block.put(
                UnsafeRawBufferPointer(rebasing: block[exchange.request.bodyAt..<end]), at: exchange.request.headLength)
            exchange.request.bodyAt = exchange.request.headLength
            end = exchange.request.headLength + count
        }
        switch fill() {
        case .bytes: return true
        case .notNow:
            expectProgress()
            return false
        case .blockFull where exchange.request.retainsBody && growForReplay(block.count):
            return true
        case .blockFull where exchange.request.retainsBody:
            exchange.request.retainsBody = false
            exchange.machine.body = .lost
            return true
        case .blockFull where makeRoomBehindHead():
            return true
        case .blockFull, .noBuffer:
            answer(Fault(.outOfMemory, retryAfter: 1))
            return false
        case .ended, .truncated, .failed:
            fail(Fault(.incompleteBody))
            return false
        }
    }

    /// A head that fills its block leaves no room for a body, or for a chunk's line and trailers behind it.
    func makeRoomBehindHead() -> Bool {
        guard let block, block.count - exchange.request.headLength < buffers.blockSize else { return false }
        return growBlock(to: exchange.request.headLength + 2 * buffers.blockSize)
    }
}

extension Fault {
    fileprivate static var unaudited: Fault { Fault(.auditUnavailable, retryAfter: 1) }
}
