internal import HTTP1
internal import HTTP2
internal import Octets
internal import Reactor
internal import TLS

/// After an upgrade the connection is no longer HTTP's: bytes pass both ways as they are, until both sides have ended.
extension CallerConnection {
    /// The parts of an exchange that have to outlive its head's place in the block, for the record.
    final class TunnelState {
        let method: [UInt8]
        let target: [UInt8]
        let requestID: [UInt8]
        /// A side has been told that the other sends no more.
        var callerToldEnd = false
        var upstreamToldEnd = false

        init(method: [UInt8], target: [UInt8], requestID: [UInt8]) {
            self.method = method
            self.target = target
            self.requestID = requestID
        }
    }

    /// The caller asks to leave HTTP (RFC 9110 §7.8), for something that we carry.
    ///
    /// Not HTTP itself: a tunnel in HTTP/2 would carry requests past every rule of the route.
    func asksUpgrade() -> Bool {
        guard stream == nil, data.requestHead.upgrade, exchange.request.isComplete, exchange.request.method == .get,
            let protocols = data.requestHead.first(.upgrade)
        else { return false }
        let wanted = input[protocols]
        return wanted.count >= 2 && !wanted.prefix(2).elementsEqual("h2".utf8) && !contains(wanted, "http")
            && !contains(wanted, "h2c") && !wanted.contains(UInt8(ascii: ","))
    }

    /// Whether a 101 names the protocol that was asked for (RFC 9110 §15.2.2): bytes of another one would reach a caller that does not speak
    /// it, behind every rule of the route.
    /// - Precondition: `data.responseHead` is this answer's, and the request asked for one protocol.
    func isSwitchedAsAsked(by upstream: UpstreamConnection) -> Bool {
        data.restoreHead(of: self)
        guard let wanted = data.requestHead.first(.upgrade), let chosen = data.responseHead.first(.upgrade) else {
            return false
        }
        return equalsIgnoringCase(
            upstream.input[chosen], input[wanted].map { $0 >= 0x41 && $0 <= 0x5a ? $0 | 0x20 : $0 })
    }

    /// The answer's head has been sent: what either side sends from here on is the other's alone.
    func beginTunnel() {
        guard exchange.upstream != nil else { return close() }
        settleTrace()
        exchange.tunnel = TunnelState(
            method: Array(heldMethod), target: Array(heldPath), requestID: withRequestID { Array($0) })
        start = exchange.request.headLength
        enterTunnel()
        pumpTunnel()
    }

    func pumpTunnel() {
        guard let upstream = exchange.upstream, exchange.tunnel != nil else { return }
        if let route = exchange.route { expect(by: loop.now + route.idleTimeout, kind: Deadline.stall) }
        guard carry(from: self, to: upstream), carry(from: upstream, to: self) else {
            // To a caller of HTTP/2 (RFC 9113 §8.5); what came before the loss still goes.
            exchange.record.cutCode = .connectError
            return close()
        }
        if inputEnded, start == end, !upstream.hasPending, exchange.tunnel?.upstreamToldEnd == false {
            exchange.tunnel?.upstreamToldEnd = true
            upstream.endOutput()
        }
        if upstream.inputEnded, upstream.start == upstream.end, !hasPending, exchange.tunnel?.callerToldEnd == false {
            exchange.tunnel?.callerToldEnd = true
            endOutput()
        }
        // A stream's end leaves with the turn: closed before, it would be a reset.
        if exchange.tunnel?.upstreamToldEnd == true, exchange.tunnel?.callerToldEnd == true, hasSentEnd,
            upstream.hasSentEnd
        {
            close()
        }
    }

    /// - Returns: false when either connection is lost.
    private func carry(from source: Channel, to target: Channel) -> Bool {
        // Bounded, so that a fast pair cannot starve the loop's others; epoll does not tell again of what is left unread.
        for _ in 0..<Self.rounds {
            guard !target.isCongested else { return true }
            if source.end > source.start {
                guard target.send(source.input) else { return false }
                (source.start, source.end) = (0, 0)
                continue
            }
            if source.inputEnded { return true }
            (source.start, source.end) = (0, 0)
            if target.mayPass(from: source, left: .max, isAnnounced: false) {
                switch target.pass(from: source, atMost: .max) {
                case .moved, .ended: continue
                case .notNow: return true
                case .sourceFailed, .targetFailed: return false
                case .unavailable: break
                }
            }
            switch source.fill() {
            case .bytes:
                // A block that was filled is a sign that more follows.
                source.isFlowing = source.end == source.block?.count
            case .ended: continue
            case .notNow:
                source.releaseEmptyBlock()
                return true
            case .blockFull, .noBuffer, .truncated, .failed: return false
            }
        }
        // For both directions, whichever asks.
        pumpLater()
        return true
    }

    /// An h2 upstream has accepted an extended CONNECT (RFC 8441): to the caller that is the 101 it asked for, with the proof that RFC 6455
    /// §4.2.2 wants from whoever answers it.
    func acceptWebSocket(_ head: UnsafeRawBufferPointer) -> [UInt8]? {
        data.restoreHead(of: self)
        guard let key = websocketKey() else { return nil }
        guard let lineEnd = head.firstIndex(of: 0x0d) else { return nil }
        let proof = Array(Base64.encode(sha1(key + Array("258EAFA5-E914-47DA-95CA-C5AB0DC85B11".utf8))).utf8)
        var answer = Array("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n".utf8)
        answer += Array("Sec-WebSocket-Accept: ".utf8) + proof
        answer += head[lineEnd...]
        return answer
    }

    private func websocketKey() -> [UInt8]? {
        for index in 0..<data.requestHead.fieldCount {
            let field = data.requestHead[index]
            if equalsIgnoringCase(input[field.name], Array("sec-websocket-key".utf8)) {
                return Array(input[field.value])
            }
        }
        return nil
    }

    private func contains(_ bytes: UnsafeRawBufferPointer, _ text: StaticString) -> Bool {
        let count = text.utf8CodeUnitCount
        guard bytes.count >= count else { return false }
        return (0...(bytes.count - count)).contains { offset in
            (0..<count).allSatisfy { bytes[offset + $0] | 0x20 == text.utf8Start[$0] | 0x20 }
        }
    }
}

extension Channel {
    /// Whether the octets that end this direction have left, as far as that can be known.
    fileprivate final var hasSentEnd: Bool { stream?.isFlushed ?? true }

    /// Says that no more comes; the other direction stays.
    final func endOutput() {
        if let stream {
            _ = stream.end()
        } else if let tls {
            tls.shutdown()
        } else {
            loop.kernel.shutdownWriting(descriptor)
        }
    }
}
