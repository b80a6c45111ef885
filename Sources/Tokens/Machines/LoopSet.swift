/// Which data loops wait. A loop mails one miss a slot and flight, so one bit a loop is all there is to know.
public struct LoopSet: OptionSet, Hashable, Sendable {
    /// A bit for each loop, the lowest for loop 0.
    public let rawValue: UInt64

    /// Any bits are allowed.
    public init(rawValue: UInt64) { self.rawValue = rawValue }

    /// - Parameter index: 0 to 63.
    public static func loop(_ index: Int) -> LoopSet { LoopSet(rawValue: 1 << UInt64(index & 63)) }

    /// The loops, ascending.
    public var indices: [Int] { (0..<64).filter { rawValue & (1 << UInt64($0)) != 0 } }
}
