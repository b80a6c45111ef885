import Gateway
import Glibc
import Reactor
import Telemetry

/// The old process's side of an upgrade in place: carries out what `UpgradeMachine` decides. On the main thread.
struct Upgrade {
    private let gateway: Gateway
    private let waiter: SignalWaiter
    /// Nil with the reason why this process cannot be upgraded.
    private let launcher: Launcher?
    private let obstacle: String
    private let systemd: SystemdNotice?
    /// Nanoseconds that the new process has until it is ready.
    var patience: UInt64

    private var machine = UpgradeMachine()
    private var channel: HandOverChannel?
    private var process: Int32 = 0
    private(set) var deadline: UInt64?
    private let storeIsReleased = Latch()

    /// The time that the new process needs to end after it was killed. Nanoseconds.
    private static let deathPatience: UInt64 = 5_000_000_000

    init(
        gateway: Gateway, waiter: SignalWaiter, launcher: Launcher?, obstacle: String, systemd: SystemdNotice?,
        patience: UInt64
    ) {
        self.systemd = systemd
        self.gateway = gateway
        self.waiter = waiter
        self.launcher = launcher
        self.obstacle = obstacle
        self.patience = patience
        if let launcher { waiter.attend(launcher.descriptor) }
    }

    /// A reload has to wait.
    var isBusy: Bool { machine.isBusy }

    /// The process that serves now; nil as long as it is this one.
    var successor: Int32? { machine.state == .over ? process : nil }

    // MARK: - Events

    mutating func ask() {
        guard launcher != nil else { return refuse(obstacle) }
        perform(machine.on(.asked))
    }

    mutating func timePassed(_ now: UInt64) {
        guard let deadline, now >= deadline else { return }
        self.deadline = nil
        perform(machine.on(.timePassed))
    }

    /// This process ends: no other one may come up behind it.
    mutating func ending() {
        perform(machine.on(.ending))
        if let launcher { waiter.leave(launcher.descriptor) }
    }

    /// Something may have come from the launcher, the new process or the store's thread.
    mutating func look() {
        if storeIsReleased.take() { perform(machine.on(.storeReleased)) }
        while let channel {
            switch channel.receive(waits: false) {
            case .nothing: return lookAtLauncher()
            case .end:
                waiter.leave(channel.descriptor)
                self.channel = nil
                // Its parent may know more already.
                lookAtLauncher()
                perform(machine.on(.hungUp))
            case .message(let message): hear(message)
            }
        }
        lookAtLauncher()
    }

    private mutating func hear(_ message: HandOverChannel.Message) {
        for descriptor in message.descriptors { Glibc.close(descriptor) }
        var lines = message.text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
        switch lines.removeFirst() {
        case Takeover.Word.store: perform(machine.on(.storeWanted))
        case Takeover.Word.prepared: perform(machine.on(.prepared(lines)))
        case Takeover.Word.failed: perform(machine.on(.failed(lines.joined(separator: "; "))))
        default: break
        }
    }

    private mutating func lookAtLauncher() {
        while let note = launcher?.next() {
            switch note {
            case .started(let process): self.process = process
            case .cannotStart(let code):
                perform(machine.on(.cannotStart("\(Launcher.program): \(String(cString: strerror(code)))")))
            case .ended(let status):
                perform(machine.on(.ended("the new process ended with \(ChildProcess.exitStatus(status))")))
            case .gone:
                if let launcher { waiter.leave(launcher.descriptor) }
                perform(machine.on(.launcherGone))
                return
            }
        }
    }

    // MARK: - Actions

    private mutating func perform(_ actions: [UpgradeMachine.Action]) {
        for action in actions {
            switch action {
            case .refuse(let reason): refuse(reason)
            case .launch: launch()
            case .releaseStore:
                gateway.releaseStore { [waiter, storeIsReleased] in
                    storeIsReleased.set()
                    waiter.wake()
                }
            case .giveStore: channel?.send(Takeover.Word.store)
            case .serve(let addresses):
                gateway.leave(addresses)
                // Before the new process speaks for itself: only the main process is listened to.
                systemd?.ready("serving \(gateway.addresses.joined(separator: ", "))", process: process)
                channel?.send(Takeover.Word.serve)
                forgetChannel()
            case .kill:
                channel?.send(Takeover.Word.end)
                launcher?.kill()
            case .takeBack: gateway.takeStoreBack()
            case .report(let reason):
                forgetChannel()
                gateway.events.error("upgrade failed", [LogField("reason", .name(reason))])
            case .wait(.untilReady): deadline = SignalWaiter.now + patience
            case .wait(.untilDead): deadline = SignalWaiter.now + Self.deathPatience
            case .stopWaiting: deadline = nil
            }
        }
    }

    private func refuse(_ reason: String) {
        gateway.events.warn("upgrade refused", [LogField("reason", .name(reason))])
    }

    private mutating func launch() {
        guard let launcher, let sockets = gateway.socketsToHandOver(), let (ours, theirs) = HandOverChannel.make()
        else {
            return perform(machine.on(.cannotStart("no channel to a new process")))
        }
        gateway.events.info("upgrade begins", [LogField("program", .name(Launcher.program))])
        _ = storeIsReleased.take()
        channel = ours
        waiter.attend(ours.descriptor)
        guard Takeover.send(sockets, over: ours) else {
            theirs.close()
            return perform(machine.on(.cannotStart("the sockets cannot be sent")))
        }
        guard launcher.launch(with: theirs) else { return perform(machine.on(.cannotStart("the launcher was killed"))) }
    }

    private mutating func forgetChannel() {
        if let channel { waiter.leave(channel.descriptor) }
        channel = nil
    }
}
