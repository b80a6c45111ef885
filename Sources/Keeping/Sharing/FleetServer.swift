internal import Fleet

/// Whether the server of a fleet can be used, as its connection and its answers tell.
struct FleetServer: Sendable {
    enum State: Equatable {
        case connecting, serving
        case degraded(String)
    }

    private var connection = State.connecting
    /// The last answer that was none, or value that could not be opened, as where somebody else writes there. The connection stands, so that
    /// nothing tells when it is over: operators hear of it for a while.
    private var spoiled: (reason: String, until: UInt64)?

    /// How long an answer that was none counts, in nanoseconds.
    static let spoiledTime: UInt64 = 60_000_000_000

    /// - Parameter now: nanoseconds of the loop's clock.
    func state(at now: UInt64) -> State {
        guard connection == .serving, let spoiled, now < spoiled.until else { return connection }
        return .degraded(spoiled.reason)
    }

    /// There has been no connection yet, and no try has failed.
    var isNew: Bool { connection == .connecting }

    /// A change that operators are told of.
    enum Turn: Equatable { case connected, worksAgain }

    mutating func connected() -> Turn? {
        defer { (connection, spoiled) = (.serving, nil) }
        return switch connection {
        case .connecting: .connected
        case .serving: nil
        case .degraded: .worksAgain
        }
    }

    /// - Parameter isLost: the connection is gone with it.
    /// - Returns: the reason, where the server has worked until now.
    mutating func failed(_ fault: SharedFault, at now: UInt64, isLost: Bool = false) -> String? {
        if fault.kind == .invalid, connection == .serving, !isLost {
            let (until, _) = now.addingReportingOverflow(Self.spoiledTime)
            defer { spoiled = ("\(fault)", until) }
            return state(at: now) == .serving ? "\(fault)" : nil
        }
        guard case .degraded = connection else {
            connection = .degraded("\(fault)")
            return "\(fault)"
        }
        // Said when it went down; what is asked for since then only meets that.
        if fault.message != "not connected" { connection = .degraded("\(fault)") }
        return nil
    }
}
