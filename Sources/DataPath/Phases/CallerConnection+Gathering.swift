internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Reactor

extension CallerConnection {
    /// - Precondition: the framing and the replay policy are known.
    /// - Returns: whether the request waits for its body; what comes after the wait is begun then.
    func gathers(on route: RoutePlan) -> Bool {
        guard let identity = route.identity, exchange.request.framing != .none, !exchange.request.upgrades,
            !passesBody(for: identity)
        else { return false }
        if case .length(let length) = exchange.request.framing, length > UInt64(route.replayBody) {
            refuseUnsignable(route)
            return true
        }
        exchange.request.signed = .whole(
            GatheredBody(
                exchange.request.body, from: exchange.request.headLength,
                hashing: identity.signer?.bodyHash(answering: nil)))
        // The whole body is at hand anyway, so that the request can be sent again; and nothing is gained by asking before the body is
        // sent.
        exchange.request.retainsBody = true
        exchange.caution = BodyCaution()
        guard sendContinue() else {
            close()
            return true
        }
        expectProgress()
        gatherBody()
        return true
    }

    func gatherBody() {
        guard let gathered = exchange.request.gathered, let route = exchange.route else { return }
        for _ in 0..<Self.rounds where gathered.digest == nil {
            do throws(ChunkFault) { try gathered.read(input) } catch { return fail(Fault(.malformedRequest)) }
            if gathered.digest != nil { continue }
            guard gathered.length <= UInt64(route.replayBody) else { return refuseUnsignable(route) }
            switch fill() {
            case .bytes: expectProgress()
            case .notNow: return expectProgress()
            case .blockFull:
                // Beside the body a block of its framing; a sender of more has made its chunks too small.
                let most = exchange.request.headLength + route.replayBody + buffers.blockSize
                guard let block, block.count < most else { return refuseUnsignable(route) }
                var wanted = block.count * 4
                if case .length(let length) = exchange.request.framing {
                    wanted = exchange.request.headLength + Int(length)
                }
                guard growBlock(to: min(max(wanted, block.count + buffers.blockSize), most)) else {
                    return answer(Fault(.outOfMemory, retryAfter: 1))
                }
            case .noBuffer: return answer(Fault(.outOfMemory, retryAfter: 1))
            case .ended where stream != nil: gathered.end(hasTrailers: stream?.trailers.isEmpty == false)
            case .ended, .truncated, .failed: return fail(Fault(.incompleteBody))
            }
        }
        guard gathered.digest != nil else { return pumpLater() }
        guard gathered.length <= UInt64(route.replayBody) else { return refuseUnsignable(route) }
        expectNothing()
        data.restoreHead(of: self)
        perform(seekToken(on: route))
    }

    private func refuseUnsignable(_ route: RoutePlan) {
        answer(
            Fault(
                .bigBody,
                detail: "requests are signed with their body here, and such a body may have \(route.replayBody) bytes"))
    }
}
