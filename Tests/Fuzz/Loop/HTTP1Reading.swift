/// Reads one direction of an HTTP/1.1 connection by RFC 9112.
struct HTTP1Reading {
    enum Side { case requests, answers }

    let octets: [UInt8]
    let side: Side
    /// The octets are a peer's, who may spell what RFC 9112 lets a recipient repair; the gateway may not.
    let isReceived: Bool
    /// The sender said that no more comes, or closed.
    let hasEnded: Bool
    /// The methods of the requests that the answers are for, in their order.
    let methods: [[UInt8]]
    private var position = 0

    init(
        _ octets: [UInt8], _ side: Side, isReceived: Bool, hasEnded: Bool = false, methods: [[UInt8]] = []
    ) {
        self.octets = octets
        self.side = side
        self.isReceived = isReceived
        self.hasEnded = hasEnded
        self.methods = methods
    }

    private enum Stop: Error { case flaw(String), partly }

    mutating func all() -> Messages {
        var found = Messages()
        var answered = 0
        while position < octets.count {
            var message = Message()
            do throws(Stop) {
                try readHead(&message)
                let isInterim = side == .answers && message.status < 200 && message.status != 101
                let method = answered < methods.count ? methods[answered] : []
                if !isInterim { answered += 1 }
                try readBody(&message, method: method)
            } catch {
                if message.hasHead { found.all.append(message) }
                if case .flaw(let words) = error { found.flaw = words }
                return found
            }
            found.all.append(message)
            // The octets behind it are another protocol's.
            if side == .answers ? message.status == 101 : message.upgrades && !isReceived { return found }
        }
        return found
    }

    // MARK: - Lines

    private mutating func line() throws(Stop) -> ArraySlice<UInt8> {
        let start = position
        var cursor = start
        while cursor < octets.count {
            switch octets[cursor] {
            case 0x0D:
                guard cursor + 1 < octets.count else { throw .partly }
                guard octets[cursor + 1] == 0x0A else { throw .flaw("a bare CR") }
                position = cursor + 2
                return octets[start..<cursor]
            case 0x0A: throw .flaw("a bare LF")
            case 0: throw .flaw("NUL")
            default: cursor += 1
            }
        }
        throw .partly
    }

    private mutating func readHead(_ message: inout Message) throws(Stop) {
        var start = try line()
        // RFC 9112 section 2.2.
        if start.isEmpty, isReceived, side == .requests { start = try line() }
        var head = Message()
        if side == .requests { try readRequestLine(start, &head) } else { try readStatusLine(start, &head) }
        head.fields = try readFields()
        head.upgrades = head.members("connection").contains(Array("upgrade".utf8)) && !head.values("upgrade").isEmpty
        head.hasHead = true
        message = head
    }

    private func readRequestLine(_ line: ArraySlice<UInt8>, _ message: inout Message) throws(Stop) {
        let parts = line.split(separator: 0x20, omittingEmptySubsequences: false)
        guard parts.count == 3 else { throw .flaw("a request line without three parts") }
        guard !parts[0].isEmpty, parts[0].allSatisfy(isToken) else { throw .flaw("a method that is no token") }
        guard !parts[1].isEmpty, parts[1].allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else { throw .flaw("a target") }
        let version = Array(parts[2])
        guard version.count == 8, version.starts(with: Array("HTTP/1.".utf8)), (0x30...0x39).contains(version[7]),
            isReceived || version[7] == 0x31
        else { throw .flaw("a version") }
        message.method = Array(parts[0])
        message.target = Array(parts[1])
        message.isOld = version[7] == 0x30
    }

    private func readStatusLine(_ line: ArraySlice<UInt8>, _ message: inout Message) throws(Stop) {
        let text = Array(line)
        guard text.count >= (isReceived ? 12 : 13), text.starts(with: Array("HTTP/1.".utf8)),
            (0x30...0x39).contains(text[7]), text[8] == 0x20, text.count == 12 || text[12] == 0x20
        else { throw .flaw("a status line") }
        guard isReceived || text[7] == 0x31, text[9...11].allSatisfy({ (0x30...0x39).contains($0) }),
            let status = number(text[9...11]), status >= 100
        else { throw .flaw("a status line") }
        message.status = status
        message.isOld = text[7] == 0x30
    }

    private mutating func readFields() throws(Stop) -> [Message.Field] {
        var fields: [Message.Field] = []
        while true {
            let line = try line()
            guard let first = line.first else { return fields }
            if first == 0x20 || first == 0x09 {
                // RFC 9112 section 5.2.
                guard isReceived, side == .answers, !fields.isEmpty else { throw .flaw("a folded line") }
                let more = trimmed(line)
                if !more.isEmpty {
                    let last = fields.count - 1
                    fields[last].value += fields[last].value.isEmpty ? more : [0x20] + more
                }
                continue
            }
            guard let colon = line.firstIndex(of: 0x3A) else { throw .flaw("a field line without a colon") }
            var name = line[..<colon]
            // RFC 9112 section 5.1.
            if isReceived, side == .answers { name = trimmed(name)[...] }
            guard !name.isEmpty, name.allSatisfy(isToken) else { throw .flaw("a field's name that is no token") }
            fields.append(.init(name: name.map(lowercase), value: trimmed(line[(colon + 1)...])))
        }
    }

    // MARK: - Bodies (RFC 9112 section 6.3)

    private mutating func readBody(_ message: inout Message, method: [UInt8]) throws(Stop) {
        if side == .answers {
            if message.status == 101 || message.status < 200 || message.status == 204 || message.status == 304
                || method == Array("HEAD".utf8)
            {
                guard isReceived || message.status >= 200 || message.values("content-length").isEmpty else {
                    throw .flaw("a length where no body can be")
                }
                // A request that the gateway cannot read has no method for it, so that its answer has a body, the last on the connection.
                if !isReceived, message.members("connection") == [Array("close".utf8)], message.status >= 400,
                    let length = message.values("content-length").first.flatMap({ number($0) }),
                    length == octets.count - position
                {
                    position = octets.count
                }
                message.isWhole = true
                return
            }
        } else {
            guard isReceived || message.values("host").count == 1 else { throw .flaw("not one Host") }
        }
        let codings = message.members("transfer-encoding")
        let lengths = message.values("content-length")
        if !codings.isEmpty {
            guard codings == [Array("chunked".utf8)] else { throw .flaw("a transfer coding") }
            guard lengths.isEmpty || isReceived && side == .answers else { throw .flaw("a length beside a coding") }
            guard !message.isOld || isReceived && side == .answers else { throw .flaw("a coding in 1.0") }
            return try readChunks(&message)
        }
        let parts = Set(message.members("content-length").map(stripped))
        if !lengths.isEmpty {
            guard parts.count == 1, lengths.count == 1 || isReceived && side == .answers,
                isReceived && side == .answers || message.members("content-length").count == 1,
                let part = parts.first, let length = number(part)
            else { throw .flaw("a length") }
            let end = min(octets.count, position + min(length, octets.count))
            message.body = Array(octets[position..<end])
            position = end
            guard message.body.count == length else { throw .partly }
            message.isWhole = true
            return
        }
        guard side == .answers else {
            message.isWhole = true
            return
        }
        message.endsWithConnection = true
        message.body = Array(octets[position...])
        position = octets.count
        message.isWhole = hasEnded
    }

    /// Zeros before a number are the same number.
    private func stripped(_ digits: [UInt8]) -> [UInt8] {
        guard digits.allSatisfy({ (0x30...0x39).contains($0) }), !digits.isEmpty else { return digits }
        let rest = digits.drop { $0 == 0x30 }
        return rest.isEmpty ? [0x30] : Array(rest)
    }

    private mutating func readChunks(_ message: inout Message) throws(Stop) {
        while true {
            let line = try line()
            var size = line.prefix { $0 != 0x3B }
            let isExtended = size.count < line.count
            guard isReceived || !isExtended else { throw .flaw("a chunk extension") }
            if isReceived, side == .answers || isExtended { size = trimmed(size)[...] }
            guard let count = number(size, radix: 16) else { throw .flaw("a chunk's size") }
            guard count > 0 else { break }
            let end = min(octets.count, position + min(count, octets.count))
            message.body += octets[position..<end]
            position = end
            guard end < octets.count else { throw .partly }
            guard try self.line().isEmpty else { throw .flaw("a chunk without its end") }
        }
        message.trailers = try readTrailers()
        message.isWhole = true
    }

    private mutating func readTrailers() throws(Stop) -> [Message.Field] {
        var fields: [Message.Field] = []
        while true {
            let line = try line()
            guard !line.isEmpty else { return fields }
            guard let colon = line.firstIndex(of: 0x3A), colon > line.startIndex, line[..<colon].allSatisfy(isToken)
            else {
                throw .flaw("a trailer")
            }
            fields.append(.init(name: line[..<colon].map(lowercase), value: trimmed(line[(colon + 1)...])))
        }
    }
}
