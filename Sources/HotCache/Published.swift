public import Synchronization

/// An immutable snapshot that one writer replaces and every loop reads without a lock or a reference count.
/// An old snapshot is released when every online reader of the domain has passed it.
public final class Published<Snapshot: AnyObject & Sendable>: @unchecked Sendable {
    @usableFromInline let pointer: Atomic<UnsafeMutableRawPointer?>
    private let epochs: EpochDomain

    /// Publishes the snapshot, or nothing with nil; a replaced snapshot is released when every reader of the domain has
    /// passed it.
    public init(_ snapshot: Snapshot?, in epochs: EpochDomain) {
        pointer = Atomic(snapshot.map { Unmanaged.passRetained($0).toOpaque() })
        self.epochs = epochs
    }

    deinit {
        // Only an object that no loop can reach any more is dropped, so nothing is inside a tick with it; a writer that drops
        // it earlier publishes nil first.
        if let old = pointer.exchange(nil, ordering: .sequentiallyConsistent) {
            Unmanaged<Snapshot>.fromOpaque(old).release()
        }
    }

    /// Writer only.
    public func publish(_ snapshot: Snapshot?) {
        let new = snapshot.map { Unmanaged.passRetained($0).toOpaque() }
        guard let old = pointer.exchange(new, ordering: .sequentiallyConsistent) else { return }
        epochs.retire(.object(Unmanaged<AnyObject>.fromOpaque(old)))
        epochs.reclaim()
    }
}
