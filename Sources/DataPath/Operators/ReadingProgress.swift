/// When the reader of an answer last took some of it. Pure: the clock and what is left are parameters.
///
/// A reader is told from one that only holds its connection by octets, however few: slow networks are no attack, and for how long an answer
/// may be read at all is bounded elsewhere.
struct ReadingProgress {
    /// Nanoseconds; at first, when the connection or the answer began.
    private(set) var at: UInt64
    /// Octets that its peer has not acknowledged; the least that were seen.
    private var left = Int.max

    init(at now: UInt64) { at = now }

    /// - Parameter left: of the answer, in our buffers and in the kernel's.
    mutating func note(left: Int, at now: UInt64) {
        guard left < self.left else { return }
        self.left = left
        at = now
    }

    /// Nothing was taken for two seconds: longer than the kernel waits before it first repeats a lost segment.
    func isStalled(at now: UInt64) -> Bool { now &- at >= Self.grace }

    /// Nanoseconds.
    static let grace: UInt64 = 2_000_000_000
}
