import Glibc
import Synchronization
import World

/// Work that blocks, on a thread of its own. It runs only while the simulation waits for it, so that a seed has one history whatever the
/// scheduler does.
final class Errand: @unchecked Sendable {
    private enum Phase { static let runs = 0, waits = 1, isDone = 2 }

    private let phase = Atomic<Int>(Phase.waits)
    private let permission = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
    private var thread: WorkerThread?

    /// - Parameter work: begins when the errand goes on for the first time.
    init(_ work: @escaping @Sendable (Errand) -> Void) {
        sem_init(permission, 0, 0)
        thread = try? WorkerThread(name: "errand") { [self] in
            awaitPermission()
            work(self)
            phase.store(Phase.isDone, ordering: .releasing)
        }
    }

    var isDone: Bool { phase.load(ordering: .acquiring) == Phase.isDone }

    /// On the errand's thread: returns when the simulation lets it go on.
    func pause() {
        phase.store(Phase.waits, ordering: .releasing)
        awaitPermission()
    }

    /// Lets the work go on until it pauses or ends.
    /// - Parameter meanwhile: called again and again, for what the work waits for.
    func goOn(_ meanwhile: () -> Void) {
        guard !isDone, let thread else { return }
        phase.store(Phase.runs, ordering: .releasing)
        sem_post(permission)
        while phase.load(ordering: .acquiring) == Phase.runs {
            meanwhile()
            sched_yield()
        }
        guard isDone else { return }
        thread.join()
        self.thread = nil
        sem_destroy(permission)
        permission.deallocate()
    }

    private func awaitPermission() { while sem_wait(permission) != 0 {} }
}
