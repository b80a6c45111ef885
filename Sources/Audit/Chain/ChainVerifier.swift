internal import Octets

/// Why a stream of lines is not the chain that was written. Numbers are those of records.
package enum ChainFault: Error, Sendable, Equatable {
    /// The line is no record.
    case notARecord
    /// The file ends within a line.
    case torn
    /// The record does not have the code that its text, its group's key and the record before it make.
    case changed(UInt64)
    /// Records are not there.
    case missing(from: UInt64, through: UInt64)
    /// The record stands behind one that was written later, or a second time.
    case outOfPlace(UInt64, expected: UInt64)
    /// The record claims a group that does not follow.
    case group(UInt64, of: UInt64, expected: UInt64)
    /// The group has no end: its last record, or more of them, are not there.
    case openGroup(UInt64, after: UInt64)
    /// The first line neither is the first record nor begins a file that the writer made.
    case beginsWithin(UInt64)
    /// The group is out of any chain's reach.
    case tooManyGroups(UInt64)
    /// The record that a head names has another code than the head says.
    case otherThanHead(UInt64)
    /// The log ends before the record that a head names.
    case cut(at: UInt64, head: UInt64)
    /// The log begins behind the record that a head names.
    case headBefore(UInt64, first: UInt64)
    /// The key of the writer is not the one that the first key leads to.
    case otherKey
    /// What stands in the place of the key file is none.
    case noKeyFile
}

/// Follows a chain of records line by line, as a pure function over them. Finds every record that was changed, removed or moved; groups
/// that were cut off the end are found by a head that was noted elsewhere.
package struct ChainVerifier {
    /// The key of `group`; nil where only the order is looked at.
    private var key: ChainKey?
    private var group: UInt64
    /// The last record was the last of its group.
    private var isGroupOver = true
    /// The end of what was followed so far.
    package private(set) var head = ChainHead.none
    /// The number of the first record that was seen.
    package private(set) var first: UInt64?
    /// Heads that the chain has to have, by rising count.
    private var noted: [ChainHead]
    private var message: [UInt8] = []
    /// The last group that there can be.
    private let lastGroup: UInt64

    /// The most groups that a key is stepped over to reach the first record of a file: of decades, and an hour of work.
    static let mostGroups: UInt64 = 1 << 32

    /// - Parameters:
    ///   - key: the one that `audit init` handed out, from which the first group's follows; nil: only the numbers are followed, and whoever
    ///     could write to the log could have changed any record.
    ///   - noted: heads of earlier times, in any order.
    ///   - lastGroup: the last group that there can be, where that is known: no key is stepped further, whatever a line claims.
    package init(key: ChainKey?, noted: [ChainHead] = [], lastGroup: UInt64? = nil) {
        self.key = key
        self.lastGroup = min(lastGroup ?? Self.mostGroups, Self.mostGroups)
        group = 0
        self.noted = noted.sorted { $0.count < $1.count }
    }

    /// - Parameter line: the next one, without its line end.
    package mutating func take(_ line: UnsafeRawBufferPointer) throws(ChainFault) {
        guard let parts = RecordForm.parts(of: line) else { throw .notARecord }
        try place(parts, line)
        try enter(parts)
        let digits = RecordForm.digits(of: line, parts)
        guard digits.allSatisfy({ $0.isDigit || (0x61...0x66).contains($0) }), let claimed = Hexadecimal.decode(digits)
        else { throw .changed(parts.number) }
        if key != nil {
            message.removeAll(keepingCapacity: true)
            message += head.code
            message.append(contentsOf: line[..<parts.covered])
            guard let code = key?.code(of: message), code == claimed else { throw .changed(parts.number) }
        }
        head = ChainHead(count: parts.number, code: claimed)
        isGroupOver = parts.endsGroup
        if first == nil { first = parts.number }
        try compareNoted()
    }

    /// All lines were given.
    package mutating func finish() throws(ChainFault) {
        while let next = noted.first {
            // An empty chain is what every chain begins with.
            guard next.count > 0 else {
                noted.removeFirst()
                continue
            }
            if let first, next.count < first { throw .headBefore(next.count, first: first) }
            throw .cut(at: head.count, head: next.count)
        }
        guard isGroupOver else { throw .openGroup(group, after: head.count) }
    }

    /// Whether the key of that group is this one. Called after `take` and `finish`.
    package func leads(to other: ChainKey, group wanted: UInt64) throws(ChainFault) {
        guard let key else { return }
        // The writer's group is the one behind the last record's, or the last record's where its key was not replaced any more.
        guard wanted == group || wanted == group + 1 else { throw .otherKey }
        let reached = wanted == group ? key : key.next()
        guard reached.isSame(as: other) else { throw .otherKey }
    }

    // MARK: -

    private mutating func compareNoted() throws(ChainFault) {
        while let next = noted.first, next.count == head.count {
            guard next.code == head.code else { throw .otherThanHead(next.count) }
            noted.removeFirst()
        }
    }

    /// The number has to be the next one, and a file that the writer began says after which code.
    private mutating func place(_ parts: RecordForm.Parts, _ line: UnsafeRawBufferPointer) throws(ChainFault) {
        let after = parts.after.flatMap { Hexadecimal.decode(line[$0]) }
        if parts.after != nil, after == nil { throw .changed(parts.number) }
        if first == nil {
            guard let after else {
                guard parts.number == 1 else { throw .beginsWithin(parts.number) }
                return
            }
            guard parts.number > 1 || after == head.code else { throw .changed(1) }
            head = ChainHead(count: parts.number - 1, code: after)
            try compareNoted()
            return
        }
        let expected = head.count + 1
        if parts.number > expected { throw .missing(from: expected, through: parts.number - 1) }
        guard parts.number == expected else { throw .outOfPlace(parts.number, expected: expected) }
        if let after, after != head.code { throw .changed(parts.number) }
    }

    /// Groups follow each other without a gap, each with a record at least, the last of which says that it is the last.
    private mutating func enter(_ parts: RecordForm.Parts) throws(ChainFault) {
        guard first != nil else {
            // Each group has a record at least, so no group's number is above its records'.
            guard parts.group <= parts.number else {
                throw .group(parts.group, of: parts.number, expected: parts.number)
            }
            guard parts.group <= lastGroup else { throw .tooManyGroups(parts.group) }
            for _ in 0..<(key == nil ? 0 : parts.group) { key = key?.next() }
            group = parts.group
            return
        }
        guard isGroupOver || parts.group == group else { throw .openGroup(group, after: head.count) }
        guard isGroupOver else { return }
        guard parts.group == group + 1 else { throw .group(parts.group, of: parts.number, expected: group + 1) }
        key = key?.next()
        group = parts.group
    }
}
