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
    var method: Substring { start.split(separator: " ").first ?? "" }
    var target: Substring { start.split(separator: " ").dropFirst().first ?? "" }
    /// The answer's status.
    var status: Int { Int(start.dropFirst(9).prefix(3)) ?? 0 }
}

/// Reads messages off the octets of one direction.
struct MessageReader {
    private var bytes: [UInt8] = []
    private var start = 0
    private(set) var fault: String?
    private let readsAnswers: Bool
    /// For answers: the methods of the requests that they answer, first one first.
    var methods: [Substring] = []

    init(answers: Bool) { readsAnswers = answers }

    /// Octets that belong to no whole message yet.
    var waiting: Int { bytes.count - start }

    /// The head of a message whose body is not whole yet, once it is there.
    var head: Message? {
        var head = self
        head.isHeadEnough = true
        return head.next()
    }
    private var isHeadEnough = false

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
        guard fault == nil, let headEnd = endOfHead() else { return nil }
        let lines = String(decoding: bytes[start..<headEnd - 4], as: UTF8.self).split(
            separator: "\r\n", omittingEmptySubsequences: false)
        var message = Message(start: String(lines[0]), fields: [], body: [])
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":"), colon != line.startIndex, line.first != " " else {
                return refuse("the line '\(line)' is no field")
            }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            message.fields.append((line[..<colon].lowercased(), String(value)))
        }
        if isHeadEnough { return message }
        let isWhole = readsAnswers ? readAnswer(&message, headEnd, ended) : readBody(&message, headEnd)
        return isWhole ? message : nil
    }

    private mutating func refuse(_ words: String) -> Message? {
        fault = words
        return nil
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

    private mutating func readAnswer(_ message: inout Message, _ headEnd: Int, _ ended: Bool) -> Bool {
        guard message.start.hasPrefix("HTTP/1.1 "), (100..<600).contains(message.status) else {
            return refuse("'\(message.start)' is no answer") != nil
        }
        if message.status < 200 {
            start = headEnd
            return true
        }
        let method = methods.first
        if method == "HEAD" || message.status == 204 || message.status == 304 {
            start = headEnd
            if !methods.isEmpty { methods.removeFirst() }
            return true
        }
        if message.field("content-length") == nil, message.field("transfer-encoding") == nil {
            guard ended else { return false }
            message.body = Array(bytes[headEnd...])
            message.endsWithConnection = true
            start = bytes.count
        } else if !readBody(&message, headEnd) {
            return false
        }
        if !methods.isEmpty { methods.removeFirst() }
        return true
    }

    private mutating func readBody(_ message: inout Message, _ headEnd: Int) -> Bool {
        let lengths = message.all("content-length")
        let codings = message.all("transfer-encoding")
        guard lengths.count + codings.count <= 1 else { return refuse("a body with two lengths") != nil }
        if let coding = codings.first {
            guard coding == "chunked" else { return refuse("transfer coding '\(coding)'") != nil }
            return readChunks(&message, headEnd)
        }
        guard let text = lengths.first else {
            start = headEnd
            return true
        }
        guard let length = Int(text), length >= 0, text.allSatisfy(\.isNumber) else {
            return refuse("length '\(text)'") != nil
        }
        guard bytes.count >= headEnd + length else { return false }
        message.body = Array(bytes[headEnd..<headEnd + length])
        start = headEnd + length
        return true
    }

    private mutating func readChunks(_ message: inout Message, _ headEnd: Int) -> Bool {
        var index = headEnd
        var body: [UInt8] = []
        while true {
            guard let end = lineEnd(index) else { return false }
            let line = String(decoding: bytes[index..<end], as: UTF8.self)
            guard let size = Int(line.prefix { $0 != ";" }, radix: 16), size >= 0 else {
                return refuse("chunk size '\(line)'") != nil
            }
            index = end + 2
            if size == 0 { break }
            guard bytes.count >= index + size + 2 else { return false }
            body += bytes[index..<index + size]
            guard bytes[index + size] == 13, bytes[index + size + 1] == 10 else {
                return refuse("a chunk without its end") != nil
            }
            index += size + 2
        }
        while true {
            guard let end = lineEnd(index) else { return false }
            let isEmpty = end == index
            index = end + 2
            if isEmpty { break }
        }
        message.body = body
        start = index
        return true
    }

    private func lineEnd(_ from: Int) -> Int? {
        var index = from + 1
        while index < bytes.count {
            if bytes[index] == 10, bytes[index - 1] == 13 { return index - 1 }
            index += 1
        }
        return nil
    }
}
