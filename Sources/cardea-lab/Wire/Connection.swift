import Glibc

/// Why a connection cannot go on.
enum WireFault: Error {
    /// The peer broke the grammar: answer with this status, then close.
    case refused(Int, String)
    /// The peer is gone, or took longer than a lab waits.
    case gone
}

/// A blocking HTTP/1.1 connection with a reader that refuses everything ambiguous: what it accepts has one reading
/// only.
/// Used by one thread.
final class Connection {
    static let headLimit = 64 * 1024
    static let bodyLimit = 256 * 1024 * 1024

    let descriptor: Int32
    /// Received octets not consumed yet stand in `start..<end`. Raw memory, because an unoptimised build spends
    /// milliseconds on filling an array of this size.
    private let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 2 * headLimit, alignment: 16)
    private var start = 0
    private var end = 0
    /// The framing of a body not read yet; it is drained before the next head.
    private var unread: Framing = .none
    private var owesContinue = false

    init(descriptor: Int32) {
        self.descriptor = descriptor
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { memory.deallocate() }
}

// MARK: - Octets

extension Connection {
    private var received: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: memory[start..<end]) }

    /// False at the end of the peer's octets. The caller leaves room: no line is longer than half of the memory.
    private func fill() throws(WireFault) -> Bool {
        if start > 0 {
            if let base = memory.baseAddress { memmove(base, base + start, end - start) }
            end -= start
            start = 0
        }
        guard end < memory.count else { throw .refused(431, "line too long") }
        var got: Int
        repeat {
            got = recv(descriptor, memory.baseAddress.map { $0 + end }, memory.count - end, 0)
        } while got < 0 && errno == EINTR
        if got < 0 { throw .gone }
        end += got
        return got > 0
    }

    func send(_ bytes: [UInt8]) throws(WireFault) {
        var sent = 0
        while sent < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                Glibc.send(descriptor, raw.baseAddress.map { $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw .gone
            }
            sent += count
        }
    }

    func send(_ text: String) throws(WireFault) { try send(Array(text.utf8)) }

    /// Makes the kernel answer with RST instead of FIN when the descriptor is closed.
    func resetOnClose() {
        var hard = linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<linger>.size))
    }

    /// True once the peer has closed or reset; never waits.
    var peerIsGone: Bool {
        // POLLRDHUP, which the C library only shows to those who ask for GNU extensions.
        var entry = pollfd(fd: descriptor, events: 0x2000, revents: 0)
        return poll(&entry, 1, 0) > 0
    }

    /// The next line without its CRLF; nil when the peer ended before a first octet of it.
    private func line(limit: Int, overflow: WireFault) throws(WireFault) -> [UInt8]? {
        var scanned = 0
        while true {
            let octets = received
            if let base = octets.baseAddress, octets.count > scanned,
                let hit = memchr(base + scanned, 0x0A, octets.count - scanned)
            {
                let length = UnsafeRawPointer(hit) - base
                guard length <= limit else { throw overflow }
                guard length > 0, octets[length - 1] == 0x0D else { throw .refused(400, "bare LF") }
                guard memchr(base, 0x0D, length - 1) == nil else { throw .refused(400, "bare CR") }
                start += length + 1
                return Array(UnsafeRawBufferPointer(start: base, count: length - 1))
            }
            scanned = octets.count
            guard scanned <= limit else { throw overflow }
            guard try fill() else {
                if scanned == 0 { return nil }
                throw .gone
            }
        }
    }
}

// MARK: - Heads

extension Connection {
    /// The next request; nil when the peer closed between two requests.
    func readHead() throws(WireFault) -> Request? {
        if unread != .none { _ = try readBody() }
        let tooBig = WireFault.refused(431, "head over \(Connection.headLimit) octets")
        var budget = Connection.headLimit
        guard let start = try line(limit: budget, overflow: tooBig) else { return nil }
        budget -= start.count + 2
        let fields = try readFields(&budget, overflow: tooBig)
        let request = try Connection.judge(start, fields)
        unread = request.framing
        owesContinue = request.expectsContinue
        return request
    }

    private func readFields(_ budget: inout Int, overflow: WireFault) throws(WireFault) -> [Field] {
        var fields: [Field] = []
        while true {
            guard let line = try line(limit: max(budget, 0), overflow: overflow) else { throw .gone }
            budget -= line.count + 2
            guard budget >= 0 else { throw overflow }
            if line.isEmpty { return fields }
            guard line[0] != 0x20, line[0] != 0x09 else { throw .refused(400, "folded line") }
            guard let colon = line.firstIndex(of: 0x3A), colon > 0, line[..<colon].allSatisfy(Connection.isTokenOctet)
            else {
                throw .refused(400, "bad field name")
            }
            var value = line[(colon + 1)...]
            while let first = value.first, first == 0x20 || first == 0x09 { value.removeFirst() }
            while let last = value.last, last == 0x20 || last == 0x09 { value.removeLast() }
            guard value.allSatisfy({ $0 == 0x09 || ($0 >= 0x20 && $0 != 0x7F) }) else {
                throw .refused(400, "control octet in a field")
            }
            fields.append(Field(name: Connection.latin1(line[..<colon]), value: Connection.latin1(value)))
        }
    }

    private static func judge(_ start: [UInt8], _ fields: [Field]) throws(WireFault) -> Request {
        let parts = start.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .refused(400, "request line is not three words") }
        guard !parts[0].isEmpty, parts[0].allSatisfy(isTokenOctet) else { throw .refused(400, "bad method") }
        let minor: Int
        switch latin1(parts[2]) {
        case "HTTP/1.1": minor = 1
        case "HTTP/1.0": minor = 0
        default: throw .refused(400, "bad version")
        }
        let target = parts[1]
        guard target.first == 0x2F || latin1(target) == "*",
            target.allSatisfy({ $0 > 0x20 && $0 != 0x23 && $0 != 0x7F })
        else {
            throw .refused(400, "target is not in origin form")
        }
        var request = Request(
            method: latin1(parts[0]), target: latin1(target), minorVersion: minor, fields: fields)
        let hosts = request.values("Host")
        guard hosts.count == 1 || (minor == 0 && hosts.isEmpty) else { throw .refused(400, "not exactly one Host") }
        request.framing = try framing(of: request)
        return request
    }

    private static func framing(of request: Request) throws(WireFault) -> Framing {
        let lengths = request.values("Content-Length")
        let codings = request.values("Transfer-Encoding")
        switch (lengths.count, codings.count) {
        case (0, 0): return .none
        case (1, 0):
            guard !lengths[0].isEmpty, lengths[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let length = Int(lengths[0])
            else { throw .refused(400, "bad Content-Length") }
            guard length <= bodyLimit else { throw .refused(413, "body over \(bodyLimit) octets") }
            return .length(length)
        case (0, 1):
            guard request.minorVersion > 0 else { throw .refused(400, "Transfer-Encoding in HTTP/1.0") }
            guard codings[0].lowercased() == "chunked" else { throw .refused(400, "bad Transfer-Encoding") }
            return .chunked
        default: throw .refused(400, "ambiguous framing")
        }
    }

    private static func isTokenOctet(_ octet: UInt8) -> Bool {
        switch octet {
        case 0x30...0x39, 0x41...0x5A, 0x5E...0x7A: true
        case 0x21, 0x23...0x27, 0x2A, 0x2B, 0x2D, 0x2E, 0x7C, 0x7E: true
        default: false
        }
    }

    private static func latin1(_ bytes: some Sequence<UInt8>) -> String {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

// MARK: - Bodies

extension Connection {
    /// True while a body was announced and none of it was read.
    var hasUnreadBody: Bool { unread != .none && unread != .length(0) }

    /// Forgets the body: the connection must be closed after the answer.
    func abandonBody() { unread = .none }

    /// Reads the announced body to its end, at most once. `keeping` octets of it are handed over, the rest only
    /// measured.
    func readBody(keeping: Int = 0) throws(WireFault) -> Body {
        var body = Body()
        let digest = SHA256()
        let framing = unread
        unread = .none
        if owesContinue, framing != .none, start == end { try send("HTTP/1.1 100 Continue\r\n\r\n") }
        owesContinue = false
        switch framing {
        case .none: break
        case .length(let length): try take(length, into: &body, digest, keeping: keeping)
        case .chunked:
            while true {
                let size = try chunkSize()
                if size == 0 { break }
                guard body.length + size <= Connection.bodyLimit else { throw .refused(413, "body too large") }
                try take(size, into: &body, digest, keeping: keeping)
                guard let end = try line(limit: 2, overflow: .refused(400, "chunk without its end")), end.isEmpty else {
                    throw .refused(400, "chunk without its end")
                }
            }
            var budget = 16 * 1024
            body.trailers = try readFields(&budget, overflow: .refused(431, "trailers too large"))
        }
        body.sha256 = digest.finish()
        return body
    }

    private func chunkSize() throws(WireFault) -> Int {
        guard let line = try line(limit: 64, overflow: .refused(400, "chunk line too long")) else { throw .gone }
        // A gateway drops chunk extensions, so one that arrives here is a fault worth seeing.
        let text = Connection.latin1(line)
        guard !text.isEmpty, text.utf8.count <= 15, text.allSatisfy({ $0.isASCII && $0.isHexDigit }),
            let size = Int(text, radix: 16)
        else { throw .refused(400, "bad chunk size") }
        return size
    }

    private func take(_ count: Int, into body: inout Body, _ digest: SHA256, keeping: Int) throws(WireFault) {
        var left = count
        while left > 0 {
            if start == end {
                guard try fill() else { throw .gone }
            }
            let piece = UnsafeRawBufferPointer(rebasing: received.prefix(left))
            digest.update(piece)
            if body.bytes.count + piece.count <= keeping { body.bytes.append(contentsOf: piece) }
            start += piece.count
            body.length += piece.count
            left -= piece.count
        }
    }
}

// MARK: - Answers

extension Connection {
    /// The head of an answer, with the framing of its payload.
    func head(of response: Response, to request: Request?, keepAlive: Bool) -> String {
        var head = "HTTP/1.1 \(response.status) \(response.reason)\r\nServer: cardea-lab\r\n"
        for field in response.fields { head += "\(field.name): \(field.value)\r\n" }
        if case .pattern(_, chunked: true) = response.payload, request?.minorVersion == 1 {
            head += "Transfer-Encoding: chunked\r\n"
        } else if !response.hasNoBody {
            head += "Content-Length: \(response.payload.length)\r\n"
        }
        if !keepAlive {
            head += "Connection: close\r\n"
        } else if request?.minorVersion == 0 {
            head += "Connection: keep-alive\r\n"
        }
        return head + "\r\n"
    }

    /// - Parameter excess: octets behind the answer; they leave in one write with a body of octets: what comes later may reach a gateway that has already
    ///   sent its next request, and nobody can tell whose answer that is.
    func send(_ response: Response, to request: Request?, keepAlive: Bool, excess: String = "") throws(WireFault) {
        let head = Array(head(of: response, to: request, keepAlive: keepAlive).utf8)
        if response.hasNoBody || request?.method == "HEAD" {
            try send(head)
            return
        }
        switch response.payload {
        case .bytes(let bytes): try send(head + bytes + Array(excess.utf8))
        case .pattern(let count, let chunked):
            try send(head)
            try sendPattern(count, chunked: chunked && request?.minorVersion == 1)
            if !excess.isEmpty { try send(excess) }
        }
    }

    private static let pattern = Array(String(repeating: "0123456789abcdef", count: 4096).utf8)

    private func sendPattern(_ count: Int, chunked: Bool) throws(WireFault) {
        let block = Connection.pattern
        var left = count
        while left > 0 {
            let piece = min(left, block.count)
            let bytes = piece == block.count ? block : Array(block[..<piece])
            if chunked { try send(String(piece, radix: 16) + "\r\n") }
            try send(bytes)
            if chunked { try send("\r\n") }
            left -= piece
        }
        if chunked { try send("0\r\n\r\n") }
    }
}
