@testable import HTTP1

/// Any bytes as a chunked body: ranges stay inside, any cut gives the same body, and the body written anew decodes to
/// itself.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzChunked(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: start, count: count))
    let limits = ChunkLimits(chunkExtension: 12, overhead: 64, trailers: 96, allowsPadding: count % 2 == 0)
    let whole = decode(bytes, limits, arriving: bytes.count)
    for step in [1, 3, 16] { precondition(decode(bytes, limits, arriving: step) == whole) }
    guard whole.fault == nil, whole.isDone else { return 0 }

    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: whole.body.count + 512, alignment: 1)
    defer { memory.deallocate() }
    var output = OutputCursor(memory)
    if !whole.body.isEmpty {
        ChunkedEncoder.appendPrefix(whole.body.count, into: &output)
        output.append(whole.body.span)
        output.append(ChunkedEncoder.lineEnd)
    }
    let trailers = ByteRange(0..<whole.trailers.count)
    ChunkedEncoder.appendEnd(whole.trailers.span, trailers: trailers, drop: NameSet(), into: &output)
    precondition(!output.overflowed)
    let again = decode(Array(memory[..<output.count]), limits, arriving: output.count)
    precondition(again.fault == nil && again.isDone && again.body == whole.body)
    precondition(again.consumed == output.count && again.trailers.count <= whole.trailers.count)
    return 0
}

private struct Decoded: Equatable {
    var body: [UInt8] = []
    var trailers: [UInt8] = []
    var consumed = 0
    var isDone = false
    var fault: ChunkFault?
}

/// Decodes as a relay does: consumed bytes leave the buffer, `arriving` more come in.
private func decode(_ bytes: [UInt8], _ limits: ChunkLimits, arriving: Int) -> Decoded {
    var decoder = ChunkedDecoder(limits: limits)
    var result = Decoded()
    var dropped = 0
    var available = min(arriving, bytes.count)
    while true {
        let buffer = Array(bytes[dropped..<available])
        var cursor = 0
        do {
            reading: while true {
                switch try decoder.next(buffer.span, from: cursor) {
                case .data(let range):
                    precondition(Int(range.start) >= cursor && Int(range.end) <= buffer.count && range.count > 0)
                    result.body += buffer[range.indices]
                    cursor = Int(range.end)
                case .needsMore(let consumed):
                    precondition(consumed >= cursor && consumed <= buffer.count)
                    cursor = consumed
                    break reading
                case .end(let consumed, let trailers):
                    precondition(consumed >= cursor && consumed <= buffer.count && Int(trailers.end) <= consumed)
                    result.trailers = Array(buffer[trailers.indices])
                    result.consumed = dropped + consumed
                    result.isDone = true
                    return result
                }
            }
        } catch {
            result.fault = error
            return result
        }
        dropped += cursor
        guard available < bytes.count else { return result }
        available = min(available + max(arriving, 1), bytes.count)
    }
}
