import Glibc
import Synchronization

/// Wakes one sleeping thread; a system call only when it may really sleep.
///
/// A pipe rather than an eventfd, because this module needs nothing beyond Glibc. The protocol of the two flags is the one
/// that `BoundedQueue.hasNext` describes.
final class WakePipe: Sendable {
    let readEnd: Int32
    private let writeEnd: Int32

    init() throws(LogFault) {
        var ends: (Int32, Int32) = (-1, -1)
        let made = withUnsafeMutablePointer(to: &ends) { pair in
            pair.withMemoryRebound(to: Int32.self, capacity: 2) { pipe($0) }
        }
        guard made == 0 else { throw LogFault(call: "pipe", errno: errno) }
        (readEnd, writeEnd) = ends
        for end in [readEnd, writeEnd] {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
    }

    deinit {
        close(readEnd)
        close(writeEnd)
    }

    /// A full pipe refuses the byte, and then the sleeper has plenty to wake for.
    func wake() {
        var byte: UInt8 = 1
        _ = write(writeEnd, &byte, 1)
    }

    func acknowledge() {
        withUnsafeTemporaryAllocation(byteCount: 64, alignment: 1) { bytes in
            while read(readEnd, bytes.baseAddress, bytes.count) == bytes.count {}
        }
    }
}

/// "The receiver may be asleep": set by the receiver before it checks its queue for the last time, taken by the first sender.
struct SleepFlag: ~Copyable, Sendable {
    private let asleep = Atomic<Bool>(false)

    /// Receiver: before the last look at the queue.
    func arm() { asleep.store(true, ordering: .sequentiallyConsistent) }

    /// Receiver: awake again. Relaxed: a sender that still sees the old value wakes once too often, which is harmless.
    func disarm() { asleep.store(false, ordering: .relaxed) }

    /// Sender: after publishing. True for exactly one of those that find the receiver asleep.
    func take() -> Bool {
        asleep.load(ordering: .sequentiallyConsistent) && asleep.exchange(false, ordering: .relaxed)
    }
}

/// A log thread could not be set up: the call that failed and its `errno`.
public struct LogFault: Error, Sendable, CustomStringConvertible {
    /// The name of the system call.
    let call: String
    /// The error number that it left.
    public let errno: Int32
    /// The call and the system's text for the error.
    public var description: String { "\(call): \(String(cString: strerror(errno)))" }
}
