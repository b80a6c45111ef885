/// When the names of an upstream are resolved: a pure machine over time. The answers go into the `AddressBook`.
///
/// Nothing happens without a request: an idle gateway asks no name server. An answer serves for 30 s and is then asked for anew while the
/// old one goes on serving. A connection that failed makes its name due at once, at most once in a second. A question that
/// brought nothing is asked again after a second, doubled up to 30 s where old addresses are left, which stay: they worked, and the name server's
/// outage is not the upstream's.
struct NameSchedule {
    private var names: [Name]
    /// No name is due before this time: what a hot pool compares with.
    private(set) var nextDue: UInt64

    static let life: UInt64 = 30_000_000_000
    static let patience: UInt64 = 1_000_000_000
    /// An answer that did not come in this time was lost on its way, and is asked for again.
    static let longestQuestion: UInt64 = 10_000_000_000

    private struct Name {
        let endpoint: Int
        var dueAt: UInt64 = 0
        var askedAt: UInt64 = 0
        var isAsked = false
        var failures = 0
    }

    /// - Parameter endpoints: positions of those that are names.
    init(endpoints: [Int]) {
        names = endpoints.map { Name(endpoint: $0) }
        nextDue = names.isEmpty ? .max : 0
    }

    /// The endpoints to ask for now.
    mutating func due(at now: UInt64) -> [Int] {
        guard now >= nextDue else { return [] }
        var due: [Int] = []
        for index in names.indices where now >= names[index].dueAt {
            names[index].isAsked = true
            names[index].askedAt = now
            names[index].dueAt = now + Self.longestQuestion
            due.append(names[index].endpoint)
        }
        update()
        return due
    }

    /// An answer came, or none.
    /// - Parameter isKnown: the name has addresses, old or new; without any the next question is not put off for long.
    mutating func answered(endpoint: Int, found: Bool, isKnown: Bool, at now: UInt64) {
        guard let index = names.firstIndex(where: { $0.endpoint == endpoint }) else { return }
        names[index].isAsked = false
        names[index].failures = found ? 0 : names[index].failures + 1
        let pause =
            found
            ? Self.life
            : isKnown ? min(Self.patience << UInt64(min(names[index].failures - 1, 5)), Self.life) : Self.patience
        names[index].dueAt = now + pause
        update()
    }

    /// A connection to an address of this endpoint failed: the name may have moved.
    mutating func suspect(endpoint: Int, at now: UInt64) {
        guard let index = names.firstIndex(where: { $0.endpoint == endpoint }), !names[index].isAsked,
            names[index].failures == 0
        else { return }
        names[index].dueAt = min(names[index].dueAt, max(now, names[index].askedAt + Self.patience))
        update()
    }

    /// Whether an answer is on its way.
    var isAsking: Bool { names.contains { $0.isAsked } }

    private mutating func update() { nextDue = names.map(\.dueAt).min() ?? .max }
}
