internal import Glibc
internal import Synchronization
internal import TLS
internal import Telemetry
internal import World

/// One connection to the shared server on a thread of its own, kept up for as long as the process lives.
///
/// Nobody waits for it without a bound: while there is no connection a command fails at once on the calling thread, and one that is not
/// answered in `replyTime` fails with the connection, because a late answer could be taken for the next one's. RESP3 brings the news of a
/// subscription on the same connection, so that there is one state and not two that can disagree.
public final class RedisClient: Sendable {
    /// Runs once, on the client's thread; must not block.
    public typealias Completion = @Sendable (Result<RESPValue, RedisFault>) -> Void

    /// Tells of the connection, on the client's thread.
    public struct Listener: Sendable {
        /// Asked once on each new connection, after the login and before any command of others: the last word before it counts as up.
        public var greet: @Sendable (_ runID: String) -> [[UInt8]]
        /// The answer to it; throws what speaks against using this server.
        public var greeted: @Sendable (RESPValue) throws(RedisFault) -> Void
        /// A message of the channel, on the client's thread.
        public var news: @Sendable (_ message: [UInt8]) -> Void
        /// nil: it is up.
        public var changed: @Sendable (RedisFault?) -> Void

        /// Memberwise.
        public init(
            greet: @escaping @Sendable (_ runID: String) -> [[UInt8]],
            greeted: @escaping @Sendable (RESPValue) throws(RedisFault) -> Void,
            news: @escaping @Sendable (_ message: [UInt8]) -> Void,
            changed: @escaping @Sendable (RedisFault?) -> Void
        ) {
            self.greet = greet
            self.greeted = greeted
            self.news = news
            self.changed = changed
        }
    }

    /// Milliseconds.
    public static let connectTime: Int64 = 2000
    /// A command without an answer by then ends the connection.
    public static let replyTime: Int64 = 1000
    static let firstPause: Int64 = 50
    static let longestPause: Int64 = 1000
    /// A connection that says nothing may be dead: after this long it is asked.
    static let quiet: Int64 = 5000
    /// Commands that may wait for the thread, and answers that may be outstanding.
    static let queueLimit = 1024
    /// Octets that may wait for the socket before the queue does.
    static let outputLimit = 4 << 20

    private let settings: RedisSettings
    private let channel: String
    private let listener: Listener
    private let queue = BoundedQueue<Command>(capacity: queueLimit)
    /// A pipe: its reading end, and the one that is written to.
    private let bell: Int32
    private let clapper: Int32
    private let isUp = Atomic<Bool>(false)
    private let isEnding = Atomic<Bool>(false)
    /// Threads between their look at `isUp` and the queue.
    private let senders = Atomic<Int>(0)

    private struct Command: Sendable {
        let words: [[UInt8]]
        let completion: Completion
    }

    /// What was sent and is not answered.
    private struct Pending {
        let deadline: Int64
        let completion: Completion
    }

    /// - Parameter channel: whose news are wanted.
    public init(_ settings: RedisSettings, channel: String, listener: Listener) throws(RedisFault) {
        self.settings = settings
        self.channel = channel
        self.listener = listener
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw RedisFault(.unavailable, "pipe: \(RedisWire.errorText(errno))") }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        bell = ends[0]
        clapper = ends[1]
    }

    deinit {
        Glibc.close(bell)
        Glibc.close(clapper)
    }

    /// Starts the thread, which connects and goes on connecting.
    /// - Throws: `unavailable` when the kernel makes no thread.
    public func start() throws(RedisFault) {
        do { try WorkerThread(name: "fleet") { self.run() }.detach() } catch {
            throw RedisFault(.unavailable, "\(error)")
        }
    }

    /// The thread ends by itself; what is under way fails.
    public func stop() {
        isEnding.store(true, ordering: .releasing)
        ring()
    }

    /// - Parameter completion: called once, on this thread when the command cannot be sent, else on the client's.
    public func send(_ words: [[UInt8]], completion: @escaping Completion) {
        senders.add(1, ordering: .sequentiallyConsistent)
        defer { senders.subtract(1, ordering: .sequentiallyConsistent) }
        guard isUp.load(ordering: .sequentiallyConsistent) else {
            return completion(.failure(RedisFault(.unavailable, "not connected")))
        }
        guard queue.send(Command(words: words, completion: completion)) else {
            return completion(.failure(RedisFault(.queueFull, "too many commands wait")))
        }
        ring()
    }

    private func ring() {
        // A full pipe has rung already.
        var one: UInt8 = 1
        _ = Glibc.write(clapper, &one, 1)
    }
}

// MARK: - The thread

extension RedisClient {
    private func run() {
        // An answer of TLS may find the other side gone.
        signal(SIGPIPE, SIG_IGN)
        var pause = Self.firstPause
        while !isEnding.load(ordering: .acquiring) {
            let began = RedisWire.milliseconds()
            let fault = serve()
            isUp.store(false, ordering: .sequentiallyConsistent)
            if isEnding.load(ordering: .acquiring) {
                // Nobody looks at the queue any more: who has seen `isUp` comes first, who comes later sees that it is down.
                while senders.load(ordering: .sequentiallyConsistent) > 0 { usleep(100) }
                return refuseQueued(fault)
            }
            refuseQueued(fault)
            listener.changed(fault)
            // One that held for a while is tried again soon; one that fails at once is left alone for longer.
            pause = RedisWire.milliseconds() - began > Self.longestPause ? Self.firstPause : pause
            sleep(Int64.random(in: pause / 2...pause))
            pause = min(pause * 2, Self.longestPause)
        }
    }

    private func refuseQueued(_ fault: RedisFault) {
        while let command = queue.receive() { command.completion(.failure(fault)) }
    }

    /// Woken early only by the end: nothing is queued while there is no connection.
    private func sleep(_ milliseconds: Int64) {
        let end = RedisWire.milliseconds() + milliseconds
        // What was queued while the connection went down rings too.
        while !isEnding.load(ordering: .acquiring), RedisWire.wait(bell, Int16(POLLIN), until: end) {
            clearBell()
            refuseQueued(RedisFault(.unavailable, "not connected"))
        }
    }

    private func clearBell() {
        var rung = [UInt8](repeating: 0, count: 4096)
        _ = Glibc.read(bell, &rung, rung.count)
    }

    /// Connects and serves until the connection is of no use.
    private func serve() -> RedisFault {
        do throws(RedisFault) {
            let deadline = RedisWire.milliseconds() + Self.connectTime
            var conversation = Conversation(try RedisWire(settings, try tlsClient(), deadline: deadline))
            defer { conversation.wire.close() }
            try greet(&conversation, deadline)
            isUp.store(true, ordering: .sequentiallyConsistent)
            listener.changed(nil)
            do throws(RedisFault) { try converse(&conversation) } catch {
                isUp.store(false, ordering: .sequentiallyConsistent)
                for pending in conversation.pending { pending.completion(.failure(error)) }
                throw error
            }
            let fault = RedisFault(.unavailable, "ending")
            for pending in conversation.pending { pending.completion(.failure(fault)) }
            return fault
        } catch { return error }
    }

    /// Built for each connection, because authorities may have been renewed.
    private func tlsClient() throws(RedisFault) -> TLSClientConfiguration? {
        guard let authorities = settings.authorities else { return nil }
        do throws(TLSFault) { return try TLSClientConfiguration(authorities: authorities) } catch {
            throw RedisFault(.unavailable, "TLS: \(error.message)")
        }
    }

    private func greet(_ conversation: inout Conversation, _ deadline: Int64) throws(RedisFault) {
        var hello = Self.words("HELLO", "3")
        if let source = settings.password {
            let password: [UInt8]
            do { password = try source() } catch {
                throw RedisFault(.unavailable, "the password cannot be read: \(error)")
            }
            hello += [Array("AUTH".utf8), Array((settings.username ?? "default").utf8), password]
        }
        _ = try ask(hello, &conversation, deadline)
        if settings.database != 0 { _ = try ask(Self.words("SELECT", "\(settings.database)"), &conversation, deadline) }
        let information = try ask(Self.words("INFO", "server"), &conversation, deadline)
        let listener = self.listener
        _ = try ask(Self.words("SUBSCRIBE", channel), &conversation, deadline, isSubscription: true)
        try listener.greeted(
            try ask(listener.greet(Self.runID(information.bytes ?? [])), &conversation, deadline))
    }

    /// Changes with every start of a server, and with a fail-over to another one.
    private static func runID(_ information: [UInt8]) -> String {
        for line in information.split(whereSeparator: { $0 == 10 || $0 == 13 }) where line.starts(with: "run_id:".utf8)
        {
            return String(decoding: line.dropFirst(7).prefix(64), as: UTF8.self)
        }
        return ""
    }

    private func ask(
        _ words: [[UInt8]], _ conversation: inout Conversation, _ deadline: Int64, isSubscription: Bool = false
    ) throws(RedisFault) -> RESPValue {
        RESPWriter.write(words, to: &conversation.output)
        while true {
            try conversation.flush()
            while let value = try conversation.next() {
                switch value {
                case .error(let text): throw RedisFault(.refused, "the server refused: \(text)")
                case .push(let items):
                    // A subscription is answered by a push, and by nothing else.
                    if isSubscription, items.first?.bytes == Array("subscribe".utf8) { return value }
                    tell(items)
                default: if !isSubscription { return value }
                }
            }
            let events = Int16(POLLIN) | (conversation.output.isEmpty ? 0 : conversation.wants)
            guard RedisWire.wait(conversation.wire.descriptor, events, until: deadline) else {
                throw RedisFault(.slow, "no answer to the login")
            }
            try conversation.fill()
        }
    }

    private func converse(_ conversation: inout Conversation) throws(RedisFault) {
        var heard = RedisWire.milliseconds()
        while !isEnding.load(ordering: .acquiring) {
            let now = RedisWire.milliseconds()
            while conversation.pending.count < Self.queueLimit, conversation.output.count < Self.outputLimit,
                let command = queue.receive()
            {
                RESPWriter.write(command.words, to: &conversation.output)
                conversation.pending.append(Pending(deadline: now + Self.replyTime, completion: command.completion))
            }
            if conversation.pending.isEmpty, now - heard > Self.quiet {
                RESPWriter.write(Self.words("PING"), to: &conversation.output)
                conversation.pending.append(Pending(deadline: now + Self.replyTime, completion: { _ in }))
            }
            try conversation.flush()
            while let value = try conversation.next() {
                heard = now
                try take(value, &conversation)
            }
            let due = conversation.pending.first?.deadline ?? now + Self.quiet
            guard now < due else { throw RedisFault(.slow, "no answer in \(Self.replyTime) ms") }
            var watched = [
                pollfd(
                    fd: conversation.wire.descriptor,
                    events: Int16(POLLIN) | (conversation.output.isEmpty ? 0 : conversation.wants), revents: 0),
                pollfd(fd: bell, events: Int16(POLLIN), revents: 0),
            ]
            // What was queued between the look and here has rung the bell.
            poll(&watched, 2, Int32(clamping: max(1, due - now)))
            if watched[1].revents != 0 { clearBell() }
            try conversation.fill()
        }
    }

    private func take(_ value: RESPValue, _ conversation: inout Conversation) throws(RedisFault) {
        if case .push(let items) = value { return tell(items) }
        guard !conversation.pending.isEmpty else { throw RedisFault(.invalid, "an answer that nobody asked for") }
        let completion = conversation.pending.removeFirst().completion
        if case .error(let text) = value {
            let fault = RedisFault(.refused, "the server refused: \(text)")
            completion(.failure(fault))
            // Read-only, out of memory, loading: a new connection finds out when that is over, and until then nobody has to ask.
            throw fault
        }
        completion(.success(value))
    }

    private func tell(_ items: [RESPValue]) {
        guard items.count == 3, items[0].bytes == Array("message".utf8), let message = items[2].bytes else { return }
        listener.news(message)
    }

    static func words(_ words: String...) -> [[UInt8]] { words.map { Array($0.utf8) } }

    /// Octets on their way in both directions.
    private struct Conversation {
        let wire: RedisWire
        var input: [UInt8] = []
        var output: [UInt8] = []
        var pending: [Pending] = []
        /// What the socket must be ready for before more can be written.
        var wants = Int16(POLLOUT)

        init(_ wire: RedisWire) { self.wire = wire }

        mutating func next() throws(RedisFault) -> RESPValue? {
            guard !input.isEmpty else { return nil }
            do throws(RESPFault) {
                guard let (value, length) = try RESPReader.read(input) else { return nil }
                input.removeFirst(length)
                return value
            } catch { throw RedisFault(.invalid, "the server's answer cannot be read: \(error)") }
        }

        mutating func flush() throws(RedisFault) {
            while !output.isEmpty {
                switch output.withUnsafeBytes({ wire.write($0) }) {
                case .bytes(let count): output.removeFirst(count)
                case .waits(let events):
                    wants = events
                    return
                case .ended(let reason): throw RedisFault(.unavailable, reason)
                }
            }
        }

        /// What is there, up to one reply's bound.
        mutating func fill() throws(RedisFault) {
            repeat {
                var block = [UInt8](repeating: 0, count: 16 << 10)
                switch block.withUnsafeMutableBytes({ wire.read(into: $0) }) {
                case .bytes(let count): input += block[..<count]
                case .waits: return
                case .ended(let reason): throw RedisFault(.unavailable, reason)
                }
            } while input.count < RESPReader.longestReply || wire.hasBufferedInput && input.isEmpty
        }
    }
}
