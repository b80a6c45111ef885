internal import Octets
internal import Telemetry

/// Puts records into the chain: each gets its number and a code over its text and the code of the record before it, under the key of its
/// group.
package struct ChainWriter {
    private(set) var key: ChainKey
    /// The group that is being written, from 1.
    package private(set) var group: UInt64
    /// The end of the chain, with every record that was appended.
    package private(set) var head: ChainHead
    private var line = LogLine()

    /// - Parameters:
    ///   - key: of `group`.
    ///   - head: the end of the chain before the group.
    package init(key: ChainKey, group: UInt64, head: ChainHead) {
        self.key = key
        self.group = group
        self.head = head
    }

    /// Writes the record's line, its end included.
    /// - Parameters:
    ///   - beginsFile: the line is the first of its file, and says which code it stands after.
    ///   - endsGroup: the line is the last of its group, and says so.
    package mutating func append(
        _ record: AuditRecord, to text: inout [UInt8], beginsFile: Bool, endsGroup: Bool
    ) {
        let after = beginsFile ? Hexadecimal.octets(of: head.code) : nil
        line.write(record, number: head.count &+ 1, group: group, after: after)
        if endsGroup { line.append(octets: RecordForm.groupEnd) }
        let code = key.code(of: head.code + line.bytes)
        text += line.bytes
        text += RecordForm.mac
        text += Hexadecimal.octets(of: code)
        text += RecordForm.end
        text.append(UInt8(ascii: "\n"))
        head = ChainHead(count: head.count &+ 1, code: code)
    }

    /// The group is on disk: its key goes, and the next group begins.
    package mutating func endGroup() {
        key = key.next()
        group &+= 1
    }
}
