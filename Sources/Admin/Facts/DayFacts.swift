internal import Keeping

/// An identity's last day, as it is told and drawn.
struct DayFacts: Sendable {
    /// By quarter of an hour, oldest first; the last one is not over.
    var counts: [IdentityDay.Counts]
    /// Nanoseconds of the last quarter that have passed.
    var elapsed: UInt64
    /// Nanoseconds for which anything can be known: the process, or the identity in it, is no older.
    var known: UInt64

    /// A kind of event, as it is drawn.
    enum Lane: String, CaseIterable {
        case granted, failed, replayed

        func count(_ counts: IdentityDay.Counts) -> Int {
            switch self {
            case .granted: Int(counts.grants)
            case .failed: Int(counts.failures)
            case .replayed: Int(counts.replays)
            }
        }
    }

    /// Quarters that follow each other and in each of which something happened.
    struct Spell: Equatable {
        var count: Int
        /// Nanoseconds from its beginning, and from its end, until now.
        var began: UInt64
        var ended: UInt64
    }

    /// - Parameter age: nanoseconds that the process has lived.
    init(_ day: DayStatus, age: UInt64) {
        counts = day.day.counts(at: day.at)
        elapsed = day.at % IdentityDay.quarter
        known = min(day.known, age)
    }

    /// Quarters of which something is known, the last one among them.
    var knownQuarters: Int {
        let before = known > elapsed ? (known - elapsed + IdentityDay.quarter - 1) / IdentityDay.quarter : 0
        return Int(min(before + 1, UInt64(counts.count)))
    }

    /// Whether the whole day is known.
    var isWhole: Bool { knownQuarters == counts.count }

    func total(_ lane: Lane) -> Int { counts.reduce(0) { $0 + lane.count($1) } }

    /// Newest first. None began before anything could be known.
    func spells(_ lane: Lane) -> [Spell] {
        var spells: [Spell] = []
        var isGoingOn = false
        for (index, quarter) in counts.enumerated().reversed() {
            let count = lane.count(quarter)
            guard count > 0 else {
                isGoingOn = false
                continue
            }
            let start = elapsed + UInt64(counts.count - 1 - index) * IdentityDay.quarter
            let began = min(start, known)
            if isGoingOn {
                spells[spells.count - 1].count += count
                spells[spells.count - 1].began = began
            } else {
                let ended = index == counts.count - 1 ? 0 : min(start - IdentityDay.quarter, known)
                spells.append(Spell(count: count, began: began, ended: ended))
            }
            isGoingOn = true
        }
        return spells
    }
}

extension IdentityFacts {
    /// Everything that is ahead and has a time, the next first.
    var ahead: [String] {
        var times: [(at: UInt64, words: String)] = []
        for token in tokens where token.subjects == nil && token.age != nil {
            if let due = token.refreshIn, token.expiresIn != 0 { times.append((due, "renewal")) }
            if let end = token.expiresIn, end > 0 { times.append((end, "expiry")) }
        }
        for token in tokens { if let wait = token.retryIn, wait > 0 { times.append((wait, "next try")) } }
        if let end = status.login?.expiresIn, end > 0 { times.append((end, "end of its login")) }
        // Of several tokens the first of each kind.
        var told: Set<String> = []
        return times.sorted { $0.at < $1.at }.filter { told.insert($0.words).inserted }
            .map { $0.at == 0 ? "\($0.words) is due" : "\($0.words) in \(spelled($0.at))" }
    }
}
