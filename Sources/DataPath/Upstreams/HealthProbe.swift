internal import HTTP1
internal import Reactor

/// A check of one address: a GET on a connection of its own, of whose answer only the status counts. No identity has a part in it, so the
/// request carries no credential beyond what TLS and the proxy on the way are configured to show.
final class HealthProbe: UpstreamUser {
    private let plan: HealthPlan
    private let group: UpstreamGroup
    private let deadline: UInt64
    private var completion: ((Outcome) -> Void)?
    private var connection: UpstreamConnection?
    private var head: ResponseHead
    private var interim = 0
    private var attempt = ProxyAttempt()
    /// Keeps itself alive until the outcome, also while no connection holds it.
    private var itself: HealthProbe?

    /// The judgement of an address by one check.
    enum Outcome {
        case fit
        /// The text says why it is not fit.
        case unfit(String)
        /// The gateway had no room for a connection: descriptors, memory.
        case unknown
    }

    /// Bytes of an answer's head at most.
    private static let limits = HeadLimits()
    private static let headTooLarge = "the answer's head is too large"

    init(_ plan: HealthPlan, group: UpstreamGroup, completion: @escaping (Outcome) -> Void) {
        self.plan = plan
        self.group = group
        self.completion = completion
        deadline = group.loop.now + plan.timeout
        head = ResponseHead(maxFields: Self.limits.fields)
    }

    func start() {
        itself = self
        let connection = group.take(for: self, fresh: true, wanting: attempt.home)
        self.connection = connection
        if connection.state == .busy { upstreamConnected(connection) }
    }

    func cancel() {
        completion = nil
        close()
    }

    // MARK: - The connection's events

    func upstreamConnected(_ connection: UpstreamConnection) {
        connection.expectForUser(by: deadline)
        connection.requests += 1
        guard var message = request() else { return end(.unfit("the proxy's challenge cannot be answered")) }
        guard message.withUnsafeMutableBytes({ connection.sendHead(ownRequest: $0) }) else {
            return end(.unfit("closed"))
        }
        if connection.canRead { upstreamReady(connection) }
    }

    func upstreamReady(_ connection: UpstreamConnection) {
        while completion != nil, self.connection === connection {
            if connection.end > connection.start {
                do throws(HeadFault) {
                    head.reset()
                    if let length = try head.parse(connection.input.octets, limits: Self.limits) {
                        if judged(length, connection) { return }
                        continue
                    }
                } catch {
                    return end(.unfit(error.isOfSize ? Self.headTooLarge : "not an HTTP answer"))
                }
            }
            switch connection.fill() {
            case .bytes: continue
            case .notNow: return
            case .blockFull
            where connection.end < Self.limits.headSize
                && connection.growBlock(to: min(connection.end * 4, Self.limits.headSize)):
                continue
            case .blockFull where connection.end >= Self.limits.headSize: return end(.unfit(Self.headTooLarge))
            case .blockFull, .noBuffer: return end(.unknown)
            case .ended, .truncated, .failed: return end(.unfit("closed without an answer"))
            }
        }
    }

    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault) {
        self.connection = nil
        let reason =
            switch fault.kind {
            case .upstreamRefused: "connection refused"
            case .upstreamConnectTimeout: "not connected in time"
            case .upstreamUnresolvable: "the name does not resolve"
            case .upstreamTLS, .secretUnreadable, .proxyRefused, .issuerUnavailable, .issuerAnswerInvalid, .quarantined,
                .identityMisconfigured, .secretUnusable, .tokenTimeout:
                group.outage.tlsFailure ?? "TLS failed"
            case .tooManyConnections, .upstreamBusy, .outOfMemory: nil as String?
            default: "closed without an answer"
            }
        end(reason.map { .unfit($0) } ?? .unknown)
    }

    func upstreamTimedOut(_ connection: UpstreamConnection) { end(.unfit("no answer in time")) }

    /// The proxy on the way wants an answer.
    private func askAgain(instead connection: UpstreamConnection) {
        connection.user = nil
        connection.close()
        start()
    }

    /// - Returns: whether nothing more is read here.
    private func judged(_ length: Int, _ connection: UpstreamConnection) -> Bool {
        if head.status < 200 {
            interim += 1
            guard interim < 16, head.status != 101 else {
                end(.unfit("not an HTTP answer"))
                return true
            }
            connection.start += length
            return false
        }
        if group.plan.isReadByProxy {
            let bytes = UnsafeRawBufferPointer(rebasing: connection.input[..<length])
            if head.status == 407 {
                let challenges = head.values(of: "Proxy-Authenticate", in: bytes)
                if let reason = group.tls.proxy.challenged(challenges, by: connection, &attempt) {
                    end(.unfit("the proxy answered 407\(reason)"))
                } else {
                    askAgain(instead: connection)
                }
                return true
            }
            guard group.tls.proxy.passed(&attempt, head.values(of: "Proxy-Authentication-Info", in: bytes)) else {
                end(.unfit("the proxy does not prove that it knows the password"))
                return true
            }
        }
        end(plan.isGood(head.status) ? .fit : .unfit("status \(head.status)"))
        return true
    }

    private func end(_ outcome: Outcome) {
        let completion = completion
        self.completion = nil
        close()
        completion?(outcome)
    }

    /// The body is not read: the connection is worth nothing after this.
    private func close() {
        connection?.close()
        connection = nil
        // The next check is to connect anew: a shared connection that stayed would serve it.
        group.retire()
        itself = nil
    }

    /// - Returns: nil where the proxy's challenge cannot be answered.
    private func request() -> [UInt8]? {
        let isProxied = group.plan.isReadByProxy
        let target = isProxied ? group.plan.origin + plan.path : plan.path
        var line: [UInt8] = []
        if isProxied {
            guard
                let made = try? group.tls.proxy.line(
                    for: &attempt, on: connection, method: "GET", target: Array(target.utf8))
            else {
                return nil
            }
            line = made
        }
        let text = "GET \(target) HTTP/1.1\r\nHost: \(plan.host)\r\nUser-Agent: cardea-health\r\nAccept: */*\r\n"
        return Array(text.utf8) + line + [13, 10]
    }
}
