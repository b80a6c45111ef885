/// Walks a comma-separated value without quoted strings (`Connection`, `Transfer-Encoding`, `Content-Length`).
///
/// Empty members are given too: whether they matter is the field's question.
struct ListMembers {
    private var position: Int
    private let end: Int
    private var done = false

    init(_ value: ByteRange) {
        position = Int(value.start)
        end = Int(value.end)
    }

    mutating func next(in bytes: Span<UInt8>) -> ByteRange? {
        guard !done else { return nil }
        let start = position
        while position < end, bytes[position] != 0x2C { position &+= 1 }
        let member = bytes.trimmed(start..<position)
        if position < end {
            position &+= 1
        } else {
            done = true
        }
        return member
    }
}
