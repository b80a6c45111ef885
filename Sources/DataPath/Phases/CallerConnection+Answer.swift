internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Reactor

/// The answer's way to the caller.
extension CallerConnection {
    /// - Parameter upstream: the exchange's, which the caller holds.
    /// - Returns: what is to be done about what came.
    func pumpAnswer(of upstream: UpstreamConnection) -> Exchange.Action {
        for _ in 0..<Self.rounds {
            guard stage == .exchanging, upstream === exchange.upstream, upstream.state == .busy else { return .none }
            let action: Exchange.Action?
            switch exchange.machine.phase {
            case .asking where exchange.answer.look != nil: action = goOnLooking(at: upstream)
            case .asking: action = readAnswerHead(from: upstream)
            case .relaying where exchange.answer.hasBegun: action = relayBody(from: upstream)
            // Parked: the held answer stays in its block, unread bytes in the kernel.
            default: return .none
            }
            if let action { return action }
        }
        pumpLater()
        return .none
    }

    // MARK: - The head

    /// - Returns: nil to read on; `.none` where more bytes are needed or the exchange moved elsewhere.
    private func readAnswerHead(from upstream: UpstreamConnection) -> Exchange.Action? {
        if upstream.end > upstream.start {
            do throws(HeadFault) {
                if let length = try data.parseAnswer(of: upstream) { return takeAnswer(head: length, from: upstream) }
            } catch {
                return .fault(Fault(error.isOfSize ? .upstreamBigHead : .upstreamGarbage))
            }
        }
        switch upstream.fill() {
        case .bytes: return nil
        case .notNow: return Exchange.Action.none
        case .blockFull:
            guard upstream.end < data.limits.headerSize else { return .fault(Fault(.upstreamBigHead)) }
            let hasGrown = upstream.growBlock(to: min(upstream.end * 4, data.limits.headerSize))
            return hasGrown ? nil : .fault(Fault(.outOfMemory, retryAfter: 1))
        case .noBuffer: return .fault(Fault(.outOfMemory, retryAfter: 1))
        case .ended, .truncated, .failed:
            let nothing = upstream.end == upstream.start
            upstream.lose(upstream.fault(afterFailure: nothing))
            return Exchange.Action.none
        }
    }

    /// 1xx: relayed to callers that can know them (RFC 9110 §15.2), except a 101 that nobody asked for.
    func take(interim status: Int, length: Int, from upstream: UpstreamConnection) -> Exchange.Action? {
        guard status != 101 else { return .fault(Fault(.upstreamGarbage)) }
        if let route = exchange.route, exchange.request.minorVersion >= 1,
            status != 100 || exchange.request.expectsContinue
        {
            if exchange.concealment != nil { concealHead(of: upstream, length: length) }
            let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])
            var cursor = OutputCursor(buffers.scratch)
            // Edited like any head: hop-by-hop fields of an interim answer are as little the caller's business.
            writeResponse(
                data.responseHead, bytes: head.octets, edits: route.answerEdits, framing: .none,
                callerMinorVersion: exchange.request.minorVersion, close: false, into: &cursor)
            guard !cursor.overflowed else { return .fault(Fault(.upstreamBigHead)) }
            guard sendInterim(cursor, in: buffers.scratch) else { return closing() }
        }
        upstream.start += length
        exchange.answer.interims += 1
        // A server that sends interim answers without end would hold the exchange open for ever.
        guard exchange.answer.interims <= 64 else { return .fault(Fault(.upstreamGarbage)) }
        if status == 100 { releaseBody() }
        return nil
    }

    /// The meaning of the answer for the route's identity.
    /// - Parameter body: where the identity reads it and it could be had.
    func judge(
        _ status: Int, head length: Int, body: [UInt8]?, in upstream: UpstreamConnection, bringsNonce: Bool
    ) -> Exchange.Judgement {
        guard let identity = exchange.route?.identity else { return .answer }
        if let negotiation = exchange.negotiation,
            let judgement = judgeNegotiation(negotiation, status, head: length, in: upstream)
        {
            return judgement
        }
        guard identity.inspectedStatuses.contains(status) else {
            if status != 401, status != 403 {
                if identity.reportsSuccess { noteSuccess(status) }
                if data.watchesPaths { data.desk.noteTaken(self) }
            } else if exchange.nonces?.isBare == true {
                data.desk.scoutSawNothing(self)
            }
            return .answer
        }
        if exchange.route?.choice != nil, status == 401,
            let judgement = judgeOffers(head: length, body: body, in: upstream)
        {
            return judgement
        }
        let verdict = data.judge(
            status, head: UnsafeRawBufferPointer(rebasing: upstream.input[..<length]), body: body, for: self)
        if identity.answersNonces, let judgement = judgeNonce(verdict, status, in: upstream) { return judgement }
        switch verdict {
        case .none:
            if data.watchesPaths, status != 401, status != 403 { data.desk.noteTaken(self) }
            return .answer
        case .unusable(let reason):
            data.noteGlitch(.unusableChallenge, reason: reason, of: self)
            // A refusal that cannot be read says nothing of whether the path is open.
            data.desk.scoutSawNothing(self)
            return .answer
        case .misconfigured(let reason):
            data.noteGlitch(.loginRedirect, reason: reason, of: self)
            return .misconfigured(Fault(.upstreamRedirectedToLogin, receivedStatus: status))
        case .conflict: return .conflict
        // Only identities whose requests answer nonces find one.
        case .nonce: return .answer
        case .challenged(let challenge):
            if bringsNonce, challenge.error == Challenge.wantsNonce { return .nonce }
            exchange.record.challenge = HeldChallenge(challenge)
            return .challenge
        }
    }

    @inline(never)
    func relayAnswer() -> Exchange.Action {
        guard let upstream = exchange.upstream else { return .fault(Fault(.upstreamClosed)) }
        return relayAnswer(from: upstream)
    }

    /// Writes the answer's head and what is there of its body.
    /// - Parameter upstream: the exchange's, which the caller holds.
    func relayAnswer(from upstream: UpstreamConnection) -> Exchange.Action {
        guard let route = exchange.route, upstream.state == .busy else { return .fault(Fault(.upstreamClosed)) }
        // Nothing of it was sent: this caller need not see half an answer.
        if let source = upstream.uncountedStream, source._withUnsafeGuaranteedRef({ $0.isRefused }) {
            return .fault(upstream.breakOff.fault)
        }
        // The answer to a HEAD is none to the request.
        if exchange.caution.isProbe { return exchange.machine.on(.probed) }
        // The loop's scratch may have served other connections while this answer was held.
        data.restoreAnswer(of: upstream)
        if exchange.concealment != nil {
            guard !hidesBody(of: upstream) else { return .fault(Fault(.upstreamEncoded)) }
            concealHead(of: upstream, length: exchange.answer.headLength)
        }
        // An answer before the request was complete: what the caller still sends would be read as its next request.
        if !exchange.request.isComplete { exchange.request.keepsAlive = false }
        if exchange.answer.status == 101 { return relayUpgrade(of: route, from: upstream) }
        if isLast { exchange.request.keepsAlive = false }
        exchange.answer.framing = data.responseHead.outgoingFraming(
            forMethodHEAD: exchange.request.method == .head, connect: false,
            callerMinorVersion: exchange.request.minorVersion)
        // HTTP/1.0 knows no chunks: the end of the connection is the end of the body.
        if exchange.answer.framing == .untilClose { exchange.request.keepsAlive = false }
        if stream != nil, exchange.answer.framing == .chunked || exchange.answer.framing == .untilClose {
            exchange.answer.framing = .none
        }
        var cursor = OutputCursor(buffers.scratch)
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<exchange.answer.headLength])
        let parts = answerParts(of: route, head: head)
        if stream == nil {
            writeResponse(
                data.responseHead, bytes: head.octets, edits: route.answerEdits, callerOrigin: parts.origin.octets,
                isPrivate: parts.isPrivate, lines: parts.lines.octets, framing: exchange.answer.framing,
                callerMinorVersion: exchange.request.minorVersion,
                close: !exchange.request.keepsAlive, into: &cursor)
        } else {
            buffers.outgoing.begin(in: buffers.scratch)
            writeResponse(
                data.responseHead, bytes: head.octets, edits: route.answerEdits, callerOrigin: parts.origin.octets,
                isPrivate: parts.isPrivate, lines: parts.lines.octets, framing: exchange.answer.framing,
                into: &buffers.outgoing)
        }
        guard !(stream == nil ? cursor.overflowed : buffers.outgoing.overflowed) else {
            return .fault(Fault(.upstreamBigHead))
        }
        upstream.start += exchange.answer.headLength

        // The head and the body's first piece leave in one write.
        let hasBody = !exchange.answer.body.isComplete
        var piece = BodyReader.Step()
        var raw = upstream.input
        do throws(ChunkFault) {
            if hasBody, raw.count > 0 { piece = try exchange.answer.body.next(raw) }
        } catch {
            // Nothing of it was sent: this caller need not see half an answer.
            return .fault(Fault(.upstreamGarbage))
        }
        exchange.answer.hasBegun = true
        exchange.record.answeredAt = loop.now
        expectProgress()
        upstream.start += piece.consumed
        // Asked once: it looks through the whole reader.
        let isComplete = exchange.answer.body.isComplete
        // All there is has come: its end leaves in the same write.
        if !isComplete, let source = upstream.uncountedStream,
            source._withUnsafeGuaranteedRef({ $0.isDrained && $0.trailers.isEmpty })
        {
            piece.ended = true
        }
        if exchange.concealment != nil { (raw, piece) = concealed(raw, piece) }
        isLastWrite = !exchange.request.keepsAlive && (piece.ended || isComplete)
        let sent =
            stream == nil
            ? sendAnswer(
                &cursor, in: buffers.scratch, raw, piece, framing: exchange.answer.framing,
                dropping: route.answerEdits.drop)
            : sendStreamAnswer(received: head, raw, piece, hasBody: hasBody, dropping: route.answerEdits.drop)
        guard sent else { return closing() }
        return piece.ended || isComplete ? completeAnswer() : pumpAnswer(of: upstream)
    }

    /// The upstream leaves HTTP, as the caller asked.
    private func relayUpgrade(of route: RoutePlan, from upstream: UpstreamConnection) -> Exchange.Action {
        var cursor = OutputCursor(buffers.scratch)
        let head = UnsafeRawBufferPointer(rebasing: upstream.input[..<exchange.answer.headLength])
        let parts = answerParts(of: route, head: head)
        writeResponse(
            data.responseHead, bytes: head.octets, edits: route.answerEdits, callerOrigin: parts.origin.octets,
            isPrivate: parts.isPrivate, lines: parts.lines.octets, framing: .none,
            callerMinorVersion: exchange.request.minorVersion, close: false,
            upgrade: upstream.stream == nil, into: &cursor)
        guard !cursor.overflowed else { return .fault(Fault(.upstreamBigHead)) }
        var accepted: [UInt8]?
        if upstream.stream != nil {
            // The caller has sent no key of which the proof could be made.
            guard let answer = acceptWebSocket(cursor.written(in: buffers.scratch)) else {
                return .fault(Fault(.malformedRequest))
            }
            accepted = answer
        }
        upstream.start += exchange.answer.headLength
        exchange.answer.hasBegun = true
        exchange.request.keepsAlive = false
        exchange.record.answeredAt = loop.now
        let sent = accepted?.withUnsafeBytes { send($0) } ?? send(cursor.written(in: buffers.scratch))
        guard sent else { return closing() }
        beginTunnel()
        return .none
    }

    // MARK: - The body

    /// Trailers that go as their fields do.
    var answerDrops: NameSet { exchange.route?.answerEdits.drop ?? NameSet() }

    /// - Returns: nil when the body goes on now.
    private func relayBody(from upstream: UpstreamConnection) -> Exchange.Action? {
        guard !isCongested else { return Exchange.Action.none }
        if upstream.end > upstream.start {
            var raw = upstream.input
            do throws(ChunkFault) {
                var piece = try exchange.answer.body.next(raw)
                upstream.start += piece.consumed
                if exchange.concealment != nil { (raw, piece) = concealed(raw, piece) }
                isLastWrite = !exchange.request.keepsAlive && piece.ended
                guard sendBody(raw, piece, framing: exchange.answer.framing, dropping: answerDrops)
                else { return closing() }
                if piece.ended { return completeAnswer() }
                if piece.consumed > 0 {
                    if upstream.start == upstream.end {
                        upstream.start = 0
                        upstream.end = 0
                    }
                    return nil
                }
            } catch {
                // The answer's framing broke after its head was passed on: cutting the connection is the only honest end.
                return cutting(Fault(.upstreamGarbage))
            }
            upstream.compact()
        } else {
            upstream.start = 0
            upstream.end = 0
            if exchange.answer.framing != .chunked, exchange.concealment == nil,
                mayPass(
                    from: upstream, left: exchange.answer.body.opaque,
                    isAnnounced: exchange.answer.framing != .untilClose
                )
            {
                switch pass(from: upstream, atMost: exchange.answer.body.opaque) {
                case .moved(let count):
                    exchange.answer.body.passed(count)
                    if exchange.answer.body.isComplete { return completeAnswer() }
                    expectProgress()
                    return nil
                case .notNow: return Exchange.Action.none
                case .ended: return answerEnded(by: upstream)
                case .sourceFailed: return cutByUpstream(upstream)
                case .targetFailed: return closing()
                // This piece has to be copied.
                case .unavailable: break
                }
            }
        }
        switch upstream.fill() {
        case .bytes:
            // Where no length was announced, a block that was filled is the sign that more follows.
            if exchange.answer.framing == .untilClose { upstream.isFlowing = upstream.end == upstream.block?.count }
            expectProgress()
            return nil
        case .notNow:
            if exchange.concealment != nil, !passHeldOctets() { return closing() }
            return Exchange.Action.none
        case .ended: return answerEnded(by: upstream)
        case .truncated, .failed: return cutByUpstream(upstream)
        case .blockFull: return cutting(Fault(.upstreamGarbage))
        case .noBuffer: return cutting(Fault(.outOfMemory))
        }
    }

    private func answerEnded(by upstream: UpstreamConnection) -> Exchange.Action {
        guard case .untilClose = exchange.answer.body else { return cutting(Fault(.upstreamClosed)) }
        return endAnswerBody(from: upstream) ? completeAnswer() : closing()
    }

    @inline(never)
    private func cutByUpstream(_ upstream: UpstreamConnection) -> Exchange.Action {
        let (fault, code) = upstream.breakOff
        return cutting(fault, code)
    }

    private func cutting(_ fault: Fault, _ code: HTTP2ErrorCode? = nil) -> Exchange.Action {
        cut(fault, code)
        return .none
    }

    private func closing() -> Exchange.Action {
        close()
        return .none
    }

    /// The end of a body that its own bytes did not tell.
    private func endAnswerBody(from upstream: UpstreamConnection) -> Bool {
        let trailers = upstream.stream?.trailers ?? []
        let end = BodyReader.Step(trailers: ByteRange(0..<trailers.count), ended: true)
        isLastWrite = !exchange.request.keepsAlive
        return trailers.withUnsafeBytes { raw in
            let (octets, step) = concealed(raw, end)
            return sendBody(octets, step, framing: exchange.answer.framing, dropping: answerDrops)
        }
    }

    private func completeAnswer() -> Exchange.Action {
        releaseUpstream(reusable: true)
        return exchange.machine.on(.completed)
    }

    /// Whether the held answer can be read to its end at once, so that its connection carries the replay too.
    func canReuseHeldAnswer() -> Bool {
        guard
            exchange.machine.replayed || exchange.machine.renonced || exchange.machine.conflicts > 0
                || exchange.caution.isProbe || exchange.nonces?.proxy.isAsked == true
                || exchange.negotiation?.hasReceived == true, let upstream = exchange.upstream,
            upstream.state == .busy
        else { return false }
        upstream.start += exchange.answer.headLength
        while upstream.end > upstream.start, !exchange.answer.body.isComplete {
            do throws(ChunkFault) {
                let piece = try exchange.answer.body.next(upstream.input)
                upstream.start += piece.consumed
                if piece.ended { return true }
                if piece.consumed == 0 { return false }
            } catch { return false }
        }
        return exchange.answer.body.isComplete
    }
}

extension Channel {
    /// Moves the input to the block's front.
    package final func compact() {
        guard start > 0, let block else { return }
        block.put(UnsafeRawBufferPointer(rebasing: block[start..<end]), at: 0)
        end -= start
        start = 0
    }
}
