internal import Glibc
internal import Reactor

/// Bytes that pass from one socket to another through a pipe, by the kernel alone (splice(2)): large bodies in clear text that nothing
/// has to look at.
///
/// To everybody else a pipe's bytes are output that waits: they count in `pendingCount`, congest the channel, leave with `flush`, and are
/// in the account of both sides from the moment when they left the source. A pipe that is drained goes back to the loop's pool at once.
extension Channel {
    /// A body of which less than this is to come is copied: measured, see `LargeBodies`.
    static let spliceThreshold: UInt64 = 32 * 1024
    /// A piece of unknown continuation that was smaller than this was no flood.
    private static let flood = 16 * 1024

    enum Passage {
        /// Bytes left the source. They may still wait in the pipe.
        case moved(Int)
        case notNow
        case ended
        case sourceFailed
        case targetFailed
        /// Not by this way: read and write.
        case unavailable
    }

    /// Whether a piece of `source`'s input, of which `left` bytes are to come at most, should take this way here.
    final func mayPass(from source: Channel, left: UInt64, isAnnounced: Bool) -> Bool {
        guard source.isFlowing || isAnnounced && left >= Self.spliceThreshold, left > 0 else { return false }
        guard let pipes = buffers.pipes, !pipes.isRefused else { return false }
        return tls == nil && stream == nil && source.tls == nil && source.stream == nil
    }

    /// Moves one piece from the source's socket.
    /// - Precondition: nothing that was received before it is still to be sent, and this channel is not congested.
    final func pass(from source: Channel, atMost left: UInt64) -> Passage {
        guard source.canRead else { return source.inputEnded ? .ended : .notNow }
        guard let pipes = buffers.pipes, let pipe = pipes.take() else {
            source.isFlowing = false
            return .unavailable
        }
        // Nothing of it is needed while bytes do not come by it.
        source.releaseEmptyBlock()
        let count = moved(from: source.descriptor, to: pipe.inlet, count: Int(min(left, UInt64(pipe.capacity))))
        guard count > 0 else {
            pipes.give(pipe, isEmpty: true)
            return source.spliced(nothing: count)
        }
        source.bytesIn &+= UInt64(count)
        // How many is no sign of whether the socket is empty: a pipe is full when its pages are, however little is in each.
        source.isFlowing = count >= Self.flood
        bytesOut &+= UInt64(count)
        self.pipe = pipe
        pipeCount = count
        return drainPipe() ? .moved(count) : .targetFailed
    }

    private func spliced(nothing result: Int) -> Passage {
        switch result {
        case 0:
            inputEnded = true
            canRead = false
            return .ended
        case Int(-EAGAIN):
            canRead = false
            return .notNow
        case Int(-EINVAL), Int(-ENOSYS), Int(-EOPNOTSUPP), Int(-EPERM):
            isFlowing = false
            buffers.pipes?.refuse()
            return .unavailable
        default: return .sourceFailed
        }
    }

    /// Writes what lies in the pipe, and gives the pipe back when nothing does.
    /// - Returns: false when the connection is lost.
    final func drainPipe() -> Bool {
        guard let pipe else { return true }
        while pipeCount > 0, canWrite {
            let count = moved(from: pipe.outlet, to: descriptor, count: pipeCount)
            if count > 0 {
                pipeCount -= count
            } else if count == Int(-EAGAIN) {
                outputIsFull()
            } else {
                return false
            }
        }
        if pipeCount == 0 { dropPipe() }
        return true
    }

    /// Gives the pipe back; bytes that are still in it are lost.
    final func dropPipe() {
        guard let pipe else { return }
        buffers.pipes?.give(pipe, isEmpty: pipeCount == 0)
        self.pipe = nil
        pipeCount = 0
    }

    /// Again at once when a signal came between: no edge would follow.
    private func moved(from source: Int32, to target: Int32, count: Int) -> Int {
        while true {
            let result = loop.kernel.splice(source, to: target, count: count)
            if result != Int(-EINTR) { return result }
        }
    }
}
