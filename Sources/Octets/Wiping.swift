internal import Glibc

extension UnsafeMutableRawBufferPointer {
    /// Overwrites memory that held a secret, in a way that the compiler does not remove, and without a system call.
    public func wipe() {
        if let start = baseAddress { explicit_bzero(start, count) }
    }
}

extension Array where Element: BitwiseCopyable {
    /// Overwrites the elements, then empties the array. Only this array's own storage is reached: a copy that was made earlier, by a growing
    /// append for instance, keeps its bytes, and an array that shares its storage is copied first.
    public mutating func wipe() {
        withUnsafeMutableBytes { $0.wipe() }
        removeAll(keepingCapacity: false)
    }
}

extension UnsafeRawBufferPointer {
    /// Whether the bytes are the same. How long it takes depends on the lengths alone, not on where they differ.
    public func isEqualInConstantTime(to other: UnsafeRawBufferPointer) -> Bool {
        guard count == other.count else { return false }
        var difference: UInt8 = 0
        for index in 0..<count { difference |= self[index] ^ other[index] }
        return difference == 0
    }
}
