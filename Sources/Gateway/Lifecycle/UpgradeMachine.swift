/// An upgrade in place, as the old process decides over it: whose the store is, when the new process may serve, and what becomes of one
/// that fails. Events in, actions out; it knows neither processes nor clocks.
///
///     asked ── starting ── quieting ── away ── over
///                  └──────────┴─────────┴── failing ── (as before)
///
/// Up to `away` the old process is the one that accepts callers; from `serve` on it is the new one. There is no moment with two, and none
/// in which a failure of the new one costs a caller more than a 503 for a token that nobody holds.
public struct UpgradeMachine: Sendable {
    /// How far the upgrade is.
    public enum State: Equatable, Sendable {
        case none
        /// The new process reads its configuration and takes up the sockets.
        case starting
        /// The new process asked for the store; the flights of this process end first.
        case quieting
        /// The store is with it.
        case away
        /// The new process hung up: the launcher, its parent, will tell how it ended.
        case parting(gaveStore: Bool)
        /// The new process has to be dead before anything is taken back.
        case failing(String, gaveStore: Bool)
        /// The new process was told to serve.
        case over
    }

    /// An event that the process has seen.
    public enum Event: Equatable, Sendable {
        /// The operator's signal.
        case asked
        case cannotStart(String)
        case storeWanted
        case storeReleased
        /// The new process could serve now, on these addresses.
        case prepared([String])
        /// The reason that the new process gives for its failure.
        case failed(String)
        /// The new process closed its end of the channel.
        case hungUp
        /// The new process is dead; the text says how it ended.
        case ended(String)
        case launcherGone
        case timePassed
        /// This process is to end.
        case ending
    }

    /// Orders for the process, in this order.
    public enum Action: Equatable, Sendable {
        case refuse(String)
        case launch
        case releaseStore
        case giveStore
        /// Leave these addresses, then let it serve.
        case serve([String])
        case kill
        /// Open the store and grant again.
        case takeBack
        case report(String)
        /// A time after which nothing more is waited for: the whole of it, or the end of a process that was killed.
        case wait(Wait)
        case stopWaiting
    }

    /// How long an upgrade may stay in a state.
    public enum Wait: Equatable, Sendable { case untilReady, untilDead }

    /// Changed by `on` alone.
    public private(set) var state = State.none
    /// The first reason that the new process gave for its failure; it tells more than how the process ended.
    private var lastWords: String?
    /// The launcher is dead: nobody sees the new process's end, and its hanging up has to do.
    private var isOrphan = false

    /// A machine without an upgrade under way.
    public init() {}

    /// Whether an upgrade is under way or over: the configuration must stay as it was handed over.
    public var isBusy: Bool { state != .none }

    /// Takes one event; those that do not fit the state change nothing.
    public mutating func on(_ event: Event) -> [Action] {
        switch (state, event) {
        case (.none, .asked):
            state = .starting
            lastWords = nil
            return [.launch, .wait(.untilReady)]
        case (_, .asked): return [.refuse("an upgrade is under way")]
        case (.none, _), (.over, _): return []
        case (.failing(let reason, _), .ended), (.failing(let reason, _), .timePassed): return end(reason)
        case (.failing(let reason, _), .hungUp) where isOrphan: return end(reason)
        case (.failing, .ending): return leave()
        case (.failing, .launcherGone):
            isOrphan = true
            return []
        case (.failing, _): return []
        case (_, .cannotStart(let reason)): return end(reason)
        case (.starting, .storeWanted):
            state = .quieting
            return [.releaseStore]
        case (.quieting, .storeReleased):
            state = .away
            return [.giveStore]
        case (.away, .prepared(let addresses)):
            state = .over
            return [.stopWaiting, .serve(addresses)]
        case (_, .failed(let reason)):
            lastWords = lastWords ?? reason
            return []
        case (_, .ended(let how)): return end(how)
        case (.parting, .timePassed): return fail("the new process hung up")
        case (.parting, .hungUp): return []
        case (_, .hungUp):
            state = .parting(gaveStore: gaveStore)
            return [.wait(.untilDead)]
        case (_, .launcherGone):
            isOrphan = true
            return fail("the launcher was killed")
        case (_, .timePassed): return fail("the new process was not ready in time")
        case (_, .ending): return leave()
        case (_, .storeWanted), (_, .storeReleased), (_, .prepared): return []
        }
    }

    private var gaveStore: Bool {
        switch state {
        case .quieting, .away: true
        case .parting(let gaveStore), .failing(_, let gaveStore): gaveStore
        case .none, .starting, .over: false
        }
    }

    private mutating func fail(_ reason: String) -> [Action] {
        state = .failing(reason, gaveStore: gaveStore)
        return [.kill, .wait(.untilDead)]
    }

    private mutating func end(_ reason: String) -> [Action] {
        let gaveStore = gaveStore
        state = .none
        isOrphan = false
        return [.stopWaiting] + (gaveStore ? [.takeBack] : []) + [.report(lastWords ?? reason)]
    }

    private mutating func leave() -> [Action] {
        state = .none
        return [.stopWaiting, .kill, .report("this process was told to end")]
    }
}
