/// The way to the shared server, on the loop of whoever uses it: one connection at a time, and an alarm. The gateway has it over the
/// connections that issuers are called on; tests have a scripted one.
///
/// Events are told to `report`, never during a call of `send`, `close` or `wake`.
public protocol FleetLink: AnyObject {
    /// Nanoseconds of the loop's clock.
    var now: UInt64 { get }
    /// Is told what happens.
    var report: (FleetLinkEvent) -> Void { get set }

    /// Reads what a connection needs, without blocking the loop; told as `prepared` or `lost`.
    func prepare()
    /// Connects, with TLS where it is configured; told as `connected` or `lost`.
    func connect()
    /// Sends in order; what the socket does not take waits.
    func send(_ bytes: [UInt8])
    /// Ends the connection, or its making; nothing more is told of it.
    func close()
    /// Tells `woken` at or shortly after this moment of the loop's clock, and at no other; nil: never.
    func wake(at time: UInt64?)
}

/// The events on the way to the server.
public enum FleetLinkEvent: Sendable {
    case prepared(password: [UInt8]?)
    case connected
    case received([UInt8])
    case lost(SharedFault)
    case woken
}
