internal import Glibc
internal import Octets

/// The files of one log on disk:
///
///     LOG        records; whoever rotates it renames it, and the next group begins a new one
///     LOG.key    the key of the next group, and where the chain ends
///     LOG.lock   held while a group is written; never deleted
///
/// A group is written in three steps: its records, their way to the disk, the next key. A kill between any two of them is healed by the
/// next writer: whole records of an unfinished group stay and the key goes one step forward, a torn piece behind them is cut off.
/// Processes may take turns, as both do in an upgrade; no key stays in memory between two groups.
package struct AuditFiles: Sendable {
    /// The log.
    package let path: String

    /// Octets of the largest group.
    package static let largestGroup = 8 << 20

    /// The files need not be there.
    package init(_ path: String) { self.path = path }

    /// What a writer found and left.
    package struct Turn: Sendable, Equatable {
        /// The end of the chain on disk.
        package var head: ChainHead
        /// Records of an unfinished group that were kept.
        package var healed: UInt64 = 0
        /// Octets of a torn record that were cut off.
        package var cut: UInt64 = 0
    }

    /// The end of the chain as the key file says it; changes nothing.
    package func head() throws(AuditFault) -> ChainHead {
        try ChainKeyFile(LogPlace(path), to: .look).state.head
    }

    /// Writes records as one group; none heals only. All are on disk when this returns, or none.
    /// - Parameter records: made when it is known what was healed; together at most `largestGroup` octets.
    package func append(_ records: (Turn) -> [AuditRecord]) throws(AuditFault) -> Turn {
        let place = try LogPlace(path)
        let lock = try GroupLock(place)
        defer { withExtendedLifetime(lock) {} }
        let key = try ChainKeyFile(place, to: .write)
        let log = try LogDescriptor(place)
        var state = key.state
        var turn = try Self.heal(&state, key, log)
        let made = records(turn)
        guard !made.isEmpty else { return turn }
        turn.head = try Self.write(made, state, key, log)
        return turn
    }

    private static func write(
        _ records: [AuditRecord], _ state: ChainState, _ key: ChainKeyFile, _ log: LogDescriptor
    ) throws(AuditFault) -> ChainHead {
        let size = try log.size()
        var text: [UInt8] = []
        var writer = ChainWriter(key: state.key, group: state.group, head: state.head)
        for (index, record) in records.enumerated() {
            writer.append(record, to: &text, beginsFile: size == 0 && index == 0)
        }
        let head = writer.head
        do throws(AuditFault) {
            try log.append(text)
            writer.endGroup()
            let end = size &+ UInt64(text.count)
            try key.replace(
                with: ChainState(key: writer.key, group: writer.group, head: head, file: log.number, size: end))
        } catch {
            // The records are not held to be written, so they do not stay; what cannot be cut now is healed later.
            log.cut(to: size)
            throw error
        }
        return head
    }

    /// Finishes the group of a writer that was killed.
    private static func heal(
        _ state: inout ChainState, _ key: ChainKeyFile, _ log: LogDescriptor
    ) throws(AuditFault) -> Turn {
        var turn = Turn(head: state.head)
        let size = try log.size()
        let isSame = log.number == state.file
        guard size != (isSame ? state.size : 0) else { return turn }
        // Another file, which the killed writer may have begun; or the same one, emptied by whoever copied it.
        let start = isSame && size > state.size ? state.size : 0
        let tail = try log.octets(from: start, count: min(size - start, UInt64(largestGroup) + 1))
        let found = finished(tail, state)
        // A file that others filled is none of ours to cut; what does not belong there is found by `audit verify`.
        let isOurs = start > 0 || found.records > 0 || isTorn(tail, state)
        guard isOurs, size - start <= UInt64(largestGroup) else { return turn }
        turn.healed = found.records
        turn.cut = UInt64(tail.count - found.size)
        turn.head = found.head
        if turn.cut > 0 { try log.shorten(to: start + UInt64(found.size)) }
        guard found.records > 0 else { return turn }
        state.head = found.head
        state.file = log.number
        state.size = start + UInt64(found.size)
        state.group += 1
        state.key = state.key.next()
        try key.replace(with: state)
        return turn
    }

    /// Whether a file holds the beginning of the first record of its group, or the zeros that a power failure leaves, and nothing else.
    private static func isTorn(_ text: [UInt8], _ state: ChainState) -> Bool {
        let beginning =
            RecordForm.number + "\(state.head.count &+ 1)".utf8 + RecordForm.group + "\(state.group)".utf8
            + RecordForm.after
        let isBeginning = text.prefix(beginning.count).elementsEqual(beginning.prefix(text.count))
        return isBeginning && !text.contains(0x0A) || text.allSatisfy { $0 == 0 }
    }

    /// The whole records at the beginning of `tail` that belong to the group of `state`.
    private static func finished(
        _ tail: [UInt8], _ state: ChainState
    ) -> (records: UInt64, size: Int, head: ChainHead) {
        var found = (records: UInt64(0), size: 0, head: state.head)
        tail.withUnsafeBytes { tail in
            while found.size < tail.count, let end = tail[found.size...].firstIndex(of: 0x0A) {
                let line = UnsafeRawBufferPointer(rebasing: tail[found.size..<end])
                guard let parts = RecordForm.parts(of: line), parts.group == state.group,
                    parts.number == found.head.count + 1
                else { return }
                let code = state.key.code(of: found.head.code + line[..<parts.covered])
                guard Hexadecimal.octets(of: code).elementsEqual(RecordForm.digits(of: line, parts)) else { return }
                found = (found.records + 1, end + 1, ChainHead(count: parts.number, code: code))
            }
        }
        return found
    }
}
