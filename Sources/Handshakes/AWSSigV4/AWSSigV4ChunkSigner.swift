internal import Octets
internal import TLS

/// Replaces the signatures in a body of signed chunks:
///
/// ```
/// 10000;chunk-signature=<64 digits> CRLF  data CRLF  …
/// 0;chunk-signature=<64 digits> CRLF  [x-amz-checksum-crc32c:… CRLF  x-amz-trailer-signature:<64 digits> CRLF]  CRLF
/// ```
///
/// A signature stands before the data that it covers, so a chunk is held until it is whole.
final class AWSSigV4ChunkSigner: BodySigner {
    private let signature: AWSSigV4Signature
    private let announced: AWSSigV4Streaming
    private let mostOfChunk: Int
    /// The digits of the last signature.
    private var previous: [UInt8]

    private var state = State.line
    /// The place of the next octet to read, counted from the first that is held, which is the first of a chunk's line.
    private var position = 0
    /// The place of the chunk's signature.
    private var signatureAt = 0
    /// Octets of the chunk's data that are still to come.
    private var left = 0
    private var hash: [UInt8] = []
    private var running: RunningHash?
    /// Octets of data in all chunks so far.
    private var total: Int64 = 0
    private var trailers = AWSSigV4Fields()
    private var trailersLeft: Set<String>
    private var trailersAt = 0

    private enum State { case line, data, dataEnd, trailers, bodyEnd, done }

    /// Octets of the fields behind the chunks.
    static let mostOfTrailers = 8 * 1024
    /// The field in which the signature of the trailers stands.
    static let trailerSignature = "x-amz-trailer-signature"
    private static let lineMiddle = Array(";chunk-signature=".utf8)
    /// Digits of a chunk's size.
    private static let mostDigits = 15
    private static let longestLine = mostDigits + lineMiddle.count + AWSSigV4Signature.length + 2

    /// - Parameters:
    ///   - head: the digits of the head's signature, which the first chunk's covers.
    ///   - mostOfChunk: octets of data in a chunk.
    init(_ signature: AWSSigV4Signature, after head: [UInt8], of announced: AWSSigV4Streaming, mostOfChunk: Int) {
        self.signature = signature
        self.announced = announced
        self.mostOfChunk = mostOfChunk
        previous = head
        trailersLeft = announced.trailers
    }

    var room: Int {
        switch state {
        case .line, .dataEnd, .bodyEnd, .done: position + Self.longestLine
        case .data: position + left + 2
        case .trailers: trailersAt + Self.mostOfTrailers
        }
    }

    func sign(_ held: UnsafeMutableRawBufferPointer) throws(BodyFault) -> Int {
        var front = 0
        while try advance(held, front: &front) {}
        position -= front
        signatureAt -= front
        trailersAt -= front
        return front
    }

    func end() throws(BodyFault) {
        guard state == .done else { throw BodyFault("it ends before its last chunk does") }
    }

    /// - Parameter front: the end of what is signed.
    /// - Returns: false where more has to come.
    private func advance(_ held: UnsafeMutableRawBufferPointer, front: inout Int) throws(BodyFault) -> Bool {
        switch state {
        case .line:
            guard let line = try line(in: held, longest: Self.longestLine) else { return false }
            try begin(line, in: held)
        case .data:
            let count = min(left, held.count - position)
            running?.add(UnsafeRawBufferPointer(rebasing: held[position..<(position + count)]))
            position += count
            left -= count
            guard left == 0 else { return false }
            hash = running?.finish() ?? []
            running = nil
            state = .dataEnd
        case .dataEnd:
            guard try passLineEnd(held) else { return false }
            put(signature.digits(ofChunk: hash, after: previous), in: held)
            front = position
            state = .line
        case .trailers:
            guard let line = try line(in: held, longest: trailersAt + Self.mostOfTrailers - position) else {
                return false
            }
            try readTrailer(line, in: held)
        case .bodyEnd:
            guard try passLineEnd(held) else { return false }
            front = position
            state = .done
        case .done:
            guard position == held.count else { throw BodyFault("there are octets behind its last chunk") }
            return false
        }
        return true
    }

    // MARK: - Chunks

    private func begin(_ line: Range<Int>, in held: UnsafeMutableRawBufferPointer) throws(BodyFault) {
        let digits = held[line].prefix { $0.hexValue != nil }
        let rest = held[digits.endIndex..<line.upperBound]
        guard (1...Self.mostDigits).contains(digits.count), rest.starts(with: Self.lineMiddle),
            rest.count == Self.lineMiddle.count + AWSSigV4Signature.length,
            rest.dropFirst(Self.lineMiddle.count).allSatisfy({ $0.hexValue != nil })
        else { throw BodyFault("a chunk does not begin with its size and its signature") }
        // No more than 60 bits.
        let size = digits.reduce(Int64(0)) { $0 << 4 | Int64($1.hexValue ?? 0) }
        guard size <= announced.length - total else {
            throw BodyFault("its chunks have more octets than X-Amz-Decoded-Content-Length says")
        }
        guard size <= Int64(mostOfChunk) else {
            throw BodyFault(
                "a chunk has to be held until it is whole, and may have \(mostOfChunk) octets ('max_chunk')",
                isTooLarge: true)
        }
        total += size
        signatureAt = line.upperBound - AWSSigV4Signature.length
        guard size > 0 else { return try endChunks(in: held) }
        left = Int(size)
        // Never nil: without SHA-256 the head was not signed.
        running = RunningHash(.sha256)
        state = .data
    }

    private func endChunks(in held: UnsafeMutableRawBufferPointer) throws(BodyFault) {
        guard total == announced.length else {
            throw BodyFault("its chunks have fewer octets than X-Amz-Decoded-Content-Length says")
        }
        put(signature.digits(ofChunk: sha256([]), after: previous), in: held)
        trailersAt = position
        state = announced.form == .signedWithTrailer ? .trailers : .bodyEnd
    }

    // MARK: - Trailers

    private func readTrailer(_ line: Range<Int>, in held: UnsafeMutableRawBufferPointer) throws(BodyFault) {
        let name = held[line].prefix { $0 != UInt8(ascii: ":") }
        let value = held[name.endIndex..<line.upperBound].dropFirst()
        guard name.endIndex < line.upperBound, value.allSatisfy({ $0 == 0x09 || (0x20...0x7E).contains($0) }) else {
            throw BodyFault("a line behind its chunks is no field")
        }
        let word = String(decoding: name, as: UTF8.self).lowercased()
        guard word == Self.trailerSignature else {
            guard trailersLeft.remove(word) != nil else {
                throw BodyFault("a field behind its chunks is not announced, or comes twice")
            }
            trailers.add(word, String(decoding: value, as: UTF8.self))
            return
        }
        guard trailersLeft.isEmpty else {
            throw BodyFault("a field is announced that does not stand behind its chunks")
        }
        guard value.count == AWSSigV4Signature.length, value.allSatisfy({ $0.hexValue != nil }) else {
            throw BodyFault("the signature behind its chunks has not \(AWSSigV4Signature.length) digits")
        }
        signatureAt = value.startIndex
        put(signature.digits(ofTrailers: trailers.canonical, after: previous), in: held)
        state = .bodyEnd
    }

    // MARK: - Octets

    private func put(_ digits: [UInt8], in held: UnsafeMutableRawBufferPointer) {
        UnsafeMutableRawBufferPointer(rebasing: held[signatureAt..<(signatureAt + AWSSigV4Signature.length)]).copyBytes(
            from: digits)
        previous = digits
    }

    /// Passes a line and its end.
    /// - Returns: the line without its end; nil where it is not whole.
    private func line(in held: UnsafeMutableRawBufferPointer, longest: Int) throws(BodyFault) -> Range<Int>? {
        let found = held[position...].prefix(longest).firstIndex(of: 0x0A)
        guard let found else {
            guard held.count - position < longest else { throw BodyFault("a line between its chunks is too long") }
            return nil
        }
        guard found > position, held[found - 1] == 0x0D else { throw BodyFault("a line between its chunks has no end") }
        defer { position = found + 1 }
        return position..<(found - 1)
    }

    private func passLineEnd(_ held: UnsafeMutableRawBufferPointer) throws(BodyFault) -> Bool {
        guard held.count - position >= 2 else { return false }
        guard held[position] == 0x0D, held[position + 1] == 0x0A else {
            throw BodyFault("a chunk does not end where its size says")
        }
        position += 2
        return true
    }
}
