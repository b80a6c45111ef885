public import Synchronization
public import Telemetry

/// Letters to one loop from any thread: a bounded queue and an eventfd that is written only when the loop may not look again.
///
/// The race. A sender publishes its letter, then reads `attention`. The owner, when it has emptied the queue, sets `attention`,
/// then looks at the queue once more. These four accesses are sequentially consistent, so they have one order that every
/// thread agrees on. If the owner's last look comes after the letter in it, the owner takes the letter. If it comes
/// before, so does the setting of `attention`, and the sender's read comes after: it sees `attention` set, or cleared by
/// another sender, who then writes the eventfd, or cleared by the owner, who then empties the queue once more and comes
/// to the same handshake again. A letter is therefore never left behind with the owner asleep.
/// The other way round, a letter taken whose sender still writes the eventfd, costs one idle turn and is harmless.
///
/// The letter at the head is the one that counts: a sender that has claimed the head and not yet filled it makes the queue
/// look empty although later letters are complete. It publishes after that look, so by the above it wakes the owner.
public final class Mailbox<Element: Sendable>: Sendable {
    /// Readable when the owner should call `drain`. Meant for edge-triggered watching; `acknowledge` resets it.
    public var descriptor: Int32 { wakeup.descriptor }
    private let wakeup: Wakeup
    @usableFromInline let queue: BoundedQueue<Element>
    // Set: the owner has seen the queue empty, and will look again only when the eventfd says so.
    @usableFromInline let attention: Atomic<Bool>

    /// - Parameter capacity: letters that may wait, rounded up to a power of two.
    /// - Returns: nil when the kernel gives no eventfd; `errno` says why.
    public init?(capacity: Int) {
        guard let wakeup = Wakeup() else { return nil }
        self.wakeup = wakeup
        queue = BoundedQueue(capacity: capacity)
        attention = Atomic(true)
    }

    // MARK: - Any thread

    /// - Returns: false when the mailbox is full; the letter was not taken.
    @inlinable
    public func send(_ letter: Element) -> Bool {
        guard queue.send(letter) else { return false }
        // The load first: while the owner is at work the senders share the line and none of them writes it. The exchange may
        // be relaxed; it only picks the one that makes the system call, and the letter is published already.
        if attention.load(ordering: .sequentiallyConsistent), attention.exchange(false, ordering: .relaxed) { wake() }
        return true
    }

    /// Makes the descriptor readable in any case, for a turn without a letter.
    public func wake() { wakeup.wake() }

    // MARK: - The owner's thread only

    /// Resets the descriptor. Before `drain`, never after it: a wake-up in between would be lost.
    public func acknowledge() { wakeup.acknowledge() }

    /// Whether `drain` would open one now.
    var hasLetters: Bool { queue.hasNext }

    /// Opens what waits, at most `limit` letters (the capacity unless told), oldest first. `body` may send to this very mailbox.
    /// - Returns: letters opened.
    @inlinable
    @discardableResult
    public func drain(limit: Int? = nil, _ body: (Element) -> Void) -> Int {
        let limit = limit ?? queue.capacity
        var opened = 0
        while true {
            // Nothing came and attention still stands: the usual turn costs two plain loads.
            if opened == 0, attention.load(ordering: .relaxed), !queue.hasNext { return 0 }
            attention.store(false, ordering: .relaxed)
            while opened < limit, let letter = queue.receive() {
                body(letter)
                opened += 1
            }
            attention.store(true, ordering: .sequentiallyConsistent)
            guard queue.hasNext else { return opened }
            if opened >= limit {
                // More than one turn's share: the next turn comes at once, and other work has its turn in between.
                if attention.exchange(false, ordering: .relaxed) { wake() }
                return opened
            }
        }
    }
}
