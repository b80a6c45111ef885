/// Requests whose credential an API has refused: the truth that answers to their callers are compared with.
struct Refusals {
    private var refusals: [String: (count: Int, at: UInt64)] = [:]
    /// When a caller last had an API's refusal, by gateway and client: from then on the gateway may hold grants back for a while.
    private var lastTold: [Place: UInt64] = [:]

    private struct Place: Hashable {
        let gateway: Int
        let client: String
    }

    /// Nanoseconds for which the refusals of one path may keep a gateway from granting for others, at most.
    private static let hold: UInt64 = .seconds(45)

    mutating func note(_ id: String, at now: UInt64) {
        refusals[id] = ((refusals[id]?.count ?? 0) + 1, now)
    }

    /// A caller has the refusal, or what the gateway makes of it.
    /// - Returns: when the API refused it, where that was the first refusal of the request and nothing holds grants back; else nil.
    mutating func told(_ id: String, gateway: Int, client: String, at now: UInt64) -> UInt64? {
        guard let refusal = refusals[id] else { return nil }
        let place = Place(gateway: gateway, client: client)
        let last = lastTold.updateValue(now, forKey: place)
        guard refusal.count == 1, last.map({ now > $0 + Self.hold }) ?? true else { return nil }
        return refusal.at
    }
}
