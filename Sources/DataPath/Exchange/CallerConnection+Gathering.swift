internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Reactor
internal import TLS

/// The whole body of a request whose signature contains the body's digest: the head cannot leave before the last byte has come.
/// An exception to the law against allocation, for the routes whose identity signs bodies.
final class GatheredBody {
    private var reader: BodyReader
    private var hash = RunningSHA256()
    /// Where in the caller's block the unread bytes begin.
    private var position: Int
    /// The length of the body without its framing.
    private(set) var length: UInt64 = 0
    /// SHA-256; nil as long as something is missing.
    private(set) var digest: [UInt8]?

    static let emptyDigest = sha256([])

    init(_ reader: BodyReader, from position: Int) {
        self.reader = reader
        self.position = position
        if reader.isComplete { end() }
    }

    /// - Parameter block: the caller's, up to what has been received.
    func read(_ block: UnsafeRawBufferPointer) throws(ChunkFault) {
        while digest == nil, position < block.count {
            let rest = UnsafeRawBufferPointer(rebasing: block[position...])
            let step = try reader.next(rest)
            hash.add(UnsafeRawBufferPointer(rebasing: rest[step.data]))
            length += UInt64(step.data.count)
            position += step.consumed
            if step.ended { end() }
            if step.consumed == 0 { return }
        }
    }

    /// The body ended beside its bytes, as HTTP/2 has it.
    func end() { digest = hash.finish() }
}

extension CallerConnection {
    /// - Precondition: the framing and the replay policy are known.
    /// - Returns: whether the request waits for its body; what comes after the wait is begun then.
    func gathers(for identity: IdentityPlan, on route: RoutePlan) -> Bool {
        guard identity.signsBody, exchange.request.framing != .none, !exchange.request.upgrades else { return false }
        if case .length(let length) = exchange.request.framing, length > UInt64(route.replayBody) {
            refuseUnsignable(route)
            return true
        }
        exchange.request.gathered = GatheredBody(exchange.request.body, from: exchange.request.headLength)
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
            case .ended where stream != nil: gathered.end()
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
