internal import CLinux
internal import Glibc
internal import Reactor
internal import TLS

/// Who uses an upstream connection right now: an exchange of a caller, or a call to an issuer.
protocol UpstreamUser: AnyObject {
    /// The connection is ready to take a request.
    func upstreamConnected(_ connection: UpstreamConnection)
    /// Bytes, or the end of them, may be read; output may have drained.
    func upstreamReady(_ connection: UpstreamConnection)
    /// The connection is lost. It has been torn down and must not be used again.
    func upstreamLost(_ connection: UpstreamConnection, _ fault: Fault)
    /// Its deadline passed; the user decides what that means.
    func upstreamTimedOut(_ connection: UpstreamConnection)
}

/// One connection to an upstream or an issuer: connects, does the TLS handshake, then carries one request at a time, and between
/// requests waits in its group's pool.
final class UpstreamConnection: Stream {
    // Unchecked, as in `CallerConnection`: groups live as long as their loop.
    unowned(unsafe) let group: UpstreamGroup
    private(set) var state = State.connecting
    weak var user: (any UpstreamUser)?
    /// It has carried a request before: a loss before the first byte of an answer may be a stale connection.
    private(set) var isPooled = false
    var requests = 0
    /// The address it was connected to, for the access record.
    private(set) var address: SocketAddress?
    private var untried: [SocketAddress] = []
    private var lastFault = Fault(.upstreamRefused, retry: .unsent)

    enum State { case connecting, handshaking, busy, idle, closed }

    enum Deadline { static let connect: UInt8 = 1, idle: UInt8 = 2, user: UInt8 = 3 }

    init(group: UpstreamGroup, user: any UpstreamUser) {
        self.group = group
        self.user = user
        super.init(loop: group.loop, buffers: group.buffers)
        loop.adopt(self)
        // From here on, so that waiting for the resolver is bounded too.
        expect(by: loop.now + group.plan.connectTimeout, kind: Deadline.connect)
    }

    // MARK: - Connecting

    /// Tries the addresses in order until one takes the connection.
    func connect(to addresses: [SocketAddress]) {
        untried = addresses.reversed()
        tryNext()
    }

    private func tryNext() {
        while let address = untried.popLast() {
            let descriptor = loop.kernel.socket(family: address.socketFamily)
            guard descriptor >= 0 else {
                lastFault = Fault(.tooManyConnections, retry: .unsent, retryAfter: 1)
                continue
            }
            if address.family != .unix { loop.kernel.setNoDelay(descriptor) }
            let result = loop.kernel.connect(descriptor, to: address)
            // A unix socket whose backlog is full says EAGAIN and means it: nothing is in progress.
            guard result == 0 || result == -EINPROGRESS else {
                loop.kernel.close(descriptor)
                lastFault = Fault(.upstreamRefused, retry: .unsent)
                continue
            }
            guard loop.watch(self, descriptor: descriptor) else {
                loop.kernel.close(descriptor)
                lastFault = Fault(.outOfMemory, retry: .unsent)
                continue
            }
            self.address = address
            state = .connecting
            return
        }
        lose(lastFault)
    }

    private func connected() {
        guard group.plan.usesTLS else { return becomeReady() }
        do {
            tls = try group.makeTLS(descriptor: descriptor)
        } catch {
            return lose(Fault(.upstreamTLS, retry: .unsent, detail: nil))
        }
        state = .handshaking
        advanceHandshake()
    }

    private func advanceHandshake() {
        guard let tls else { return }
        switch tls.handshake() {
        case .done: becomeReady()
        case .wantsRead: canRead = false
        case .wantsWrite: canWrite = false
        case .failed(let fault):
            group.noteTLSFailure(fault)
            lose(Fault(.upstreamTLS, retry: .unsent))
        }
    }

    private func becomeReady() {
        state = .busy
        canWrite = true
        expectNothing()
        user?.upstreamConnected(self)
    }

    // MARK: - Events

    override func ready(_ readiness: Readiness) {
        note(readiness)
        switch state {
        case .connecting:
            guard !readiness.isDisjoint(with: [.writable, .failed, .hungUp]) else { return }
            let error = loop.kernel.socketError(descriptor)
            if error != 0 || readiness.contains(.failed) {
                loop.closeDescriptor(of: self)
                canRead = false
                canWrite = false
                inputEndSeen = false
                lastFault = Fault(error == ETIMEDOUT ? .upstreamConnectTimeout : .upstreamRefused, retry: .unsent)
                return tryNext()
            }
            guard readiness.contains(.writable) else { return }
            connected()
        case .handshaking:
            advanceHandshake()
        case .busy:
            if !flush() { abandonOutput() }
            user?.upstreamReady(self)
        case .idle:
            // Whatever arrives on an idle connection, the end or bytes that nobody asked for, ends its use.
            if canRead { group.discard(self) }
        case .closed:
            break
        }
    }

    override func deadlinePassed(_ kind: UInt8) {
        switch kind {
        case Deadline.connect: lose(Fault(.upstreamConnectTimeout, retry: .unsent))
        case Deadline.idle: group.discard(self)
        default: user?.upstreamTimedOut(self)
        }
    }

    /// Ends the connection and tells its user.
    func lose(_ fault: Fault) {
        guard state != .closed else { return }
        let user = self.user
        close()
        user?.upstreamLost(self, fault)
    }

    func close() {
        guard state != .closed else { return }
        state = .closed
        user = nil
        group.open -= 1
        tearDown()
    }

    // MARK: - Reuse

    /// Every precondition of giving this connection to another request, in one place.
    func mayBeReused(answerComplete: Bool, requestComplete: Bool, persistent: Bool) -> Bool {
        guard state == .busy else { return false }
        guard answerComplete, requestComplete, persistent else { return false }
        // Bytes behind the answer would be taken for the next one.
        guard start == end else { return false }
        guard !hasPending, !outputLost else { return false }
        guard !inputEnded, !inputEndSeen else { return false }
        guard requests < group.plan.requestsPerConnection else { return false }
        return isDrained()
    }

    /// Nothing has been sent on it, so whoever takes it next is its first user.
    var isUntouched: Bool { state == .busy && requests == 0 && start == end && !hasPending && !inputEndSeen }

    /// Whether the socket holds nothing more. A read that filled the block exactly leaves that open, and its edge has been told: bytes
    /// behind the answer would greet the next request as its own.
    private func isDrained() -> Bool {
        if let tls {
            if tls.hasBufferedInput { return false }
            guard canRead else { return true }
            guard case .wantsRead = tls.read(into: buffers.record) else { return false }
            canRead = false
            return true
        }
        guard canRead else { return true }
        let count = loop.kernel.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: buffers.record[..<1]))
        canRead = false
        return count == Int(-EAGAIN)
    }

    func becomeIdle(until deadline: UInt64) {
        state = .idle
        user = nil
        releaseEmptyBlock()
        expect(by: deadline, kind: Deadline.idle)
    }

    func takeUp(_ user: any UpstreamUser) {
        state = .busy
        isPooled = true
        self.user = user
        expectNothing()
    }
}
