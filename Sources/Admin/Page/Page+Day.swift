internal import Keeping

/// The last day of an identity: what was granted, what failed, what was replayed, and what comes next.
extension Page {
    /// Spells of failures that are told.
    static let maximumSpells = 4

    /// Beside the identity's name: the worst of each quarter of an hour. Its details have the words.
    func strip(of day: DayFacts) -> HTML {
        let worst = day.counts.map { quarter in
            [DayFacts.Lane.failed, .granted, .replayed].first { $0.count(quarter) > 0 }
        }
        let cells = Self.runs(worst).map { run -> HTML in
            "<rect class=\"\(run.value.rawValue)\" x=\"\(run.start)\" width=\"\(run.length)\" height=\"10\"/>"
        }
        return """
            <svg class="strip" viewBox="0 0 96 10" preserveAspectRatio="none" aria-hidden="true">\
            \(Self.unknown(y: 4))\(track(of: day, y: 0, height: 10))\(cells)</svg>
            """
    }

    /// Three lanes, whose contents the words below them tell too.
    func figure(of day: DayFacts, _ identity: IdentityFacts) -> HTML {
        let lanes = DayFacts.Lane.allCases.enumerated().map { place, lane -> HTML in
            let top = place * 11
            let bars = Self.runs(day.counts.map { Self.height(lane.count($0)) }).map { run -> HTML in
                """
                <rect class="\(lane.rawValue)" x="\(run.start)" width="\(run.length)" y="\(top + 8 - run.value)" height="\(run.value)"/>
                """
            }
            return "\(Self.unknown(y: top + 7))\(track(of: day, y: top, height: 8))\(bars)"
        }
        let totals = DayFacts.Lane.allCases.map { "\(grouped(UInt64(day.total($0)))) \($0.rawValue)" }
        let names = DayFacts.Lane.allCases.map { span("lane", $0.rawValue) }
        let marks = ["24 h", "18 h", "12 h", "6 h", "now"].map { span("hour", $0) }
        let ahead = identity.ahead
        return """
            <figure class="day"><div class="lanes" aria-hidden="true"><span class="names">\(names)</span>\
            <svg viewBox="0 0 96 30" preserveAspectRatio="none">\(lanes)<path class="hours" d="M24 0v30M48 0v30M72 0v30"/></svg>\
            <span class="axis">\(marks)</span></div>
            <figcaption><b>Last day:</b> \(totals.joined(separator: ", ")). \(failureTimes(of: day)) \(limit(of: day)) \
            <b>Next:</b> \(ahead.isEmpty ? identity.nextStep : ahead.joined(separator: ", ")).</figcaption></figure>

            """
    }

    private func failureTimes(of day: DayFacts) -> String {
        let spells = day.spells(.failed)
        guard !spells.isEmpty else { return "" }
        let told = spells.prefix(Self.maximumSpells).map { spell in
            let count = grouped(UInt64(spell.count))
            if spell.ended == 0 { return "\(count) in the last \(spelled(spell.began))" }
            return "\(count) between \(spelled(spell.began)) and \(spelled(spell.ended)) ago"
        }
        let more = spells.count > told.count ? ", others earlier" : ""
        return "Failed: \(told.joined(separator: ", "))\(more)."
    }

    /// The time of which nothing is known.
    private func limit(of day: DayFacts) -> String {
        guard !day.isWhole else { return "" }
        let why = day.known == facts.age ? "when this process began" : "when it came into the configuration"
        return "Nothing is known of the time before \(spelled(day.known)) ago, \(why)."
    }

    /// The whole day as a thin line, which is seen where there is no track: a new process has an empty day and not a broken picture.
    private static func unknown(y: Int) -> HTML { "<rect class=\"unknown\" width=\"96\" y=\"\(y)\" height=\"1\"/>" }

    private func track(of day: DayFacts, y: Int, height: Int) -> HTML {
        let known = day.knownQuarters
        return """
            <rect class="track" x="\(day.counts.count - known)" width="\(known)" y="\(y)" height="\(height)"/>
            """
    }

    /// Of eight; ten times as much is a step higher.
    private static func height(_ count: Int) -> Int? {
        switch count {
        case 0: nil
        case 1: 3
        case ..<10: 5
        case ..<100: 7
        default: 8
        }
    }

    /// Equal values that follow each other, without those that are nothing.
    static func runs<Value: Equatable>(_ values: [Value?]) -> [(value: Value, start: Int, length: Int)] {
        var runs: [(value: Value, start: Int, length: Int)] = []
        for (index, value) in values.enumerated() {
            guard let value else { continue }
            if let last = runs.last, last.value == value, last.start + last.length == index {
                runs[runs.count - 1].length += 1
            } else {
                runs.append((value, index, 1))
            }
        }
        return runs
    }
}
