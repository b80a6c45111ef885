internal import Octets

/// A moment as RFC 3339 writes it, in UTC and whole seconds.
struct UTCTime: CustomStringConvertible {
    private let seconds: Int64

    /// - Parameter seconds: since 1970; an earlier moment counts as 1970, one past the year 9999 as its end.
    init(_ seconds: Int64) { self.seconds = min(max(seconds, 0), 253_402_300_799) }

    var description: String {
        let date = CivilDate(daysSince1970: Int(seconds / 86_400))
        let year = String(date.year)
        return
            "\(String(repeating: "0", count: 4 - year.count))\(year)-\(Self.two(date.month))-\(Self.two(date.day))T\(timeOfDay)Z"
    }

    /// Hours, minutes and seconds.
    var timeOfDay: String {
        let second = Int(seconds % 86_400)
        return "\(Self.two(second / 3600)):\(Self.two(second / 60 % 60)):\(Self.two(second % 60))"
    }

    private static func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
}
