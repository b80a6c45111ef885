import Glibc
import HotCache

/// Hit ratios of the hot cache, driven by one loop, against a cache that drops what was used least lately.
struct EvictionTable {
    struct Row: Sendable {
        var trace: String
        /// Share of requests, 0 to 1.
        var ours: Double
        var leastRecentlyUsed: Double
    }

    static let keys = 100_000
    static let capacity = 6_400
    static let requests = 1_000_000

    static func run() -> [Row] {
        var rows: [Row] = []
        for exponent in [0.7, 0.9, 1.1] {
            for scanLength in [0, 10_000] {
                let trace = trace(exponent, scanLength: scanLength)
                let name = "Zipf \(exponent), \(scanLength == 0 ? "no scans" : "a scan of \(scanLength) every 50000")"
                rows.append(
                    Row(trace: name, ours: ours(trace), leastRecentlyUsed: leastRecentlyUsed(trace)))
            }
        }
        return rows
    }

    static func trace(_ exponent: Double, scanLength: Int) -> [Int32] {
        let popular = Zipf(keys: keys, exponent: exponent)
        var random = SplitMix(state: 7)
        var fresh = Int32(keys)
        var trace: [Int32] = []
        trace.reserveCapacity(requests)
        while trace.count < requests {
            for _ in 0..<50_000 { trace.append(Int32(popular.next(&random))) }
            for _ in 0..<scanLength {
                fresh += 1
                trace.append(fresh)
            }
        }
        return trace
    }

    private static func ours(_ trace: [Int32]) -> Double {
        let bytes = [UInt8](repeating: 7, count: 100)
        let fields = RecordFields(refreshAt: .max, servedUntil: .max, expiresAt: .max, generation: 1)
        let one = HotCache(readers: 1, slots: 1, byteLimit: 1 << 20)
        if let slot = one.allocateSlot() { one.publish(slot: slot, record: fields, bytes: bytes) }
        let cache = HotCache(readers: 1, slots: capacity + 1, byteLimit: one.liveBytes * capacity)
        let reader = cache.makeReader(0)
        var slots: [Int32: Slot] = [:]
        var keys: [Slot: Int32] = [:]
        var hits = 0
        for (number, key) in trace.enumerated() {
            if number % 32 == 0 { reader.enterTick() }
            if let slot = slots[key], case .hit = reader.lookup(slot, now: 1) {
                hits += 1
                continue
            }
            guard let slot = cache.allocateSlot(),
                case .published(let evicted) = cache.publish(slot: slot, record: fields, bytes: bytes)
            else { continue }
            slots[key] = slot
            keys[slot] = key
            for old in evicted {
                if let key = keys.removeValue(forKey: old) { slots[key] = nil }
                cache.releaseSlot(old)
            }
        }
        return Double(hits) / Double(trace.count)
    }

    private static func leastRecentlyUsed(_ trace: [Int32]) -> Double {
        var stamps: [Int32: Int] = [:]
        var oldest = 0
        var hits = 0
        for (now, key) in trace.enumerated() {
            if stamps.updateValue(now, forKey: key) != nil { hits += 1 }
            // The trace itself is the queue: an entry counts while it is its key's last.
            while stamps.count > capacity {
                if stamps[trace[oldest]] == oldest { stamps[trace[oldest]] = nil }
                oldest += 1
            }
        }
        return Double(hits) / Double(trace.count)
    }
}

struct SplitMix: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}

/// Keys by Zipf's law.
struct Zipf {
    private let sums: [Double]

    init(keys: Int, exponent: Double) {
        var sum = 0.0
        sums = (0..<keys).map { key in
            sum += pow(Double(key + 1), -exponent)
            return sum
        }
    }

    func next(_ random: inout SplitMix) -> Int {
        let wanted = Double(random.next() >> 11) / Double(1 << 53) * sums[sums.count - 1]
        var (low, high) = (0, sums.count - 1)
        while low < high {
            let middle = (low + high) / 2
            if sums[middle] < wanted { low = middle + 1 } else { high = middle }
        }
        return low
    }
}
