internal import Glibc

/// Cuts a stream that comes in pieces into lines. Holds at most one line.
package struct LineCutter {
    /// The beginning of a line whose end has not come.
    private var rest: [UInt8] = []
    /// Lines that were given, for messages: the one that is being looked at has this number.
    package private(set) var line: UInt64 = 0

    /// Has seen nothing.
    package init() {}

    /// - Parameter body: gets each whole line without its end.
    package mutating func take(
        _ piece: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(ChainFault) -> Void
    ) throws(ChainFault) {
        guard let start = piece.baseAddress else { return }
        var position = 0
        while position < piece.count, let end = memchr(start + position, 0x0A, piece.count - position) {
            let stop = UnsafeRawPointer(end) - start
            let found = UnsafeRawBufferPointer(rebasing: piece[position..<stop])
            line &+= 1
            if rest.isEmpty { try body(found) } else { try finishRest(with: found, body) }
            position = stop + 1
        }
        guard rest.count + piece.count - position <= RecordForm.longest else {
            line &+= 1
            throw .notARecord
        }
        rest.append(contentsOf: piece[position...])
    }

    /// The stream has ended.
    package mutating func finish() throws(ChainFault) {
        guard rest.isEmpty else {
            line &+= 1
            throw .torn
        }
    }

    private mutating func finishRest(
        with end: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws(ChainFault) -> Void
    ) throws(ChainFault) {
        guard rest.count + end.count <= RecordForm.longest else { throw .notARecord }
        rest.append(contentsOf: end)
        var whole: [UInt8] = []
        swap(&whole, &rest)
        var fault: ChainFault?
        whole.withUnsafeBytes { octets in do throws(ChainFault) { try body(octets) } catch { fault = error } }
        if let fault { throw fault }
        whole.removeAll(keepingCapacity: true)
        rest = whole
    }
}
