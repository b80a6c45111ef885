internal import HTTP1
internal import Octets
internal import Reactor

/// Token requests that the gateway answers itself: no identity, no upstream and no keeper have a part in it. May allocate: nothing here
/// is a cache hit.
extension CallerConnection {
    func serveTokenStub(_ stub: TokenStubPlan) {
        switch data.requestHead.knownMethod {
        case .post: break
        case .options:
            return respondToToken(200, lines: "Allow: \(TokenStubPlan.allowedMethods)\r\n", body: "")
        default:
            return refuseToken(
                "invalid_request", "a token request is a POST", 405, lines: "Allow: \(TokenStubPlan.allowedMethods)\r\n"
            )
        }
        guard announcesForm else {
            return refuseToken("invalid_request", "a token request is application/x-www-form-urlencoded")
        }
        if case .length(let length) = exchange.request.framing, length > TokenForm.longest {
            return refuseTokenForm(.bigBody)
        }
        exchange.request.tokenForm = TokenForm()
        // The whole form has one deadline, as a head has: a form is no load that may take its time.
        expect(by: loop.now + data.limits.headTimeout, kind: Deadline.form)
        guard sendContinue() else { return close() }
        readTokenForm()
    }

    private var announcesForm: Bool {
        guard let range = data.requestHead.first(.contentType) else { return false }
        return equalsIgnoringCase(mediaType(of: input[range]), Array("application/x-www-form-urlencoded".utf8))
    }

    /// Reads on as far as there is something to read. What has been read is overwritten at once: it holds the caller's secrets, and blocks
    /// are used again.
    func readTokenForm() {
        while stage == .exchanging, exchange.request.tokenForm != nil, !exchange.request.isComplete {
            if exchange.request.bodyAt < end {
                guard let isNew = takeOfForm() else { return }
                if isNew { continue }
            }
            if let block {
                // A chunk's line may have come in part.
                block.put(
                    UnsafeRawBufferPointer(rebasing: block[exchange.request.bodyAt..<end]),
                    at: exchange.request.headLength)
                end = exchange.request.headLength + end - exchange.request.bodyAt
                exchange.request.bodyAt = exchange.request.headLength
            }
            switch fill() {
            case .bytes: break
            case .notNow: return
            case .blockFull:
                guard let block, block.count - exchange.request.headLength < buffers.blockSize,
                    growBlock(to: exchange.request.headLength + 2 * buffers.blockSize)
                else { return refuseTokenForm(.outOfMemory, retryAfter: 1) }
            case .noBuffer: return refuseTokenForm(.outOfMemory, retryAfter: 1)
            case .ended where stream != nil: exchange.request.isComplete = true
            case .ended, .truncated, .failed: return refuseTokenForm(.incompleteBody)
            }
        }
        finishTokenForm()
    }

    /// - Returns: whether anything was taken; nil when the exchange has ended.
    private func takeOfForm() -> Bool? {
        guard let block else { return false }
        let raw = UnsafeMutableRawBufferPointer(rebasing: block[exchange.request.bodyAt..<end])
        do throws(ChunkFault) {
            let step = try exchange.request.body.next(UnsafeRawBufferPointer(raw))
            exchange.request.bodyBytes &+= UInt64(step.data.count)
            guard exchange.request.bodyBytes <= TokenForm.longest else {
                refuseTokenForm(.bigBody)
                return nil
            }
            exchange.request.tokenForm?.read(UnsafeRawBufferPointer(rebasing: raw[step.data]))
            UnsafeMutableRawBufferPointer(rebasing: raw[..<step.consumed]).wipe()
            exchange.request.bodyAt += step.consumed
            if step.ended { exchange.request.isComplete = true }
            return step.consumed > 0 || step.ended
        } catch {
            refuseTokenForm(.malformedRequest)
            return nil
        }
    }

    func refuseTokenForm(_ kind: Fault.Kind, retryAfter: Int? = nil) {
        wipeForm()
        answer(Fault(kind, retryAfter: retryAfter))
    }

    /// Nothing behind an incomplete body is read any more, so what is there can only be the form's.
    private func wipeForm() {
        guard let block, !exchange.request.isComplete, exchange.request.bodyAt < end else { return }
        UnsafeMutableRawBufferPointer(rebasing: block[exchange.request.bodyAt..<end]).wipe()
    }

    private func finishTokenForm() {
        guard stage == .exchanging, exchange.request.isComplete, let stub = exchange.route?.tokenStub,
            let verdict = exchange.request.tokenForm?.end()
        else {
            return
        }
        exchange.request.tokenForm = nil
        switch verdict {
        case .grant(let grant) where stub.grants.contains(grant):
            respondToToken(200, body: stub.token(for: grant))
        case .grant, .unsupported:
            refuseToken("unsupported_grant_type", "this grant is not answered here")
        case .invalid:
            refuseToken("invalid_request", "the form needs one grant_type")
        }
    }

    private func refuseToken(_ error: StaticString, _ reason: StaticString, _ status: Int = 400, lines: String = "") {
        respondToToken(status, lines: lines, body: TokenStubPlan.error(error, reason))
    }

    private func respondToToken(_ status: Int, lines: String = "", body: String) {
        exchange.request.tokenForm = nil
        wipeForm()
        respond(status: status, closes: false, fault: nil) { closes in
            TokenStubPlan.message(
                status, lines: lines, body: body, headOnly: exchange.request.method == .head, closes: closes)
        }
    }
}
