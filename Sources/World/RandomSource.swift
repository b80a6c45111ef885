/// Where randomness comes from. Handed to whoever needs it: the real form is `SystemRandom` of TLS, fit for keys; tests have a seeded one.
public protocol RandomSource: Sendable {
    /// - Parameter count: octets that are wanted; fewer than one give none.
    func bytes(_ count: Int) -> [UInt8]
    /// Fills memory that the caller owns. The real form allocates nothing.
    func fill(_ memory: UnsafeMutableRawBufferPointer)
}

extension RandomSource {
    /// By `bytes`.
    public func fill(_ memory: UnsafeMutableRawBufferPointer) { memory.copyBytes(from: bytes(memory.count)) }

    /// Any number of 64 bits.
    public func number() -> UInt64 { bytes(8).reduce(0) { $0 << 8 | UInt64($1) } }

    /// Any number of 32 bits: the jitter of a pause.
    public func jitter() -> UInt32 { UInt32(truncatingIfNeeded: number()) }

    /// - Parameter bound: at least 1.
    /// - Returns: a number from 0 up to `bound` without it, each as likely as the others to one part in 2⁶⁴ / `bound`.
    public func number(below bound: UInt64) -> UInt64 { bound == 0 ? 0 : number().multipliedFullWidth(by: bound).high }

    /// A number from 0 up to 1 without it.
    public func fraction() -> Double { Double(number() >> 11) / Double(UInt64(1) << 53) }
}
