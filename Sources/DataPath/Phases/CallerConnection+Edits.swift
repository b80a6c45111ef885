internal import HTTP1
internal import Reactor

/// The additions of one exchange to its heads, beside the edits of its route. Nothing here allocates, but for a connection's first
/// request.
extension CallerConnection {
    // MARK: - Toward the upstream

    /// The request's account of the connection it came on. `data.requestHead` is this request's.
    func forwardedHop(for route: RoutePlan) -> ForwardedHop {
        guard !route.forwarding.fields.isEmpty else {
            // Without the address, whose reference would be counted for nothing.
            var bare = ForwardedHop()
            let known = knownFlags
            bare.isTrusted = known.isTrusted
            bare.isSecure = known.isSecure
            bare.isHidden = route.forwarding.isHidden
            return bare
        }
        var hop = knownHop
        hop.fields = route.forwarding.fields
        hop.isHidden = route.forwarding.isHidden
        if hop.isHidden {
            hop.identifier = exchange.hopIdentifier ?? data.nextIdentifier()
        } else if hop.address.isEmpty, peer.address != nil {
            hop.address = peer.writtenAddress
            self.hop?.address = hop.address
        }
        return hop
    }

    /// The caller's fields about the way that a request has come are believed: it is in `forwarded_from`.
    var isTrusted: Bool { knownFlags.isTrusted }

    private var knownFlags: (isTrusted: Bool, isSecure: Bool) {
        if let isTrusted = hop?.isTrusted, let isSecure = hop?.isSecure { return (isTrusted, isSecure) }
        let made = knownHop
        return (made.isTrusted, made.isSecure)
    }

    private var knownHop: ForwardedHop {
        if let hop { return hop }
        let made = listener.hop(of: peer, isNamed: false)
        hop = made
        return made
    }

    /// The ready line as it is, or the token out of it in the route's own line, parameter or cookie.
    ///
    /// - Throws: where that is too long: a cut line would be sent without the credential's end, and swallow the field behind it.
    func credential(
        around ready: UnsafeRawBufferPointer, of route: RoutePlan
    ) throws(Fault) -> UnsafeRawBufferPointer {
        if route.identity?.signs == true, let signer = route.identity?.signer {
            return try signature(by: signer, with: ready, of: route)
        }
        guard let injection = route.injection, let identity = route.identity else { return ready }
        guard ready.count >= identity.linePrefix + 2 else {
            guard injection.place == .header else { throw .credentialMisfit }
            return ready
        }
        let token = UnsafeRawBufferPointer(rebasing: ready[identity.linePrefix..<(ready.count - 2)])
        var cursor = OutputCursor(buffers.credential)
        cursor.append(injection.before.span)
        switch injection.place {
        case .header: cursor.append(token.octets)
        case .query: writeParameterValue(token.octets, into: &cursor)
        case .cookie: writeCookieValue(token.octets, into: &cursor)
        }
        cursor.append(injection.after.span)
        guard !cursor.overflowed else { throw .credentialMisfit }
        return cursor.written(in: buffers.credential)
    }

    // MARK: - Toward the caller

    /// The caller's own origin and the gateway's lines for an answer, in `buffers.notes`.
    struct AnswerParts {
        var origin = UnsafeRawBufferPointer(start: nil, count: 0)
        var lines = UnsafeRawBufferPointer(start: nil, count: 0)
        /// Shared caches are told to leave it alone.
        var isPrivate = false
    }

    /// - Precondition: `data.responseHead` is the answer's, parsed from `head`.
    func answerParts(of route: RoutePlan, head: UnsafeRawBufferPointer) -> AnswerParts {
        var parts = AnswerParts()
        var cursor = OutputCursor(buffers.notes)
        if route.answerEdits.addresses.isOn, data.responseHead.namesAddresses {
            // Only then: the request's head may have to be read again for it.
            data.restoreHead(of: self)
            let request = UnsafeRawBufferPointer(rebasing: input[..<exchange.request.headLength])
            data.requestHead.writeCallerOrigin(
                request.octets, isSecure: peer.isSecure, isTrusted: knownHop.isTrusted, into: &cursor)
            // A host that long names no server to send a caller to.
            if cursor.overflowed { cursor = OutputCursor(buffers.notes) }
            parts.origin = cursor.written(in: buffers.notes)
        }
        let start = cursor.count
        if route.answerNotes.contains(.keepsFromSharedCaches), exchange.machine.credential.sent != nil,
            data.responseHead.wantsPrivate(in: head.octets)
        {
            parts.isPrivate = true
        }
        if route.answerNotes.contains(.serverTiming) { appendServerTiming(to: &cursor) }
        if route.answerNotes.contains(.requestID) { appendRequestID(to: &cursor) }
        // The line is not worth an answer.
        guard !cursor.overflowed else { return parts }
        parts.lines = UnsafeRawBufferPointer(rebasing: cursor.written(in: buffers.notes)[start...])
        return parts
    }

    /// `Server-Timing` (W3C): how long the token, the upstream's connection and its answer took, as the access record has them.
    private func appendServerTiming(to cursor: inout OutputCursor) {
        cursor.append("Server-Timing: cardea-token;dur=")
        cursor.append(milliseconds: exchange.record.tokenAt &- min(exchange.record.startedAt, exchange.record.tokenAt))
        cursor.append(", cardea-connect;dur=")
        cursor.append(milliseconds: exchange.record.sentAt &- min(exchange.record.tokenAt, exchange.record.sentAt))
        cursor.append(", cardea-upstream;dur=")
        cursor.append(
            milliseconds: exchange.record.firstByteAt &- min(exchange.record.sentAt, exchange.record.firstByteAt))
        cursor.append("\r\n")
    }
}

extension Fault {
    /// The credential that would be sent is not the whole one.
    static var credentialMisfit: Fault {
        Fault(
            .identityMisconfigured,
            detail: "the credential cannot be computed, or does not fit the place that the route has for it")
    }
}

extension OutputCursor {
    /// Nanoseconds as milliseconds with three decimals.
    fileprivate mutating func append(milliseconds nanoseconds: UInt64) {
        let microseconds = nanoseconds / 1000
        append(decimal: microseconds / 1000)
        append(byte: UInt8(ascii: "."))
        let rest = microseconds % 1000
        append(byte: UInt8(ascii: "0") + UInt8(rest / 100))
        append(byte: UInt8(ascii: "0") + UInt8(rest / 10 % 10))
        append(byte: UInt8(ascii: "0") + UInt8(rest % 10))
    }
}

extension ListenerPlan {
    /// The account that requests of this peer give of its connection, as long as it lasts.
    /// - Parameter isNamed: the address is written at once, for many requests to share; most upstreams are never told of it.
    func hop(of peer: CallerPeer, isNamed: Bool) -> ForwardedHop {
        var hop = ForwardedHop()
        if isNamed { hop.address = peer.writtenAddress }
        if !forwardedFrom.isEmpty, let address = peer.address {
            hop.isTrusted = forwardedFrom.contains { $0.contains(address) }
        }
        hop.isSecure = peer.isSecure
        return hop
    }
}

extension CallerPeer {
    /// Its address as text; empty: not known.
    fileprivate var writtenAddress: [UInt8] { address.map { Array($0.host.utf8) } ?? [] }
}
