internal import CLinux
internal import Glibc
internal import HTTP1
internal import HTTP2
package import Reactor
internal import TLS

/// A connected socket, clear text or TLS, or a stream of an HTTP/2 connection, with one input block and the output that has not been
/// taken yet.
///
/// A stream of HTTP/2 speaks as a socket would, in HTTP/1.1's form: heads as text, bodies without framing. Where framing is written
/// the two part ways: `sendBody` and its like in `Channel+Message.swift`.
///
/// Both sides of an exchange are channels. Back-pressure is a rule between two of them: a side reads only while the other side's
/// `pending` is empty, so a channel holds at most one block of input and what one read could not write.
package class Channel: Watched, TLSWire {
    let buffers: LoopBuffers
    final var tls: TLSConnection?
    /// Set: the channel is this stream of an HTTP/2 connection, and `descriptor` belongs to nobody.
    final var stream: HTTP2Stream?

    /// Input: bytes `start..<end` of `block` are received and not yet consumed.
    final var block: UnsafeMutableRawBufferPointer?
    // Behind an optional of sixteen octets seven are free: elsewhere each of these would take eight, for every idle connection.
    /// The kernel moved the last piece of the input, so it is worth trying again.
    final var isFlowing = false
    /// The peer will send no more.
    final var inputEnded = false
    /// `EPOLLRDHUP` was seen: the end of input, or an error, is to be read after what is buffered.
    final var inputEndSeen = false
    /// Epoll said readable and no read has come back empty since.
    package final var canRead = false
    final var canWrite = false
    /// A write has failed.
    final private(set) var outputLost = false
    /// The next write is the last, and the connection is shut down or closed before the loop's turn goes on: the kernel may send the end
    /// in the same segment.
    final var isLastWrite = false
    package final var start = 0
    package final var end = 0

    /// Output that the socket did not take. Empty in the steady state.
    private var pending: UnsafeMutableRawBufferPointer?
    // The next two fit into the octets that are free behind `pending`, as the flags above do behind `block`.
    private final var deadlineKind: UInt8 = 0
    /// In the loop's `Roster`, −1 in none.
    final var rosterIndex: Int32 = -1
    private var pendingStart = 0
    private var pendingEnd = 0

    /// The bytes that lie in the pipe, to be written behind `pending`: only while they are on their way (`Channel+Splice.swift`).
    final var pipeCount = 0
    final var pipe: PipePair?

    /// The one deadline of this channel, of `deadlineKind`, in nanoseconds; zero for none. The wheel's timer may fire early: then it is
    /// set again.
    private final var deadline: UInt64 = 0
    private final var timerAt: UInt64 = 0
    private final var timer: TimerID?

    final var bytesIn: UInt64 = 0
    final var bytesOut: UInt64 = 0

    /// Parts that together are no longer are put together before they are written.
    private static let copyLimit = 4 * 1024

    /// Most output that may wait: one head, one block of body and its chunk framing.
    static let pendingLimit = 256 * 1024

    init(loop: Loop, buffers: LoopBuffers) {
        self.buffers = buffers
        super.init(loop: loop)
    }

    package enum Reading { case bytes(Int), notNow, ended, truncated, failed, blockFull, noBuffer }

    // MARK: - Output

    package final var hasPending: Bool { pendingCount > 0 }
    final var pendingCount: Int {
        if let stream { return stream.pendingCount }
        return pendingEnd - pendingStart + pipeCount
    }

    /// More must not be written now. An HTTP/2 connection sends what its streams have at the end of a turn, so a stream collects a little.
    final var isCongested: Bool {
        if let stream {
            let waiting = stream.pendingCount
            return waiting >= Self.streamLimit || waiting > 0 && stream.isShort
        }
        return pendingEnd > pendingStart || pipeCount > 0
    }

    private static let streamLimit = 48 * 1024

    /// Writes the parts in order; what the socket does not take is kept.
    /// - Returns: false when the connection is lost or the bound of what may wait would be passed.
    package final func send(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer = .init(start: nil, count: 0),
        _ third: UnsafeRawBufferPointer = .init(start: nil, count: 0)
    ) -> Bool {
        let total = first.count + second.count + third.count
        if total == 0 { return true }
        if let stream {
            bytesOut &+= UInt64(total)
            return stream.write(first) && stream.write(second) && stream.write(third)
        }
        // A congested channel must not be written to: bytes that were written now would overtake those that lie in the pipe.
        guard pipeCount == 0 else { return false }
        var taken = 0
        if pendingEnd == pendingStart, canWrite {
            taken = write(first, second, third, total: total)
            if taken < 0 { return false }
        }
        bytesOut &+= UInt64(total)
        guard taken < total else { return true }
        guard reserve(total - taken) else { return false }
        keep(first, after: &taken)
        keep(second, after: &taken)
        keep(third, after: &taken)
        return true
    }

    private func write(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, _ third: UnsafeRawBufferPointer, total: Int
    ) -> Int {
        if tls != nil { return writeSealed(first, second, third, total: total) }
        let written: Int
        if second.count == 0, third.count == 0 {
            written = uninterrupted { loop.kernel.write(descriptor, first, more: isLastWrite) }
        } else if total <= Self.copyLimit {
            // Below this a copy costs less than the kernel's handling of a vector.
            buffers.record.put(first, at: 0)
            buffers.record.put(second, at: first.count)
            buffers.record.put(third, at: first.count + second.count)
            let joined = UnsafeRawBufferPointer(rebasing: buffers.record[..<total])
            written = uninterrupted { loop.kernel.write(descriptor, joined, more: isLastWrite) }
        } else {
            written = withUnsafeTemporaryAllocation(of: iovec.self, capacity: 3) { parts in
                parts[0] = Self.vector(first)
                parts[1] = Self.vector(second)
                parts[2] = Self.vector(third)
                return uninterrupted { loop.kernel.write(descriptor, UnsafeBufferPointer(parts), more: isLastWrite) }
            }
        }
        return settle(written, of: total)
    }

    /// TLS: small parts leave in one record, so that a head and its body cost one write.
    private func writeSealed(
        _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, _ third: UnsafeRawBufferPointer, total: Int
    ) -> Int {
        guard let tls else { return -1 }
        if second.count + third.count > 0, total <= buffers.record.count {
            buffers.record.put(first, at: 0)
            buffers.record.put(second, at: first.count)
            buffers.record.put(third, at: first.count + second.count)
            return writeRecord(tls, UnsafeRawBufferPointer(rebasing: buffers.record[..<total]))
        }
        var taken = writeRecord(tls, first)
        guard taken == first.count else { return taken }
        let next = writeRecord(tls, second)
        guard next >= 0 else { return next }
        taken += next
        guard next == second.count else { return taken }
        let last = writeRecord(tls, third)
        return last < 0 ? last : taken + last
    }

    private func writeRecord(_ tls: TLSConnection, _ bytes: UnsafeRawBufferPointer) -> Int {
        var taken = 0
        while taken < bytes.count {
            switch tls.write(UnsafeRawBufferPointer(rebasing: bytes[taken...])) {
            case .bytes(let count): taken += count
            case .wantsWrite:
                outputIsFull()
                return taken
            case .wantsRead: return taken
            case .closed, .truncated, .failed: return -1
            }
        }
        return taken
    }

    private func settle(_ written: Int, of total: Int) -> Int {
        if written >= 0 {
            if written < total { outputIsFull() }
            return written
        }
        if written == Int(-EAGAIN) {
            outputIsFull()
            return 0
        }
        return -1
    }

    /// The socket takes no more for now.
    final func outputIsFull() {
        canWrite = false
        loop.hearOutput(of: self)
    }

    /// Again at once: no edge would follow.
    private func uninterrupted(_ call: () -> Int) -> Int {
        while true {
            let result = call()
            if result != Int(-EINTR) { return result }
        }
    }

    /// Writes what waits.
    /// - Returns: false when the connection is lost.
    final func flush() -> Bool {
        guard let pending else { return pipe == nil || drainPipe() }
        guard canWrite else { return true }
        let bytes = UnsafeRawBufferPointer(rebasing: pending[pendingStart..<pendingEnd])
        let taken: Int
        if let tls {
            taken = writeRecord(tls, bytes)
        } else {
            taken = settle(uninterrupted { loop.kernel.write(descriptor, bytes) }, of: bytes.count)
        }
        if taken < 0 { return false }
        pendingStart += taken
        guard pendingStart == pendingEnd else { return true }
        dropPending()
        return drainPipe()
    }

    /// The peer takes no more. What it said before, often why, can still be read; the read that finds nothing ends the connection.
    final func abandonOutput() {
        outputLost = true
        canRead = true
        dropPending()
        dropPipe()
    }

    private func reserve(_ count: Int) -> Bool {
        guard pendingCount + count <= Self.pendingLimit else { return false }
        if let pending, pending.count - pendingEnd >= count { return true }
        guard let larger = buffers.takeLarge(max(pendingCount + count, buffers.blockSize), for: .output) else {
            return false
        }
        let waiting = pendingCount
        if let pending {
            larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: pending[pendingStart..<pendingEnd]))
            buffers.give(pending, from: .output)
        }
        pending = larger
        pendingStart = 0
        pendingEnd = waiting
        return true
    }

    /// Keeps what the socket left of `part`, `taken` being how much it took of this part and those behind it.
    private func keep(_ part: UnsafeRawBufferPointer, after taken: inout Int) {
        let skipped = min(taken, part.count)
        taken -= skipped
        guard skipped < part.count, let pending else { return }
        pending.put(UnsafeRawBufferPointer(rebasing: part[skipped...]), at: pendingEnd)
        pendingEnd += part.count - skipped
    }

    private static func vector(_ part: UnsafeRawBufferPointer) -> iovec {
        iovec(iov_base: UnsafeMutableRawPointer(mutating: part.baseAddress), iov_len: part.count)
    }

    /// The output that waits was meant for a peer that will not get it.
    final func dropPending() {
        if let pending { buffers.give(pending, from: .output) }
        pending = nil
        pendingStart = 0
        pendingEnd = 0
    }

    // MARK: - Deadline

    /// Sets the one deadline. Moving it later costs a store: the timer that is armed finds out when it fires.
    final func expect(by deadline: UInt64, kind: UInt8) {
        self.deadline = deadline
        deadlineKind = kind
        if timer != nil, timerAt <= deadline { return }
        if let timer { loop.disarm(timer) }
        armTimer()
    }

    /// A far deadline is looked at on the way: most give way to nearer ones before, for which the timer then need not be moved.
    private func armTimer() {
        timerAt = min(deadline, loop.now &+ Self.horizon)
        timer = loop.arm(self, at: timerAt, kind: 0)
    }

    private static let horizon: UInt64 = 60_000_000_000

    final func expectNothing() { deadline = 0 }

    /// Before the loop gives this channel another index: a timer points at the old one, and would be nobody's.
    final func dropTimer() {
        if let timer { loop.disarm(timer) }
        timer = nil
        deadline = 0
    }

    package final override func timerFired(_ kind: UInt8) {
        guard kind != Self.secondTimer else { return secondTimerFired() }
        timer = nil
        guard deadline != 0 else { return }
        if loop.now < deadline {
            armTimer()
            return
        }
        deadline = 0
        deadlinePassed(deadlineKind)
    }

    /// The kind of a timer beside that of `expect`, armed by a subclass.
    static let secondTimer: UInt8 = 1
    func secondTimerFired() {}

    /// The deadline that `expect` set has passed.
    func deadlinePassed(_ kind: UInt8) {}

    // MARK: - Hand-over

    /// Gives `heir` the socket with everything that belongs to it: TLS state, received bytes, output that waits, and what is known of
    /// its readiness. `heir` is new on this loop; this channel is over, without deadline and without descriptor.
    final func handOver(to heir: Channel) {
        dropTimer()
        giveTLS(to: heir)
        (heir.block, heir.start, heir.end) = (block, start, end)
        (block, start, end) = (nil, 0, 0)
        (heir.pending, heir.pendingStart, heir.pendingEnd) = (pending, pendingStart, pendingEnd)
        (pending, pendingStart, pendingEnd) = (nil, 0, 0)
        (heir.inputEnded, heir.inputEndSeen, heir.outputLost) = (inputEnded, inputEndSeen, outputLost)
        (heir.canRead, heir.canWrite) = (canRead, canWrite)
        (heir.pipe, heir.pipeCount) = (pipe, pipeCount)
        (pipe, pipeCount) = (nil, 0)
        // Bytes that came before the protocol do not count for its requests.
        heir.bytesIn = UInt64(heir.end - heir.start)
        loop.replace(self, by: heir)
    }

    // MARK: - Under TLS

    /// The records go over the heir's socket from here on.
    final func giveTLS(to heir: Channel) {
        heir.tls = tls
        tls?.wire = heir
        tls = nil
    }

    final func receive(into buffer: UnsafeMutableRawBufferPointer) -> Int {
        uninterrupted { loop.kernel.read(descriptor, into: buffer) }
    }
    final func transmit(_ bytes: UnsafeRawBufferPointer) -> Int {
        uninterrupted { loop.kernel.write(descriptor, bytes, more: isLastWrite) }
    }

    // MARK: - End

    /// Closes the socket and gives every buffer back. Safe to call twice.
    final func tearDown() {
        // Taken and not read, which would count them.
        tls.take()?.shutdown()
        // A half-sent message must not look whole; what is complete stays as it is.
        stream.take()?.cancel()
        dropTimer()
        if let block { buffers.give(block) }
        block = nil
        start = 0
        end = 0
        dropPending()
        dropPipe()
        loop.close(self)
    }

    /// After `tearDown` it has taken nothing up again.
    final var holdsNothing: Bool {
        tls == nil && stream == nil && block == nil && pending == nil && pipe == nil && timer == nil && !hasEntry
            && descriptor < 0 && rosterIndex < 0
    }

    /// Makes it what it was when it was made.
    /// - Precondition: `holdsNothing`.
    final func renewChannel() {
        start = 0
        end = 0
        pendingStart = 0
        pendingEnd = 0
        pipeCount = 0
        deadline = 0
        isFlowing = false
        inputEnded = false
        inputEndSeen = false
        canRead = false
        canWrite = false
        outputLost = false
        isLastWrite = false
        deadlineKind = 0
        timerAt = 0
        bytesIn = 0
        bytesOut = 0
    }

    /// Notes what epoll said. Subclasses call this first.
    final func note(_ readiness: Readiness) {
        if !readiness.isDisjoint(with: [.readable, .inputEnded, .hungUp, .failed]) { canRead = true }
        if !readiness.isDisjoint(with: [.inputEnded, .hungUp, .failed]) { inputEndSeen = true }
        if !readiness.isDisjoint(with: [.writable, .hungUp, .failed]) { canWrite = true }
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Copies `bytes` to `offset`; traps when they do not fit.
    func put(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
        guard bytes.count > 0 else { return }
        UnsafeMutableRawBufferPointer(rebasing: self[offset..<(offset + bytes.count)]).copyMemory(from: bytes)
    }
}
