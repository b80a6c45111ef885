internal import Glibc
internal import HTTP2
internal import Reactor
internal import TLS

/// Whether a connection is fit for another request.
extension UpstreamConnection {
    /// Every precondition of giving this connection to another request, in one place.
    func mayBeReused(answerComplete: Bool, requestComplete: Bool, persistent: Bool) -> Bool {
        // A stream carries one request; its shared connection is reused without being given back.
        guard state == .busy, shared == nil else { return false }
        guard answerComplete, requestComplete, persistent else { return false }
        guard isOfItsIdentity else { return false }
        // Bytes behind the answer would be taken for the next one.
        guard start == end else { return false }
        guard !hasPending, !outputLost else { return false }
        guard !inputEnded, !inputEndSeen else { return false }
        guard requests < group.plan.requestsPerConnection, keepLimit > 0 else { return false }
        // The upstream's name leads elsewhere by now.
        guard address?.isListed == true else { return false }
        // Our certificate is another one by now, or the server's may not be trusted any more.
        guard tlsEdition == group.tls.edition else { return false }
        return isDrained()
    }

    /// The server takes whoever comes next on it for the user whom it has authenticated: that must still be the one of now.
    var isOfItsIdentity: Bool {
        guard let binding, let epoch = group.plan.boundTo else { return true }
        return binding.epoch == epoch.now && loop.now < binding.until
    }

    /// Nanoseconds that it may be without a request by its server's word. Less than was announced: the server's clock began before ours, and
    /// our next request needs a while to arrive.
    var keepLimit: UInt64 {
        guard let announcedTimeout else { return .max }
        let time = UInt64(announcedTimeout) * 1_000_000_000
        return time - min(1_000_000_000, time / 2)
    }

    /// Whether it may still be open: by what was announced or configured, and for a request that cannot be sent again by how recently it was
    /// used.
    /// - Precondition: it is idle.
    func isFresh(forRequestOnce: Bool) -> Bool {
        let idle = loop.now - min(loop.now, idleSince)
        return idle < min(group.plan.keepTimeout, keepLimit)
            && (!forRequestOnce || idle <= group.plan.reuseTimeout)
    }

    /// Whether its request was given up before all of it had left.
    func hasCut(requestComplete: Bool) -> Bool {
        guard requestComplete, !hasPending, !outputLost else { return true }
        return stream?.isSent == false
    }

    /// Nothing has been sent on it, so whoever takes it next is its first user.
    var isUntouched: Bool {
        state == .busy && shared == nil && requests == 0 && start == end && !hasPending && !inputEndSeen
    }

    /// Whether the socket holds nothing more. A read that filled the block exactly leaves that open, and its edge has been told: bytes
    /// behind the answer would greet the next request as its own.
    private func isDrained() -> Bool {
        tls?.hasBufferedInput != true && isSilent()
    }

    /// Whether nothing has come that is the server's word to a request. Behind a handshake with TLS sessions may stand, which are none.
    func isSilent() -> Bool {
        if let tls {
            if tls.hasBufferedInput { canRead = true }
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
