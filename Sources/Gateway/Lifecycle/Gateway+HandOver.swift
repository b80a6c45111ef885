internal import DataPath
internal import Glibc
internal import Keeping
internal import Reactor
internal import Synchronization
internal import Telemetry
internal import TokenStore
internal import World

/// A listening socket on its way to another process.
public struct HandedSocket: Sendable {
    /// The address as configured; for a spare socket, the one that it is bound to.
    public var address: String
    /// Open and listening; whoever gets it closes it.
    public var descriptor: Int32
    /// Whether nobody is served there: a service manager may have brought more sockets than the configuration names.
    public var isSpare: Bool

    /// Memberwise.
    public init(address: String, descriptor: Int32, isSpare: Bool = false) {
        self.address = address
        self.descriptor = descriptor
        self.isSpare = isSpare
    }
}

/// The calls that an upgrade makes on the gateways of the old and the new process, all on a thread that is no loop. `UpgradeMachine`
/// orders those on the old one.
extension Gateway {
    /// Every listening socket, the admin's and unused ones too, each once. They stay ours.
    /// - Returns: nil when a loop does not answer.
    public func socketsToHandOver() -> [HandedSocket]? {
        var sockets = inherited.rest
        for (index, loop) in loops.enumerated() {
            let found = loop.value.loop.ask { loop.value.listeningSockets }
            guard let found else { return nil }
            // Every loop has a copy of a shared socket: the first loop's is enough.
            sockets += found.filter { index == 0 || !$0.isShared }.map {
                HandedSocket(address: "\($0.address)", descriptor: $0.descriptor)
            }
        }
        let servers = adminServers.withLock { $0 }
        guard let doors = keeperLoop.ask({ servers.flatMap(\.sockets) }) else { return nil }
        return sockets + doors.map { HandedSocket(address: "\($0.address)", descriptor: $0.descriptor) }
    }

    /// Stops granting, ends what is under way, and closes the store.
    /// - Parameter completion: called once on some thread, unless the store is taken back before.
    public func releaseStore(_ completion: @escaping @Sendable () -> Void) {
        let (keeper, store) = (self.keeper, self.store)
        _ = keeperLoop.post {
            keeper.assumeIsolated { keeper in
                keeper.stopGranting {
                    guard let store else { return completion() }
                    store.release(completion: completion)
                }
            }
        }
    }

    /// The other process is gone: the store is ours again, and grants are made.
    public func takeStoreBack() {
        let keeper = self.keeper
        // First: a flight that ends between the opening and the grants would still give the store away.
        _ = keeperLoop.ask { keeper.assumeIsolated { $0.keepStore() } }
        var state: StoreHealth.State?
        var rows: [StoredRow] = []
        if let store {
            let opening = reopen(store)
            switch opening {
            case .owner, .setAside: state = .serving
            case .degraded(let reason): state = .degraded(reason)
            case .lockedByAnother: state = .locked("another process owns \(store.path)")
            case .unknownKey, .notOurs, .newer: state = .refused("the other process left it as \(opening)")
            }
            rows = store.restore()
            if state != .serving {
                events.error("store not taken back", [LogField("reason", .name("\(opening)"))])
            }
        }
        let (stateNow, rowsNow) = (state, rows)
        _ = keeperLoop.ask { keeper.assumeIsolated { $0.grantAgain(rowsNow, stateNow) } }
    }

    /// A process that was killed gives its lock up a moment after its sockets.
    private func reopen(_ store: TokenStore) -> StoreOpening {
        for _ in 0..<100 {
            let opening = store.open(now: platform.time.wallMilliseconds())
            guard opening == .lockedByAnother else { return opening }
            platform.time.pause(milliseconds: 10)
        }
        return .lockedByAnother
    }

    /// The other process serves who comes to these addresses from now on. Who is connected stays here.
    public func leave(_ addresses: [String]) {
        let left = Set(addresses.compactMap { SocketAddress(parsing: $0) })
        for loop in loops { _ = loop.value.loop.ask { loop.value.leave(left) } }
        let servers = adminServers.withLock { $0 }
        _ = keeperLoop.ask { for server in servers { server.leave(left) } }
    }

    /// Addresses that this process serves or answers operators on.
    public var servedAddresses: [String] {
        let servers = adminServers.withLock { $0 }
        let doors = keeperLoop.ask { servers.flatMap(\.addresses) } ?? []
        return plan.listeners.map { "\($0.address)" } + doors.map { "\($0)" }
    }

    /// After `prepare`: whether the tokens that a start waits for are there.
    public func isPrepared() -> Bool {
        let (keeper, waitUntil) = (self.keeper, self.waitUntil)
        return keeperLoop.ask(milliseconds: 2000) {
            keeper.assumeIsolated { $0.awaited(strictly: $0.now > waitUntil) }.isEmpty
        } ?? false
    }
}
