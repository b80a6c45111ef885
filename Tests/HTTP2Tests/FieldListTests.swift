import CNghttp2
import HTTP1
import Testing

@testable import HTTP2

/// The way of a head's lines to nghttp2: which fields go, what their names and values are, and which are secrets.
@Suite struct FieldListTests {
    private static func request(
        _ text: String, secret: String = "", secretTarget: Bool = false, acceptsTrailers: Bool = false
    ) -> Filled {
        var list = FieldList()
        return Filled(text, &list) {
            $0.fill(
                request: $1, scheme: "https", secretName: Array(secret.utf8), secretTarget: secretTarget,
                acceptsTrailers: acceptsTrailers)
        }
    }

    private static func answer(_ text: String) -> Filled {
        var list = FieldList()
        return Filled(text, &list) { $0.fill(response: $1) }
    }

    private static let start = "GET /a HTTP/1.1\r\nHost: h\r\n"
    private static let pseudo = [":method: GET", ":scheme: https", ":path: /a", ":authority: h"]

    @Test func `a list that was never filled is empty and holds nothing`() {
        let list = FieldList()
        let (isEmpty, held) = (list.isEmpty, list.held.count)
        #expect(isEmpty && held == 0)
    }

    // MARK: - First lines

    @Test(arguments: [
        "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n", "GET/HTTP/1.1\r\n\r\n", "GET /HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\n\n",
        "GET\r\nHost: a b c\r\n\r\n", "GET /\r\nHost: a b c\r\n\r\n", "GET / HTTP/1.1\r\nHost\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h",
    ])
    func `a request without its two spaces and line ends is none`(text: String) {
        #expect(!Self.request(text).isFilled)
    }

    @Test(arguments: [
        ("HTTP/1.1 200\r\n\r\n", true), ("HTTP/1.1 200 OK\r\n\r\n", true), ("HTTP/1.1 20\r\n\r\n", false),
        ("\rHTTP/1.1 200 OK\r\n\r\n", false), ("HTTP/1.1 200 OK", false),
    ])
    func `an answer without three digits is none`(text: String, isOne: Bool) {
        let filled = Self.answer(text)
        #expect(filled.isFilled == isOne)
        if isOne { #expect(filled.fields == [":status: 200"]) }
    }

    @Test func `a target is what stands between the first two spaces`() {
        #expect(
            Self.request("M t HTTP/1.1\r\n\r\n").fields == [":method: M", ":scheme: https", ":path: t", ":authority: "])
        #expect(Self.request("PUT /b?c HTTP/1.1 d\r\nHOST: x\r\n\r\n").fields[2] == ":path: /b?c")
    }

    @Test func `a target is a secret where it carries one`() {
        #expect(Self.request(Self.start + "\r\n", secretTarget: true).fields[2] == ":path:! /a")
        #expect(Self.request(Self.start + "\r\n", secretTarget: false).fields == Self.pseudo)
    }

    // MARK: - Lines

    /// Letters are 26; octets beside them in the table are none and stay.
    @Test func `names are made lower case, and values are not`() {
        let filled = Self.answer("HTTP/1.1 200 OK\r\n@AZ[aZ-az`{: @AZ[`{\r\n\r\n")
        #expect(filled.fields == [":status: 200", "@az[az-az`{: @AZ[`{"])
    }

    @Test(arguments: [
        ("", ""), (" ", ""), ("\t \t", ""), ("a", "a"), (" a", "a"), ("a ", "a"), ("\ta\t", "a"),
        (" \t a \t b\t ", "a \t b"),
        ("\u{1f}a\u{21}", "\u{1f}a\u{21}"), ("\u{08}a\u{0b}", "\u{08}a\u{0b}"), (":a", ":a"),
    ])
    func `blanks at the edges of a value go, and nothing else does`(text: String, value: String) {
        #expect(
            Self.answer("HTTP/1.1 200 OK\r\nx:\(text)\r\ny: z\r\n\r\n").fields == [
                ":status: 200", "x: \(value)", "y: z",
            ])
    }

    @Test(arguments: [
        "te", "upgrade", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "Transfer-Encoding", "TE",
    ])
    func `fields of one connection are not passed on`(name: String) {
        #expect(Self.answer("HTTP/1.1 200 OK\r\n\(name): a\r\nb: c\r\n\r\n").fields == [":status: 200", "b: c"])
        #expect(Self.request(Self.start + "\(name): a\r\nb: c\r\n\r\n").fields == Self.pseudo + ["b: c"])
    }

    /// Names are told apart by length first, so that these have just the same lengths.
    @Test(arguments: [
        "tf", "upgradf", "connectiom", "keep-alivf", "proxy-connectiom", "transfer-encodinh", "authorizatiom", "hosu",
        "t",
        "tee", "", "x",
    ])
    func `fields that resemble those are passed on`(name: String) {
        #expect(Self.answer("HTTP/1.1 200 OK\r\n\(name): a\r\n\r\n").fields == [":status: 200", "\(name): a"])
        #expect(Self.request(Self.start + "\(name): a\r\n\r\n").fields == Self.pseudo + ["\(name): a"])
    }

    @Test func `only a request's Host is its authority`() {
        #expect(Self.answer("HTTP/1.1 200 OK\r\nHost: a\r\n\r\n").fields == [":status: 200", "host: a"])
        #expect(Self.request("GET /a HTTP/1.1\r\nx: y\r\nhOsT:  h \r\n\r\n").fields == Self.pseudo + ["x: y"])
    }

    @Test func `what stands behind the empty line is no field`() {
        #expect(Self.answer("HTTP/1.1 200 OK\r\na: b\r\n\r\nc: d\r\n").fields == [":status: 200", "a: b"])
        #expect(Self.request(Self.start + "\r\nno line").fields == Self.pseudo)
    }

    @Test func `trailers are accepted in a field that the program writes`() {
        let filled = Self.request(Self.start + "TE: gzip\r\nx: y\r\n\r\n", acceptsTrailers: true)
        #expect(filled.fields == Self.pseudo + ["x: y", "te: trailers"])
    }

    @Test(
        arguments: [("", []), ("a: b\r\n", ["a: b"]), ("A:b\r\nC: d\r\n", ["a: b", "c: d"])] as [(String, [String])])
    func `trailers are lines alone`(text: String, fields: [String]) {
        var list = FieldList()
        let filled = Filled(text, &list) { $0.fill(trailers: $1) }
        let isEmpty = list.isEmpty
        #expect(filled.isFilled && filled.fields == fields && isEmpty == fields.isEmpty)
    }

    @Test func `a list that is filled again has the new head's fields alone`() {
        var list = FieldList()
        let lines = (0..<70).map { "x-\($0): \($0)\r\n" }.joined()
        func request(_ text: String) -> Filled {
            Filled(text, &list) {
                $0.fill(request: $1, scheme: "http", secretName: [], secretTarget: false, acceptsTrailers: false)
            }
        }
        #expect(request(Self.start + lines + "authorization: s\r\n\r\n").held == "s")
        // The counts are those at which a list grows.
        for count in [1, 27, 28, 29, 59, 60, 61] {
            let some = (0..<count).map { "x-\($0): \($0)" }
            let filled = request(Self.start + some.map { $0 + "\r\n" }.joined() + "\r\n")
            #expect(filled.fields.dropFirst(4) == some[...] && filled.held.isEmpty)
        }
        #expect(
            Filled("HTTP/1.1 404 No\r\na: b\r\n\r\n", &list) { $0.fill(response: $1) }.fields == [
                ":status: 404", "a: b",
            ])
        #expect(Filled("t: u\r\n", &list) { $0.fill(trailers: $1) }.fields == ["t: u"])
    }

    // MARK: - Secrets

    @Test(
        arguments: [
            ("", "Authorization: a\r\nX-Key: b\r\n", ["x-key: b", "authorization:! "], "a"),
            ("x-key", "X-Key: b\r\nx: y\r\n", ["x: y", "x-key:! "], "b"),
            // The first of two with different names is held, the other goes as a secret.
            ("x-key", "X-Key: bb\r\nx: y\r\nAuthorization: a\r\n", ["x: y", "authorization:! a", "x-key:! "], "bb"),
            ("x-key", "Authorization: a\r\nx: y\r\nX-Key: bb\r\n", ["x: y", "x-key:! bb", "authorization:! "], "a"),
            // Secrets of one name keep their order, and neither is held.
            (
                "", "Authorization: a\r\nx: y\r\nAuthorization: b\r\n",
                ["authorization:! a", "x: y", "authorization:! b"], ""
            ),
            (
                "x-key", "x-key: a\r\nAuthorization: b\r\nx-key: c\r\n",
                ["x-key:! a", "authorization:! b", "x-key:! c"], ""
            ),
            // A secret without a value has nothing to hold.
            ("", "Authorization: \r\nx: y\r\n", ["authorization:! ", "x: y"], ""),
            ("x-key", "Authorization: \r\nx-key: k\r\nx: y\r\n", ["authorization:! ", "x: y", "x-key:! "], "k"),
            ("authorization", "x: y\r\nAuthorization: a\r\n", ["x: y", "authorization:! "], "a"),
            ("x-ke", "x-key: a\r\nx-kd: b\r\n", ["x-key: a", "x-kd: b"], ""), ("", ": a\r\n", [": a"], ""),
        ] as [(String, String, [String], String)])
    func `a secret that is the only one of its name is held and goes last`(
        name: String, lines: String, fields: [String], held: String
    ) {
        let filled = Self.request(Self.start + lines + "\r\n", secret: name)
        #expect(filled.fields == Self.pseudo + fields && filled.held == held)
    }

    @Test func `a secret goes behind what the program adds`() {
        let filled = Self.request(Self.start + "Authorization: a\r\nx: y\r\n\r\n", acceptsTrailers: true)
        #expect(filled.fields == Self.pseudo + ["x: y", "te: trailers", "authorization:! "] && filled.held == "a")
    }

    @Test func `a secret target is not held`() {
        let filled = Self.request(Self.start + "x: y\r\n\r\n", secretTarget: true)
        #expect(filled.held.isEmpty && filled.fields[2] == ":path:! /a" && filled.fields[3] == ":authority: h")
    }

    /// The frame must be one of the least size that every peer takes.
    @Test(arguments: [(12 * 1024 - 1, true), (12 * 1024, true), (12 * 1024 + 1, false), (13 * 1024, false)])
    func `a head of more than 12 KiB goes with its secret in it`(size: Int, isHeld: Bool) {
        let (first, last) = (Self.start + "Authorization: ", "\r\nx: y\r\n\r\n")
        let secret = String(repeating: "s", count: size - first.utf8.count - last.utf8.count)
        let filled = Self.request(first + secret + last)
        #expect(filled.held == (isHeld ? secret : ""))
        #expect(filled.fields.last == (isHeld ? "authorization:! " : "x: y"))
    }

    @Test func `an answer has no secrets but its authorization`() {
        let filled = Self.answer("HTTP/1.1 200 OK\r\nauthorization: a\r\nx: y\r\n\r\n")
        #expect(filled.fields == [":status: 200", "authorization:! a", "x: y"])
    }

    // MARK: - Heads that come as fields

    @Test(arguments: [100, 103, 200, 299, 404, 599, 999])
    func `a status that comes as a number is sent as its three digits`(status: Int) throws {
        let bytes = Array("HTTP/1.1 \(status) x\r\na: b\r\n\r\n".utf8)
        var head = ResponseHead(maxFields: 8)
        #expect(try head.parse(bytes.span, limits: HeadLimits()) == bytes.count)
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { memory.deallocate() }
        var output = OutgoingHead()
        output.begin(in: memory)
        writeResponse(
            head, bytes: bytes.span, edits: ResponseEdits(), callerOrigin: [UInt8]().span, isPrivate: false,
            lines: [UInt8]().span, framing: .none, into: &output)
        var list = FieldList()
        bytes.withUnsafeBytes { list.fill(response: output, received: $0) }
        #expect(Filled(list).fields.prefix(2) == [":status: \(status)", "a: b"])
    }
}

/// A list's fields, a secret one with an exclamation mark, and the value that is held.
private struct Filled {
    let isFilled: Bool
    let fields: [String]
    let held: String

    init(_ text: String, _ list: inout FieldList, _ fill: (inout FieldList, UnsafeMutableRawBufferPointer) -> Bool) {
        var bytes = Array(text.utf8)
        (isFilled, fields, held) = bytes.withUnsafeMutableBytes {
            let isFilled = fill(&list, $0)
            let said = Filled(list)
            return (isFilled, said.fields, said.held)
        }
    }

    init(_ list: borrowing FieldList) {
        isFilled = true
        held = String(decoding: list.held, as: UTF8.self)
        fields = list.withPairs { pairs, count in
            UnsafeBufferPointer(start: pairs, count: count).map { pair in
                let name = String(decoding: UnsafeBufferPointer(start: pair.name, count: pair.namelen), as: UTF8.self)
                let value = String(
                    decoding: UnsafeBufferPointer(start: pair.value, count: pair.valuelen), as: UTF8.self)
                let isSecret = pair.flags & UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue) != 0
                return "\(name):\(isSecret ? "!" : "") \(value)"
            }
        }
    }
}
