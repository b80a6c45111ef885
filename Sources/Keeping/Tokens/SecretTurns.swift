/// Readings of secrets that wait for room on the blocking thread. A start reads the secrets of all fixed credentials at once, and of thousands
/// of identities more than the thread lets wait.
struct SecretTurns {
    /// Readings that the thread has; each that ends lets the next one in.
    private(set) var reading = 0
    private var waiting: [Wait<Void>] = []
    private var head = 0

    /// More are refused: then nothing has been read for long, and callers learn why.
    private static let mostWaiting = 65_536

    /// Whether one more may wait. Without a reading under way nobody would wake it.
    var hasRoom: Bool { reading > 0 && waiting.count - head < Self.mostWaiting }

    mutating func add(_ wait: Wait<Void>) { waiting.append(wait) }

    mutating func began() { reading += 1 }

    /// - Returns: who is to try next.
    mutating func ended() -> Wait<Void>? {
        reading -= 1
        return next()
    }

    /// Also by one that was woken and does not read: whoever waits behind it must not wait for nobody.
    mutating func next() -> Wait<Void>? {
        guard head < waiting.count else { return nil }
        let next = waiting[head]
        head += 1
        if head == waiting.count {
            waiting.removeAll()
            head = 0
        }
        return next
    }
}
