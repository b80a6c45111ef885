internal import Glibc
internal import HTTP2
internal import Reactor
internal import TLS

/// Where a channel's input comes from: a socket, TLS over one, or a stream of an HTTP/2 connection.
extension Channel {
    /// The block is the memory in which a whole short message came: nothing comes behind it, and nothing may be written there.
    final var isWholePiece: Bool { block.map { $0.count < buffers.blockSize } ?? false }

    /// Reads once into the free end of the block, taking a block if there is none.
    package final func fill() -> Reading {
        if let stream = uncountedStream, let whole = stream._withUnsafeGuaranteedRef({ fillWhole($0) }) { return whole }
        if block == nil {
            guard let taken = buffers.take() else { return .noBuffer }
            block = taken
            start = 0
            end = 0
        }
        guard let block, end < block.count else { return .blockFull }
        let free = UnsafeMutableRawBufferPointer(rebasing: block[end...])
        // Neither reading ends this channel, which alone lets go of the two.
        if let stream = uncountedStream { return stream._withUnsafeGuaranteedRef { read($0, into: free) } }
        guard canRead else { return inputEnded ? .ended : .notNow }
        if let tls = uncountedTLS { return tls._withUnsafeGuaranteedRef { read($0, into: free) } }
        let count = loop.kernel.read(descriptor, into: free)
        if count > 0 {
            end += count
            bytesIn &+= UInt64(count)
            // A short read has emptied the socket, and edge-triggered epoll will tell of what comes next, unless the end of
            // input was already told: that edge does not come twice.
            if count < free.count, !inputEndSeen { canRead = false }
            return .bytes(count)
        }
        if count == 0 {
            inputEnded = true
            canRead = false
            return .ended
        }
        if count == Int(-EAGAIN) {
            canRead = false
            return .notNow
        }
        if count == Int(-EINTR) { return fill() }
        return .failed
    }

    /// Without a block of its own: all of a short message, or that nothing is there.
    @inline(__always)
    private func fillWhole(_ stream: HTTP2Stream) -> Reading? {
        if isWholePiece || block == nil && !stream.hasBytes {
            return read(stream, into: UnsafeMutableRawBufferPointer(start: nil, count: 0))
        }
        guard block == nil, let (piece, count) = stream.takePiece() else { return nil }
        block = piece
        start = 0
        end = count
        bytesIn &+= UInt64(count)
        return .bytes(count)
    }

    private func read(_ tls: TLSConnection, into free: UnsafeMutableRawBufferPointer) -> Reading {
        switch tls.read(into: free) {
        case .bytes(let count):
            end += count
            bytesIn &+= UInt64(count)
            return .bytes(count)
        case .wantsRead:
            canRead = false
            return .notNow
        case .wantsWrite:
            outputIsFull()
            return .notNow
        case .closed:
            inputEnded = true
            return .ended
        case .truncated:
            inputEnded = true
            return .truncated
        case .failed:
            return .failed
        }
    }

    private func read(_ stream: HTTP2Stream, into free: UnsafeMutableRawBufferPointer) -> Reading {
        switch stream.read(into: free) {
        case .bytes(let count):
            end += count
            bytesIn &+= UInt64(count)
            return .bytes(count)
        case .notNow:
            canRead = false
            return .notNow
        case .ended:
            inputEnded = true
            return .ended
        case .reset: return .failed
        }
    }

    // These read two references of this channel without a count: only for calls that cannot come back to this channel and end it, since
    // whoever calls holds the channel, and the channel lets go of the two only where it ends (`tearDown`), gives its socket away
    // (`handOver`) or tries one address after another.
    @inline(__always) final var uncountedStream: Unmanaged<HTTP2Stream>? { stream.map(Unmanaged.passUnretained) }
    @inline(__always) final var uncountedTLS: Unmanaged<TLSConnection>? { tls.map(Unmanaged.passUnretained) }

    package final var input: UnsafeRawBufferPointer {
        guard let block else { return UnsafeRawBufferPointer(start: nil, count: 0) }
        return UnsafeRawBufferPointer(rebasing: block[start..<end])
    }

    /// Gives the block back when nothing is in it, so that an idle connection holds none.
    package final func releaseEmptyBlock() {
        guard start == end, let block else { return }
        buffers.give(block)
        self.block = nil
        start = 0
        end = 0
    }

    /// Exchanges the block for one of `capacity` bytes and keeps the input at its front.
    /// - Returns: false when no such block can be had.
    final func growBlock(to capacity: Int) -> Bool {
        guard let grown = buffers.takeLarge(capacity, for: .input) else { return false }
        let count = end - start
        if let block {
            grown.copyMemory(from: UnsafeRawBufferPointer(rebasing: block[start..<end]))
            buffers.give(block)
        }
        block = grown
        start = 0
        end = count
        return true
    }
}
