internal import Glibc
package import World

/// Files of one log, read for a verification in the order in which they were written.
package enum LogFiles {
    /// What is wrong, and where: a file's name, and the number of the line that shows it where one does.
    package struct Finding: Error {
        /// The file in which it shows.
        package let path: String
        /// From 1; nil where no single line shows it.
        package let line: UInt64?
        /// What was found; nil where the file could not be read.
        package let fault: ChainFault?
        /// The system's words where the file could not be read.
        package var reason = ""
    }

    /// What a good log has.
    package struct Result {
        /// The first record that was looked at; nil: there was none.
        package let first: UInt64?
        /// The end of the chain.
        package let head: ChainHead
        /// Whether a cut end would have been seen: the key file stood beside the last file, or a head of the last record was noted.
        package let isEndKnown: Bool
        /// The records that the latest noted head covers, which were not cut off; 0 where there is none.
        package let notedCount: UInt64
    }

    /// Octets that are read at once.
    private static let piece = 1 << 20

    /// - Parameters:
    ///   - paths: oldest first; `-` is standard input.
    ///   - key: the first one; nil: the order alone is looked at.
    ///   - noted: heads that the log has to have.
    ///   - time: for the wait until a group that is being written is whole.
    package static func verify(
        _ paths: [String], key: ChainKey?, noted: [ChainHead], time: any TimeSource
    ) throws(Finding) -> Result {
        let last = paths.last ?? "-"
        // Before the log is read: what is written meanwhile is behind this head.
        let end = last == "-" ? nil : try End(beside: last, time)
        var noted = noted
        if let end { noted.append(end.state.head) }
        var verifier = ChainVerifier(key: key, noted: noted, lastGroup: end?.state.group)
        for path in paths {
            // A log that was renamed and has had no record since is not there, and is as good as empty.
            if path == last, let end, end.size == nil { continue }
            try read(path, upTo: path == last ? end?.size : nil, &verifier)
        }
        do throws(ChainFault) {
            try verifier.finish()
            if let end { try verifier.leads(to: end.state.key, group: end.state.group) }
        } catch { throw Finding(path: last, line: nil, fault: error) }
        let notedCount = noted.map(\.count).max() ?? 0
        return Result(
            first: verifier.first, head: verifier.head,
            isEndKnown: end != nil || notedCount > 0 && notedCount == verifier.head.count, notedCount: notedCount)
    }

    private static func read(
        _ path: String, upTo size: UInt64?, _ verifier: inout ChainVerifier
    ) throws(Finding) {
        let descriptor = path == "-" ? 0 : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { if descriptor > 0 { close(descriptor) } }
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: piece, alignment: 16)
        defer { buffer.deallocate() }
        var cutter = LineCutter()
        var left = size ?? .max
        while left > 0 {
            let count = Glibc.read(descriptor, buffer.baseAddress, min(buffer.count, Int(clamping: left)))
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(path) }
            if count == 0 { break }
            left -= UInt64(count)
            let piece = UnsafeRawBufferPointer(rebasing: buffer[..<count])
            do throws(ChainFault) {
                try cutter.take(piece) { (line) throws(ChainFault) in try verifier.take(line) }
            } catch { throw Finding(path: path, line: cutter.line, fault: error) }
        }
        do throws(ChainFault) { try cutter.finish() } catch {
            throw Finding(path: path, line: cutter.line, fault: error)
        }
    }

    private static func unreadable(_ path: String) -> Finding {
        Finding(
            path: path, line: nil, fault: nil, reason: strerror(errno).map { String(cString: $0) } ?? "error \(errno)")
    }

    /// The end of a log that a gateway may be writing: what the key file says, and how long the log was when no group was half written.
    private struct End {
        let state: ChainState
        /// In octets; nil where the log is not there.
        let size: UInt64?

        /// Nil where there is no key that this user may read.
        /// - Throws: where the key file holds something else.
        init?(beside log: String, _ time: any TimeSource) throws(Finding) {
            do throws(AuditFault) {
                let place = try LogPlace(log)
                let lock = place.open(place.lock, O_RDONLY)
                defer { if lock >= 0 { close(lock) } }
                if lock >= 0 { Self.wait(for: lock, time) }
                state = try ChainKeyFile(place, to: .verify).state
                var status = stat()
                let isThere = stat(log, &status) == 0
                guard isThere || errno == ENOENT else { return nil }
                size = isThere ? UInt64(clamping: status.st_size) : nil
            } catch {
                guard error.kind == .badFile else { return nil }
                throw Finding(path: ChainKeyFile.path(beside: log), line: nil, fault: .noKeyFile)
            }
        }

        /// A group is written within moments. A writer that takes longer is not waited for, and its group may then look torn.
        private static func wait(for lock: Int32, _ time: any TimeSource) {
            var patience = 200
            while flock(lock, LOCK_SH | LOCK_NB) != 0, patience > 0 {
                patience -= 1
                time.pause(milliseconds: 10)
            }
        }
    }
}
