internal import Glibc
internal import Reactor
internal import TLS

/// Whether a connection is fit for another request.
extension UpstreamConnection {
    /// Every precondition of giving this connection to another request, in one place.
    func mayBeReused(answerComplete: Bool, requestComplete: Bool, persistent: Bool) -> Bool {
        // A stream carries one request; its session is reused without being given back.
        guard state == .busy, session == nil else { return false }
        guard answerComplete, requestComplete, persistent else { return false }
        // Bytes behind the answer would be taken for the next one.
        guard start == end else { return false }
        guard !hasPending, !outputLost else { return false }
        guard !inputEnded, !inputEndSeen else { return false }
        guard requests < group.plan.requestsPerConnection else { return false }
        // The upstream's name leads elsewhere by now.
        guard place?.isListed == true else { return false }
        // Our certificate is another one by now, or the server's may not be trusted any more.
        guard tlsEdition == group.tlsEdition else { return false }
        return isDrained()
    }

    /// Nothing has been sent on it, so whoever takes it next is its first user.
    var isUntouched: Bool {
        state == .busy && session == nil && requests == 0 && start == end && !hasPending && !inputEndSeen
    }

    /// Whether the socket holds nothing more. A read that filled the block exactly leaves that open, and its edge has been told: bytes
    /// behind the answer would greet the next request as its own.
    private func isDrained() -> Bool {
        if let tls {
            if tls.hasBufferedInput { return false }
            guard canRead else { return true }
            guard case .wantsRead = tls.read(into: buffers.record) else { return false }
            canRead = false
            return true
        }
        guard canRead else { return true }
        let count = loop.kernel.read(descriptor, into: UnsafeMutableRawBufferPointer(rebasing: buffers.record[..<1]))
        canRead = false
        return count == Int(-EAGAIN)
    }
}
