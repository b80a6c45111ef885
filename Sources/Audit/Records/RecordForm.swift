internal import Numbers

/// The text of a record, which is one line:
///
///     {"number":7,"group":3,"time":"…","act":"grant",…,"mac":"64 hexadecimal digits"}
///
/// The first record of each file has `"after":"…"` behind its group: the code of the record before it, which stands in another file. The
/// last one of each group has `"group_end":true` before its code: whoever takes the key of the next group cannot leave out records at the
/// end of this one. The code is made over the octets as they stand, from the brace to the comma before `"mac"`, so that nobody has to
/// agree on how JSON is written.
enum RecordForm {
    static let number = Array("{\"number\":".utf8)
    static let group = Array(",\"group\":".utf8)
    static let after = Array(",\"after\":\"".utf8)
    static let groupEnd = Array(",\"group_end\":true".utf8)
    static let mac = Array(",\"mac\":\"".utf8)
    static let end = Array("\"}".utf8)
    /// Octets of `,"mac":"…"}`.
    static let tailSize = mac.count + 64 + end.count
    /// Octets of the longest line, its end included.
    static let longest = 8192
    /// More records than a log can get: at a million a second it takes 290 000 years.
    static let mostRecords = UInt64(Int64.max)

    /// A record as far as the chain is concerned; the numbers are positions in the line.
    struct Parts {
        var number: UInt64
        var group: UInt64
        /// The digits behind `after`, for the first record of a file.
        var after: Range<Int>?
        /// Octets that the code is made over.
        var covered: Int
        /// The record is the last of its group.
        var endsGroup: Bool
    }

    /// - Parameter line: without its line end.
    /// - Returns: nil for what is no record.
    static func parts(of line: UnsafeRawBufferPointer) -> Parts? {
        guard line.count < longest, line.count > tailSize else { return nil }
        let covered = line.count - tailSize
        guard stands(mac, in: line, at: covered), stands(end, in: line, at: line.count - end.count),
            stands(number, in: line, at: 0)
        else { return nil }
        var position = number.count
        guard let first = decimal(in: line, from: &position), stands(group, in: line, at: position) else { return nil }
        position += group.count
        guard let second = decimal(in: line, from: &position), position <= covered else { return nil }
        var parts = Parts(
            number: first, group: second, covered: covered,
            endsGroup: stands(groupEnd, in: line, at: covered - groupEnd.count))
        if stands(after, in: line, at: position) {
            let start = position + after.count
            guard start + 64 < covered else { return nil }
            parts.after = start..<start + 64
        }
        return parts
    }

    /// The 64 digits of the record's own code.
    static func digits(of line: UnsafeRawBufferPointer, _ parts: Parts) -> UnsafeRawBufferPointer {
        let start = parts.covered + mac.count
        return UnsafeRawBufferPointer(rebasing: line[start..<start + 64])
    }

    private static func stands(_ word: [UInt8], in line: UnsafeRawBufferPointer, at position: Int) -> Bool {
        guard position >= 0, position + word.count <= line.count else { return false }
        return line[position..<position + word.count].elementsEqual(word)
    }

    private static func decimal(in line: UnsafeRawBufferPointer, from position: inout Int) -> UInt64? {
        var end = position
        while end < line.count, end - position < 20, (0x30...0x39).contains(line[end]) { end += 1 }
        defer { position = end }
        return ReceivedNumber(decimal: line[position..<end])?.within(1...mostRecords)
    }
}
