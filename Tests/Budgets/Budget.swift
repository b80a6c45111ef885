/// What one exchange may cost, in one place. A number here goes down when the code gets better, and up only with a reason.
struct Budget: Sendable {
    /// Allocations of the loop's thread, in a release build.
    var mallocs: UInt64
    /// Calls through the kernel seam: read the caller, write the upstream, read the upstream, write the caller, and the waits between.
    var systemCalls: UInt64

    /// A keep-alive exchange whose token is in the hot cache, or whose route needs none. Requests and answers fit into one read.
    static let hit = Budget(mallocs: 0, systemCalls: 6)

    /// A stream of a caller's HTTP/2 connection: the object that serves it, which is not used again, so that nothing of one caller can
    /// reach another.
    static let framedCaller = Budget(mallocs: 1, systemCalls: 6)

    /// A stream of an upstream's HTTP/2 connection: the object that stands for it.
    static let framedUpstream = Budget(mallocs: 1, systemCalls: 6)

    /// Exchanges that are counted, after those that warm up.
    static let exchanges = 1_000
    static let warmUp = 200
}
