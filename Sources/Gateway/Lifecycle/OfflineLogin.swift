public import Configuration
internal import DataPath
internal import Fleet
public import Keeping
internal import Reactor
internal import TokenStore

/// The same logins where no gateway runs: a keeper of its own on the store, without listeners.
public final class OfflineLogin: Sendable {
    private let loop: Loop
    private let keeper: Keeper
    private let opened: Gateway.OpenedStore
    /// The tier of the fleet that gets the session too; nil without `store.shared`.
    private let tier: RedisTier?

    /// - Throws: when the store cannot be had; `isInUse` says that another process has it.
    public init(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?
    ) throws(StoreRefusal) {
        guard configuration.store.path != nil else {
            throw StoreRefusal("no gateway runs, and without store.path what a login brings would be forgotten at once")
        }
        let shared: (fleet: KeptFleet, tier: RedisTier)?
        do throws(GatewayFault) {
            let detached = try DetachedKeeper(
                configuration, environment: environment, name: "login", persists: true)
            (loop, keeper, opened) = (detached.loop, detached.keeper, detached.opened)
            shared = detached.shared
            tier = shared?.tier
        } catch { throw StoreRefusal(error.description) }
        switch opened.state {
        case .serving: break
        case .locked(let reason):
            _ = opened.store?.close()
            throw StoreRefusal(reason, isInUse: true)
        case .none: throw StoreRefusal("there is no store")
        case .degraded(let reason), .refused(let reason):
            _ = opened.store?.close()
            throw StoreRefusal("the store cannot be used: \(reason)")
        }
        let keeper = self.keeper
        let rows = opened.rows
        let (fleet, tier) = (shared?.fleet, self.tier)
        _ = loop.post {
            keeper.assumeIsolated { keeper in
                if let fleet { keeper.fleet = fleet }
                keeper.takeUpForLogin(rows)
            }
            tier?.start()
        }
        do {
            let running = loop
            try Platform.machine.start("login") { running.run() }
        } catch { throw StoreRefusal("\(error)") }
    }

    /// - Parameter redirectPort: the port on this machine that the browser is sent back to; nil where nothing listens.
    public func login(identity: String, redirectPort: UInt16?) -> LoginStart {
        ask { $0.beginLogin(identity, redirectPort: redirectPort) } ?? .refused("no answer")
    }

    /// Ends the login of the identity at its issuer and here.
    public func logout(identity: String) -> LoginStart { ask { $0.beginLogout(identity) } ?? .refused("no answer") }
    /// Nil when the flow is not known, or forgotten.
    public func loginReport(_ flow: String) -> LoginReport? { ask { $0.login(flow) } ?? nil }

    /// - Parameter query: of the address that the browser was sent back to.
    /// - Returns: nil when the flow is not known, or forgotten.
    public func loginRedirected(_ flow: String, query: String) -> RedirectReply? {
        ask { $0.redirected(flow, query) } ?? nil
    }

    /// Nil when the flow is not known, or forgotten.
    public func cancelLogin(_ flow: String) -> LoginReport? { ask { $0.cancelLogin(flow) } ?? nil }

    /// Commits what is queued and gives the store back.
    public func close() {
        if let tier { _ = loop.post { tier.stop() } }
        _ = opened.store?.close()
    }

    private func ask<Value: Sendable>(_ work: @escaping @Sendable (isolated Keeper) -> Value) -> Value? {
        let keeper = self.keeper
        return loop.ask { keeper.assumeIsolated(work) }
    }
}

extension Keeper {
    /// A login takes up the stored rows and sweeps those of identities that are not configured. Unlike a gateway's start it leaves
    /// stored access tokens alone.
    fileprivate func takeUpForLogin(_ rows: [StoredRow]) {
        restore(rows)
        sweep(rows)
    }
}
