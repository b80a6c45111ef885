internal import Synchronization

/// A store whose deletions hold from the moment they are asked for, whatever its disk does: a row that is to go and stands still is neither
/// found nor restored, until it has gone or is put anew. Rows that cannot be had anew and that the disk did not take are remembered, to be
/// put again.
///
/// The mask knows that for as long as the process lives; after a restart a row that stands is found again. Its changes must come from one
/// thread, in the order in which they count; answers may come on any.
public final class ErasureMask: RowStore {
    private let base: any RowStore
    private let state = Mutex(State())

    private let lastingKinds: Set<UInt8>

    private struct State {
        /// Entries of rows whose deletion was asked for and is not done, or that were put after such a one; and of rows of `lastingKinds` that are on
        /// their way to the disk, or that it did not take.
        var entries: [Name: Entry] = [:]
        var lastNumber: UInt64 = 0
    }
    private struct Name: Hashable {
        let kind: UInt8
        let key: [UInt8]

        init(kind: UInt8, key: [UInt8]) {
            self.kind = kind
            self.key = key
        }

        /// Nil for what names no single row.
        init?(of change: StoreChange) {
            switch change {
            case .put(let row): self.init(kind: row.kind, key: row.key)
            case .delete(let kind, let key): self.init(kind: kind, key: key)
            case .deleteAll, .deleteExpired: return nil
            }
        }
    }
    private struct Entry {
        /// The number of the commit that names the row last: an older one has nothing to say any more.
        var number: UInt64
        /// The row that stands is not to be seen.
        var hides: Bool
        /// The row, where its kind is a lasting one.
        var row: StoredRow?
    }

    /// Rows that are remembered; past them a deletion that fails is not. Most processes never have one.
    private static let limit = 16_384

    /// - Parameter lastingKinds: of rows that cannot be had anew.
    public init(_ base: any RowStore, lastingKinds: Set<UInt8> = []) {
        self.base = base
        self.lastingKinds = lastingKinds
    }
}

extension ErasureMask {
    /// See `RowStore`.
    public func turn() { base.turn() }

    /// Deletions that failed, or are under way.
    public var standing: [StoreChange] {
        state.withLock { state in
            state.entries.compactMap { name, entry in
                entry.hides && entry.row == nil ? .delete(kind: name.kind, key: name.key) : nil
            }
        }
    }

    /// Rows that the disk did not take, in the order in which they came.
    public var untaken: [StoredRow] {
        state.withLock { state in
            state.entries.values.filter { $0.hides && $0.row != nil }.sorted { $0.number < $1.number }.compactMap(\.row)
        }
    }

    /// The same by the commits that they came with: what has to be there together is put together, and what does not fit keeps nothing
    /// else away.
    public var untakenCommits: [[StoreChange]] {
        state.withLock { state in
            let left = state.entries.values.filter { $0.hides && $0.row != nil }
            let commits = Dictionary(grouping: left, by: \.number).sorted { $0.key < $1.key }
            return commits.map { $0.value.compactMap { entry in entry.row.map { .put($0) } } }
        }
    }

    /// The state of the store beneath.
    public var isDegraded: Bool { base.isDegraded }

    /// Without those that are to go.
    public func visible(_ rows: [StoredRow]) -> [StoredRow] {
        state.withLock { state in
            guard !state.entries.isEmpty else { return rows }
            return rows.filter { state.entries[Name(kind: $0.kind, key: $0.key)]?.hides != true }
        }
    }

    /// Hides what the changes delete at once, and until they are committed.
    public func commit(_ changes: [StoreChange], completion: @escaping Completion) {
        guard let number = note(changes) else { return base.commit(changes, completion: completion) }
        base.commit(changes) { [self] result in
            settle(changes, number, result)
            completion(result)
        }
    }

    /// The rows of the store beneath, without those that are to go.
    public func restore() -> [StoredRow] {
        let rows = base.restore()
        return rows.isEmpty ? [] : visible(rows)
    }

    /// A row that is to go is not found.
    public func fetch(kind: UInt8, key: [UInt8], completion: @escaping Answer<StoredRow?>) {
        let isHidden = state.withLock { state in
            !state.entries.isEmpty && state.entries[Name(kind: kind, key: key)]?.hides == true
        }
        if isHidden { return completion(.success(nil)) }
        base.fetch(kind: kind, key: key, completion: completion)
    }

    /// Counts rows that are to go as long as they are in the file.
    public func measure(completion: @escaping Answer<StoreSize>) {
        base.measure(completion: completion)
    }

    /// Runs on the store beneath.
    public func start(_ job: StoreJob, completion: @escaping Answer<StoreReport>) {
        base.start(job, completion: completion)
    }

    // MARK: -

    /// - Returns: nil when nothing has to be said of its outcome.
    private func note(_ changes: [StoreChange]) -> UInt64? {
        state.withLock { state in
            var isNamed = false
            for change in changes {
                var row: StoredRow?
                if case .put(let put) = change, lastingKinds.contains(put.kind) { row = put }
                let counts = change.isDeletion || row != nil
                // Most often there is no entry, and a row that is put needs no look.
                guard counts || !state.entries.isEmpty, let name = Name(of: change),
                    counts && state.entries.count < Self.limit || state.entries[name] != nil
                else { continue }
                isNamed = true
                state.entries[name] = Entry(number: state.lastNumber + 1, hides: change.isDeletion, row: row)
            }
            guard isNamed else { return nil }
            state.lastNumber += 1
            return state.lastNumber
        }
    }

    private func settle(_ changes: [StoreChange], _ number: UInt64, _ result: Result<Void, StoreFault>) {
        state.withLock { state in
            for change in changes {
                guard let name = Name(of: change), state.entries[name]?.number == number else { continue }
                switch result {
                case .success: state.entries[name] = nil
                // The file is another's, and so is what stands there.
                case .failure(let fault) where fault.kind == .notOwner: state.entries[name] = nil
                // Not to be put again: it would be refused each time.
                case .failure(let fault) where fault.kind == .tooLarge: state.entries[name]?.row = nil
                // Also of one that could not be put anew: what stands is still what was to go.
                case .failure: state.entries[name]?.hides = true
                }
            }
        }
    }
}
