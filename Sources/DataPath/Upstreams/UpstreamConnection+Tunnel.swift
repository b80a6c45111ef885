internal import HTTP1
internal import Handshakes
internal import Reactor

/// The way to a server with TLS through its group's proxy, before TLS begins: the interpreter of `ProxyTunnel`.
extension UpstreamConnection {
    /// Asks the proxy for a tunnel. What was learned of its challenge on a connection before this one counts on.
    func beginTunnel() {
        let box = ProxyTunnelBox(tunnel?.attempt ?? ProxyAttempt())
        tunnel = box
        let authority = group.plan.authority
        let line: [UInt8]
        do throws(SigningFault) {
            line = try group.tls.proxy.line(
                for: &box.attempt, on: self, method: "CONNECT", target: Array(authority.utf8))
        } catch {
            group.noteTLSFailure("the proxy's challenge cannot be answered: \(error.reason)")
            return lose(Fault(.proxyRefused, retry: .unsent))
        }
        let request = ProxyTunnel.request(authority: authority, credential: line)
        guard request.withUnsafeBytes({ send($0) }) else {
            return tryElsewhere(Fault(.upstreamRefused, retry: .unsent))
        }
    }

    /// Reads the proxy's answer.
    func advanceTunnel() {
        while state == .tunnelling, let tunnel, !tunnel.isWaiting {
            if tunnel.isInRest, passOverRest(tunnel) { continue }
            switch end > start && !tunnel.isInRest ? tunnel.machine.judge(input.octets) : .needsMore {
            case .open(let length): return enterTunnel(tunnel, behind: length)
            case .skip(let length): start += length
            case .refused(let status, let length):
                guard refused(status, head: length, tunnel) else { return }
            case .broken: return lose(Fault(.upstreamGarbage, retry: .unsent))
            case .needsMore:
                compact()
                switch fill() {
                case .bytes: continue
                case .notNow: return releaseEmptyBlock()
                case .noBuffer: return lose(Fault(.outOfMemory, retry: .unsent, retryAfter: 1))
                case .ended, .truncated, .failed, .blockFull:
                    if tunnel.conversation != nil { return endedByProxy(tunnel) }
                    guard tunnel.isInRest else { return tryElsewhere(Fault(.upstreamClosed, retry: .unsent)) }
                    return askAgainElsewhere()
                }
            }
        }
    }

    private func enterTunnel(_ tunnel: ProxyTunnelBox, behind length: Int) {
        let told = tunnel.machine.values(of: "Proxy-Authentication-Info", in: input)
        guard group.tls.proxy.passed(&tunnel.attempt, told) else {
            group.noteTLSFailure("the proxy's Proxy-Authentication-Info does not prove that it knows the password")
            return lose(Fault(.upstreamUnproven, retry: .unsent))
        }
        start += length
        self.tunnel = nil
        releaseEmptyBlock()
        beginTLS()
    }

    /// - Returns: whether there is more to read.
    private func refused(_ status: Int, head length: Int, _ tunnel: ProxyTunnelBox) -> Bool {
        var reason = ""
        if tunnel.conversation != nil { return judgeHandshake(status, head: length, tunnel) }
        if status == 407 {
            let challenges = tunnel.machine.values(of: "Proxy-Authenticate", in: input)
            if let refusal = group.tls.proxy.challenged(challenges, by: self, &tunnel.attempt) {
                reason = refusal
            } else if tunnel.machine.beginRest() {
                start += length
                tunnel.isInRest = true
                return true
            } else {
                askAgainElsewhere()
                return false
            }
        }
        group.noteTLSFailure("the proxy answered CONNECT with \(status)\(reason)")
        lose(Fault(.proxyRefused, retry: .unsent, receivedStatus: status))
        return false
    }

    /// - Returns: whether the tunnel has gone on, in whatever way.
    private func passOverRest(_ tunnel: ProxyTunnelBox) -> Bool {
        guard let step = tunnel.machine.passOver(input) else {
            askAgainElsewhere()
            return true
        }
        start += step.length
        guard step.isOver else { return false }
        // Bytes that stand there already would be read as the answer to a question that was not asked yet.
        guard end == start else {
            askAgainElsewhere()
            return true
        }
        if tunnel.conversation != nil { goOnWithProxy(tunnel) } else { beginTunnel() }
        return true
    }

    /// Answers the challenge on another connection to the same proxy.
    private func askAgainElsewhere() {
        if let tunnel, tunnel.conversation != nil { return endedByProxy(tunnel) }
        guard let address else { return lose(Fault(.upstreamClosed, retry: .unsent)) }
        redial([address])
    }
}

/// A box for the machine: a class cannot hold what is noncopyable and optional.
final class ProxyTunnelBox {
    var machine: ProxyTunnel
    /// The body of a refusal is passed over; an answer to its challenge follows.
    var isInRest = false
    var attempt: ProxyAttempt
    /// The messages that authenticate the connection; nil: each request has its own answer.
    var conversation: (any ProxyConversation)?
    /// Messages of ours that have been made.
    var messages = 0
    /// The proxy's message that is not answered yet, in base64.
    var received: [UInt8]?
    /// The next message is being made.
    var isWaiting = false
    /// The field with the message that the next request on the connection carries, and its CRLF.
    var line: [UInt8] = []

    init(_ attempt: ProxyAttempt = ProxyAttempt(), connects: Bool = true) {
        self.attempt = attempt
        machine = ProxyTunnel(connects: connects)
    }
}
