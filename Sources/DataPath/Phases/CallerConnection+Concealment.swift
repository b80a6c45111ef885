internal import HTTP1
internal import HTTP2
internal import Handshakes
internal import Octets

/// Keeping the credential of a request out of its answer (`answers: conceal`).
extension CallerConnection {
    /// Before a credential goes out that was not made for this request (`prepareConcealment(of:)` is for those that were). One that went
    /// out with the same request before, as with a replay, is looked for too.
    ///
    /// - Parameters:
    ///   - ready: the identity's line.
    ///   - line: what is put into the request.
    /// - Throws: where the credential is too short to be told from other text.
    func prepareConcealment(
        of ready: UnsafeRawBufferPointer, as line: UnsafeRawBufferPointer, on route: RoutePlan
    ) throws(Fault) {
        guard let identity = route.identity, !identity.signs, !line.isEmpty else { return }
        guard ready.count >= identity.linePrefix + 2 else { throw .credentialMisfit }
        let credential = UnsafeRawBufferPointer(rebasing: ready[identity.linePrefix..<(ready.count - 2)])
        let secret = route.secretPart(of: credential)
        let concealment = begunConcealment()
        // The name of a scheme alone is no secret: an answer that ends in it need not wait for what follows.
        concealment.add(secret, mayHaveScheme: secret.count == credential.count)
        if route.carriesCookies { concealment.add(cookies: line) }
        if let injection = route.injection, injection.place == .query {
            // Encoded for a URL, as whoever shows the whole request in another form has it.
            let value = injection.before.count..<(line.count - injection.after.count)
            concealment.add(asSent: UnsafeRawBufferPointer(rebasing: line[value]))
        }
        guard !concealment.lacksLength else { throw .unconcealable }
    }

    /// The same for fields that were made for the request.
    func prepareConcealment(of signature: RequestSignature) throws(Fault) {
        guard !signature.fields.isEmpty else { return }
        let concealment = begunConcealment()
        for field in signature.fields {
            field.value.withUnsafeBytes { value in
                if field.name.utf8.elementsEqual("cookie".utf8, by: { $0.asciiLowercased == $1 }) {
                    concealment.withhold(cookiesOf: value)
                }
                if signature.secrets == nil, value.count >= Concealment.shortest {
                    concealment.add(value, mayHaveScheme: true)
                }
            }
        }
        for secret in signature.secrets ?? [] { secret.withBytes { concealment.add(named: $0) } }
        guard !concealment.lacksLength else { throw .unconcealable }
    }

    private func begunConcealment() -> AnswerConcealment {
        let concealment = exchange.concealment ?? AnswerConcealment()
        exchange.concealment = concealment
        return concealment
    }

    /// Conceals in the fields of an answer, final or interim, and takes cookies out that carry a credential.
    /// - Precondition: `data.responseHead` is this answer's, and nothing has to read it any more but what writes it.
    func concealHead(of upstream: UpstreamConnection, length: Int) {
        guard let concealment = exchange.concealment, let block = upstream.block else { return }
        let head = UnsafeMutableRawBufferPointer(rebasing: block[upstream.start..<(upstream.start + length)])
        concealment.conceal(UnsafeMutableRawBufferPointer(rebasing: head[data.responseHead.reason.indices]))
        for index in 0..<data.responseHead.fieldCount {
            // The caller gets it in one line, in which a credential may stand that the folds part.
            data.responseHead.unfold(index, in: head)
            let field = data.responseHead[index]
            if field.known == .setCookie, concealment.withholds(UnsafeRawBufferPointer(head)[field.value]) {
                data.responseHead.withhold(index)
            } else {
                concealment.conceal(UnsafeMutableRawBufferPointer(rebasing: head[field.value.indices]))
            }
        }
        noteConcealed(concealment)
    }

    /// Whether the body is in a coding, a part or a difference, though none was asked for: nobody can look for a credential in it.
    /// - Precondition: `data.responseHead` is this answer's.
    func hidesBody(of upstream: UpstreamConnection) -> Bool {
        guard !exchange.answer.body.isComplete else { return false }
        // Over HTTP/2 the end of a body may have come that was never announced to be empty.
        if let stream = upstream.stream, stream.isDrained, upstream.input.count == exchange.answer.headLength {
            return false
        }
        // Partial Content (RFC 9110 §15.3.7), and IM Used (RFC 3229 §10.4.1).
        if exchange.answer.status == 206 || exchange.answer.status == 226 { return true }
        for index in 0..<data.responseHead.fieldCount {
            let field = data.responseHead[index]
            guard field.known == .contentEncoding || upstream.input[field.name].matches("grpc-encoding") else {
                continue
            }
            let value = upstream.input[field.value]
            if !value.isEmpty, !value.matches("identity") { return true }
        }
        return false
    }

    /// The next piece of the body without the credential. It may be shorter than the piece that came, or empty.
    func concealed(_ raw: UnsafeRawBufferPointer, _ step: BodyReader.Step) -> (UnsafeRawBufferPointer, BodyReader.Step)
    {
        guard let concealment = exchange.concealment else { return (raw, step) }
        let passed = concealment.pass(raw, step)
        noteConcealed(concealment)
        return passed
    }

    /// The upstream has no more of the body for now.
    ///
    /// A caller of a body with an announced length knows that more will come; a message in a body without one may be answered before.
    /// - Returns: false when the connection is lost.
    func passHeldOctets() -> Bool {
        guard let concealment = exchange.concealment else { return true }
        if case .length = exchange.answer.body { return true }
        return withUnsafeTemporaryAllocation(byteCount: Concealment.conceded, alignment: 1) { target in
            let octets = concealment.pause(into: target)
            guard !octets.isEmpty else { return true }
            return sendBody(
                octets, BodyReader.Step(data: 0..<octets.count), framing: exchange.answer.framing,
                dropping: answerDrops)
        }
    }

    private func noteConcealed(_ concealment: AnswerConcealment) {
        let count = concealment.takeFound()
        guard count > 0, let route = exchange.route else { return }
        data.noteConcealed(count, on: route, correlationFields)
    }
}

extension Fault {
    /// The credential is so short that it stands in texts by chance.
    fileprivate static var unconcealable: Fault {
        Fault(
            .identityMisconfigured,
            detail:
                "'answers: conceal' cannot keep a credential of fewer than \(Concealment.shortest) octets out of answers"
        )
    }
}
