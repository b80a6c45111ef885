internal import COpenSSL
internal import Glibc
public import World

/// OpenSSL's generator, fit for keys and nonces.
public struct SystemRandom: RandomSource {
    /// Holds nothing.
    public init() {}

    /// `count` octets of OpenSSL's generator, or of the kernel's where that one fails.
    public func bytes(_ count: Int) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: max(count, 0))
        bytes.withUnsafeMutableBytes { Self.fill($0) }
        return bytes
    }

    /// Fills memory from the same generator.
    public func fill(_ memory: UnsafeMutableRawBufferPointer) { Self.fill(memory) }

    static func fill(_ buffer: UnsafeMutableRawBufferPointer) {
        guard buffer.count > 0 else { return }
        ErrorQueue.clear()
        if RAND_bytes(buffer.baseAddress, Int32(clamping: buffer.count)) == 1, buffer.count <= Int(Int32.max) { return }
        ErrorQueue.clear()
        // OpenSSL reseeds now and then and can fail at it where memory is short; the kernel's generator cannot once it is seeded.
        var filled = 0
        while filled < buffer.count {
            let got = getrandom(buffer.baseAddress?.advanced(by: filled), buffer.count - filled, 0)
            precondition(got > 0 || errno == EINTR, "no randomness")
            filled += max(got, 0)
        }
    }
}
