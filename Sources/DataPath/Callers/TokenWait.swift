internal import Handshakes
internal import HotCache

/// The dealings of a request with the keeper: what it waits for, and what was given to it alone.
struct TokenWait: ~Copyable {
    /// The ticket of a challenge that is held in the upstream's block until the keeper's verdict; 0 for none.
    var ticket: UInt64 = 0
    /// The ticket under which this request became the scout, while the keeper waits for what it finds; 0 for none.
    var scoutTicket: UInt64 = 0
    /// The identity that this request is counted as a waiter of.
    var countedAt: Int?
    /// When that began, by the loop's clock.
    var countedSince: UInt64 = 0
    /// The slot whose token this request waits for.
    var waitsFor: Slot?
    /// The index among those that wait for it.
    var waitingIndex: Int?
    /// The generation that was granted because this request waited; 0 for none.
    var justGranted: UInt64 = 0
    /// A credential that the keeper handed to this request alone.
    var carried: Secret?

    @inline(__always) init() {}
}
