internal import Glibc

/// The credential of a request's head between its submission and the moment in which the head's frame is written.
///
/// nghttp2 gets the field with an empty value, as the last of the head and never to be indexed, and what it encodes ends with that value's
/// length, one octet of zero. Here the length and the value are written in its place. A literal that is not indexed changes nothing of
/// HPACK's state (RFC 7541 §6.2.3), so the peer cannot tell the difference from nghttp2's own, but for one: nghttp2 would write the value in
/// Huffman's code, octet by octet, which costs more than anything else about a request and spares a quarter of the octets. And the
/// credential is never in nghttp2's memory.
struct HeldValue: ~Copyable {
    private var piece = UnsafeMutableRawBufferPointer(start: nil, count: 0)
    private(set) var count = 0
    private let memory: HTTP2Memory
    private let freeLists: UnsafeMutablePointer<FreeLists>

    /// Octets of a head in HTTP/1.1's form with its credential. Encoded it is at most a few octets a field longer, and has to fit into one
    /// frame of the least size that every peer takes (RFC 9113 §4.2), since the value has to end the frame.
    static let longestHead = 12 * 1024

    init(memory: HTTP2Memory) {
        self.memory = memory
        freeLists = memory.freeLists
    }

    deinit { if count > 0 { freeLists.give(piece, used: count) } }
}

// MARK: -

extension HeldValue {
    /// - Returns: false without memory.
    mutating func hold(_ value: UnsafeRawBufferPointer) -> Bool {
        drop()
        guard let taken = freeLists.take(buffer: value.count) else { return false }
        taken.copyMemory(from: value)
        piece = taken
        count = value.count
        return true
    }

    /// The memory is wiped.
    @inline(__always)
    mutating func drop() {
        if count > 0 { give() }
    }

    private mutating func give() {
        freeLists.give(piece, used: count)
        count = 0
    }

    /// Writes a frame with the value in it, and drops the value.
    /// - Parameters:
    ///   - frame: HEADERS with END_HEADERS, that end with a string literal of length zero.
    ///   - target: as long as `frame`, the value and five octets, at least.
    /// - Returns: octets written; nil when the frame is none of this kind.
    mutating func write(into frame: UnsafeRawBufferPointer, _ target: UnsafeMutableRawBufferPointer) -> Int? {
        guard frame.count > 9, frame[4] & 0x4 != 0, frame[frame.count - 1] == 0,
            target.count >= frame.count + count + 5
        else { return nil }
        target.copyMemory(from: UnsafeRawBufferPointer(rebasing: frame[..<(frame.count - 1)]))
        var end = frame.count - 1
        // An integer with a prefix of seven bits (RFC 7541 §5.1); the eighth says that no Huffman code follows (RFC 7541 §5.2).
        if count < 127 {
            target[end] = UInt8(count)
        } else {
            target[end] = 127
            var rest = count - 127
            while rest >= 128 {
                end += 1
                target[end] = UInt8(rest & 127) | 128
                rest >>= 7
            }
            end += 1
            target[end] = UInt8(rest)
        }
        end += 1
        UnsafeMutableRawBufferPointer(rebasing: target[end..<(end + count)])
            .copyMemory(from: UnsafeRawBufferPointer(rebasing: piece[..<count]))
        end += count
        let length = end - 9
        target[0] = UInt8(length >> 16)
        target[1] = UInt8(length >> 8 & 255)
        target[2] = UInt8(length & 255)
        drop()
        return end
    }
}
