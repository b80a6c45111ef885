/// How many end users have a token of their own in memory, and how fast new ones come: `limits.subjects` and
/// `limits.new_subjects_per_second`. Time is a parameter.
package struct SubjectBook: Sendable {
    var limits: Limits
    private(set) var count = 0
    /// New users that were turned away, and users that gave way to others.
    private(set) var refused: UInt64 = 0
    private(set) var evicted: UInt64 = 0

    /// Time that new users have not used up yet, in nanoseconds: a second's at most.
    private var credit: UInt64 = 0
    private var creditAt: UInt64 = 0
    private var toldAt: UInt64 = 0

    package struct Limits: Sendable, Equatable {
        var subjects: Int
        var perSecond: Int

        package init(subjects: Int, perSecond: Int) {
            self.subjects = subjects
            self.perSecond = perSecond
        }
    }

    init(_ limits: Limits) { self.limits = limits }

    /// Admits one user that neither memory nor the store has seen.
    /// - Returns: nil, or after how many nanoseconds there is room for the next.
    mutating func admitNew(at now: UInt64) -> UInt64? {
        let second: UInt64 = 1_000_000_000
        let price = second / UInt64(max(1, limits.perSecond))
        credit = creditAt == 0 ? second : min(second, credit + min(second, now - min(now, creditAt)))
        creditAt = max(1, now)
        guard credit >= price else {
            refused += 1
            return price - credit
        }
        credit -= price
        return nil
    }

    /// Once a second: each refusal is somebody's request, and the log is bounded by time.
    mutating func mayTell(at now: UInt64) -> Bool {
        guard now > toldAt + 1_000_000_000 || toldAt == 0 else { return false }
        toldAt = now
        return true
    }

    var isFull: Bool { count >= limits.subjects }

    mutating func added() { count += 1 }
    mutating func removed() { count -= 1 }
    mutating func noteEviction() { evicted += 1 }
    mutating func noteRefusal() { refused += 1 }
}
