internal import World

/// The conversation with the shared server as a pure machine: what happened goes in, what is to be done comes out.
///
/// A command never waits without a bound: while there is no connection it fails at once, and one that is not answered in `replyTime` fails
/// with the connection, because a late answer could be taken for the next one's. RESP3 brings the news of a subscription on the same
/// connection, so that there is one state and not two that can disagree.
struct RedisMachine {
    enum Event {
        case began
        /// Something happened to the connection, or its time came.
        case link(FleetLinkEvent)
        /// - Parameter number: names the command in its answer.
        case asked([[UInt8]], number: UInt64)
        case ended
    }

    enum Action: Equatable {
        /// Read what a connection needs.
        case prepare
        case connect
        case send([UInt8])
        case close
        case answer(UInt64, Result<RESPValue, SharedFault>)
        case news([UInt8])
        /// Nil: commands are taken from now on.
        case changed(SharedFault?)
    }

    /// Nanoseconds. The first bounds everything from the connection's beginning to the answer to `greet`.
    static let connectTime: UInt64 = 2_000_000_000
    static let replyTime: UInt64 = 1_000_000_000
    static let firstPause: UInt64 = 50_000_000
    static let longestPause: UInt64 = 1_000_000_000
    /// A connection on which nothing came for this long may be dead, so the server is asked.
    static let quiet: UInt64 = 5_000_000_000
    /// A password that is not read by then is asked for anew.
    static let preparation: UInt64 = 60_000_000_000
    /// Commands without an answer, and their octets.
    static let mostPending = 2048
    static let mostOctets = 64 << 20

    private enum State {
        case idle, over
        case pausing(until: UInt64)
        case preparing(since: UInt64)
        case connecting(since: UInt64)
        /// The questions of the login that are left; the first is asked.
        case greeting([Question], since: UInt64)
        case serving(since: UInt64)
    }

    private enum Question {
        case plain([[UInt8]])
        /// Its answer holds the server's run, which `greet` is told.
        case information
        /// The server answers a subscription by a push, and by nothing else.
        case subscription
        case greeting(runID: String)
    }

    /// A command that was sent and is not answered; the question whether the server lives has no number.
    private struct Pending {
        let number: UInt64?
        let deadline: UInt64
        let octets: Int
    }

    private let login: RedisLogin
    private let channel: String
    private let greet: (_ runID: String) -> [[UInt8]]
    private let random: any RandomSource
    private var state = State.idle
    private var input: [UInt8] = []
    private var pending: [Pending] = []
    private var octets = 0
    private var heardAt: UInt64 = 0
    private var pause = Self.firstPause

    /// - Parameters:
    ///   - channel: whose news are wanted.
    ///   - greet: the last word of a login, before which no command is taken; told how the server calls its run.
    init(
        _ login: RedisLogin, channel: String, random: any RandomSource, greet: @escaping (_ runID: String) -> [[UInt8]]
    ) {
        self.login = login
        self.channel = channel
        self.random = random
        self.greet = greet
    }

    /// When `timePassed` is due; nil: never.
    var deadline: UInt64? {
        switch state {
        case .idle, .over: nil
        case .pausing(let until): until
        case .preparing(let since): since &+ Self.preparation
        case .connecting(let since), .greeting(_, let since): since &+ Self.connectTime
        case .serving: pending.first?.deadline ?? heardAt &+ Self.quiet
        }
    }

    mutating func on(_ event: Event, at now: UInt64) -> [Action] {
        switch (event, state) {
        case (.asked(let words, let number), _): return ask(words, number, at: now)
        case (_, .over): return []
        case (.began, .idle):
            state = .preparing(since: now)
            return [.prepare]
        case (.link(.prepared(let password)), .preparing):
            state = .connecting(since: now)
            questions = questions(password)
            return [.connect]
        case (.link(.connected), .connecting(let since)):
            state = .greeting(questions, since: since)
            questions = []
            return sendQuestion()
        case (.link(.received(let bytes)), .greeting), (.link(.received(let bytes)), .serving):
            input += bytes
            return read(at: now)
        case (.link(.lost(let fault)), .preparing), (.link(.lost(let fault)), .connecting): return lose(fault, at: now)
        case (.link(.lost(let fault)), .greeting), (.link(.lost(let fault)), .serving): return lose(fault, at: now)
        case (.link(.woken), _): return timePassed(at: now)
        case (.ended, _):
            let hadConnection = hasConnection
            state = .over
            return failPending(SharedFault(.unavailable, "ending")) + (hadConnection ? [.close] : [])
        default: return []
        }
    }

    private var questions: [Question] = []

    private var hasConnection: Bool {
        switch state {
        case .connecting, .greeting, .serving: true
        case .idle, .over, .pausing, .preparing: false
        }
    }

    // MARK: - Commands

    private mutating func ask(_ words: [[UInt8]], _ number: UInt64, at now: UInt64) -> [Action] {
        guard case .serving = state else {
            return [.answer(number, .failure(SharedFault(.unavailable, "not connected")))]
        }
        let bytes = RESPWriter.bytes(of: words)
        guard pending.count < Self.mostPending, octets + bytes.count <= Self.mostOctets else {
            return [.answer(number, .failure(SharedFault(.queueFull, "too many commands wait")))]
        }
        return send(bytes, number, at: now)
    }

    private mutating func send(_ bytes: [UInt8], _ number: UInt64?, at now: UInt64) -> [Action] {
        pending.append(Pending(number: number, deadline: now &+ Self.replyTime, octets: bytes.count))
        octets += bytes.count
        return [.send(bytes)]
    }

    // MARK: - The login

    private func questions(_ password: [UInt8]?) -> [Question] {
        var hello = Self.words("HELLO", "3")
        if let password {
            hello += [Array("AUTH".utf8), Array((login.username ?? "default").utf8), password]
        }
        let select: [Question] = login.database == 0 ? [] : [.plain(Self.words("SELECT", "\(login.database)"))]
        return [.plain(hello)] + select + [.information, .subscription, .greeting(runID: "")]
    }

    private func sendQuestion() -> [Action] {
        guard case .greeting(let left, _) = state, let question = left.first else { return [] }
        let words =
            switch question {
            case .plain(let words): words
            case .information: Self.words("INFO", "server")
            case .subscription: Self.words("SUBSCRIBE", channel)
            case .greeting(let runID): greet(runID)
            }
        return [.send(RESPWriter.bytes(of: words))]
    }

    /// - Returns: nil when the value is no answer to the question that was asked.
    private mutating func answered(_ value: RESPValue, at now: UInt64) -> [Action]? {
        guard case .greeting(var left, let since) = state, let question = left.first else { return nil }
        switch (question, value) {
        case (_, .error(let text)): return lose(SharedFault(.refused, "the server refused: \(text)"), at: now)
        case (.subscription, .push(let items)) where items.first?.bytes == Array("subscribe".utf8): break
        case (_, .push(let items)): return news(items)
        case (.subscription, _): return []
        default: break
        }
        left.removeFirst()
        if case .information = question {
            let runID = Self.runID(value.bytes ?? [])
            left = left.map { if case .greeting = $0 { .greeting(runID: runID) } else { $0 } }
        }
        guard left.isEmpty else {
            state = .greeting(left, since: since)
            return sendQuestion()
        }
        state = .serving(since: since)
        heardAt = now
        return [.changed(nil)]
    }

    /// Changes with every start of a server, and with a fail-over to another one.
    private static func runID(_ information: [UInt8]) -> String {
        for line in information.split(whereSeparator: { $0 == 10 || $0 == 13 }) where line.starts(with: "run_id:".utf8)
        {
            return String(decoding: line.dropFirst(7).prefix(64), as: UTF8.self)
        }
        return ""
    }

    // MARK: - Answers

    private mutating func read(at now: UInt64) -> [Action] {
        var actions: [Action] = []
        while hasConnection, !input.isEmpty {
            let value: RESPValue
            do throws(RESPFault) {
                guard let (read, length) = try RESPReader.read(input) else { break }
                input.removeFirst(length)
                value = read
            } catch {
                return actions
                    + lose(SharedFault(.invalid, "the server's answer cannot be read: \(error)"), at: now)
            }
            if let greeted = answered(value, at: now) {
                actions += greeted
            } else {
                heardAt = now
                actions += take(value, at: now)
            }
        }
        return actions
    }

    private mutating func take(_ value: RESPValue, at now: UInt64) -> [Action] {
        if case .push(let items) = value { return news(items) }
        guard !pending.isEmpty else { return lose(SharedFault(.invalid, "an answer that nobody asked for"), at: now) }
        let asked = pending.removeFirst()
        octets -= asked.octets
        guard case .error(let text) = value else {
            return asked.number.map { [.answer($0, .success(value))] } ?? []
        }
        // Read-only, out of memory, loading: a new connection finds out when that is over, and until then nobody has to ask.
        let fault = SharedFault(.refused, "the server refused: \(text)")
        return (asked.number.map { [.answer($0, .failure(fault))] } ?? []) + lose(fault, at: now)
    }

    private func news(_ items: [RESPValue]) -> [Action] {
        guard items.count == 3, items[0].bytes == Array("message".utf8), let message = items[2].bytes else { return [] }
        return [.news(message)]
    }

    // MARK: - Time and ends

    private mutating func timePassed(at now: UInt64) -> [Action] {
        guard let deadline, now >= deadline else { return [] }
        switch state {
        case .pausing:
            state = .preparing(since: now)
            return [.prepare]
        case .preparing: return lose(SharedFault(.slow, "the password was not read in time"), at: now)
        case .connecting: return lose(SharedFault(.slow, "no connection in time"), at: now)
        case .greeting: return lose(SharedFault(.slow, "no answer to the login"), at: now)
        case .serving where pending.isEmpty:
            return send(RESPWriter.bytes(of: Self.words("PING")), nil, at: now)
        case .serving:
            return lose(SharedFault(.slow, "no answer in \(Self.replyTime / 1_000_000) ms"), at: now)
        case .idle, .over: return []
        }
    }

    private mutating func lose(_ fault: SharedFault, at now: UInt64) -> [Action] {
        let began: UInt64 =
            switch state {
            case .serving(let since), .connecting(let since), .greeting(_, let since): since
            default: now
            }
        let hadConnection = hasConnection
        // A server whose connection held for a while is tried again soon; one whose connection fails at once is left alone for longer.
        if now &- began > Self.longestPause { pause = Self.firstPause }
        state = .pausing(until: now &+ pause / 2 &+ random.number(below: pause / 2 + 1))
        pause = min(pause * 2, Self.longestPause)
        input = []
        questions = []
        return (hadConnection ? [.close] : []) + failPending(fault) + [.changed(fault)]
    }

    private mutating func failPending(_ fault: SharedFault) -> [Action] {
        defer {
            pending = []
            octets = 0
        }
        return pending.compactMap { $0.number.map { .answer($0, .failure(fault)) } }
    }

    static func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }
}
