internal import Numbers
internal import Octets

/// What stands beside the log, in `LOG.key`: the key of the group that is written next, and where the chain ends.
///
///     cardea-audit 1 GROUP COUNT HASH FILE SIZE KEY
///
/// `FILE` is the inode of the log that the last group was written to, and `SIZE` how many octets it had then. More than that, or another
/// file that is not empty, is a group whose writer was killed before it replaced the key.
package struct ChainState {
    /// The key of `group`.
    package var key: ChainKey
    /// The group that is written next, from 1.
    package var group: UInt64
    /// The end of the chain before it.
    package var head: ChainHead
    /// The log's inode; 0 before the first group.
    package var file: UInt64
    /// Octets of the log before the group.
    package var size: UInt64

    /// Octets of the longest text.
    static let longest = 512
    private static let title = Array("cardea-audit 1".utf8)

    init(key: ChainKey, group: UInt64, head: ChainHead, file: UInt64, size: UInt64) {
        self.key = key
        self.group = group
        self.head = head
        self.file = file
        self.size = size
    }

    /// Nil for anything but what `text` writes.
    init?(_ text: ArraySlice<UInt8>) {
        let words = text.split(separator: 0x20, omittingEmptySubsequences: false)
        guard text.last == 0x0A, words.count == 8, (words[0] + [0x20] + words[1]).elementsEqual(Self.title),
            let group = ReceivedNumber(decimal: words[2])?.within(1...RecordForm.mostRecords),
            let count = ReceivedNumber(decimal: words[3])?.within(0...RecordForm.mostRecords),
            let code = Hexadecimal.decode(words[4]), code.count == 32,
            let file = ReceivedNumber(decimal: words[5])?.within(0...RecordForm.mostRecords),
            let size = ReceivedNumber(decimal: words[6])?.within(0...RecordForm.mostRecords),
            let key = ChainKey(text: words[7])
        else { return nil }
        self.init(key: key, group: group, head: ChainHead(count: count, code: code), file: file, size: size)
    }

    /// Whoever gets it wipes it.
    var text: [UInt8] {
        var digits = key.digits
        defer { digits.wipe() }
        var text: [UInt8] = []
        text.reserveCapacity(Self.longest)
        text += Self.title
        text += " \(group) \(head.count) \(head.hash) \(file) \(size) ".utf8
        text += digits
        text.append(0x0A)
        return text
    }
}
