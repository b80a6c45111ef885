import Testing

@testable import HTTP1

/// A head that leaves as fields and not as text says the same.
@Suite struct OutgoingFieldsTests {
    /// A head that was read back: its fields as `name: value`.
    struct Read: Equatable {
        var method = ""
        var target = ""
        var host = ""
        var status = 0
        var size = 0
        var fields: [String] = []
        var overflowed = false
    }

    static func read(_ head: borrowing OutgoingHead, of received: [UInt8]) -> Read {
        let own = Array(head.own)
        func text(_ octets: OutgoingOctets) -> String {
            HTTP1Tests.text(octets.isOwn ? own : received, octets.range) ?? ""
        }
        let fields = head.withFields { fields in
            fields.map { "\($0.known == .other ? text($0.name) : "\($0.known.name)"): \(text($0.value))" }
        }
        return Read(
            method: text(head.method), target: text(head.target), host: text(head.host), status: head.status,
            size: head.size, fields: fields, overflowed: head.overflowed)
    }

    /// Reads back the fields that `body` writes, into a head that was used for an earlier message.
    static func written(
        of received: [UInt8], after earlier: (inout OutgoingHead) -> Void = { _ in },
        _ body: (inout OutgoingHead) -> Void
    ) -> Read {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { memory.deallocate() }
        var head = OutgoingHead()
        head.begin(in: memory)
        earlier(&head)
        head.begin(in: memory)
        body(&head)
        return read(head, of: received)
    }

    static func request(
        _ request: String, edits: RequestEdits = RequestEdits(), credential: String? = nil, asHEAD: Bool = false,
        adding lines: String = "", after earlier: (inout OutgoingHead) -> Void = { _ in }
    ) throws -> Read {
        let bytes = octets(request)
        let head = try parsedRequest(bytes)
        let (ready, lines) = (octets(credential ?? ""), octets(lines))
        return written(of: bytes, after: earlier) { output in
            writeRequest(
                head, bytes: bytes.span, edits: edits, credential: credential == nil ? nil : ready.span,
                framing: .none, asHEAD: asHEAD, into: &output)
            output.addFields(lines.span)
        }
    }

    static func answer(
        _ answer: String, adding lines: String = "", after earlier: (inout OutgoingHead) -> Void = { _ in }
    ) throws -> Read {
        let bytes = octets(answer)
        let head = try parsedResponse(bytes)
        let lines = octets(lines)
        return written(of: bytes, after: earlier) { output in
            writeResponse(head, bytes: bytes.span, edits: ResponseEdits(), framing: .none, into: &output)
            output.addFields(lines.span)
        }
    }

    /// RFC 9113 section 8.2.2: a configuration could name them.
    @Test(arguments: [
        "TE: trailers", "Upgrade: x", "Connection: close", "Keep-Alive: 5", "Proxy-Connection: close",
        "Transfer-Encoding: chunked",
    ])
    func readyLinesOfOneConnectionAreLeftOut(line: String) throws {
        let lines = "A: b\r\n\(line)\r\nTrailer: c\r\n"
        let left = try Self.answer("HTTP/1.1 200 OK\r\n\r\n")
        let found = try Self.answer("HTTP/1.1 200 OK\r\n\r\n", adding: lines)
        #expect(left.fields == [] && found.fields == ["a: b", "trailer: c"])
        #expect(found.size == (try Self.answer("HTTP/1.1 200 OK\r\n\r\n", adding: "A: b\r\nTrailer: c\r\n")).size)
    }

    /// A name with `_` is another one than that with `-`, which it only resembles.
    @Test func aReadyNameStaysWhatItIs() throws {
        var edits = RequestEdits()
        edits.renamed = octets("x-old")
        edits.renamedTo = octets("X_Request_Id")
        #expect(edits.set(try #require(FieldName("User_Agent")), spelled: octets("User_Agent"), value: octets("u")))
        let found = try Self.request(
            "GET / HTTP/1.1\r\nHost: h\r\nX-Old: o\r\nX_Forwarded_For: f\r\n\r\n", edits: edits,
            credential: "X_Request_ID:c \r\n", adding: "no field\r\nContent_Length: 5\r\nX-REQUEST-ID: x\r\n")
        #expect(
            found.fields == [
                "x_request_id: o", "x_forwarded_for: f", "user_agent: u", "x_request_id: c", "content_length: 5",
                "x-request-id: x",
            ])
    }

    /// The authority of a request is no field, and the last line that says it counts. An answer's `Host` means nothing.
    @Test func aReadyHostIsTheAuthorityOfARequest() throws {
        let asked = try Self.request("GET / HTTP/1.1\r\nHost: h\r\n\r\n", adding: "A: b\r\nHost: other:1\r\nC: d\r\n")
        #expect(asked.host == "other:1" && asked.fields == ["a: b", "c: d"])
        let answered = try Self.answer("HTTP/1.1 200 OK\r\n\r\n", adding: "A: b\r\nHost: other:1\r\nC: d\r\n")
        #expect(answered.host == "" && answered.fields == ["a: b", "host: other:1", "c: d"])
    }

    /// The size is about that of the text: a few octets are less than any bound is told by.
    @Test(arguments: [
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /\(String(repeating: "t", count: 99)) HTTP/1.1\r\nHost: a.example:8443\r\nAccept: a\r\nX-One: 1\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: h\r\nUser-Agent: \(String(repeating: "u", count: 200))\r\nx-empty:\r\n\r\n",
    ])
    func theSizeIsThatOfTheText(request: String) throws {
        var edits = RequestEdits()
        for (host, prefix) in [("", ""), ("upstream.example:8443", ""), ("", "/base/of/the/upstream"), ("u", "/b")] {
            edits.host = octets(host)
            edits.targetPrefix = octets(prefix)
            let credential = "X-Credential: \(String(repeating: "c", count: 99))\r\nAuthorization: a\r\n"
            let text = try forwarded(request, edits: edits, credential: credential)
            let fields = try Self.request(request, edits: edits, credential: credential)
            #expect(abs(fields.size - text.utf8.count) <= 8 && !fields.overflowed, "\(fields)")
        }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 304 No\r\nDate: d\r\nETag: \(String(repeating: "e", count: 99))\r\n\r\n",
        "HTTP/1.1 204 N\r\nServer: s\r\nX-A-Rather-Long-Name: a\r\nX-A-Rather-Long-Name: b\r\n\r\n",
    ])
    func theSizeOfAnAnswerIsThatOfItsText(answer: String) throws {
        let fields = try Self.answer(answer)
        #expect(abs(fields.size - answer.utf8.count) <= 8)
        #expect(fields.status == (try parsedResponse(octets(answer)).status))
    }

    /// A loop has one head, which every message of it is written to in turn.
    @Test func aHeadIsUsedAgain() throws {
        let (asked, answered) = ("GET /a HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n", "HTTP/1.1 200 OK\r\nC: d\r\n\r\n")
        let earlier = { (head: inout OutgoingHead) in
            let bytes = octets("HTTP/1.1 404 No\r\nDate: d\r\nX: y\r\n\r\n")
            guard let response = try? parsedResponse(bytes) else { return }
            writeResponse(response, bytes: bytes.span, edits: ResponseEdits(), framing: .length(5), into: &head)
        }
        let fresh = try Self.request(asked)
        let again = try Self.request(asked, after: earlier)
        #expect(fresh == again)
        #expect((fresh.method, fresh.target, fresh.host, fresh.status) == ("GET", "/a", "h", 0))
        #expect(fresh.fields == ["a: b"])
        let freshAnswer = try Self.answer(answered)
        let answerAgain = try Self.answer(answered, after: earlier)
        #expect(freshAnswer == answerAgain)
        #expect(freshAnswer.status == 200 && freshAnswer.fields == ["c: d"])
        let begun = Self.written(of: [], after: earlier) { _ in }
        #expect(begun.status == 0 && begun.size == 0 && begun.fields.isEmpty && !begun.overflowed)
    }

    @Test func aRequestMayBecomeAHEAD() throws {
        let found = try Self.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n", asHEAD: true)
        #expect(found.method == "HEAD" && found.target == "/a" && found.host == "h")
    }

    /// An edited value has no blanks at its edges, which are malformed in HTTP/2 (RFC 9113 section 8.2.1).
    @Test(arguments: [" h ", "\th", "h\t \t", "h"])
    func aConfiguredHostHasNoBlanksAtItsEdges(host: String) throws {
        var edits = RequestEdits()
        edits.host = octets(host)
        #expect(try Self.request("GET / HTTP/1.1\r\nHost: a\r\n\r\n", edits: edits).host == "h")
    }

    @Test func moreFieldsThanThereWasRoomForKeepTheirOrder() throws {
        let numbers = 0..<200
        let lines = numbers.map { "x-\($0): \($0)\r\n" }.joined()
        var head = ResponseHead(maxFields: 200)
        let bytes = octets("HTTP/1.1 200 OK\r\n\(lines)\r\n")
        #expect(try head.parse(bytes.span, limits: HeadLimits(fields: 200)) == bytes.count)
        let found = Self.written(of: bytes) { output in
            writeResponse(head, bytes: bytes.span, edits: ResponseEdits(), framing: .none, into: &output)
        }
        #expect(found.fields == numbers.map { "x-\($0): \($0)" })
    }
}
