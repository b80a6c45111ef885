internal import CLinux
internal import Glibc
package import Reactor

/// Learns which addresses are this network namespace's own, also those that come later: containers get theirs after the start, and
/// `callers: local` must know them. On the keeper's loop; data loops get finished sets.
package final class AddressWatch: Watched {
    package var changed: (LocalAddresses) -> Void = { _ in }
    private var isArmed = false
    private var lastReading: UInt64 = 0

    /// Nanoseconds between two readings at least: an interface that flaps, or thousands of addresses one after the other, cost one a second.
    private static let spacing: UInt64 = 1_000_000_000

    /// - Returns: false where netlink is not to be had: the addresses of the start are then all there are.
    package func begin() -> Bool {
        let descriptor = cardea_address_events()
        guard descriptor >= 0 else { return false }
        guard loop.watch(self, descriptor: descriptor) else {
            Glibc.close(descriptor)
            return false
        }
        // Between the first reading and the subscription one may have come.
        schedule()
        return true
    }

    package override func ready(_ readiness: Readiness) {
        // The content of the messages is not used: an overrun (ENOBUFS) loses some of them, while a reading of the addresses misses
        // none.
        var drain = [UInt8](repeating: 0, count: 8192)
        while Glibc.read(descriptor, &drain, drain.count) > 0 || errno == ENOBUFS {}
        schedule()
    }

    private func schedule() {
        guard !isArmed else { return }
        isArmed = loop.arm(self, at: max(loop.now, lastReading + Self.spacing), kind: 0) != nil
    }

    package override func timerFired(_ kind: UInt8) {
        isArmed = false
        lastReading = loop.now
        changed(.snapshot())
    }
}
