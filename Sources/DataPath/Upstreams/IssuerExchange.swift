package import HTTP1
package import Handshakes
internal import Octets
internal import Reactor

/// A call to an issuer, on the same connections, parser and limits as the data path. Runs on the keeper's loop.
///
/// Redirects are not followed, and the answer is bounded: what an issuer says is hostile input until it is decoded.
package final class IssuerExchange: UpstreamUser {
    private let call: IssuerCall
    private let group: UpstreamGroup
    private let deadline: UInt64
    private let limits: HeadLimits
    private var completion: ((Result<IssuerAnswer, IssuerFault>) -> Void)?
    private var connection: UpstreamConnection?
    private var sentAt: UInt64 = 0
    private var head: ResponseHead
    private var answer: IssuerAnswer?
    private var reader = BodyReader.none
    private var persistent = false
    private var retried = false
    private var attempt = ProxyAttempt()
    private var interim = 0
    /// Keeps itself alive until the outcome, also while no connection holds it.
    private var itself: IssuerExchange?

    /// Most bytes of an answer's body.
    static let answerLimit = 64 * 1024

    package init(
        _ call: IssuerCall, group: UpstreamGroup, deadline: UInt64, limits: HeadLimits,
        completion: @escaping (Result<IssuerAnswer, IssuerFault>) -> Void
    ) {
        self.call = call
        self.group = group
        self.deadline = deadline
        self.limits = limits
        self.completion = completion
        head = ResponseHead(maxFields: limits.fields)
    }

    package func start() {
        itself = self
        // A step that spends an attempt gets a connection of its own: a loss on a pooled one would leave open whether the issuer has counted it.
        let connection = group.take(
            for: self, fresh: call.carriesPassword || retried || attempt.wantsAnew, wanting: attempt.home,
            once: call.method != "GET")
        self.connection = connection
        if connection.state == .busy { upstreamConnected(connection) }
    }

    // MARK: - The connection's events

    package func upstreamConnected(_ connection: UpstreamConnection) {
        connection.expectForUser(by: deadline)
        connection.requests += 1
        sentAt = group.loop.kernel.now()
        guard var message = requestMessage() else {
            return finish(
                .failure(IssuerFault(.proxy("its challenge cannot be answered"), provablyUnsent: true)))
        }
        let sent = message.withUnsafeBytes { connection.send($0) }
        message.wipe()
        guard sent else { return connection.lose(Fault(.upstreamClosed, retry: .ifRepeatable)) }
        if connection.canRead { upstreamReady(connection) }
    }

    package func upstreamReady(_ connection: UpstreamConnection) {
        while completion != nil, self.connection === connection {
            if answer == nil {
                guard readHead(connection) else { return }
            } else {
                guard readBody(connection) else { return }
            }
        }
    }

    package func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) {
        self.connection = nil
        // Under the body of the proxy's challenge, which is answered on another connection.
        if attempt.isAsked, answer != nil {
            answer = nil
            return start()
        }
        let unsent = fault.retry == .unsent || sentAt == 0
        if connection.isPooled, !retried, answer == nil, !call.carriesPassword {
            retried = true
            sentAt = 0
            return start()
        }
        let kind: IssuerFault.Kind =
            switch fault.kind {
            case .upstreamUnresolvable: .unresolvable
            case .upstreamRefused: .refused
            case .upstreamConnectTimeout: .timedOut
            // The log has said which, and callers are told of this failure.
            case .secretUnreadable: .tls("a secret of the gateway's own cannot be read; its log says why")
            case .upstreamTLS: .tls(group.outage.tlsFailure ?? "handshake failed")
            case .proxyRefused, .issuerUnavailable, .issuerAnswerInvalid, .quarantined, .identityMisconfigured,
                .secretUnusable, .tokenTimeout:
                .proxy(group.outage.tlsFailure ?? "it refuses the call")
            // Our own shortage says nothing of the issuer, which would be left alone for a while as one that fails.
            case .tooManyConnections, .upstreamBusy, .outOfMemory: .overloaded
            default: .closed
            }
        finish(.failure(IssuerFault(kind, provablyUnsent: unsent)))
    }

    package func upstreamTimedOut(_ connection: UpstreamConnection) {
        finish(.failure(IssuerFault(.timedOut, provablyUnsent: sentAt == 0)))
    }

    // MARK: - Reading

    private func readHead(_ connection: UpstreamConnection) -> Bool {
        if connection.end > connection.start {
            do throws(HeadFault) {
                head.reset()
                if let length = try head.parse(connection.input.octets, limits: limits) {
                    return takeHead(length, connection)
                }
            } catch {
                return fail(error.isOfSize ? .answerTooLarge : .brokenAnswer)
            }
        }
        switch connection.fill() {
        case .bytes: return true
        case .notNow: return false
        case .blockFull
        where connection.end < limits.headSize && connection.growBlock(to: min(connection.end * 4, limits.headSize)):
            return true
        case .blockFull: return fail(connection.end < limits.headSize ? .overloaded : .answerTooLarge)
        case .noBuffer: return fail(.overloaded)
        case .ended, .truncated, .failed:
            connection.lose(connection.fault(afterFailure: true))
            return false
        }
    }

    private func takeHead(_ length: Int, _ connection: UpstreamConnection) -> Bool {
        let bytes = UnsafeRawBufferPointer(rebasing: connection.input[..<length])
        if head.status < 200 {
            interim += 1
            guard interim < 16, head.status != 101 else {
                return fail(.brokenAnswer)
            }
            connection.start += length
            return true
        }
        connection.noteAnswer(head, in: bytes.octets)
        if group.plan.isReadByProxy, let fault = judgeProxy(bytes, at: connection) {
            finish(.failure(fault))
            return false
        }
        if attempt.wantsAnew {
            askAgain(instead: connection)
            return false
        }
        let framing = head.framing(forMethodHEAD: call.method == "HEAD", connect: false)
        reader = BodyReader(framing)
        persistent = head.keepAlive && framing != .untilClose
        var fields: [(name: String, value: String)] = []
        for index in 0..<head.fieldCount {
            let field = head[index]
            fields.append(
                (
                    String(decoding: bytes[field.name], as: UTF8.self),
                    String(decoding: bytes[field.value], as: UTF8.self)
                ))
        }
        answer = IssuerAnswer(
            status: head.status, headers: fields, body: [], sentAt: sentAt, overTLS: group.plan.usesTLS)
        connection.start += length
        if reader.isComplete { complete(connection) }
        return completion != nil
    }

    private func readBody(_ connection: UpstreamConnection) -> Bool {
        if connection.end > connection.start {
            do throws(ChunkFault) {
                let raw = connection.input
                let piece = try reader.next(raw)
                connection.start += piece.consumed
                answer?.body.append(contentsOf: raw[piece.data])
                if let answer, answer.body.count > Self.answerLimit {
                    return fail(.answerTooLarge)
                }
                if piece.ended {
                    complete(connection)
                    return false
                }
                if piece.consumed > 0 { return true }
            } catch {
                return fail(.brokenAnswer)
            }
        }
        connection.compact()
        switch connection.fill() {
        case .bytes: return true
        case .notNow: return false
        case .ended:
            guard case .untilClose = reader else { return fail(.brokenAnswer) }
            complete(connection)
            return false
        case .noBuffer: return fail(.overloaded)
        case .truncated, .failed, .blockFull: return fail(.brokenAnswer)
        }
    }

    private func complete(_ connection: UpstreamConnection) {
        guard let answer else { return }
        if attempt.isAsked { return askAgain(on: connection) }
        self.connection = nil
        connection.user = nil
        connection.wipeInput()
        if connection.mayBeReused(answerComplete: true, requestComplete: true, persistent: persistent) {
            group.give(connection)
        } else {
            connection.close()
        }
        finish(.success(answer))
    }

    /// - Returns: false: nothing more is read.
    private func fail(_ kind: IssuerFault.Kind) -> Bool {
        if attempt.isAsked, let connection {
            askAgain(instead: connection)
            return false
        }
        finish(.failure(IssuerFault(kind, provablyUnsent: false)))
        return false
    }

    private func finish(_ result: Result<IssuerAnswer, IssuerFault>) {
        guard let completion else { return }
        self.completion = nil
        defer { itself = nil }
        if let connection {
            self.connection = nil
            connection.user = nil
            connection.wipeInput()
            connection.close()
        }
        completion(result)
    }

    // MARK: - A proxy that reads the call

    /// - Returns: why there is no answer of the issuer's; nil where there is, or where the proxy is given an answer.
    private func judgeProxy(_ bytes: UnsafeRawBufferPointer, at connection: UpstreamConnection) -> IssuerFault? {
        guard head.status == 407 else {
            let told = head.values(of: "Proxy-Authentication-Info", in: bytes)
            return group.tls.proxy.passed(&attempt, told) ? nil : IssuerFault(.brokenAnswer, provablyUnsent: false)
        }
        let challenges = head.values(of: "Proxy-Authenticate", in: bytes)
        // The proxy's own word: the issuer has not seen the call.
        sentAt = 0
        return group.tls.proxy.challenged(challenges, by: connection, &attempt).map {
            IssuerFault(.proxy("it answered 407\($0)"), provablyUnsent: true)
        }
    }

    /// The proxy's challenge has been read to its end, and is answered where it came from.
    private func askAgain(on connection: UpstreamConnection) {
        guard connection.mayBeReused(answerComplete: true, requestComplete: true, persistent: persistent) else {
            return askAgain(instead: connection)
        }
        answer = nil
        connection.wipeInput()
        connection.goOn()
        upstreamConnected(connection)
    }

    private func askAgain(instead connection: UpstreamConnection) {
        answer = nil
        self.connection = nil
        connection.user = nil
        connection.wipeInput()
        connection.close()
        start()
    }

    // MARK: - Writing

    /// - Returns: nil where the proxy's challenge cannot be answered.
    private func requestMessage() -> [UInt8]? {
        let isProxied = group.plan.isReadByProxy
        let target = isProxied ? call.url.origin + call.url.path : call.url.path
        var proxyLine: [UInt8] = []
        if isProxied {
            guard
                let line = try? group.tls.proxy.line(
                    for: &attempt, on: connection, method: call.method, target: Array(target.utf8))
            else { return nil }
            proxyLine = line
        }
        var head = "\(call.method) \(target) HTTP/1.1\r\nHost: \(call.url.authority)\r\n"
        var hasAgent = false
        var hasAccept = false
        for field in call.headers {
            // The handshakes check their values; a line break here would still be a second header, so it is looked for once more.
            guard !field.name.utf8.contains(where: { $0 <= 0x20 || $0 == 0x3a || $0 >= 0x7f }),
                !field.value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7f })
            else { continue }
            switch field.name.lowercased() {
            case "user-agent": hasAgent = true
            case "accept": hasAccept = true
            default: break
            }
            head += "\(field.name): \(field.value)\r\n"
        }
        if !hasAgent { head += "User-Agent: cardea\r\n" }
        if !hasAccept { head += "Accept: application/json\r\n" }
        if !call.body.isEmpty || call.method == "POST" { head += "Content-Length: \(call.body.count)\r\n" }
        return Array(head.utf8) + proxyLine + [13, 10] + call.body
    }
}

extension Channel {
    /// Overwrites what was received: an issuer's answer held a token.
    package final func wipeInput() {
        block?.wipe()
    }
}
