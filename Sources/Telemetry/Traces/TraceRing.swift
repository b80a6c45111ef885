/// Exchanges on their way from one loop to the log thread, which makes spans of them.
public final class TraceRing: Sendable {
    private let records: RecordRing<ExchangeTrace>

    init(capacity: Int, wake: WakePipe) { records = RecordRing(capacity: capacity, wake: wake) }

    /// Exchanges that found the ring full.
    var dropped: UInt64 { records.dropped }

    // MARK: - The owning loop only

    /// Hands the next free slot, cleared, to `fill`.
    /// - Returns: false when the ring is full; `fill` was not called.
    @discardableResult
    public func append(_ fill: (inout ExchangeTrace) -> Void) -> Bool { records.append(fill) }

    // MARK: - The log thread only

    /// Whether there is a record, as the second half of a sleeper's handshake.
    var hasNext: Bool { records.hasNext }

    /// Gives the oldest record to `body` in place.
    /// - Returns: false when there is none.
    func next(_ body: (borrowing ExchangeTrace) -> Void) -> Bool { records.next(body) }

    func armWake() { records.armWake() }
    func disarmWake() { records.disarmWake() }
}
