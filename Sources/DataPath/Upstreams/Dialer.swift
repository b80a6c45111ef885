internal import Glibc
internal import Reactor

/// Makes one connection to one of several addresses: the interpreter of `HappyEyeballs`. Each attempt has a socket of its own; the
/// winner's goes to the connection that asked, the others are closed.
final class Dialer: Watched {
    private let candidates: [UpstreamAddress]
    private var machine: HappyEyeballs
    private var attempts: [Attempt?]
    private var timer: TimerID?
    private var fault = Fault(.upstreamRefused, retry: .unsent)
    private unowned let connection: UpstreamConnection
    private var pending: [HappyEyeballs.Event] = []
    private var isInterpreting = false

    /// - Parameter candidates: in the order in which to try them; not empty.
    init(_ candidates: [UpstreamAddress], for connection: UpstreamConnection) {
        self.candidates = candidates
        self.connection = connection
        machine = HappyEyeballs(candidates: candidates.count)
        attempts = Array(repeating: nil, count: candidates.count)
        super.init(loop: connection.loop)
        loop.adopt(self)
    }

    func begin() { take(.begun) }

    /// Closes every attempt.
    /// - Parameter timedOut: they had their time, and their addresses answer for it.
    func end(timedOut: Bool) {
        if timedOut {
            for (index, attempt) in attempts.enumerated() where attempt != nil { blame(index) }
        }
        take(.ended)
        retire()
    }

    override func timerFired(_ kind: UInt8) {
        timer = nil
        take(.delayPassed)
    }

    // MARK: - Interpreting

    /// Takes events one after the other: an action may fail at once, and the event of that must find the machine at rest.
    private func take(_ event: HappyEyeballs.Event) {
        pending.append(event)
        guard !isInterpreting else { return }
        isInterpreting = true
        defer { isInterpreting = false }
        while !pending.isEmpty {
            for action in machine.on(pending.removeFirst(), at: loop.now) { perform(action) }
        }
    }

    private func perform(_ action: HappyEyeballs.Action) {
        switch action {
        case .connect(let index): connect(index)
        case .wait(let time):
            if let timer { loop.disarm(timer) }
            timer = loop.arm(self, at: time, kind: 0)
        case .abandon(let index, let overtaken):
            if overtaken { blame(index) }
            drop(index)
        case .won(let index): win(index)
        case .lost:
            retire()
            connection.dialingFailed(fault)
        }
    }

    private func connect(_ index: Int) {
        let address = candidates[index].address
        let descriptor = loop.kernel.socket(family: address.socketFamily)
        guard descriptor >= 0 else {
            // Our own shortage says nothing of the address.
            fault = Fault(.tooManyConnections, retry: .unsent, retryAfter: 1)
            return take(.failed(index))
        }
        if address.family != .unix { loop.kernel.setNoDelay(descriptor) }
        let result = loop.kernel.connect(descriptor, to: address)
        // A unix socket whose backlog is full says EAGAIN and means it: nothing is in progress.
        guard result == 0 || result == -EINPROGRESS else {
            loop.kernel.close(descriptor)
            return refuse(index, -result)
        }
        let attempt = Attempt(dialer: self, index: index)
        guard loop.watch(attempt, descriptor: descriptor) else {
            loop.kernel.close(descriptor)
            fault = Fault(.outOfMemory, retry: .unsent)
            return take(.failed(index))
        }
        set(attempt, at: index)
    }

    fileprivate func ready(_ attempt: Attempt, _ readiness: Readiness) {
        guard !readiness.isDisjoint(with: [.writable, .failed, .hungUp]) else { return }
        let error = loop.kernel.socketError(attempt.descriptor)
        if error != 0 || readiness.contains(.failed) {
            drop(attempt.index)
            return refuse(attempt.index, error)
        }
        guard readiness.contains(.writable) else { return }
        take(.connected(attempt.index))
    }

    private func refuse(_ index: Int, _ error: Int32) {
        blame(index)
        fault = Fault(error == ETIMEDOUT ? .upstreamConnectTimeout : .upstreamRefused, retry: .unsent)
        take(.failed(index))
    }

    private func win(_ index: Int) {
        guard let attempt = attempts[index] else { return }
        set(nil, at: index)
        let others = machine.unfailed(but: index).map { candidates[$0] }
        retire()
        connection.dialed(attempt, at: candidates[index], others: others)
    }

    private func blame(_ index: Int) {
        connection.refusedBy = candidates[index]
        connection.group.failed(candidates[index], .connect)
    }

    private func drop(_ index: Int) {
        guard let attempt = attempts[index] else { return }
        set(nil, at: index)
        loop.close(attempt)
    }

    /// The one place where attempts come and go: their addresses are busy with them.
    private func set(_ attempt: Attempt?, at index: Int) {
        candidates[index].inFlight += (attempt == nil ? 0 : 1) - (attempts[index] == nil ? 0 : 1)
        attempts[index] = attempt
    }

    private func retire() {
        if let timer { loop.disarm(timer) }
        timer = nil
        loop.close(self)
    }
}

/// A socket on its way to one address.
final class Attempt: Watched {
    // A cycle until the dialer lets go of the attempt: it must outlive the event in which it wins.
    private let dialer: Dialer
    let index: Int

    init(dialer: Dialer, index: Int) {
        self.dialer = dialer
        self.index = index
        super.init(loop: dialer.loop)
    }

    override func ready(_ readiness: Readiness) { dialer.ready(self, readiness) }
}
