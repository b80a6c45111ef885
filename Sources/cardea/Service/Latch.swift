import Synchronization

/// Set on one thread, seen by another.
final class Latch: Sendable {
    private let value = Atomic<Bool>(false)
    func set() { value.store(true, ordering: .releasing) }
    var isSet: Bool { value.load(ordering: .acquiring) }
    /// Whether it was set; it is not any more.
    func take() -> Bool { value.exchange(false, ordering: .acquiringAndReleasing) }
}
