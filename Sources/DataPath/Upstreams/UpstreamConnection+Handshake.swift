internal import HTTP1
internal import Handshakes
internal import Octets
internal import Reactor

/// A connection that authenticates itself at its group's proxy before anything else (`ProxyHandshake`).
///
/// On the way to a server with TLS each message goes with a CONNECT. Where requests are the proxy's to read, opening messages go with a HEAD, which
/// the proxy answers itself, and the last message waits for the first request, which is the one that the proxy judges it with.
extension UpstreamConnection {
    /// The socket to the proxy is connected.
    func meetProxy(_ handshake: any ProxyHandshake) {
        state = .tunnelling
        canWrite = true
        tlsEdition = group.tls.edition
        // The proxy has asked for nothing on the connection before this one, and ended that.
        if let tunnel, !group.plan.usesTLS { return enter(tunnel, saying: []) }
        if let left = group.plan.proxy?.credential?.rests(at: loop.now) {
            let seconds = left / 1_000_000_000 + 1
            let detail =
                "for the proxy on the way, which has refused this password; it is tried again in \(seconds) s, and at once after a reload"
            return lose(Fault(.quarantined, retry: .unsent, retryAfter: Int(clamping: seconds), detail: detail))
        }
        let box = ProxyTunnelBox(connects: group.plan.usesTLS)
        box.conversation = handshake.begin(with: group.tls.proxy.secret ?? [])
        tunnel = box
        goOnWithProxy(box)
    }

    /// The next message is due. Tickets may have to be asked for, which the loop does not wait for.
    func goOnWithProxy(_ box: ProxyTunnelBox) {
        guard let conversation = box.conversation else { return }
        box.isInRest = false
        box.machine = ProxyTunnel(connects: group.plan.usesTLS)
        // The proxy has asked for nothing.
        guard box.messages == 0 || box.received != nil else { return enter(box, saying: []) }
        box.isWaiting = true
        let number = group.tls.proxy.wait(self)
        let group = LoopBound(group)
        let loop = self.loop
        conversation.answer(box.received.take(), within: patience) { result in
            // A full mailbox loses the message; the connection meets its connect deadline.
            _ = loop.post { group.value.tls.proxy.takeBack(number)?.took(result) }
        }
    }

    /// Milliseconds that are waited for a message: it fails before the connection does, so that the reason is told.
    private var patience: Int64 { Int64(clamping: group.plan.connectTimeout / 1_000_000 * 3 / 4) }

    private func took(_ result: Result<[UInt8], GrantFailure>) {
        guard state == .tunnelling, let box = tunnel, box.isWaiting, let handshake = box.handshake(of: group.plan)
        else { return }
        box.isWaiting = false
        switch result {
        case .failure(let failure):
            group.noteTLSFailure("no credential for the proxy: \(failure)")
            lose(Fault(ofProxy: failure))
        case .success(let message):
            box.messages += 1
            let line = Array("Proxy-Authorization: \(handshake.word) \(Base64.encode(message))\r\n".utf8)
            guard group.plan.usesTLS || !box.isJudged(handshake) else { return enter(box, saying: line) }
            say(line)
        }
    }

    /// Requests go out on the connection, the first one with the last message.
    private func enter(_ box: ProxyTunnelBox, saying line: [UInt8]) {
        box.line = line
        box.conversation = nil
        becomeReady()
    }

    private func say(_ line: [UInt8]) {
        let authority = group.plan.authority
        let request =
            group.plan.usesTLS
            ? ProxyTunnel.request(authority: authority, credential: line)
            : ProxyTunnel.question(authority: authority, credential: line)
        guard request.withUnsafeBytes({ send($0) }) else {
            return tryElsewhere(Fault(.upstreamClosed, retry: .unsent))
        }
        // The proxy may have ended the connection meanwhile, whose edge has come before there was a reader.
        advanceTunnel()
    }

    // MARK: - The proxy's word

    /// The proxy has answered with something else than a way through.
    /// - Returns: whether there is more to read.
    func judgeHandshake(_ status: Int, head length: Int, _ box: ProxyTunnelBox) -> Bool {
        guard let handshake = box.handshake(of: group.plan) else { return false }
        guard status == 407 else {
            if group.plan.usesTLS { refuse(box, status, "") } else { return leave(box, behind: length) }
            return false
        }
        let challenges = AuthChallenge.list(box.machine.values(of: "Proxy-Authenticate", in: input))
        let own = challenges.filter { $0.scheme.matches(handshake.word) }
        guard let message = own.lazy.compactMap(\.token68).first, box.messages < handshake.mostMessages else {
            refuse(box, status, reason(own: own, handshake, box))
            return false
        }
        box.received = message
        return passOver(length, box)
    }

    /// A proxy that lets everybody pass has answered the question itself, or passed it on.
    /// - Returns: whether there is more to read.
    private func leave(_ box: ProxyTunnelBox, behind length: Int) -> Bool {
        guard !box.machine.beginRest() else {
            start += length
            box.isInRest = true
            return true
        }
        box.conversation = nil
        if let address { redial([address]) } else { lose(Fault(.upstreamClosed, retry: .unsent)) }
        return false
    }

    private func reason(
        own: [AuthChallenge], _ handshake: any ProxyHandshake, _ box: ProxyTunnelBox
    ) -> String {
        guard !own.isEmpty else { return "; it does not offer \(handshake.word)" }
        guard box.isJudged(handshake) else { return "; it offers \(handshake.word) and does not go on with it" }
        group.plan.proxy?.credential?.noteRefusal(of: group.tls.proxy.version, at: loop.now)
        return "; it refuses the credential"
    }

    private func refuse(_ box: ProxyTunnelBox, _ status: Int, _ reason: String) {
        group.noteTLSFailure("the proxy answered \(box.question) with \(status)\(reason)")
        lose(Fault(.proxyRefused, retry: .unsent, receivedStatus: status))
    }

    private func passOver(_ length: Int, _ box: ProxyTunnelBox) -> Bool {
        guard box.machine.beginRest() else {
            endedByProxy(box)
            return false
        }
        start += length
        box.isInRest = true
        return true
    }

    /// The connection is good for no further message, which no other connection can carry.
    func endedByProxy(_ box: ProxyTunnelBox) {
        // Nothing of the credential has been shown at this address.
        guard box.messages > 0 else { return tryElsewhere(Fault(.upstreamClosed, retry: .unsent)) }
        group.noteTLSFailure("the proxy has ended the connection under its handshake")
        lose(Fault(.proxyRefused, retry: .unsent))
    }
}

extension ProxyTunnelBox {
    /// Nil where none is under way.
    fileprivate func handshake(of plan: UpstreamPlan) -> (any ProxyHandshake)? {
        conversation == nil ? nil : plan.proxy?.credential?.handshake
    }

    /// The message that was made last is the one that the proxy judges the credential by.
    fileprivate func isJudged(_ handshake: any ProxyHandshake) -> Bool { messages > handshake.openingMessages }

    fileprivate var question: String { machine.connects ? "CONNECT" : "a HEAD" }
}

extension Fault {
    /// There is no message for the proxy on the way.
    fileprivate init(ofProxy failure: GrantFailure) {
        let kind: Kind =
            switch failure {
            case .secretUnreadable: .secretUnreadable
            case .secretUnusable: .secretUnusable
            case .credentialRejected: .quarantined
            case .configuration: .identityMisconfigured
            case .timedOut: .tokenTimeout
            case .issuerAnswerInvalid: .proxyRefused
            default: .issuerUnavailable
            }
        self.init(kind, retry: .unsent, detail: "for the proxy on the way: \(failure.toldToCallers)")
    }
}
