import Synchronization
import World

/// The clocks of one gateway's machine. They follow the simulation's time; a fault sets the wall clock.
final class MachineClock: TimeSource {
    private let state = Mutex<(now: UInt64, wallOffset: Int64)>((0, 0))

    /// What all clocks of a machine show at the beginning: long after its boot, and some day.
    static let boot: UInt64 = .seconds(1000)
    static let wall: Int64 = 1_800_000_000_000_000_000

    /// Nanoseconds since the beginning of the simulation.
    func move(to now: UInt64) { state.withLock { $0.now = now } }
    func jump(nanoseconds: Int64) { state.withLock { $0.wallOffset += nanoseconds } }

    func sinceBoot() -> UInt64 { Self.boot + state.withLock { $0.now } }
    func awake() -> UInt64 { sinceBoot() }
    func wallNanoseconds() -> Int64 { state.withLock { Self.wall + Int64($0.now) + $0.wallOffset } }
    /// Nobody waits in a simulation.
    func pause(milliseconds: UInt32) {}
}
