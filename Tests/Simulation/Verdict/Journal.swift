/// The history of a run: a hash over everything that happened, so that two runs can be compared, and the words of it where they are wanted.
final class Journal {
    private(set) var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    private(set) var count: UInt64 = 0
    /// The last lines, oldest first; none where nothing is told.
    private(set) var lines: [String] = []
    private let most: Int
    private let timeline: Timeline

    /// - Parameter most: lines that are kept.
    init(_ timeline: Timeline, keeps most: Int) {
        self.timeline = timeline
        self.most = most
    }

    /// An event that counts into the hash.
    /// - Parameters:
    ///   - words: of the story; made only where it is told.
    ///   - bytes: what was said, above TLS.
    func note(_ kind: Event, _ number: UInt64 = 0, _ bytes: [UInt8] = [], _ words: @autoclosure () -> String) {
        count += 1
        mix(timeline.now)
        mix(UInt64(kind.rawValue))
        mix(number)
        for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        tell(words())
    }

    /// A line of the story alone.
    func tell(_ words: @autoclosure () -> String) {
        guard most > 0 else { return }
        if lines.count / 2 >= most { lines.removeFirst(lines.count - most) }
        lines.append("\(Self.text(timeline.now))  \(words())")
    }

    private func mix(_ number: UInt64) {
        for shift in stride(from: UInt64(0), to: 64, by: 8) {
            hash = (hash ^ (number >> shift & 0xff)) &* 0x100_0000_01b3
        }
    }

    /// Seconds with microseconds.
    static func text(_ time: UInt64) -> String {
        let micros = String(time / 1000 % 1_000_000)
        return "\(time / 1_000_000_000)." + String(repeating: "0", count: 6 - micros.count) + micros
    }
}

/// Kinds of events. The numbers are part of what a hash means.
enum Event: UInt8 {
    case asked = 1, answered, cut, upstream, issuer, fault, process, log, redis, disk
}
