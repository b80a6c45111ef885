internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Reactor

/// The answer's way to the caller.
extension CallerConnection {
    /// - Parameter upstream: the exchange's, which the caller holds.
    func pumpAnswer(of upstream: UpstreamConnection) {
        for _ in 0..<Self.rounds {
            guard stage == .exchanging else { return }
            // It may have moved to another connection on the way.
            guard upstream === exchange.upstream else { return pumpAnswer() }
            guard upstream.state == .busy else { return }
            switch exchange.machine.phase {
            case .asking where exchange.look != nil:
                guard goOnLooking(at: upstream) else { return }
            case .asking:
                guard readAnswerHead(from: upstream) else { return }
            case .relaying where exchange.answerBegun:
                guard relayBody(from: upstream) else { return }
            default:
                // Parked: the held answer stays in its block, unread bytes in the kernel.
                return
            }
        }
        pumpLater()
    }

    @inline(never)
    private func pumpAnswer() {
        if let upstream = exchange.upstream { pumpAnswer(of: upstream) }
    }

    // MARK: - The head

    /// - Returns: false when more bytes are needed or the exchange moved elsewhere.
    private func readAnswerHead(from upstream: UpstreamConnection) -> Bool {
        if upstream.end > upstream.start {
            do throws(HeadFault) {
                if let length = try data.parseAnswer(of: upstream) { return take(head: length, from: upstream) }
            } catch {
                fail(Fault(error == .headTooLarge || error == .tooManyFields ? .upstreamBigHead : .upstreamGarbage))
                return false
            }
        }
        switch upstream.fill() {
        case .bytes: return true
        case .notNow: return false
        case .blockFull:
            guard upstream.growBlock(to: min(upstream.end * 4, data.limits.headerSize)) else {
                fail(Fault(.upstreamBigHead))
                return false
            }
            return true
        case .noBuffer:
            fail(Fault(.outOfMemory, retryAfter: 1))
            return false
        case .ended, .truncated, .failed:
            let nothing = upstream.end == upstream.start
            upstream.lose(upstream.fault(afterFailure: nothing))
            return false
        }
    }

    private func take(head length: Int, from upstream: UpstreamConnection) -> Bool {
        let status = data.responseHead.status
        let opensTunnel = exchange.upgrades && (upstream.lane == nil ? status == 101 : status == 200)
        if opensTunnel, upstream.lane == nil, !isSwitchedAsAsked(by: upstream) {
            fail(Fault(.upstreamGarbage, detail: "it switches to another protocol than was asked for"))
            return false
        }
        if status < 200, !opensTunnel { return take(interim: status, length: length, from: upstream) }
        if status == 407, upstream.group.plan.proxy != nil, !upstream.group.plan.usesTLS {
            // The proxy's word to us; the caller has no part in it.
            fail(Fault(.proxyRefused, receivedStatus: status))
            return false
        }
        exchange.answerStatus = opensTunnel ? 101 : status
        exchange.usedHTTP2 = upstream.lane != nil
        upstream.noteAnswer(data.responseHead, in: upstream.input.octets)
        exchange.record.firstByteAt = loop.now
        let framing = data.responseHead.framing(
            forMethodHEAD: exchange.method == .head || exchange.caution.isProbe, connect: false)
        // Over HTTP/2 the end is told beside the body, whatever length was announced.
        exchange.answerBody = upstream.lane == nil || framing == .none ? BodyReader(framing) : .untilClose
        exchange.answerPersistent = data.responseHead.keepAlive && framing != .untilClose
        exchange.answerHeadLength = length
        exchange.answerHeadFraming = framing
        if data.responseHead.hasChallenges { ownIfBound(upstream) }
        let bringsNonce = takeNonce(of: upstream, head: length)
        if beginLook(at: status, in: upstream) { return true }
        return follow(judge(status, head: length, body: nil, in: upstream, bringsNonce: bringsNonce), of: upstream)
    }

    /// - Returns: false when the exchange moved elsewhere.
    func follow(_ judgement: Exchange.Judgement, of upstream: UpstreamConnection) -> Bool {
        if exchange.caution.isProbe, judgement == .answer {
            followProbe()
        } else {
            perform(exchange.machine.on(.answered(judgement)), on: upstream)
        }
        return stage == .exchanging
    }

    /// 1xx: relayed to callers that can know them (RFC 9110 §15.2), except a 101 that nobody asked for.
    private func take(interim status: Int, length: Int, from upstream: UpstreamConnection) -> Bool {
        guard status != 101 else {
            fail(Fault(.upstreamGarbage))
            return false
        }
        if let route = exchange.route, exchange.minorVersion >= 1, status != 100 || exchange.expectsContinue {
            let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
            var cursor = OutputCursor(buffers.scratch)
            // Edited like any head: hop-by-hop fields of an interim answer are as little the caller's business.
            writeResponse(
                data.responseHead, bytes: head.octets, edits: route.answerEdits, framing: .none,
                callerMinorVersion: exchange.minorVersion, close: false, into: &cursor)
            guard !cursor.overflowed else {
                fail(Fault(.upstreamBigHead))
                return false
            }
            guard sendInterim(cursor, in: buffers.scratch) else {
                close()
                return false
            }
        }
        upstream.start += length
        exchange.interimAnswers += 1
        // A server that sends interim answers without end would hold the exchange open for ever.
        guard exchange.interimAnswers <= 64 else {
            fail(Fault(.upstreamGarbage))
            return false
        }
        if status == 100 { releaseBody() }
        return stage == .exchanging
    }

    /// What the answer means to the route's identity.
    /// - Parameter body: where the identity reads it and it could be had.
    func judge(
        _ status: Int, head length: Int, body: [UInt8]?, in upstream: UpstreamConnection, bringsNonce: Bool
    ) -> Exchange.Judgement {
        guard let identity = exchange.route?.identity else { return .answer }
        guard identity.inspectedStatuses.contains(status) else {
            if status != 401, status != 403 {
                if identity.reportsSuccess { data.desk.reportSuccess(self) }
                if data.watchesPaths { data.desk.noteTaken(self) }
            }
            return .answer
        }
        let verdict = data.judge(
            status, head: UnsafeRawBufferPointer(rebasing: upstream.input[..<length]), body: body, for: self)
        switch verdict {
        case .none:
            if data.watchesPaths, status != 401, status != 403 { data.desk.noteTaken(self) }
            return .answer
        case .unusable(let reason):
            data.noteGlitch(.unusableChallenge, route: exchange.route, reason: reason)
            // A refusal that cannot be read says nothing of whether the path is open.
            data.desk.scoutSawNothing(self)
            return .answer
        case .misconfigured(let reason):
            data.noteGlitch(.loginRedirect, route: exchange.route, reason: reason)
            return .misconfigured(Fault(.upstreamRedirectedToLogin, receivedStatus: status))
        case .conflict: return .conflict
        case .challenged(let challenge):
            if bringsNonce, challenge.error == Challenge.wantsNonce { return .nonce }
            exchange.record.challenge = HeldChallenge(challenge)
            return .challenge
        }
    }

    @inline(never)
    func relayAnswer() {
        guard let upstream = exchange.upstream else { return answer(Fault(.upstreamClosed)) }
        relayAnswer(from: upstream)
    }

    /// Writes the answer's head and what is there of its body.
    /// - Parameter upstream: the exchange's, which the caller holds.
    func relayAnswer(from upstream: UpstreamConnection) {
        guard let route = exchange.route, upstream.state == .busy else { return answer(Fault(.upstreamClosed)) }
        // Nothing of it was sent: this caller need not see half an answer.
        if let source = upstream.uncountedLane, source._withUnsafeGuaranteedRef({ $0.isRefused }) {
            return answer(upstream.breakOff.fault)
        }
        // The answer to a HEAD is none to the request.
        if exchange.caution.isProbe { return followProbe() }
        // The loop's scratch may have served other connections while this answer was held.
        data.restoreAnswer(of: upstream)
        // An answer before the request was complete: what the caller still sends would be read as its next request.
        if !exchange.requestComplete { exchange.keepsAlive = false }
        if exchange.answerStatus == 101 { return relayUpgrade(of: route, from: upstream) }
        if isLast { exchange.keepsAlive = false }
        exchange.answerFraming = data.responseHead.outgoingFraming(
            forMethodHEAD: exchange.method == .head, connect: false, callerMinorVersion: exchange.minorVersion)
        // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
        if exchange.answerFraming == .untilClose { exchange.keepsAlive = false }
        if lane != nil, exchange.answerFraming == .chunked || exchange.answerFraming == .untilClose {
            exchange.answerFraming = .none
        }
        var cursor = OutputCursor(buffers.scratch)
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<exchange.answerHeadLength])
        let parts = answerParts(of: route, head: head)
        if lane == nil {
            writeResponse(
                data.responseHead, bytes: head.octets, edits: route.answerEdits, callerOrigin: parts.origin.octets,
                isPrivate: parts.isPrivate, lines: parts.lines.octets, framing: exchange.answerFraming,
                callerMinorVersion: exchange.minorVersion,
                close: !exchange.keepsAlive, into: &cursor)
        } else {
            buffers.outgoing.begin(in: buffers.scratch)
            writeResponse(
                data.responseHead, bytes: head.octets, edits: route.answerEdits, callerOrigin: parts.origin.octets,
                isPrivate: parts.isPrivate, lines: parts.lines.octets, framing: exchange.answerFraming,
                into: &buffers.outgoing)
        }
        guard !(lane == nil ? cursor.overflowed : buffers.outgoing.overflowed) else {
            return fail(Fault(.upstreamBigHead))
        }
        upstream.start += exchange.answerHeadLength

        // The head and the body's first piece leave in one write.
        let hasBody = !exchange.answerBody.isComplete
        var piece = BodyReader.Step()
        let raw = upstream.input
        do throws(ChunkFault) {
            if hasBody, raw.count > 0 { piece = try exchange.answerBody.next(raw) }
        } catch {
            // Nothing of it was sent: this caller need not see half an answer.
            return answer(Fault(.upstreamGarbage))
        }
        exchange.answerBegun = true
        exchange.record.answeredAt = loop.now
        expectProgress()
        upstream.start += piece.consumed
        // Asked once: it looks through the whole reader.
        let isComplete = exchange.answerBody.isComplete
        // All there is has come: its end leaves in the same write.
        if !isComplete, let source = upstream.uncountedLane,
            source._withUnsafeGuaranteedRef({ $0.isDrained && $0.trailers.isEmpty })
        {
            piece.ended = true
        }
        isLastWrite = !exchange.keepsAlive && (piece.ended || isComplete)
        let sent =
            lane == nil
            ? sendAnswer(
                &cursor, in: buffers.scratch, raw, piece, framing: exchange.answerFraming,
                dropping: route.answerEdits.drop)
            : sendLaneAnswer(received: head, raw, piece, hasBody: hasBody, dropping: route.answerEdits.drop)
        guard sent else { return close() }
        if piece.ended || isComplete { return completeAnswer() }
        pumpAnswer(of: upstream)
    }

    /// The upstream leaves HTTP, as the caller asked.
    private func relayUpgrade(of route: RoutePlan, from upstream: UpstreamConnection) {
        var cursor = OutputCursor(buffers.scratch)
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<exchange.answerHeadLength])
        let parts = answerParts(of: route, head: head)
        writeResponse(
            data.responseHead, bytes: head.octets, edits: route.answerEdits, callerOrigin: parts.origin.octets,
            isPrivate: parts.isPrivate, lines: parts.lines.octets, framing: .none,
            callerMinorVersion: exchange.minorVersion, close: false,
            upgrade: upstream.lane == nil, into: &cursor)
        guard !cursor.overflowed else { return fail(Fault(.upstreamBigHead)) }
        upstream.start += exchange.answerHeadLength
        exchange.answerBegun = true
        exchange.keepsAlive = false
        exchange.record.answeredAt = loop.now
        let sent: Bool
        if upstream.lane == nil {
            sent = send(cursor.written(in: buffers.scratch))
        } else {
            guard let answer = acceptWebSocket(cursor.written(in: buffers.scratch)) else {
                return fail(Fault(.malformedRequest))
            }
            sent = answer.withUnsafeBytes { send($0) }
        }
        guard sent else { return close() }
        beginTunnel()
    }

    // MARK: - The body

    /// Trailers that go as their fields do.
    private var answerDrops: NameSet { exchange.route?.answerEdits.drop ?? NameSet() }

    /// - Returns: false when the body cannot go on now or is complete.
    private func relayBody(from upstream: UpstreamConnection) -> Bool {
        guard !isCongested else { return false }
        if upstream.end > upstream.start {
            let raw = upstream.input
            do throws(ChunkFault) {
                let piece = try exchange.answerBody.next(raw)
                upstream.start += piece.consumed
                isLastWrite = !exchange.keepsAlive && piece.ended
                guard sendBody(raw, piece, framing: exchange.answerFraming, dropping: answerDrops)
                else {
                    close()
                    return false
                }
                if piece.ended {
                    completeAnswer()
                    return false
                }
                if piece.consumed > 0 {
                    if upstream.start == upstream.end {
                        upstream.start = 0
                        upstream.end = 0
                    }
                    return true
                }
            } catch {
                // The answer's framing broke after its head was passed on: cutting the connection is the only honest end.
                cut(Fault(.upstreamGarbage))
                return false
            }
            upstream.compact()
        } else {
            upstream.start = 0
            upstream.end = 0
            if exchange.answerFraming != .chunked,
                mayPass(
                    from: upstream, left: exchange.answerBody.opaque, isAnnounced: exchange.answerFraming != .untilClose
                ),
                let goesOn = passAnswer(from: upstream)
            {
                return goesOn
            }
        }
        switch upstream.fill() {
        case .bytes:
            // As much as fits: where no length was announced, that is the sign that more follows.
            if exchange.answerFraming == .untilClose { upstream.isFlowing = upstream.end == upstream.block?.count }
            expectProgress()
            return true
        case .notNow: return false
        case .ended:
            answerEnded(by: upstream)
            return false
        case .truncated, .failed:
            cutByUpstream(upstream)
            return false
        case .blockFull:
            cut(Fault(.upstreamGarbage))
            return false
        case .noBuffer:
            cut(Fault(.outOfMemory))
            return false
        }
    }

    /// Lets the kernel move the next piece.
    /// - Returns: whether the body goes on now; nil when this piece has to be copied.
    private func passAnswer(from upstream: UpstreamConnection) -> Bool? {
        switch pass(from: upstream, atMost: exchange.answerBody.opaque) {
        case .moved(let count):
            exchange.answerBody.passed(count)
            if exchange.answerBody.isComplete {
                completeAnswer()
                return false
            }
            expectProgress()
            return true
        case .notNow: return false
        case .ended:
            answerEnded(by: upstream)
            return false
        case .sourceFailed:
            cutByUpstream(upstream)
            return false
        case .targetFailed:
            close()
            return false
        case .unavailable: return nil
        }
    }

    private func answerEnded(by upstream: UpstreamConnection) {
        guard case .untilClose = exchange.answerBody else { return cut(Fault(.upstreamClosed)) }
        if endAnswerBody(from: upstream) { completeAnswer() } else { close() }
    }

    @inline(never)
    private func cutByUpstream(_ upstream: UpstreamConnection) {
        let (fault, code) = upstream.breakOff
        cut(fault, code)
    }

    /// The end of a body that its own bytes did not tell.
    private func endAnswerBody(from upstream: UpstreamConnection) -> Bool {
        let trailers = upstream.lane?.trailers ?? []
        let end = BodyReader.Step(trailers: ByteRange(0..<trailers.count), ended: true)
        isLastWrite = !exchange.keepsAlive
        return trailers.withUnsafeBytes { raw in
            sendBody(raw, end, framing: exchange.answerFraming, dropping: answerDrops)
        }
    }

    private func completeAnswer() {
        releaseUpstream(reusable: true)
        perform(exchange.machine.on(.completed))
    }

    /// Whether the held answer can be read to its end at once, so that its connection carries the replay too.
    func canReuseHeldAnswer() -> Bool {
        guard
            exchange.machine.replayed || exchange.machine.renonced || exchange.machine.conflicts > 0
                || exchange.caution.isProbe, let upstream = exchange.upstream,
            upstream.state == .busy
        else { return false }
        upstream.start += exchange.answerHeadLength
        while upstream.end > upstream.start, !exchange.answerBody.isComplete {
            do throws(ChunkFault) {
                let piece = try exchange.answerBody.next(upstream.input)
                upstream.start += piece.consumed
                if piece.ended { return true }
                if piece.consumed == 0 { return false }
            } catch { return false }
        }
        return exchange.answerBody.isComplete
    }
}

extension Stream {
    /// Moves the input to the block's front.
    final func compact() {
        guard start > 0, let block else { return }
        block.put(UnsafeRawBufferPointer(rebasing: block[start..<end]), at: 0)
        end -= start
        start = 0
    }
}
