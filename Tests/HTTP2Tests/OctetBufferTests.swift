import Testing

@testable import HTTP2

/// A buffer keeps its memory for the next use, unless a large head has made it large.
@Suite struct OctetBufferTests {
    private static func filled(_ count: Int) -> OctetBuffer {
        var buffer = OctetBuffer()
        [UInt8](repeating: 0x61, count: count).withUnsafeBytes { buffer.append($0) }
        return buffer
    }

    @Test(arguments: [1, 512, 513, 2047, 2048, 2049, 5000])
    func `more than two KiB are not kept`(count: Int) {
        var buffer = Self.filled(count)
        let before = buffer.bytes.baseAddress
        buffer.clear()
        let (after, left) = (buffer.bytes.baseAddress, buffer.count)
        #expect(left == 0 && after == (count <= 2048 ? before : nil))
        // The buffer is as good as new either way.
        buffer.append("abc")
        let text = Array(buffer.bytes)
        #expect(text == Array("abc".utf8))
        buffer.clear()
        let isLeft = buffer.bytes.isEmpty
        #expect(isLeft)
    }

    @Test func `a buffer of nothing is empty, and nothing adds nothing`() {
        var buffer = OctetBuffer()
        buffer.append(OctetBuffer.none)
        buffer.append("")
        let (count, bytes) = (buffer.count, Array(buffer.bytes))
        #expect(count == 0 && bytes.isEmpty)
        buffer.append(OctetBuffer.none, "", OctetBuffer.none, "")
        let still = buffer.count
        #expect(still == 0)
        buffer.append(OctetBuffer.none, ": ", OctetBuffer.none, "\r\n")
        let text = String(decoding: buffer.bytes, as: UTF8.self)
        #expect(text == ": \r\n")
    }

    /// The memory doubles, so that a head of many short fields is not copied for each of them.
    @Test func `a buffer that grows octet by octet moves rarely`() {
        var buffer = OctetBuffer()
        var places: Set<UnsafeRawPointer?> = []
        for number in 0..<100_000 {
            withUnsafeBytes(of: UInt8(truncatingIfNeeded: number)) { buffer.append($0) }
            places.insert(buffer.bytes.baseAddress)
        }
        #expect(places.count <= 12)
        let isWhole = buffer.bytes.enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: $0) }
        #expect(isWhole)
    }

    @Test func `a part of a buffer is found by where it stands`() {
        let buffer = Self.filled(3)
        let (part, none) = (Array(buffer[1..<3]), Array(buffer[3..<3]))
        #expect(part == [0x61, 0x61] && none.isEmpty)
    }
}
