/// The shared server, as long as the process lives: the interpreter of `RedisMachine`. Touched on the loop of its link only.
final class RedisClient {
    typealias Completion = @Sendable (Result<RESPValue, SharedFault>) -> Void

    private let link: any FleetLink
    private var machine: RedisMachine
    private let news: (_ message: [UInt8]) -> Void
    private let changed: (SharedFault?) -> Void
    /// By the numbers of their commands.
    private var completions: [UInt64: Completion] = [:]
    private var lastNumber: UInt64 = 0
    private var events: [RedisMachine.Event] = []
    private var isInterpreting = false

    /// - Parameters:
    ///   - news: a message of the machine's channel.
    ///   - changed: nil when the server is there, else why not; not only when something has changed.
    init(
        _ machine: RedisMachine, over link: any FleetLink, news: @escaping (_ message: [UInt8]) -> Void,
        changed: @escaping (SharedFault?) -> Void
    ) {
        self.machine = machine
        self.link = link
        self.news = news
        self.changed = changed
        link.report = { [weak self] in self?.take(.link($0)) }
    }

    func start() { take(.began) }

    /// Fails whatever is under way, and whatever is asked for from then on.
    func stop() { take(.ended) }

    /// - Parameter completion: called once, perhaps before this returns.
    func send(_ words: [[UInt8]], completion: @escaping Completion) {
        lastNumber += 1
        completions[lastNumber] = completion
        take(.asked(words, number: lastNumber))
    }

    /// Takes events one after the other, because an action for one may cause the next.
    private func take(_ event: RedisMachine.Event) {
        events.append(event)
        guard !isInterpreting else { return }
        isInterpreting = true
        defer { isInterpreting = false }
        while !events.isEmpty {
            for action in machine.on(events.removeFirst(), at: link.now) { perform(action) }
        }
        link.wake(at: machine.deadline)
    }

    private func perform(_ action: RedisMachine.Action) {
        switch action {
        case .prepare: link.prepare()
        case .connect: link.connect()
        case .send(let bytes): link.send(bytes)
        case .close: link.close()
        case .answer(let number, let result): completions.removeValue(forKey: number)?(result)
        case .news(let message): news(message)
        case .changed(let fault): changed(fault)
        }
    }
}
