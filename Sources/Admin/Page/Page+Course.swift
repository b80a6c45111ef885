/// The course of the last minutes, as small lines.
extension Page {
    /// Nanoseconds that a sparkline reaches back at most; and at least, so that the first few readings are not stretched over it.
    static let courseLength: (most: UInt64, least: UInt64) = (TrafficHistory.memory, 60_000_000_000)
    /// Points of a line; more than its width would show nothing more.
    static let maximumPoints = 60

    func sparkline(_ course: [(at: UInt64, value: Double)]) -> HTML? {
        let all = Self.points(of: course, at: facts.age)
        let every = (all.count + Self.maximumPoints - 1) / Self.maximumPoints
        // Counted from the newest, which is always shown.
        let points = all.enumerated().filter { (all.count - 1 - $0.offset) % max(every, 1) == 0 }.map {
            (x: decimal($0.element.x, places: 1), y: decimal($0.element.y, places: 1))
        }
        guard points.count > 2, let first = points.first, let last = points.last else { return nil }
        let line = points.map { "\($0.x) \($0.y)" }.joined(separator: "L")
        return """
            <svg class="spark" viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">\
            <path class="area" d="M\(first.x) 24L\(line)L\(last.x) 24Z"/><path d="M\(line)"/></svg>
            """
    }

    /// In a box of 120 × 24 with the newest at the right; the highest value touches the top.
    static func points(of course: [(at: UInt64, value: Double)], at age: UInt64) -> [(x: Double, y: Double)] {
        let oldest = course.first.map { age - min($0.at, age) } ?? 0
        let length = min(max(oldest, courseLength.least), courseLength.most)
        let begin = age - min(length, age)
        let recent = course.filter { $0.at >= begin && $0.value.isFinite }
        let top = max(recent.map(\.value).max() ?? 0, .leastNormalMagnitude)
        return recent.map { reading in
            let passed = Double(age - min(reading.at, age)) / Double(length)
            return (x: 120 * (1 - passed), y: 22.5 - 21 * max(reading.value, 0) / top)
        }
    }
}
