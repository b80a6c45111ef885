internal import Fleet

/// Whether the server of a fleet can be used, as its connection and its answers tell.
struct FleetServer: Sendable {
    enum State: Equatable {
        case connecting, serving
        case degraded(String)
    }

    private(set) var state = State.connecting

    /// A change that operators are told of.
    enum Turn: Equatable { case connected, worksAgain }

    mutating func connected() -> Turn? {
        defer { state = .serving }
        return switch state {
        case .connecting: .connected
        case .serving: nil
        case .degraded: .worksAgain
        }
    }

    /// - Returns: the reason, where the server has worked until now.
    mutating func failed(_ fault: SharedFault) -> String? {
        guard case .degraded = state else {
            state = .degraded("\(fault)")
            return "\(fault)"
        }
        // Said when it went down; what is asked for since then only meets that.
        if fault.message != "not connected" { state = .degraded("\(fault)") }
        return nil
    }
}
