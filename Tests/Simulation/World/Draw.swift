/// Numbers that follow from a seed (SplitMix64). Whatever draws for a purpose of its own has a sequence of its own, so that taking one fault
/// out of a history leaves the rest of it as it was.
struct Draw {
    private var state: UInt64

    init(_ seed: UInt64, _ purpose: UInt64) {
        state = seed &* 0x9E37_79B9_7F4A_7C15 ^ purpose &* 0xD1B5_4A32_D192_ED03
        _ = next()
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    /// From 0 up to `bound` without it; 0 where `bound` is 0.
    mutating func below(_ bound: UInt64) -> UInt64 { next().multipliedFullWidth(by: bound).high }
    mutating func below(_ bound: Int) -> Int { Int(below(UInt64(bound))) }
    mutating func within(_ range: ClosedRange<UInt64>) -> UInt64 {
        range.lowerBound + below(range.upperBound - range.lowerBound + 1)
    }
    /// Whether something happens that does so once in `count` times.
    mutating func once(in count: UInt64) -> Bool { below(count) == 0 }
    mutating func element<Element>(of list: [Element]) -> Element { list[below(list.count)] }

    /// A sequence of its own that begins with what this one draws now.
    mutating func fork() -> Draw { Draw(next(), 0) }
}

/// What each sequence is for. The numbers are part of what a seed means.
enum Purpose {
    static let load: UInt64 = 1, network: UInt64 = 2, faults: UInt64 = 3, turns: UInt64 = 4, issuers: UInt64 = 5
    static let upstreams: UInt64 = 6, disk: UInt64 = 7, limits: UInt64 = 8
    static func gateway(_ number: Int, _ life: Int) -> UInt64 { 1000 + UInt64(number) * 1000 + UInt64(life) }
}
