/// Access records on their way from one loop to the log thread.
public final class AccessRing: Sendable {
    private let records: RecordRing<AccessRecord>

    init(capacity: Int, wake: WakePipe) { records = RecordRing(capacity: capacity, wake: wake) }

    /// How many records fit.
    public var capacity: Int { records.capacity }

    /// Records that found the ring full.
    public var dropped: UInt64 { records.dropped }

    // MARK: - The owning loop only

    /// Hands the next free slot, cleared, to `fill`.
    /// - Parameter isLine: the record becomes a line of the log, and is counted where it is lost; else it only tells that a request failed.
    /// - Returns: false when the ring is full; `fill` was not called.
    @discardableResult
    public func append(isLine: Bool = true, _ fill: (inout AccessRecord) -> Void) -> Bool {
        records.append(countingLoss: isLine) { record in
            record.isLine = isLine
            fill(&record)
        }
    }

    // MARK: - The log thread only

    /// Whether there is a record, as the second half of a sleeper's handshake.
    var hasNext: Bool { records.hasNext }

    /// Gives the oldest record to `body` in place.
    /// - Returns: false when there is none.
    func next(_ body: (borrowing AccessRecord) -> Void) -> Bool { records.next(body) }

    func armWake() { records.armWake() }
    func disarmWake() { records.disarmWake() }
}
