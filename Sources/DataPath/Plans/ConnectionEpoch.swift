internal import Synchronization

/// Counts how often everything was ended that an identity's credentials had authenticated: by a purge, a reset, a logout, a changed secret or a
/// refusal. A connection that was authenticated before carries no request any more.
///
/// The keeper writes it and all loops read it. A reload makes another one, so that connections do not outlive the settings that they were made by.
package final class ConnectionEpoch: Sendable {
    private let count = Atomic<UInt64>(0)

    package init() {}

    // Relaxed: nothing is published with it. A loop that reads the number of before sends a request as if it had come a moment earlier; what
    // the keeper tells an operator after it has counted reaches the loops by their mail, which orders both.
    package var now: UInt64 { count.load(ordering: .relaxed) }

    package func rise() { count.add(1, ordering: .relaxed) }
}

/// How long a connection counts as authenticated.
struct ConnectionBinding {
    /// The epoch in which its credential was asked for.
    let epoch: UInt64
    /// By the loop's clock.
    let until: UInt64
}
