internal import HTTP1
internal import Handshakes
internal import Reactor

/// Answers of upstreams before the schemes that have to say what they mean. Allocates: this is no cache hit.
extension DataLoop {
    /// Asks the identity's handshake what an answer means. `responseHead` is this answer's.
    func judge(
        _ status: Int, head: UnsafeRawBufferPointer, body: [UInt8]?, for caller: CallerConnection
    ) -> ChallengeVerdict {
        guard let identity = caller.exchange.route?.identity else { return .none }
        let answer = answer(status, head: head, body: body, for: caller)
        let verdict = identity.handshake.judge(answer)
        // A fixed credential has no grammar of refusals: the route's statuses say it all.
        if case .none = verdict, identity.refusesByStatus {
            return .challenged(Challenge(resource: answer.requestURL))
        }
        return verdict
    }

    /// The answer as schemes look at it.
    /// - Precondition: `responseHead` is the answer's, parsed from `head`.
    func answer(
        _ status: Int, head: UnsafeRawBufferPointer, body: [UInt8]?, for caller: CallerConnection
    ) -> UpstreamAnswer {
        var fields: [(name: [UInt8], value: [UInt8])] = []
        fields.reserveCapacity(responseHead.fieldCount)
        for index in 0..<responseHead.fieldCount {
            let field = responseHead[index]
            fields.append((Array(head[field.name]), Array(head[field.value])))
        }
        restoreHead(of: caller)
        let path = String(decoding: caller.requestPath, as: UTF8.self)
        var url = ""
        let route = caller.exchange.route
        if route?.identity?.resourceFromCaller == true, let host = requestHead.authority ?? requestHead.host {
            url =
                (caller.peer.isSecure ? "https://" : "http://") + String(decoding: caller.input[host], as: UTF8.self)
                + path
        } else if let route {
            let received = caller.requestPath
            let kept = received[route.edits.strippedLength(of: received.octets)...]
            let slash = kept.first == UInt8(ascii: "/") ? "" : "/"
            url = route.upstream.origin + route.pathPrefix + slash + String(decoding: kept, as: UTF8.self)
        }
        return UpstreamAnswer(
            status: status, fields: fields, body: body, requestURL: url,
            requestMethod: Array(caller.input[requestHead.method]))
    }
}
