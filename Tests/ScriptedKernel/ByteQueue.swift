/// First in, first out, in memory of its own that only grows: a budget test may run over it without seeing an allocation.
struct ByteQueue: ~Copyable {
    private var memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 16, alignment: 16)
    private var start = 0
    private var end = 0

    deinit { memory.deallocate() }

    var count: Int { end - start }
    var isEmpty: Bool { start == end }

    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        makeRoom(bytes.count)
        UnsafeMutableRawBufferPointer(rebasing: memory[end..<end + bytes.count]).copyMemory(from: bytes)
        end += bytes.count
    }

    /// Copies at most `target.count` bytes from the front, which stay.
    func copy(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, self.count)
        UnsafeMutableRawBufferPointer(rebasing: target[..<count])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(memory)[start..<start + count]))
        return count
    }

    /// Moves at most `target.count` bytes out.
    mutating func take(into target: UnsafeMutableRawBufferPointer) -> Int {
        let count = min(target.count, self.count)
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: memory[start..<start + count]))
        drop(count)
        return count
    }

    mutating func drop(_ count: Int) {
        start += count
        if start == end {
            start = 0
            end = 0
        }
    }

    /// A copy of the first octets, as many as there are.
    func prefix(_ count: Int) -> [UInt8] { Array(memory[start..<start + min(count, self.count)]) }

    private mutating func makeRoom(_ needed: Int) {
        if end + needed <= memory.count { return }
        let waiting = count
        let larger =
            waiting + needed <= memory.count
            ? memory : UnsafeMutableRawBufferPointer.allocate(byteCount: (waiting + needed) * 2, alignment: 16)
        if waiting > 0, let from = memory.baseAddress, let to = larger.baseAddress {
            // The two places may overlap.
            to.copyMemory(from: from + start, byteCount: waiting)
        }
        if larger.baseAddress != memory.baseAddress {
            memory.deallocate()
            memory = larger
        }
        start = 0
        end = waiting
    }
}
