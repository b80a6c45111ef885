/// How much a seed's gateways hold at most: some little, so that what is bounded meets its bound.
struct SeedLimits {
    let subjects: Int
    let newSubjectsPerSecond: Int
    /// Users with a token of their own. Some seeds have more than one step of a purge takes, most of them without a fleet, which would bring
    /// a purged token back.
    let users: Int
    /// The share of a route's requests that are for paths which want more scopes, as one in this many.
    let wideShare: UInt64
    let waiters: Int
    let replayMemory: String
    /// Of a route.
    let connections: String

    /// Most requests are for this route and few paths of it, so that many meet what one of them has met.
    let favourite: String?

    /// Nanoseconds that a file or a program may take to give a secret. Where passwords are refused and processes begin, requests come meanwhile.
    let readingTime: UInt64

    /// - Parameter isAmple: everything has to succeed, so that nothing may be short.
    init(_ seed: UInt64, _ theme: FaultTheme, isAmple: Bool) {
        var draw = Draw(seed, Purpose.limits)
        subjects = draw.once(in: 3) && !isAmple ? 4 : 1000
        users = theme.hasCrowd || (World.isFleet(seed) ? seed % 10 == 3 : seed % 2 == 0) ? 600 : 12
        newSubjectsPerSecond = users > 50 ? 1000 : 50
        favourite = draw.once(in: 3) ? "service" : nil
        wideShare = !isAmple ? draw.element(of: [6, 30, 30]) : seed % 2 == 0 ? 2 : 6
        waiters = 200
        replayMemory = "64MiB"
        connections = draw.once(in: 3) ? "connections: \((isAmple ? 8 : 2) + 2 * draw.below(4)), waiters: 300" : ""
        let readsSlowly = draw.once(in: 3) && !isAmple
        readingTime = theme == .marks || readsSlowly ? .milliseconds(300) : .milliseconds(2)
    }
}
