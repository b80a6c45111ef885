/// Requests and answers of HTTP/1.1 as the actors read them: strictly, and by code of their own, since the gateway's is what is tried.
struct Message {
    /// The first line, without its end.
    var start: String
    /// Names in lower case.
    var fields: [(name: String, value: String)]
    var body: [UInt8]
    /// Octets behind the head of a body that has no end of its own.
    var endsWithConnection = false

    func field(_ name: String) -> String? { fields.first { $0.name == name }?.value }
    func all(_ name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// The request's method and target; empty for anything else.
    var method: Substring { word(0) }
    var target: Substring { word(1) }
    /// The answer's status.
    var status: Int { Int(start.dropFirst(9).prefix(3)) ?? 0 }

    /// The line is split by octets, since the bounds of characters take far longer to find.
    private func word(_ number: Int) -> Substring {
        let words = start.utf8.split(separator: UInt8(ascii: " "), maxSplits: 2)
        return words.count > number ? Substring(words[number]) : ""
    }
}

/// Reads messages off the octets of one direction. What has been read of a long body is not read again with its next piece.
struct MessageReader {
    private var bytes: [UInt8] = []
    /// Octets before it are read.
    private var start = 0
    private(set) var fault: String?
    private let readsAnswers: Bool
    /// For answers: the methods of the requests that they answer, first one first.
    var methods: [Substring] = []
    /// The message whose head is read, as far as it is there, and how its body ends.
    private var begun: (message: Message, end: BodyEnd)?

    private enum BodyEnd {
        case length(Int)
        /// - Parameter isLast: the last chunk is read; fields follow, which nobody looks at.
        case chunks(isLast: Bool)
        case connection
    }

    init(answers: Bool) { readsAnswers = answers }

    /// Octets that belong to no whole message yet.
    var waiting: Int { bytes.count - start }

    /// The head of a message whose body is not whole yet, once `next` has met it.
    var head: Message? { begun?.message }

    mutating func append(_ more: [UInt8]) {
        if start > 1 << 16 {
            bytes.removeFirst(start)
            start = 0
        }
        bytes += more
    }

    /// - Parameter ended: the sender said that no more comes, which ends a body that has no other end.
    /// - Returns: nil where none is whole yet, or where `fault` says what is wrong.
    mutating func next(ended: Bool = false) -> Message? {
        if begun == nil { readHead() }
        guard fault == nil, let end = begun?.end, readBody(end, ended) else { return nil }
        let message = begun?.message
        begun = nil
        if readsAnswers, !methods.isEmpty, message?.status ?? 0 >= 200 { methods.removeFirst() }
        return message
    }

    private mutating func refuse(_ words: String) { fault = words }

    private mutating func readHead() {
        guard fault == nil, let headEnd = endOfHead() else { return }
        var begin = nextLine(from: start, to: headEnd)
        var message = Message(start: text(start..<begin - 2), fields: [], body: [])
        while begin < headEnd - 2 {
            let end = nextLine(from: begin, to: headEnd)
            let line = begin..<end - 2
            guard let colon = bytes[line].firstIndex(of: UInt8(ascii: ":")), colon != begin, bytes[begin] != space
            else {
                return refuse("the line '\(text(line))' is no field")
            }
            let value = bytes[colon + 1..<end - 2].firstIndex { $0 != space } ?? end - 2
            message.fields.append((text(begin..<colon).lowercased(), text(value..<end - 2)))
            begin = end
        }
        guard let end = readsAnswers ? endOfAnswer(message) : endOfBody(message) else { return }
        if case .connection = end { message.endsWithConnection = true }
        begun = (message, end)
        start = headEnd
    }

    private let space = UInt8(ascii: " ")

    private func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

    /// The place behind the line that begins at `begin`, and behind its end.
    private func nextLine(from begin: Int, to end: Int) -> Int {
        var index = begin + 2
        while index < end, bytes[index - 1] != 10 || bytes[index - 2] != 13 { index += 1 }
        return index
    }

    private func endOfHead() -> Int? {
        var index = start + 3
        while index < bytes.count {
            if bytes[index] == 10, bytes[index - 1] == 13, bytes[index - 2] == 10, bytes[index - 3] == 13 {
                return index + 1
            }
            index += 1
        }
        return nil
    }

    private mutating func endOfAnswer(_ message: Message) -> BodyEnd? {
        guard message.start.hasPrefix("HTTP/1.1 "), (100..<600).contains(message.status) else {
            refuse("'\(message.start)' is no answer")
            return nil
        }
        guard message.status >= 200 else { return .length(0) }
        if methods.first == "HEAD" || message.status == 204 || message.status == 304 { return .length(0) }
        if message.field("content-length") == nil, message.field("transfer-encoding") == nil { return .connection }
        return endOfBody(message)
    }

    private mutating func endOfBody(_ message: Message) -> BodyEnd? {
        let lengths = message.all("content-length")
        let codings = message.all("transfer-encoding")
        guard lengths.count + codings.count <= 1 else {
            refuse("a body with two lengths")
            return nil
        }
        if let coding = codings.first {
            if coding != "chunked" { refuse("transfer coding '\(coding)'") }
            return fault == nil ? .chunks(isLast: false) : nil
        }
        guard let text = lengths.first else { return .length(0) }
        guard let length = Int(text), length >= 0, text.allSatisfy(\.isNumber) else {
            refuse("length '\(text)'")
            return nil
        }
        return .length(length)
    }

    /// - Returns: whether the body is whole.
    private mutating func readBody(_ end: BodyEnd, _ ended: Bool) -> Bool {
        switch end {
        case .length(let length):
            guard waiting >= length else { return false }
            take(length)
            return true
        case .connection:
            guard ended else { return false }
            take(waiting)
            return true
        case .chunks(let isLast): return (isLast || readChunks()) && readTrailer()
        }
    }

    private mutating func take(_ count: Int) {
        begun?.message.body += bytes[start..<start + count]
        start += count
    }

    private mutating func readChunks() -> Bool {
        while let end = lineEnd() {
            let line = String(decoding: bytes[start..<end], as: UTF8.self)
            guard let size = Int(line.prefix { $0 != ";" }, radix: 16), size >= 0 else {
                refuse("chunk size '\(line)'")
                return false
            }
            let behind = end + 2
            if size == 0 {
                start = behind
                begun?.end = .chunks(isLast: true)
                return true
            }
            guard bytes.count >= behind + size + 2 else { return false }
            guard bytes[behind + size] == 13, bytes[behind + size + 1] == 10 else {
                refuse("a chunk without its end")
                return false
            }
            start = behind
            take(size)
            start += 2
        }
        return false
    }

    private mutating func readTrailer() -> Bool {
        while let end = lineEnd() {
            let isEmpty = end == start
            start = end + 2
            if isEmpty { return true }
        }
        return false
    }

    private func lineEnd() -> Int? {
        var index = start + 1
        while index < bytes.count {
            if bytes[index] == 10, bytes[index - 1] == 13 { return index - 1 }
            index += 1
        }
        return nil
    }
}
