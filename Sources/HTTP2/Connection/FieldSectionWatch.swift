/// Whether a field section has begun whose end has not come (RFC 9113 §4.3), by the frames' own boundaries (RFC 9113 §4.1) and flags.
///
/// nghttp2 says nothing of sections that it passes over: those of a stream that is closed, was refused, or comes behind a GOAWAY, and the
/// rest of one in which it has found a fault. The connection waits for their ends all the same, since no other frame may come in between;
/// and the end of one that it did tell of may be told only when a reset has left.
struct FieldSectionWatch {
    /// A section has begun and not ended.
    private(set) var isOpen = false
    /// Sections that have begun so far, wrapped: tells one from the next.
    private(set) var number: UInt32 = 0
    /// Octets still to come of the preface or of a frame's payload.
    private var left: Int
    /// The open section ends with the frame that is being read.
    private var isLastFrame = false
    /// Octets of a frame's head that came in an earlier piece, and how many those are.
    private var head: UInt64 = 0
    private var headCount = 0

    private static let headSize = 9
    private static let headers: UInt8 = 1
    private static let continuation: UInt8 = 9
    private static let endHeaders: UInt8 = 4

    /// - Parameter preface: octets that come before the first frame (RFC 9113 §3.4).
    init(preface: Int) { left = preface }
}

// MARK: -

extension FieldSectionWatch {
    /// Takes what comes, in pieces of any size.
    @inline(__always)
    mutating func pass(_ bytes: Span<UInt8>) {
        var at = 0
        while true {
            let step = min(left, bytes.count &- at)
            left &-= step
            at &+= step
            guard left == 0 else { return }
            if isLastFrame { end() }
            guard at < bytes.count else { return }
            if headCount == 0, bytes.count &- at >= Self.headSize {
                let length = Int(bytes[at]) << 16 | Int(bytes[at &+ 1]) << 8 | Int(bytes[at &+ 2])
                begin(length: length, type: bytes[at &+ 3], flags: bytes[at &+ 4])
                at &+= Self.headSize
            } else {
                gather(bytes[at])
                at &+= 1
            }
        }
    }

    /// A frame's head that comes in parts.
    @inline(never)
    private mutating func gather(_ octet: UInt8) {
        // The stream's number, the last four, tells nothing here.
        if headCount < 5 { head = head << 8 | UInt64(octet) }
        headCount &+= 1
        guard headCount == Self.headSize else { return }
        begin(
            length: Int(head >> 16), type: UInt8(truncatingIfNeeded: head >> 8), flags: UInt8(truncatingIfNeeded: head))
        head = 0
        headCount = 0
    }

    @inline(__always)
    private mutating func begin(length: Int, type: UInt8, flags: UInt8) {
        left = length
        if type == Self.headers {
            isOpen = true
            number &+= 1
        } else if type != Self.continuation || !isOpen {
            // Within a section it is a fault of the connection, which ends by it.
            return
        }
        isLastFrame = flags & Self.endHeaders != 0
    }

    private mutating func end() {
        isOpen = false
        isLastFrame = false
    }
}
