import Synchronization
public import World

/// The same numbers for the same seed (SplitMix64). Not fit for keys.
public final class SeededRandom: RandomSource {
    private let state: Mutex<UInt64>

    /// Each seed has a sequence of its own.
    public init(seed: UInt64 = 1) { state = Mutex(seed) }

    /// The next `count` octets of the sequence, in whole numbers of eight.
    public func bytes(_ count: Int) -> [UInt8] {
        state.withLock { state in
            var bytes: [UInt8] = []
            while bytes.count < count {
                state &+= 0x9E37_79B9_7F4A_7C15
                var mixed = state
                mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
                mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
                mixed ^= mixed >> 31
                for shift in stride(from: 0, to: 64, by: 8) where bytes.count < count {
                    bytes.append(UInt8(truncatingIfNeeded: mixed >> UInt64(shift)))
                }
            }
            return bytes
        }
    }
}
