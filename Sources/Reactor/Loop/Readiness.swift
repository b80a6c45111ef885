internal import CLinux

/// The events that epoll reported for a descriptor. Everything is edge-triggered: an event says that something changed, and the owner
/// keeps reading or writing until the kernel says "not now".
public struct Readiness: OptionSet, Sendable {
    /// Bits of `epoll_event.events`.
    public let rawValue: UInt32
    /// Any bits are allowed.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// `EPOLLIN`.
    public static let readable = Readiness(rawValue: 0x001)
    /// `EPOLLOUT`.
    public static let writable = Readiness(rawValue: 0x004)
    /// `EPOLLERR`: the socket holds an error.
    public static let failed = Readiness(rawValue: 0x008)
    /// `EPOLLHUP`: both directions are closed.
    public static let hungUp = Readiness(rawValue: 0x010)
    /// `EPOLLRDHUP`: the peer sends no more.
    public static let inputEnded = Readiness(rawValue: 0x2000)
    static let exclusive = Readiness(rawValue: 1 << 28)
    static let edgeTriggered = Readiness(rawValue: 1 << 31)
}

/// A file descriptor that lives on one loop, with the two calls that the loop makes to its owner.
///
/// A base class rather than a protocol: dispatch is one indirect call, and the loop's table holds one word for each.
/// Everything here is called on the loop's thread only.
open class Watched {
    /// The one loop that calls this object, for life.
    public final let loop: Loop
    /// The loop's key while registered, zero otherwise.
    final var key: UInt64 = 0
    /// −1 once closed.
    public final internal(set) var descriptor: Int32 = -1
    /// Epoll reports when output is possible again.
    final var hearsOutput = false

    /// Not yet in the loop's table: `Loop.watch` puts it there.
    public init(loop: Loop) {
        self.loop = loop
    }

    /// The object stands in the loop's table, where timers can find it.
    public final var hasEntry: Bool { key != 0 }

    /// The descriptor's readiness changed.
    open func ready(_ readiness: Readiness) {}

    /// The timer that was armed with `Loop.arm` for this object fired.
    open func timerFired(_ kind: UInt8) {}

    /// The turn ends in which `Loop.callAtEndOfTurn` was called for this object.
    open func turnEnds() {}
}
