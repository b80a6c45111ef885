import Synchronization
public import World

/// The same numbers for the same seed (SplitMix64). Not fit for keys.
public final class SeededRandom: RandomSource {
    private let state: Mutex<UInt64>

    /// Each seed has a sequence of its own.
    public init(seed: UInt64 = 1) { state = Mutex(seed) }

    /// The next `count` octets of the sequence, in whole numbers of eight.
    public func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(count, 0))
        bytes.withUnsafeMutableBytes { fill($0) }
        return bytes
    }

    /// The same octets. Allocates nothing, as the real form: budgets are counted with this one.
    public func fill(_ memory: UnsafeMutableRawBufferPointer) {
        state.withLock { state in
            for start in stride(from: 0, to: memory.count, by: 8) {
                state &+= 0x9E37_79B9_7F4A_7C15
                var mixed = state
                mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
                mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
                mixed ^= mixed >> 31
                for index in start..<min(start + 8, memory.count) {
                    memory[index] = UInt8(truncatingIfNeeded: mixed >> UInt64((index - start) * 8))
                }
            }
        }
    }
}
