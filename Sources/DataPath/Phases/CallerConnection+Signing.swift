internal import Glibc
internal import HTTP1
internal import Handshakes
internal import Octets
internal import Reactor
internal import TLS
internal import Telemetry
internal import World

/// Credentials that are computed for each request. An exception to the law against allocation on a hit: a signature is made of its
/// request, so nothing of it can be ready; its work is bounded by the head and by what the configuration wrote.
extension CallerConnection {
    /// The field lines of the signature.
    ///
    /// The signer reads the head as it will be sent: the head is written once without a credential, so that no edit of the route can come
    /// between the signature and what it signs.
    /// - Throws: where it cannot be made or is too long.
    func signature(
        by signer: any RequestSigner, with ready: UnsafeRawBufferPointer, of route: RoutePlan
    ) throws(Fault) -> UnsafeRawBufferPointer {
        guard let identity = route.identity, ready.count >= identity.linePrefix + 2 else { throw .credentialMisfit }
        let material = UnsafeRawBufferPointer(rebasing: ready[identity.linePrefix..<(ready.count - 2)])
        var request = try requestToSign(on: route)
        request.received = receivedFields(signer.readFields)
        request.isProbe = exchange.caution.isProbe
        request.keys = data.proofKeys
        request.namesSecrets = route.conceals
        if identity.usesNonces {
            request.nonce = data.nonces[route.upstream.origin]
        } else if identity.answersNonces {
            request.serverNonce = nonceToAnswer(on: route)
            if identity.bindsConnections { prepareToBind(&request) }
        }
        if let function = signer.bodyHash(answering: request.serverNonce) {
            // The digest of no body would be a wrong answer, which the server counts against the password.
            guard exchange.request.signed != nil || exchange.caution.isProbe || exchange.request.framing == .none
            else {
                throw .credentialMisfit
            }
            request.bodyDigest = bodyDigest(by: function)
        }
        let signature: RequestSignature
        do throws(SigningFault) {
            signature = try signer.sign(
                request, with: material, wallSeconds: loop.kernel.wallMilliseconds() / 1000,
                entropy: data.random.bytes(16))
        } catch {
            guard !error.isCallers else { throw Fault(.unsignable, detail: error.reason) }
            data.events.warn(
                "request cannot be signed",
                [LogField("route", .name(route.name)), LogField("reason", .name(error.reason))] + correlationFields)
            throw .credentialMisfit
        }
        if identity.answersNonces { noteAnswer(signature.answer, on: route) }
        if let body = signature.body { try sign(body: body) }
        if route.conceals { try prepareConcealment(of: signature) }
        let lines = signature.fields.reduce(into: [UInt8]()) { lines, field in
            lines += Array("\(field.name): ".utf8) + field.value + [13, 10]
        }
        var cursor = OutputCursor(buffers.credential)
        cursor.append(lines.span)
        guard !cursor.overflowed else { throw .credentialMisfit }
        return cursor.written(in: buffers.credential)
    }

    /// The caller's fields of these names, as they came.
    /// - Precondition: `data.requestHead` is the request's.
    func receivedFields(_ names: [String]) -> [(name: String, value: String)] {
        var fields: [(name: String, value: String)] = []
        for index in 0..<data.requestHead.fieldCount {
            let field = data.requestHead[index]
            let name = input[field.name]
            guard names.contains(where: { name.matches($0) }) else { continue }
            fields.append(
                (String(decoding: name, as: UTF8.self), String(decoding: input[field.value], as: UTF8.self)))
        }
        return fields
    }

    /// The request as the upstream will see it.
    private func requestToSign(on route: RoutePlan) throws(Fault) -> RequestToSign {
        // Drawn once: the head is composed again when it is sent, and must be the same.
        if route.forwarding.isHidden, exchange.hopIdentifier == nil { exchange.hopIdentifier = data.nextIdentifier() }
        var cursor = OutputCursor(buffers.scratch)
        composeHead(route: route, credential: nil, into: &cursor)
        guard !cursor.overflowed else { throw Fault(.bigHead) }
        let bytes = cursor.written(in: buffers.scratch)
        // A head of its own: the loop's scratch stays the caller's.
        let limits = HeadLimits(ofOwn: bytes)
        var head = RequestHead(maxFields: limits.fields)
        let length: Int?
        do throws(HeadFault) { length = try head.parse(bytes.octets, limits: limits) } catch { throw .unreadableHead }
        guard length == bytes.count else { throw .unreadableHead }
        func text(_ range: ByteRange) -> String { String(decoding: bytes[range], as: UTF8.self) }
        var headers: [(name: String, value: String)] = []
        for index in 0..<head.fieldCount { headers.append((text(head[index].name), text(head[index].value))) }
        let isStream = exchange.upstream?.shared != nil
        let isExtendedConnect = isStream && exchange.request.upgrades
        if isStream { Self.writeAsStream(&headers, isExtendedConnect: isExtendedConnect) }
        let scheme = route.upstream.usesTLS ? "https" : "http"
        let target = text(head.target)
        // A proxy without a tunnel is told the whole URL.
        let url = target.hasPrefix("/") ? "\(scheme)://\(head.host.map(text) ?? "")\(target)" : target
        let method = isExtendedConnect ? "CONNECT" : text(head.method)
        var request = RequestToSign(method: method, url: url, headers: headers)
        // Octets that are no text would be others in it.
        request.target = Array(bytes[head.target])
        return request
    }

    /// The fields as a stream has them: cookies in one line (RFC 9113 §8.2.3), and a WebSocket's handshake without what is HTTP/1.1's alone
    /// (RFC 8441 §5).
    private static func writeAsStream(_ headers: inout [(name: String, value: String)], isExtendedConnect: Bool) {
        func isNamed(_ header: (name: String, value: String), _ name: String) -> Bool { header.name.utf8.matches(name) }
        if isExtendedConnect {
            headers.removeAll { header in
                ["connection", "upgrade", "sec-websocket-key"].contains { isNamed(header, $0) }
            }
        }
        let cookies = headers.filter { isNamed($0, "cookie") }.map(\.value)
        guard cookies.count > 1, let first = headers.firstIndex(where: { isNamed($0, "cookie") }) else { return }
        headers[first].value = cookies.joined(separator: "; ")
        headers = headers.enumerated().filter { $0.offset <= first || !isNamed($0.element, "cookie") }.map(\.element)
    }

    private func bodyDigest(by function: HashFunction) -> [UInt8]? {
        guard !exchange.caution.isProbe, let gathered = exchange.request.gathered else { return function.hash([]) }
        return gathered.digest(by: function, in: input)
    }

    /// Keeps the nonce that the next proof for this upstream has to contain; any answer may bring one (RFC 9449 §8.2).
    /// - Precondition: `data.responseHead` is the answer's.
    /// - Returns: whether there was one.
    func takeNonce(of upstream: UpstreamConnection, head length: Int) -> Bool {
        guard exchange.route?.identity?.usesNonces == true, let field = data.responseHead.first(.dpopNonce),
            let route = exchange.route
        else { return false }
        let value = UnsafeRawBufferPointer(rebasing: upstream.input[..<length])[field]
        return data.nonces.keep(value, from: route.upstream.origin)
    }
}

extension HeadLimits {
    /// Our own fields stand in it beside the caller's: the buffer that it was written to is what bounds them.
    fileprivate init(ofOwn head: UnsafeRawBufferPointer) {
        let lines = head.count { $0 == 0x0A }
        self.init(headSize: head.count, fields: lines, target: head.count)
    }
}

extension Fault {
    /// The one way to it is a caller of HTTP/1.0 that names no host, where the route wants the caller's own.
    fileprivate static var unreadableHead: Fault {
        Fault(.unsignable, detail: "its head names no host, or cannot be read as it would be sent")
    }
}
