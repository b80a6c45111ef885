internal import CLinux
internal import Glibc

/// An eventfd: any thread makes it readable, and who sleeps on it resets it.
final class Wakeup: Sendable {
    let descriptor: Int32

    /// - Parameter blocks: `acknowledge` waits for a `wake`.
    /// - Returns: nil when the kernel gives no eventfd; `errno` says why.
    init?(blocks: Bool = false) {
        let made = eventfd(0, Int32(EFD_CLOEXEC) | (blocks ? 0 : Int32(EFD_NONBLOCK)))
        guard made >= 0 else { return nil }
        descriptor = made
    }

    deinit { _ = Glibc.close(descriptor) }

    func wake() {
        var one: UInt64 = 1
        _ = Glibc.write(descriptor, &one, 8)
    }

    /// - Returns: whether `wake` was called since the last time.
    @discardableResult
    func acknowledge() -> Bool {
        var count: UInt64 = 0
        return Glibc.read(descriptor, &count, 8) == 8
    }
}
