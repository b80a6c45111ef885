/// How much a seed's gateways hold at most: some little, so that what is bounded meets its bound.
struct SeedLimits {
    let subjects: Int
    let waiters: Int
    let replayMemory: String
    /// Of a route.
    let connections: String

    /// - Parameter isAmple: everything has to succeed, so that nothing may be short.
    init(_ seed: UInt64, isAmple: Bool) {
        var draw = Draw(seed, Purpose.limits)
        subjects = draw.once(in: 3) && !isAmple ? 4 : 1000
        waiters = 200
        replayMemory = "64MiB"
        connections = draw.once(in: 3) ? "connections: \((isAmple ? 8 : 2) + 2 * draw.below(4)), waiters: 300" : ""
    }
}
