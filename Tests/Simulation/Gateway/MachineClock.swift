import Synchronization
import World

/// The clocks of one gateway's machine. They follow the simulation's time; a fault sets the wall clock.
final class MachineClock: TimeSource {
    private let state = Mutex(Hands())

    private struct Hands {
        var now: UInt64 = 0
        var wallOffset: Int64 = 0
        /// Nanoseconds that the machine was suspended for, and since when it is.
        var slept: UInt64 = 0
        var sleepsSince: UInt64?
    }

    /// What all clocks of a machine show at the beginning: long after its boot, and some day.
    static let boot: UInt64 = .seconds(1000)
    static let wall: Int64 = 1_800_000_000_000_000_000

    /// Nanoseconds since the beginning of the simulation.
    func move(to now: UInt64) { state.withLock { $0.now = now } }
    func jump(nanoseconds: Int64) { state.withLock { $0.wallOffset += nanoseconds } }

    func sinceBoot() -> UInt64 { Self.boot + state.withLock { $0.now } }
    func awake() -> UInt64 { Self.boot + state.withLock { ($0.sleepsSince ?? $0.now) - $0.slept } }

    /// The machine is suspended; the clock of its waking time stands.
    func sleeps() { state.withLock { $0.sleepsSince = $0.sleepsSince ?? $0.now } }
    func wakes() {
        state.withLock { hands in
            if let since = hands.sleepsSince { hands.slept += hands.now - since }
            hands.sleepsSince = nil
        }
    }

    func wallNanoseconds() -> Int64 { state.withLock { Self.wall + Int64($0.now) + $0.wallOffset } }
    /// Nobody waits in a simulation.
    func pause(milliseconds: UInt32) {}
}
