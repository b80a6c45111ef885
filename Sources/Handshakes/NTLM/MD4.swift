internal import Octets

/// MD4 (RFC 1320), which the key of NTLM is made by and nothing else: system libraries no longer have it without their legacy parts.
enum MD4 {
    static func hash(_ bytes: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476]
        let bits = UInt64(bytes.count) &* 8
        var padded = bytes + [0x80]
        while padded.count % 64 != 56 { padded.append(0) }
        padded += (0..<8).map { UInt8(truncatingIfNeeded: bits >> (8 * $0)) }
        defer { padded.wipe() }
        for start in stride(from: 0, to: padded.count, by: 64) {
            let words = (0..<16).map { word in
                (0..<4).reduce(UInt32(0)) { $0 | UInt32(padded[start + 4 * word + $1]) << UInt32(8 * $1) }
            }
            mix(words, into: &state)
        }
        return state.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (8 * $0)) } }
    }

    /// The order of the words, the shifts and the constant of each round (RFC 1320 section 3.4).
    private static let rounds: [(order: [Int], shifts: [UInt32], constant: UInt32)] = [
        (Array(0..<16), [3, 7, 11, 19], 0),
        ([0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15], [3, 5, 9, 13], 0x5a82_7999),
        ([0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15], [3, 9, 11, 15], 0x6ed9_eba1),
    ]

    private static func mix(_ words: [UInt32], into state: inout [UInt32]) {
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        for (number, round) in rounds.enumerated() {
            for (step, word) in round.order.enumerated() {
                let choice =
                    switch number {
                    case 0: (b & c) | (~b & d)
                    case 1: (b & c) | (b & d) | (c & d)
                    default: b ^ c ^ d
                    }
                let sum = a &+ choice &+ words[word] &+ round.constant
                let shift = round.shifts[step % 4]
                (a, b, c, d) = (d, sum << shift | sum >> (32 - shift), b, c)
            }
        }
        state = [state[0] &+ a, state[1] &+ b, state[2] &+ c, state[3] &+ d]
    }
}
