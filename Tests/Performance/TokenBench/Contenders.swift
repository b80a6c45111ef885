import Atomics
import CURCU
import Glibc
import HotCache
import Synchronization

/// One way of keeping tokens that several threads read. `reader` is made on the reading thread; what it returns copies the token of a
/// key, or gives -1.
protocol Contender: AnyObject, Sendable {
    static var name: String { get }
    init(keys: Int)
    /// On the writer's thread.
    func put(_ key: Int, _ bytes: [UInt8])
    /// The time of `rounds` hits on the calling thread, in nanoseconds, with a pause to announce quiescence every `batch` hits.
    func measure(thread: Int, rounds: Int, keys: [Int32], into target: UnsafeMutableRawPointer) -> UInt64
}

/// Hits between two announcements, as a loop makes them in one wake under load.
let batch = 32

func nanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}

/// Runs `hit` in batches over the keys; `announce` between them. Inlined, so that each contender pays for itself alone.
@inline(__always)
func timed(_ rounds: Int, _ keys: [Int32], announce: () -> Void, hit: (Int) -> Int) -> UInt64 {
    let before = nanoseconds()
    var done = 0
    var position = 0
    keys.withUnsafeBufferPointer { keys in
        while done < rounds {
            announce()
            for _ in 0..<batch {
                // A contender that misses is faster than one that answers: its figure would be worth nothing.
                guard hit(Int(keys[position])) > 0 else { giveUp("a miss where there is a token") }
                position += 1
                if position == keys.count { position = 0 }
            }
            done += batch
        }
    }
    return nanoseconds() - before
}

// MARK: - Ours

final class OursContender: Contender, @unchecked Sendable {
    static let name = "cardea hot cache"
    let cache: HotCache
    var slots: [Slot] = []
    var generation: UInt64 = 0

    init(keys: Int) {
        cache = HotCache(readers: 4, slots: keys, byteLimit: 1 << 30)
        for _ in 0..<keys { if let slot = cache.allocateSlot() { slots.append(slot) } }
    }

    func put(_ key: Int, _ bytes: [UInt8]) {
        generation += 1
        let fields = RecordFields(refreshAt: .max, servedUntil: .max, expiresAt: .max, generation: generation)
        cache.publish(slot: slots[key], record: fields, bytes: bytes)
    }

    private let readers = Mutex<[Int: ReaderBox]>([:])
    private final class ReaderBox: Sendable {
        let reader: Reader
        init(_ reader: consuming Reader) { self.reader = reader }
    }

    func measure(thread: Int, rounds: Int, keys: [Int32], into target: UnsafeMutableRawPointer) -> UInt64 {
        let box = readers.withLock { readers in
            if let box = readers[thread] { return box }
            let box = ReaderBox(cache.makeReader(thread))
            readers[thread] = box
            return box
        }
        let slots = slots
        let taken = slots.withUnsafeBufferPointer { slots in
            timed(rounds, keys) {
                box.reader.enterTick()
            } hit: { key in
                guard case .hit(let view) = box.reader.lookup(slots[key], now: 1), let from = view.bytes.baseAddress
                else { return -1 }
                target.copyMemory(from: from, byteCount: view.bytes.count)
                return view.bytes.count
            }
        }
        box.reader.goOffline()
        return taken
    }
}

// MARK: - A dictionary behind a lock

struct PlainToken: Sendable {
    let refreshAt: UInt64
    let servedUntil: UInt64
    let bytes: [UInt8]
}

final class MutexContender: Contender {
    static let name = "Dictionary + Mutex"
    let tokens = Mutex<[Int: PlainToken]>([:])

    init(keys: Int) {}

    func put(_ key: Int, _ bytes: [UInt8]) {
        let token = PlainToken(refreshAt: .max, servedUntil: .max, bytes: bytes)
        tokens.withLock { $0[key] = token }
    }

    func measure(thread: Int, rounds: Int, keys: [Int32], into target: UnsafeMutableRawPointer) -> UInt64 {
        timed(rounds, keys) {
        } hit: { key in
            // The copy is made outside of the lock, from bytes that the array's reference count keeps.
            guard let token = tokens.withLock({ $0[key] }), 1 < token.servedUntil, 1 < token.refreshAt else {
                return -1
            }
            return token.bytes.withUnsafeBytes { bytes in
                guard let from = bytes.baseAddress else { return -1 }
                target.copyMemory(from: from, byteCount: bytes.count)
                return bytes.count
            }
        }
    }
}

// MARK: - Atomic references, counted

final class CountedToken: AtomicReference, Sendable {
    let token: PlainToken
    init(_ token: PlainToken) { self.token = token }
}

final class AtomicReferenceContender: Contender {
    static let name = "swift-atomics AtomicReference"
    let tokens: [ManagedAtomic<CountedToken>]

    init(keys: Int) {
        let empty = PlainToken(refreshAt: 0, servedUntil: 0, bytes: [])
        tokens = (0..<keys).map { _ in ManagedAtomic(CountedToken(empty)) }
    }

    func put(_ key: Int, _ bytes: [UInt8]) {
        let token = CountedToken(PlainToken(refreshAt: .max, servedUntil: .max, bytes: bytes))
        tokens[key].store(token, ordering: .sequentiallyConsistent)
    }

    func measure(thread: Int, rounds: Int, keys: [Int32], into target: UnsafeMutableRawPointer) -> UInt64 {
        tokens.withUnsafeBufferPointer { tokens in
            timed(rounds, keys) {
            } hit: { key in
                let token = tokens[key].load(ordering: .sequentiallyConsistent).token
                guard 1 < token.servedUntil, 1 < token.refreshAt else { return -1 }
                return token.bytes.withUnsafeBytes { bytes in
                    guard let from = bytes.baseAddress else { return -1 }
                    target.copyMemory(from: from, byteCount: bytes.count)
                    return bytes.count
                }
            }
        }
    }
}

// MARK: - liburcu

final class URCUContender: Contender, @unchecked Sendable {
    static let name = "liburcu cds_lfht (QSBR)"
    let table: OpaquePointer?

    init(keys: Int) { table = bench_table_make(4096) }
    deinit { bench_table_free(table) }

    func put(_ key: Int, _ bytes: [UInt8]) { bench_table_put(table, UInt64(key), bytes, bytes.count, .max) }

    func measure(thread: Int, rounds: Int, keys: [Int32], into target: UnsafeMutableRawPointer) -> UInt64 {
        bench_reader_enter()
        defer { bench_reader_leave() }
        return timed(rounds, keys) {
            bench_reader_quiescent()
        } hit: { key in
            bench_table_copy(table, UInt64(key), 1, target)
        }
    }
}
