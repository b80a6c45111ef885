internal import Glibc
internal import Octets

/// The files of one log on disk:
///
///     LOG        records; whoever rotates it renames it, and the next group begins a new one
///     LOG.key    the key of the next group, and where the chain ends
///     LOG.lock   held while a group is written; never deleted
///
/// A group is written in three steps: its records, their way to the disk, the next key. A kill between any two of them is healed by the
/// next writer: behind a whole group the key goes one step forward; of a part of one the whole records stay, a torn piece behind them is
/// cut off, and what comes next goes on with that group and ends it. A key file of an earlier time, which somebody put back, is led
/// forward through every group that follows from it.
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
            writer.append(
                record, to: &text, beginsFile: size == 0 && index == 0, endsGroup: index == records.count - 1)
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
        let found = written(tail, state)
        // A file that others filled is none of ours to cut; what does not belong there is found by `audit verify`.
        let isOurs = start > 0 || found.records > 0 || isTorn(tail, state)
        guard isOurs, size - start <= UInt64(largestGroup) else { return turn }
        turn.healed = found.records
        turn.cut = UInt64(tail.count - found.size)
        turn.head = found.head
        if turn.cut > 0 { try log.shorten(to: start + UInt64(found.size)) }
        guard found.records > 0 else { return turn }
        let isStep = found.group != state.group
        state = ChainState(
            key: found.key, group: found.group, head: found.head, file: log.number, size: start + UInt64(found.size))
        // Within a group the key file stays as it is: whatever comes next ends the group, and replaces it then.
        if isStep, found.isGroupOver { try key.replace(with: state) }
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

    /// What a look at records behind the end that the key file knows has found.
    private struct Found {
        var records: UInt64 = 0
        /// Octets of them.
        var size = 0
        var head: ChainHead
        /// The group that goes on behind them, and its key.
        var group: UInt64
        var key: ChainKey
        /// The last of them ended its group.
        var isGroupOver = true
    }

    /// The whole records at the beginning of `tail` that follow from `state`.
    private static func written(_ tail: [UInt8], _ state: ChainState) -> Found {
        var found = Found(head: state.head, group: state.group, key: state.key)
        tail.withUnsafeBytes { tail in
            while found.size < tail.count, let end = tail[found.size...].firstIndex(of: 0x0A) {
                let line = UnsafeRawBufferPointer(rebasing: tail[found.size..<end])
                guard let parts = RecordForm.parts(of: line), parts.group == found.group,
                    parts.number == found.head.count + 1
                else { return }
                let code = found.key.code(of: found.head.code + line[..<parts.covered])
                guard Hexadecimal.octets(of: code).elementsEqual(RecordForm.digits(of: line, parts)) else { return }
                found.records += 1
                found.size = end + 1
                found.head = ChainHead(count: parts.number, code: code)
                found.isGroupOver = parts.endsGroup
                guard parts.endsGroup else { continue }
                found.key = found.key.next()
                found.group += 1
            }
        }
        return found
    }
}
