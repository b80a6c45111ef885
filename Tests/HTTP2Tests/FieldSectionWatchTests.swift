import Testing

@testable import HTTP2

/// A field section lasts from a HEADERS frame's head to the last octet of the frame that has END_HEADERS, however the octets are parted.
@Suite struct FieldSectionWatchTests {
    private static func frame(_ length: Int, _ type: UInt8, _ flags: UInt8, stream: UInt8 = 1) -> [UInt8] {
        let length24 = [UInt8(length >> 16), UInt8(length >> 8 & 0xff), UInt8(length & 0xff)]
        // An octet of the payload that would be a flag or a type, were it taken for one.
        return length24 + [type, flags, 0, 0, 0, stream] + [UInt8](repeating: 4, count: length)
    }

    private static func passed(_ octets: [UInt8], preface: Int = 0, by size: Int = .max) -> FieldSectionWatch {
        var watch = FieldSectionWatch(preface: preface)
        watch.pass(octets, by: size)
        return watch
    }

    /// Lengths at which each of the three octets counts.
    @Test(arguments: [0, 1, 255, 256, 0x0123, 0xffff, 0x1_0000, 0x1_0203, 0x2_0001], [Int.max, 1, 4])
    func `a section ends with its frame's last octet and not before`(length: Int, size: Int) {
        let octets = Self.frame(length, 1, 4)
        for others in [[], Self.frame(3, 4, 0), Self.frame(300, 0, 4)] as [[UInt8]] {
            var watch = FieldSectionWatch(preface: 0)
            watch.pass(others, by: size)
            watch.pass(Array(octets.dropLast()), by: size)
            #expect(watch.isOpen == (length > 0))
            watch.pass([octets[octets.count - 1]], by: size)
            #expect(!watch.isOpen && watch.number == 1)
        }
    }

    @Test(arguments: UInt8.min...UInt8.max)
    func `no frame but HEADERS begins a section`(type: UInt8) {
        for (flags, size) in [(0, 1), (0, .max), (4, 1), (4, .max)] as [(UInt8, Int)] {
            let octets = Self.frame(5, type, flags, stream: 9)
            let inside = Self.passed(Array(octets.dropLast()), by: size)
            #expect(inside.isOpen == (type == 1) && inside.number == (type == 1 ? 1 : 0))
            #expect(Self.passed(octets, by: size).isOpen == (type == 1 && flags == 0))
        }
    }

    @Test(arguments: UInt8.min...UInt8.max)
    func `no flag but END_HEADERS ends a section`(flags: UInt8) {
        let isLast = flags & 4 != 0
        #expect(Self.passed(Self.frame(2, 1, flags)).isOpen == !isLast)
        var watch = Self.passed(Self.frame(2, 1, 0))
        watch.pass(Self.frame(2, 9, flags))
        #expect(watch.isOpen == !isLast && watch.number == 1)
    }

    /// Such frames are faults of the connection, which ends by them.
    @Test(arguments: [0, 2, 3, 4, 6, 8, 0xbe] as [UInt8])
    func `a frame within a section does not end it`(type: UInt8) {
        #expect(Self.passed(Self.frame(2, 1, 0) + Self.frame(3, type, 4)).isOpen)
    }

    @Test func `the preface is no frame`() {
        // Taken for a frame's head it would be one of type 0x2a, and the frames behind it that one's payload.
        let octets = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + Self.frame(7, 1, 0)
        for size in [1, 5, 23, 24, 25, .max] { #expect(Self.passed(octets, preface: 24, by: size).isOpen) }
        #expect(!Self.passed(Array(octets.prefix(32)), preface: 24).isOpen)
        #expect(Self.passed(Array(octets.prefix(33)), preface: 24).isOpen)
    }

    /// A frame's head in two parts, and the next one's as well: nothing of the first is left for the second.
    @Test(arguments: 1...9, 1...9)
    func `a frame's head is the same in parts`(first: Int, second: Int) {
        let frames = [Self.frame(0x0102, 1, 0), Self.frame(0x0201, 9, 4), Self.frame(1, 0xff, 0xff)]
        var watch = FieldSectionWatch(preface: 0)
        watch.pass(Array(frames[0].prefix(first)))
        #expect(watch.isOpen == (first == 9))
        watch.pass(Array(frames[0].dropFirst(first)))
        #expect(watch.isOpen && watch.number == 1)
        watch.pass(Array(frames[1].prefix(second)))
        #expect(watch.isOpen)
        watch.pass(Array(frames[1].dropFirst(second).dropLast()))
        #expect(watch.isOpen)
        watch.pass([4])
        #expect(!watch.isOpen)
        watch.pass(frames[2])
        watch.pass(Self.frame(1, 1, 0))
        #expect(watch.isOpen && watch.number == 2, "the next section has another number")
    }

    @Test func `nothing is a piece as well`() {
        var watch = FieldSectionWatch(preface: 0)
        watch.pass([])
        #expect(!watch.isOpen && watch.number == 0)
        watch.pass(Array(Self.frame(4, 1, 4).dropLast()))
        watch.pass([])
        #expect(watch.isOpen)
    }
}

extension FieldSectionWatch {
    fileprivate mutating func pass(_ octets: [UInt8], by size: Int = .max) {
        guard size < octets.count else { return pass(octets.span) }
        for at in stride(from: 0, to: octets.count, by: size) {
            pass(octets.span.extracting(at..<min(octets.count, at + size)))
        }
    }
}
