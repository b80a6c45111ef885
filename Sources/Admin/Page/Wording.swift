internal import Keeping
internal import Octets

// How values are told to a person.

/// Names come from the file, but realms come from the network and failures may quote: no single one may flood a page.
/// - Parameter limit: Unicode scalars.
func shortened(_ text: String, to limit: Int = 512) -> String {
    // Asking for the length of the bytes first spares the common case a walk over the text.
    guard text.utf8.count > limit, text.unicodeScalars.count > limit else { return text }
    return String(text.unicodeScalars.prefix(limit)) + "…"
}

/// A span in its two largest units: `1 m 50 s`, `3 d 4 h`.
func spelled(_ nanoseconds: UInt64) -> String {
    let seconds = nanoseconds / 1_000_000_000
    switch seconds {
    case 0: return "0 s"
    case ..<60: return "\(seconds) s"
    case ..<3600: return joined(seconds / 60, "m", seconds % 60, "s")
    case ..<86_400: return joined(seconds / 3600, "h", seconds % 3600 / 60, "m")
    default: return joined(seconds / 86_400, "d", seconds % 86_400 / 3600, "h")
    }
}

private func joined(_ large: UInt64, _ largeUnit: String, _ small: UInt64, _ smallUnit: String) -> String {
    small == 0 ? "\(large) \(largeUnit)" : "\(large) \(largeUnit) \(small) \(smallUnit)"
}

/// A latency in three digits: `0.42 ms`, `48 ms`, `1.3 s`.
func spelledLatency(_ nanoseconds: UInt64) -> String {
    let milliseconds = Double(nanoseconds) / 1e6
    // Bounds such that what is rounded up to a digit more has no place too many.
    if milliseconds < 9.95 { return "\(decimal(milliseconds, places: milliseconds < 0.995 ? 2 : 1)) ms" }
    if milliseconds < 999.5 { return "\(decimal(milliseconds, places: 0)) ms" }
    return "\(decimal(milliseconds / 1000, places: milliseconds < 9950 ? 1 : 0)) s"
}

/// With thousands apart: `12,345`.
func grouped(_ count: UInt64) -> String {
    let digits = Array(String(count))
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { text += "," }
        text.append(digit)
    }
    return text
}

/// A rate in two or three digits: `0.3`, `17`, `1,204`.
func spelledRate(_ perSecond: Double) -> String {
    if perSecond >= 1e15 { return "∞" }
    if perSecond >= 10 { return grouped(UInt64(perSecond.rounded())) }
    if perSecond == 0 { return "0" }
    return perSecond < 0.05 ? "<0.1" : decimal(perSecond, places: 1)
}

/// - Parameter value: not negative and below 10¹⁵.
func decimal(_ value: Double, places: Int) -> String {
    let scale: UInt64 = places == 0 ? 1 : places == 1 ? 10 : 100
    guard value >= 0, value < 1e15 else { return "–" }
    let scaled = UInt64((value * Double(scale)).rounded())
    if scale == 1 { return String(scaled) }
    let fraction = String(scaled % scale)
    return "\(scaled / scale).\(String(repeating: "0", count: places - fraction.utf8.count))\(fraction)"
}

/// A time of day in UTC: `23:14:05`.
/// - Parameter wallTime: seconds since 1970.
func spelledTime(_ wallTime: Double) -> String {
    guard wallTime >= 0, wallTime < 1e15 else { return "–" }
    let second = Int(wallTime) % 86_400
    func digits(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
    return "\(digits(second / 3600)):\(digits(second / 60 % 60)):\(digits(second % 60))"
}

/// An origin as people write it.
func shortOrigin(_ origin: String) -> String {
    var text = Substring(origin)
    if text.hasPrefix("https://") {
        text = text.dropFirst(8)
        if text.hasSuffix(":443") { text = text.dropLast(4) }
    } else if text.hasPrefix("http://"), text.hasSuffix(":80") {
        text = text.dropLast(3)
    }
    return String(text)
}

/// A reason as one sentence.
func sentence(_ reason: String) -> String {
    let text = shortened(reason, to: 240)
    guard let first = text.first else { return "" }
    let body = first.uppercased() + text.dropFirst()
    return body.hasSuffix(".") || body.hasSuffix("…") ? body : body + "."
}

extension IdentityFacts {
    /// The command that helps, where a person has to.
    var command: String? {
        switch state {
        case .quarantined: "cardea reset \(shellWord(status.name))"
        case .loginNeeded, .loginDue: "cardea login \(shellWord(status.name))"
        default: nil
        }
    }
}

/// Such that a shell takes it for one word, whatever a file called it: the command is there to be copied.
func shellWord(_ name: String) -> String {
    let plain = name.utf8.allSatisfy { $0.isLetterOrDigit || "-./_:@".utf8.contains($0) }
    if plain, !name.isEmpty, !name.hasPrefix("-") { return name }
    return "'" + name.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
}
