import Testing

@testable import HTTP2

/// The octets of a frame into which a held value is written, and the memory that the value was in.
@Suite struct HeldFrameTests {
    private static let block: [UInt8] = [0x82, 0x1f, 0x08]

    /// A HEADERS frame that ends with an empty value.
    private static func frame(flags: UInt8 = 0x5, last: UInt8 = 0) -> [UInt8] {
        [0, 0, 4, 1, flags, 0, 0, 0, 3] + block + [last]
    }

    private static func held(_ value: [UInt8], _ memory: HTTP2Memory = HTTP2Memory()) -> HeldValue {
        var held = HeldValue(memory: memory)
        let isHeld = value.withUnsafeBytes { held.hold($0) }
        #expect(isHeld)
        return held
    }

    /// - Returns: the frame with the value, written into so much room beyond it and the value.
    private static func written(_ value: [UInt8], _ frame: [UInt8] = frame(), room: Int = 5) -> [UInt8]? {
        var held = held(value)
        var target = [UInt8](repeating: 0xee, count: frame.count + value.count + room)
        let count = target.withUnsafeMutableBytes { target in frame.withUnsafeBytes { held.write(into: $0, target) } }
        // A value is dropped once it is written, and only then.
        let left = held.count
        #expect(left == (count == nil ? value.count : 0))
        return count.map { Array(target[..<$0]) }
    }

    /// The length of a string is an integer with a prefix of seven bits (RFC 7541 §5.1).
    @Test(
        arguments: [
            (1, [1]), (2, [2]), (126, [126]), (127, [127, 0]), (128, [127, 1]), (254, [127, 127]),
            (255, [127, 0x80, 1]),
            (256, [127, 0x81, 1]), (382, [127, 0xff, 1]), (383, [127, 0x80, 2]), (16_510, [127, 0xff, 0x7f]),
            (16_511, [127, 0x80, 0x80, 1]), (70_000, [127, 0xf1, 0xa1, 4]),
        ] as [(Int, [UInt8])])
    func `a value stands behind its length, and the frame says how long it is`(count: Int, length: [UInt8]) {
        let value = (0..<count).map { UInt8(truncatingIfNeeded: $0 | 1) }
        let payload = Self.block + length + value
        let size = payload.count
        let head = [UInt8(size >> 16), UInt8(size >> 8 & 0xff), UInt8(size & 0xff), 1, 5, 0, 0, 0, 3]
        #expect(Self.written(value) == head + payload)
    }

    @Test(arguments: [0, 4, 5, 6]) func `a target has room for the frame, the value and five octets`(room: Int) {
        #expect((Self.written([1, 2, 3], room: room) != nil) == (room >= 5))
    }

    @Test func `only a whole head that ends with an empty value takes one`() {
        #expect(Self.written([7], Self.frame(flags: 0x4)) != nil)
        #expect(Self.written([7], Self.frame(flags: 0xff)) != nil)
        #expect(Self.written([7], Self.frame(flags: 0xfb)) == nil, "END_HEADERS is missing")
        #expect(Self.written([7], Self.frame(last: 1)) == nil)
        #expect(Self.written([7], Self.frame(last: 0x80)) == nil)
        #expect(Self.written([7], [0, 0, 1, 1, 4, 0, 0, 0, 0]) == nil, "there is no payload")
        #expect(Self.written([7], [0, 0, 1, 1, 4, 0, 0, 0, 1, 0]) == [0, 0, 2, 1, 4, 0, 0, 0, 1, 1, 7])
    }

    // MARK: - Memory

    private static func isWiped(_ memory: HTTP2Memory, _ size: Int) -> Bool {
        guard let piece = memory.freeLists.take(buffer: size) else { return false }
        defer { memory.give(piece: piece) }
        return piece[8...].allSatisfy { $0 == 0 }
    }

    @Test(arguments: [1, 9, 64]) func `a value goes back wiped, however it ends`(count: Int) {
        let value = [UInt8](repeating: 0x41, count: count)
        let memory = HTTP2Memory()
        for end in 0..<4 {
            do {
                var held = Self.held(value, memory)
                #expect(memory.waitingBytes == 0)
                switch end {
                case 0: held.drop()
                case 1:
                    // The next value is held in its place.
                    let isHeld = value.withUnsafeBytes { held.hold($0) }
                    #expect(isHeld && memory.waitingBytes == 0)
                    held.drop()
                case 2:
                    var target = [UInt8](repeating: 0, count: 200)
                    let frame = Self.frame()
                    let count = target.withUnsafeMutableBytes { to in frame.withUnsafeBytes { held.write(into: $0, to) }
                    }
                    #expect(count != nil && memory.waitingBytes == 64)
                    // A second drop gives nothing back twice.
                    held.drop()
                default: break
                }
            }
            #expect(memory.waitingBytes == 64 && Self.isWiped(memory, 64))
        }
    }

    /// The length alone is looked at, for which there is no memory.
    @Test func `a value that no memory is had for is not held, and the one before is given up`() {
        let memory = HTTP2Memory()
        var held = Self.held([1, 2, 3], memory)
        let octet: [UInt8] = [1]
        let isHeld = octet.withUnsafeBytes {
            held.hold(UnsafeRawBufferPointer(start: $0.baseAddress, count: .max))
        }
        let count = held.count
        #expect(!isHeld && count == 0 && memory.waitingBytes == 64)
    }
}
