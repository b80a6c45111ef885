import Synchronization
import Testing
import TokenStore

@Suite struct ErasureMaskTests {
    private let disk = SlowDisk()
    private let store: ErasureMask

    init() { store = ErasureMask(disk) }

    private func put(_ value: String) { store.commit([.put(row(1, "a", value))]) { _ in } }
    private func delete() { store.commit([.delete(kind: 1, key: Array("a".utf8))]) { _ in } }

    private var found: String? {
        let value = Mutex<[UInt8]?>(nil)
        store.fetch(kind: 1, key: Array("a".utf8)) { result in value.withLock { $0 = (try? result.get())?.value } }
        return value.withLock { $0 }.map { String(decoding: $0, as: UTF8.self) }
    }

    @Test func `a row whose deletion failed is not seen, and stands to be deleted`() {
        put("old")
        disk.answer()
        #expect(found == "old" && store.restore().count == 1)
        delete()
        #expect(found == nil && store.restore().isEmpty, "from the moment it was asked for")
        disk.answer(with: .io)
        #expect(disk.rows.count == 1)
        #expect(found == nil && store.restore().isEmpty)
        #expect(store.standing.count == 1)
        store.commit(store.standing) { _ in }
        disk.answer()
        #expect(disk.rows.isEmpty && store.standing.isEmpty)
    }

    @Test func `a row that is put anew is seen`() {
        put("old")
        disk.answer()
        delete()
        disk.answer(with: .full)
        put("new")
        #expect(store.standing.isEmpty, "or a repeated purge would take the new one")
        disk.answer()
        #expect(found == "new" && store.restore().count == 1)
    }

    @Test func `what is too large is not put again`() {
        let store = ErasureMask(disk, lastingKinds: [1])
        store.put(row(1, "a", "large")) { _ in }
        disk.answer(with: .full)
        #expect(store.untaken.count == 1)
        store.put(row(1, "a", "larger")) { _ in }
        disk.answer(with: .tooLarge)
        #expect(store.untaken.isEmpty)
    }

    @Test func `where it could not be put anew, the old one stays hidden`() {
        put("old")
        disk.answer()
        delete()
        disk.answer(with: .full)
        put("new")
        disk.answer(with: .full)
        #expect(found == nil && store.restore().isEmpty && store.standing.count == 1)
    }

    @Test func `the change that came last counts, whatever is answered late`() {
        put("old")
        disk.answer()
        delete()
        put("new")
        delete()
        disk.answer(with: .io)
        disk.answer()
        #expect(found == nil, "the second deletion is still to come")
        #expect(store.standing.count == 1)
        disk.answer(with: .io)
        #expect(found == nil && store.standing.count == 1)
    }

    @Test func `what another process owns is its own`() {
        put("old")
        disk.answer()
        delete()
        disk.answer(with: .notOwner)
        #expect(found == "old" && store.standing.isEmpty)
    }
}

/// Answers when it is told, in order; lookups at once.
private final class SlowDisk: RowStore {
    private let state = Mutex(State())

    private struct State {
        var rows: [StoredRow] = []
        var waiting: [(changes: [StoreChange], completion: Completion)] = []
    }

    var rows: [StoredRow] { state.withLock { $0.rows } }

    /// - Parameter fault: nil: the change is made.
    func turn() {}

    func answer(with fault: StoreFault.Kind? = nil) {
        let completion = state.withLock { state in
            let (changes, completion) = state.waiting.removeFirst()
            for change in changes where fault == nil {
                switch change {
                case .put(let row):
                    state.rows.removeAll { $0.kind == row.kind && $0.key == row.key }
                    state.rows.append(row)
                case .delete(let kind, let key): state.rows.removeAll { $0.kind == kind && $0.key == key }
                case .deleteAll, .deleteExpired: break
                }
            }
            return completion
        }
        completion(fault.map { .failure(StoreFault($0, "as told")) } ?? .success(()))
    }

    func commit(_ changes: [StoreChange], completion: @escaping Completion) {
        state.withLock { $0.waiting.append((changes, completion)) }
    }

    func restore() -> [StoredRow] { rows }

    func fetch(
        kind: UInt8, key: [UInt8], completion: @escaping @Sendable (Result<StoredRow?, StoreFault>) -> Void
    ) {
        completion(.success(rows.first { $0.kind == kind && $0.key == key }))
    }

    func measure(completion: @escaping @Sendable (Result<StoreSize, StoreFault>) -> Void) {
        completion(.success(StoreSize()))
    }

    func start(_ job: StoreJob, completion: @escaping @Sendable (Result<StoreReport, StoreFault>) -> Void) {
        completion(.failure(StoreFault(.busy, "as told")))
    }
}
