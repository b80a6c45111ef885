import Synchronization
public import World

/// Clocks that stand still until a test moves them; a pause moves them and returns at once.
public final class ScriptedTime: TimeSource {
    private let state: Mutex<(boot: UInt64, awake: UInt64, wall: Int64)>

    /// - Parameter wall: nanoseconds since 1970.
    public init(wall: Int64 = 1_700_000_000_000_000_000) {
        state = Mutex((1_000_000_000, 1_000_000_000, wall))
    }

    /// Nanoseconds, one second at the start.
    public func sinceBoot() -> UInt64 { state.withLock { $0.boot } }
    /// The same as `sinceBoot`.
    public func awake() -> UInt64 { state.withLock { $0.awake } }
    /// Nanoseconds since 1970, as the test set or moved them.
    public func wallNanoseconds() -> Int64 { state.withLock { $0.wall } }

    /// Moves the clocks and returns at once.
    public func pause(milliseconds: UInt32) { pass(nanoseconds: UInt64(milliseconds) * 1_000_000) }

    /// All clocks go on together.
    public func pass(nanoseconds: UInt64) {
        state.withLock { state in
            state.boot &+= nanoseconds
            state.awake &+= nanoseconds
            state.wall &+= Int64(clamping: nanoseconds)
        }
    }

    /// The wall clock alone is set.
    public func setWall(nanoseconds: Int64) { state.withLock { $0.wall = nanoseconds } }
}
