import Glibc
import HotCache
import Synchronization
import TLS
import TokenStore

/// A million tokens, of which memory holds 64 MiB: the hot cache before, the store behind. A miss is looked up on the store's thread and
/// published, as the keeper does it; no issuer is asked.
struct SpillTable {
    struct Result: Sendable {
        var tokens = 0
        var tokenBytes = 900
        var cacheBytes = 64 << 20
        var fileBytes = 0
        /// Milliseconds until the store was open, and until the first token had been looked up after that.
        var openMilliseconds = 0.0
        var firstLookupMilliseconds = 0.0
        var requests = 0
        var hitRatio = 0.0
        var lookups = 0
        /// Microseconds of a lookup, from the miss to the published token.
        var p50 = 0.0
        var p99 = 0.0
        var p999 = 0.0
        var lost = 0
        /// Resident bytes of the process, before the store was opened and at the end.
        var residentBefore = 0
        var residentAfter = 0
    }

    static func key(_ number: Int) -> [UInt8] {
        Array("digest|https://api.example.com|realm|scope|subject-\(number)".utf8)
    }

    static func token(_ number: Int) -> [UInt8] {
        var random = SplitMix(state: UInt64(number))
        return (0..<900).map { _ in UInt8(ascii: "A") + UInt8(random.next() % 26) }
    }

    static func options() -> StoreOptions {
        var options = StoreOptions()
        options.spilledKinds = [1]
        options.openTimeout = 60_000
        return options
    }

    /// Writes the file; a process of its own, so that its memory is not counted.
    static func fill(_ path: String, tokens: Int) throws {
        let store = TokenStore(path: path, keys: try ring(), options: options())
        guard case .owner = store.open(now: 0) else { giveUp("the store cannot be opened") }
        let failed = Atomic<Int>(0)
        let done = Atomic<Int>(0)
        var sent = 0
        for start in stride(from: 0, to: tokens, by: 2_000) {
            let changes = (start..<min(start + 2_000, tokens)).map {
                StoreChange.put(StoredRow(kind: 1, key: key($0), value: token($0), expiresWall: 1 << 52))
            }
            store.commit(changes) { outcome in
                if case .failure = outcome { failed.wrappingAdd(1, ordering: .relaxed) }
                done.wrappingAdd(1, ordering: .relaxed)
            }
            sent += 1
            while sent - done.load(ordering: .relaxed) > 4 { usleep(1000) }
        }
        while !store.close() {}
        // Rows that are missing would be counted as lost by the table.
        guard failed.load(ordering: .relaxed) == 0 else { giveUp("the store did not take every row") }
    }

    static func run(_ path: String, tokens: Int, requests: Int) throws -> Result {
        var result = Result()
        result.tokens = tokens
        result.requests = requests
        result.residentBefore = resident()
        let began = nanoseconds()
        let store = TokenStore(path: path, keys: try ring(), options: options())
        guard case .owner = store.open(now: 0) else { giveUp("the store cannot be opened") }
        result.openMilliseconds = Double(nanoseconds() - began) / 1e6
        _ = store.fetch(kind: 1, keys: [key(tokens / 2)], within: 60_000)
        result.firstLookupMilliseconds = Double(nanoseconds() - began) / 1e6

        let cache = HotCache(readers: 1, slots: 1 << 18, byteLimit: result.cacheBytes)
        let reader = cache.makeReader(0)
        let popular = Zipf(keys: tokens, exponent: 0.9)
        var random = SplitMix(state: 11)
        var slots: [Int32: Slot] = [:]
        var keys: [Slot: Int32] = [:]
        var times: [UInt32] = []
        var hits = 0
        let answer = Answer()
        for number in 0..<requests {
            if number % 32 == 0 { reader.enterTick() }
            let wanted = popular.next(&random)
            // The most popular keys lie all over the file.
            let key = Int32((wanted &* 611_953 &+ 17) % tokens)
            if let slot = slots[key], case .hit = reader.lookup(slot, now: 1) {
                hits += 1
                continue
            }
            let before = nanoseconds()
            guard let bytes = answer.fetch(Self.key(Int(key)), from: store), let slot = cache.allocateSlot() else {
                result.lost += 1
                continue
            }
            let fields = RecordFields(
                refreshAt: .max, servedUntil: .max, expiresAt: .max, generation: UInt64(number + 1))
            if case .published(let evicted) = cache.publish(slot: slot, record: fields, bytes: bytes) {
                slots[key] = slot
                keys[slot] = key
                for old in evicted {
                    if let key = keys.removeValue(forKey: old) { slots[key] = nil }
                    cache.releaseSlot(old)
                }
            }
            times.append(UInt32(clamping: nanoseconds() - before))
        }
        times.sort()
        func quantile(_ share: Double) -> Double {
            times.isEmpty ? 0 : Double(times[min(times.count - 1, Int(Double(times.count) * share))]) / 1e3
        }
        result.hitRatio = Double(hits) / Double(requests)
        result.lookups = times.count
        result.p50 = quantile(0.5)
        result.p99 = quantile(0.99)
        result.p999 = quantile(0.999)
        result.residentAfter = resident()
        var status = stat()
        if stat(path, &status) == 0 { result.fileBytes = Int(status.st_size) }
        store.close()
        return result
    }

    /// One thread asks and sleeps until the store's has answered, as a loop does.
    private final class Answer: @unchecked Sendable {
        private let given = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)
        private let value = Mutex<[UInt8]?>(nil)
        init() { sem_init(given, 0, 0) }

        func fetch(_ key: [UInt8], from store: TokenStore) -> [UInt8]? {
            store.fetch(kind: 1, key: key) { [self] outcome in
                let found = (try? outcome.get()).flatMap { $0 }
                value.withLock { $0 = found?.value }
                sem_post(given)
            }
            while sem_wait(given) != 0 {}
            return value.withLock { $0 }
        }
    }

    private static func ring() throws -> SealingKeyRing {
        try SealingKeyRing([try SealingKey(bytes: (0..<32).map { UInt8($0) })])
    }

    private static func resident() -> Int {
        guard let file = fopen("/proc/self/statm", "r") else { return 0 }
        defer { fclose(file) }
        var text = [UInt8](repeating: 0, count: 128)
        let count = fread(&text, 1, text.count, file)
        let words = String(decoding: text.prefix(count), as: UTF8.self).split(separator: " ")
        return words.count > 1 ? (Int(words[1]) ?? 0) * 4096 : 0
    }
}
