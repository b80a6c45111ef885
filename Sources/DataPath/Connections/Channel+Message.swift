internal import HTTP1
internal import HTTP2

/// Where the two protocols write differently: HTTP/1.1 frames a body in its bytes, HTTP/2 beside them.
extension Channel {
    /// Sends a piece of a body, and its end after the last one.
    ///
    /// - Parameters:
    ///   - raw: received bytes; `step` says what in them is data and what trailers.
    ///   - framing: as the head announced it; nothing to a stream of HTTP/2.
    ///   - dropping: trailer names that do not pass.
    /// - Returns: false when the connection is lost or the bound of what may wait would be passed.
    final func sendBody(
        _ raw: UnsafeRawBufferPointer, _ step: BodyReader.Step, framing: BodyFraming, dropping: borrowing NameSet
    ) -> Bool {
        if stream != nil { return sendStreamBody(raw, step, dropping: dropping) }
        guard framing == .chunked else { return send(UnsafeRawBufferPointer(rebasing: raw[step.data])) }
        var prefix = OutputCursor(buffers.prefix)
        var suffix = OutputCursor(buffers.suffix)
        appendChunkFrame(raw, step, dropping: dropping, prefix: &prefix, suffix: &suffix)
        guard !suffix.overflowed else { return false }
        return send(
            prefix.written(in: buffers.prefix), UnsafeRawBufferPointer(rebasing: raw[step.data]),
            suffix.written(in: buffers.suffix))
    }

    /// Sends an answer's head and the first piece of its body in one write.
    ///
    /// - Parameters:
    ///   - cursor: the head; what belongs before the piece is appended.
    ///   - scratch: the memory behind `cursor`.
    final func sendAnswer(
        _ cursor: inout OutputCursor, in scratch: UnsafeMutableRawBufferPointer, _ raw: UnsafeRawBufferPointer,
        _ piece: BodyReader.Step, framing: BodyFraming, dropping: borrowing NameSet
    ) -> Bool {
        var suffix = OutputCursor(buffers.suffix)
        if framing == .chunked {
            appendChunkFrame(raw, piece, dropping: dropping, prefix: &cursor, suffix: &suffix)
        }
        guard !cursor.overflowed, !suffix.overflowed else { return false }
        return send(
            cursor.written(in: scratch), UnsafeRawBufferPointer(rebasing: raw[piece.data]),
            suffix.written(in: buffers.suffix))
    }

    /// The same on a stream of HTTP/2: the head is `buffers.outgoing`.
    ///
    /// - Parameters:
    ///   - received: the head's bytes it was written from.
    ///   - hasBody: more than the head may follow.
    final func sendStreamAnswer(
        received: UnsafeRawBufferPointer, _ raw: UnsafeRawBufferPointer, _ piece: BodyReader.Step, hasBody: Bool,
        dropping: borrowing NameSet
    ) -> Bool {
        guard let stream = uncountedStream else { return false }
        bytesOut &+= UInt64(buffers.outgoing.size)
        // The end on the head itself where it stood there: gRPC reads its status from such a head alone.
        let isBare = !hasBody || piece.ended && piece.data.isEmpty && piece.trailers.isEmpty
        guard
            stream._withUnsafeGuaranteedRef({
                $0.send(response: buffers.outgoing, received: received, ended: isBare)
            })
        else { return false }
        return isBare || sendStreamBody(raw, piece, dropping: dropping)
    }

    /// Sends an interim answer.
    final func sendInterim(_ cursor: OutputCursor, in scratch: UnsafeMutableRawBufferPointer) -> Bool {
        guard let stream else { return send(cursor.written(in: scratch)) }
        return stream.send(interim: UnsafeMutableRawBufferPointer(rebasing: scratch[..<cursor.count]))
    }

    /// Sends a whole answer of ours.
    final func sendMessage(_ message: [UInt8]) -> Bool {
        guard let stream else { return message.withUnsafeBytes { send($0) } }
        var message = message
        return message.withUnsafeMutableBytes { bytes in
            let end = endOfHead(UnsafeRawBufferPointer(bytes).octets)
            let head = UnsafeMutableRawBufferPointer(rebasing: bytes[..<end])
            bytesOut &+= UInt64(bytes.count)
            guard stream.send(response: head, ended: end == bytes.count) else { return false }
            guard end < bytes.count else { return true }
            return stream.write(UnsafeRawBufferPointer(rebasing: bytes[end...])) && stream.end()
        }
    }

    /// Ends the body of a stream whose sender's body ended beside its bytes.
    private func sendStreamBody(
        _ raw: UnsafeRawBufferPointer, _ step: BodyReader.Step, dropping: borrowing NameSet
    ) -> Bool {
        guard let stream = uncountedStream else { return false }
        if !step.data.isEmpty {
            bytesOut &+= UInt64(step.data.count)
            let data = UnsafeRawBufferPointer(rebasing: raw[step.data])
            guard stream._withUnsafeGuaranteedRef({ $0.write(data) }) else { return false }
        }
        guard step.ended else { return true }
        guard !step.trailers.isEmpty else { return stream._withUnsafeGuaranteedRef { $0.end() } }
        var suffix = OutputCursor(buffers.suffix)
        ChunkedEncoder.appendEnd(raw.octets, trailers: step.trailers, drop: dropping, into: &suffix)
        guard !suffix.overflowed else { return false }
        // Between the last chunk's line and the empty one.
        let lines = buffers.suffix[ChunkedEncoder.lastChunkLength..<(suffix.count - 2)]
        return stream._withUnsafeGuaranteedRef { $0.end(trailers: UnsafeRawBufferPointer(rebasing: lines)) }
    }
}

/// Appends the lines that stand before and behind a piece of a body in the chunked coding.
private func appendChunkFrame(
    _ raw: UnsafeRawBufferPointer, _ step: BodyReader.Step, dropping: borrowing NameSet, prefix: inout OutputCursor,
    suffix: inout OutputCursor
) {
    if !step.data.isEmpty {
        ChunkedEncoder.appendPrefix(step.data.count, into: &prefix)
        suffix.append(ChunkedEncoder.lineEnd)
    }
    if step.ended { ChunkedEncoder.appendEnd(raw.octets, trailers: step.trailers, drop: dropping, into: &suffix) }
}

private func endOfHead(_ bytes: Span<UInt8>) -> Int {
    var index = 0
    while index + 4 <= bytes.count {
        if bytes[index] == 0x0d, bytes[index + 1] == 0x0a, bytes[index + 2] == 0x0d, bytes[index + 3] == 0x0a {
            return index + 4
        }
        index += 1
    }
    return bytes.count
}
