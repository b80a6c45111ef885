import Admin
import ArgumentParser
import Glibc
import Numbers
import Octets
import World

/// The list of tokens again and again, until a signal ends it. A gateway that is away for a while is told once and asked on.
struct TokenWatch {
    /// The gateway's answer to one look.
    enum Sight {
        case status(StatusDocument)
        /// Why there is no list this time, in words.
        case nothing(String)
    }

    /// How the lists are shown.
    enum Form { case screen, text, json }

    let socket: String
    let interval: WatchInterval
    /// Of the identities that are asked for; empty for all.
    let names: [String]
    private(set) var last: StatusDocument?
    /// Since when there is no list, and why.
    private(set) var absence: (since: Int64, reason: String)?
    /// The last change of the gateway itself, and when it was seen.
    private(set) var change: (at: Int64, words: String)?
    /// The gateway of the last list was started before this moment, in nanoseconds of `sinceBoot`.
    private var startedBefore: UInt64?

    init(socket: String, interval: WatchInterval, names: [String]) {
        self.socket = socket
        self.interval = interval
        self.names = names
    }

    /// Takes up a look.
    /// - Parameters:
    ///   - now: seconds since 1970.
    ///   - span: from the question to the answer, in nanoseconds of `sinceBoot`.
    /// - Returns: what changed about the gateway itself, to be said once; nil where nothing did.
    mutating func note(_ sight: Sight, now: Int64, span: ClosedRange<UInt64>) -> String? {
        switch sight {
        case .nothing(let reason):
            defer { absence = (absence?.since ?? now, reason) }
            guard absence?.reason != reason else { return nil }
            return "\(reason); looking again \(interval.words)"
        case .status(let status):
            // The age was told at some moment of the span: between these two lies the gateway's start. A gateway that began after the
            // last one's latest moment is another process, also where no look met the time between them.
            let age = TimeSpan(seconds: status.uptimeSeconds).nanoseconds
            let (earliest, latest) = (
                span.lowerBound - min(span.lowerBound, age), span.upperBound - min(span.upperBound, age)
            )
            let isAnew = startedBefore.map { earliest > $0 + Self.rounding } ?? false
            let wasAway = absence != nil
            (last, absence, startedBefore) = (status, nil, latest)
            guard wasAway || isAnew else { return nil }
            let words = isAnew ? "the gateway was started anew" : "the gateway answers again"
            change = (now, words)
            return words
        }
    }

    /// Nanoseconds by which the age may be rounded.
    private static let rounding: UInt64 = 2_000_000
}

// MARK: - Forms

extension TokenWatch {
    /// A page for a terminal: what is looked at, then the list or as much of it as there is room for.
    func page(now: Int64, rows: Int, hasColours: Bool) -> [String] {
        var lines = ["cardea tokens, \(interval.words)  \(UTCTime(now))  \(socket)"]
        if let absence {
            lines.append(
                "\(absence.reason), since \(UTCTime(absence.since).timeOfDay); the list is the last one that was had")
        } else if let change, now - change.at < Self.changeIsNews {
            lines.append("\(change.words) at \(UTCTime(change.at).timeOfDay)")
        } else {
            lines.append("")
        }
        if let last {
            let list = TokenTable(last, of: names).lines(hasColours: hasColours)
            let room = max(rows - lines.count, 2)
            // The head stays; the line that counts the rest takes the last place.
            lines += list.count <= room ? list : list.prefix(room - 1) + ["and \(list.count - room + 1) more lines"]
        }
        return lines
    }

    /// Seconds for which a page says that the gateway changed.
    private static let changeIsNews: Int64 = 60

    /// One list behind the other, for a pipe or a file.
    func text(now: Int64) -> String? {
        guard absence == nil, let last else { return nil }
        return "\(UTCTime(now))\n\(TokenTable(last, of: names).text(hasColours: false))\n\n"
    }

    /// One line: the list's members beside the time; while there is none, the reason.
    func json(now: Int64) -> String {
        let told =
            absence.map { TimedTokens(time: "\(UTCTime(now))", error: $0.reason) }
            ?? TimedTokens(
                time: "\(UTCTime(now))", uptimeSeconds: last?.uptimeSeconds,
                table: last.map { TokenTable($0, of: names) })
        return snakeCaseJSON(told) + "\n"
    }
}

/// A line of JSON.
private struct TimedTokens: Encodable {
    let time: String
    var error: String?
    var uptimeSeconds: Double?
    var table: TokenTable?

    private enum CodingKeys: CodingKey { case time, error, uptimeSeconds }

    func encode(to encoder: any Encoder) throws {
        try table?.encode(to: encoder)
        var members = encoder.container(keyedBy: CodingKeys.self)
        try members.encode(time, forKey: .time)
        try members.encodeIfPresent(error, forKey: .error)
        try members.encodeIfPresent(uptimeSeconds, forKey: .uptimeSeconds)
    }
}

/// Seconds between two looks: from half a second, so that a watch stays cheap for the gateway, to an hour.
struct WatchInterval: ExpressibleByArgument, Equatable {
    static let standard = WatchInterval(span: TimeSpan(2, .seconds))
    let span: TimeSpan

    private init(span: TimeSpan) { self.span = span }

    init?(argument: String) {
        guard let span = TimeSpan(decimalSeconds: argument), (500...3_600_000).contains(span.milliseconds) else {
            return nil
        }
        self.span = span
    }

    var milliseconds: UInt32 { UInt32(clamping: span.milliseconds) }
    var defaultValueDescription: String { "2" }

    /// `every 2 s`, `every 0.5 s`.
    var words: String {
        let whole = span.milliseconds % 1000 == 0
        return "every \(whole ? "\(span.milliseconds / 1000)" : "\(Double(span.milliseconds) / 1000)") s"
    }
}

// MARK: - The run

extension TokenWatch {
    /// Looks, shows and waits without an end: a signal is the end.
    /// - Parameters:
    ///   - first: the list that was had already, which was asked for at `asked` of `time.sinceBoot`.
    mutating func run(
        _ first: StatusDocument, asked: UInt64, as form: Form, time: some TimeSource, look: () -> Sight
    ) -> Never {
        let screen = form == .screen ? TerminalScreen() : nil
        var (sight, asked) = (Sight.status(first), asked)
        while true {
            let now = time.wallSeconds()
            let wasAway = absence != nil
            let news = note(sight, now: now, span: asked...max(time.sinceBoot(), asked))
            switch form {
            case .screen:
                if let screen {
                    screen.show(page(now: now, rows: screen.rows, hasColours: Terminal.hasColours))
                }
            case .text:
                if let news { ConfigurationAccess.complain("cardea: \(news)") }
                if let text = text(now: now) { StandardOutput.write(text) }
            case .json:
                if let news { ConfigurationAccess.complain("cardea: \(news)") }
                // A gateway that stays away is one line, not one for each look.
                if absence == nil || !wasAway || news != nil { StandardOutput.write(json(now: now)) }
            }
            time.pause(milliseconds: interval.milliseconds)
            asked = time.sinceBoot()
            sight = look()
        }
    }
}
