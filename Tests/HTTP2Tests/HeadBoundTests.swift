import HTTP1
import Testing

@testable import HTTP2

/// The bounds of a field section: its size, its status, its octets, and the next section, which has nothing of it.
@Suite struct HeadBoundTests {
    typealias Fields = [(String, String)]

    private static func section(_ fields: Fields, _ kind: HeadAssembly.Kind = .request, limit: Int = 64 << 10)
        -> HeadAssembly
    {
        var assembly = HeadAssembly(limit: limit)
        assembly.begin(kind, of: 1)
        assembly.add(fields)
        assembly.finish()
        return assembly
    }

    private static let get: Fields = [(":method", "GET"), (":scheme", "https"), (":path", "/")]

    // MARK: - Size

    /// A field counts as its name, its value and 32 octets (RFC 9113 §6.5.2).
    @Test(
        arguments: [
            ([133], 133, nil), ([134], 133, .tooLarge), ([100, 33], 133, nil), ([100, 34], 133, .tooLarge),
            ([532], 133, .tooLarge), ([533], 133, .flood), ([133, 133, 133, 133], 133, .tooLarge),
            ([133, 133, 133, 134], 133, .flood),
        ] as [([Int], Int, HeadAssembly.Flaw?)])
    func `a section is as large as its limit and no larger, and a flood at four times that`(
        sizes: [Int], limit: Int, flaw: HeadAssembly.Flaw?
    ) {
        var assembly = HeadAssembly(limit: limit)
        assembly.begin(.trailers, of: 1)
        // Name and value share what is left of a field's size.
        for size in sizes {
            assembly.add([
                (String(repeating: "n", count: (size - 32 + 1) / 2), String(repeating: "v", count: (size - 32) / 2))
            ])
        }
        let found = assembly.flaw
        #expect(found == flaw)
    }

    @Test func `a field beyond the limit is dropped, and those behind it as well`() {
        var assembly = HeadAssembly(limit: 100)
        assembly.begin(.trailers, of: 1)
        assembly.add([("a", "b"), ("c", String(repeating: "x", count: 60)), ("d", "e")])
        assembly.finish()
        let text = assembly.written
        #expect(text == "a: b\r\n")
    }

    // MARK: - Status

    @Test(
        arguments: [
            ("100", "HTTP/1.1 100 Continue\r\n\r\n"), ("405", "HTTP/1.1 405 Method Not Allowed\r\n\r\n"),
            ("298", "HTTP/1.1 298 Status\r\n\r\n"), ("999", "HTTP/1.1 999 Status\r\n\r\n"), ("99", nil), ("1000", nil),
            ("", nil),
            ("0", nil), ("2/0", nil), ("2:0", nil),
        ] as [(String, String?)])
    func `a status is of three digits, from 100 to 999`(status: String, line: String?) {
        let assembly = Self.section([(":status", status)], .answer)
        let (flaw, text) = (assembly.flaw, assembly.written)
        #expect(flaw == (line == nil ? .malformed : nil))
        if let line { #expect(text == line) }
    }

    // MARK: - Lengths

    @Test(
        arguments: [
            ("0", 0), ("00005", 5), ("9999999999999999999", 9_999_999_999_999_999_999), ("10000000000000000000", nil),
            ("/5", nil), ("5:", nil), ("-1", nil), (" 5", nil),
        ] as [(String, UInt64?)])
    func `a length has up to nineteen digits and nothing else`(text: String, length: UInt64?) {
        for kind in [HeadAssembly.Kind.request, .answer] {
            let fields = kind == .request ? Self.get : [(":status", "200")]
            #expect(Self.section(fields + [("content-length", text)], kind).contentLength == length)
        }
        #expect(Self.section([("content-length", text)], .trailers).contentLength == nil)
    }

    // MARK: - Octets of the first line

    private static func request(method: String, _ path: [UInt8]) -> HeadAssembly.Flaw? {
        var assembly = HeadAssembly(limit: 1000)
        assembly.begin(.request, of: 1)
        assembly.add([(":method", method), (":authority", "a")])
        let name = Array(":path".utf8)
        name.withUnsafeBytes { name in path.withUnsafeBytes { assembly.add(name: name, value: $0) } }
        assembly.finish()
        return assembly.flaw
    }

    /// Every octet that HTTP/1.1's parser takes for a target's end is refused, and not only those that part a line.
    @Test(arguments: [0x00, 0x01, 0x09, 0x0a, 0x0d, 0x1f, 0x20, 0x7f] as [UInt8], ["GET", "CONNECT"])
    func `a control or a space in a path is refused`(octet: UInt8, method: String) {
        #expect(Self.request(method: method, [0x2f, octet, 0x61]) == .malformed)
        #expect(Self.request(method: method, [0x2f, octet]) == .malformed)
    }

    @Test(arguments: [0x21, 0x23, 0x40, 0x7e, 0x80, 0xff] as [UInt8], ["GET", "CONNECT"])
    func `any other octet of a path is left to the parser`(octet: UInt8, method: String) {
        #expect(Self.request(method: method, [0x2f, octet, 0x61]) == nil)
    }

    @Test(
        arguments: [("G T", .malformed), (" GET", .malformed), ("G!T", nil), ("GET", nil)]
            as [(String, HeadAssembly.Flaw?)])
    func `a space in a method is refused`(method: String, flaw: HeadAssembly.Flaw?) {
        #expect(Self.request(method: method, Array("/".utf8)) == flaw)
    }

    @Test func `the target of CONNECT is the authority, and of every other method the path`() {
        let connect = Self.section([(":method", "CONNECT"), (":authority", "a:443"), (":path", "/p")]).written
        #expect(connect == "CONNECT a:443 HTTP/1.1\r\nhost: a:443\r\n\r\n")
        let other = Self.section([(":method", "CONNECTS"), (":authority", "a:443"), (":path", "/p")]).written
        #expect(other == "CONNECTS /p HTTP/1.1\r\nhost: a:443\r\n\r\n")
    }

    // MARK: - Host

    /// Letters have two cases, and octets beside them in the table have not (RFC 9113 §8.3.1).
    @Test(arguments: [
        ("a", "a", true), ("A", "a", true), ("z", "Z", true), ("a", "b", false), ("@", "`", false), ("[", "{", false),
        ("0", "\u{10}", false), ("-", "\r", false), ("ab", "a", false), ("a", "ab", false), ("aB.c", "Ab.C", true),
        ("ab", "ac", false), ("é", "É", false),
    ])
    func `a Host is that of the authority, letter for letter in either case`(
        host: String, authority: String, isSame: Bool
    ) {
        let assembly = Self.section(Self.get + [(":authority", authority), ("host", host)])
        let (flaw, text) = (assembly.flaw, assembly.written)
        #expect(flaw == (isSame ? nil : .malformed))
        if isSame { #expect(text == "GET / HTTP/1.1\r\nhost: \(authority)\r\n\r\n") }
    }

    @Test func `a Host stands for an authority that is missing or empty`() {
        for authority in [[], [(":authority", "")]] as [Fields] {
            let assembly = Self.section(Self.get + authority + [("host", "h")])
            let (flaw, text) = (assembly.flaw, assembly.written)
            #expect(flaw == nil && text == "GET / HTTP/1.1\r\nhost: h\r\n\r\n")
        }
        let none = Self.section(Self.get).written
        #expect(none == "GET / HTTP/1.1\r\nhost: \r\n\r\n")
    }

    @Test(
        arguments: [(["h", "h"], nil), (["h", "H"], .malformed), (["h", ""], .malformed), (["h", "i"], .malformed)]
            as [([String], HeadAssembly.Flaw?)])
    func `a Host that comes twice is the same both times`(hosts: [String], flaw: HeadAssembly.Flaw?) {
        #expect(Self.section(Self.get + hosts.map { ("host", $0) }).flaw == flaw)
    }

    /// An upstream's fields mean nothing to the first line.
    @Test func `fields of requests are ordinary ones elsewhere`() {
        let fields: Fields = [("cookie", "a"), ("cookie", "b"), ("host", "c"), ("host", "d"), ("te", "trailers")]
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        let answer = Self.section([(":status", "200")] + fields, .answer)
        let (text, accepts) = (answer.written, answer.acceptsTrailers)
        #expect(text == "HTTP/1.1 200 OK\r\n\(lines)\r\n" && !accepts)
        let trailers = Self.section(fields, .trailers)
        let (behind, takes) = (trailers.written, trailers.acceptsTrailers)
        #expect(behind == lines && !takes)
    }

    @Test func `te is told apart and not passed on`() {
        let with = Self.section(Self.get + [("te", "trailers"), ("x", "y")])
        let (accepts, text) = (with.acceptsTrailers, with.written)
        #expect(accepts && text == "GET / HTTP/1.1\r\nx: y\r\nhost: \r\n\r\n")
        let without = Self.section(Self.get + [("x", "y")]).acceptsTrailers
        #expect(!without)
    }

    // MARK: - One section behind another

    /// Sections that leave all that one can, whole, refused and in their middle.
    static let before: [(kind: HeadAssembly.Kind, fields: Fields, isFinished: Bool)] = [
        (
            .request,
            [
                (":method", "POST"), (":scheme", "https"), (":path", "/before"), (":authority", "before"),
                ("host", "before"), ("te", "trailers"), ("content-length", "5"), ("cookie", "c=before"),
            ], true
        ),
        (.request, [(":method", "POST"), (":scheme", "http"), (":path", "/"), ("host", "a"), ("cookie", "b")], false),
        (.request, [(":method", "G T"), (":path", "/ /"), ("host", "a"), ("host", "b")], true),
        (.answer, [(":status", "299"), ("content-length", "7"), ("x", "y")], true), (.answer, [(":status", "1")], true),
        (.trailers, [("x", String(repeating: "y", count: 950))], true),
        (.trailers, [("x", String(repeating: "y", count: 1000))], true),
        (.trailers, [("x", String(repeating: "y", count: 4000))], true),
    ]

    @Test(arguments: before.indices)
    func `nothing of a section is left for the next one`(_ index: Int) {
        let first = Self.before[index]
        /// - Returns: what the section is, by an assembly that has had another one before and by one that has not.
        func both(_ kind: HeadAssembly.Kind, _ fields: Fields) -> (String, String) {
            var used = HeadAssembly(limit: 1000)
            used.begin(first.kind, of: 1)
            used.add(first.fields)
            if first.isFinished { used.finish() }
            used.begin(kind, of: 3)
            let during = used.stream
            used.add(fields)
            used.finish()
            var fresh = HeadAssembly(limit: 1000)
            fresh.begin(kind, of: 3)
            fresh.add(fields)
            fresh.finish()
            let (after, afresh) = (used.stream, fresh.stream)
            #expect(during == 3 && after == 0 && afresh == 0)
            return (used.description, fresh.description)
        }
        let sections: [(HeadAssembly.Kind, Fields, String)] = [
            (.request, [(":path", "/p")], " /p HTTP/1.1\r\nhost: \r\n\r\n"),
            (.request, [(":method", "GET")], "GET  HTTP/1.1\r\nhost: \r\n\r\n"),
            (.request, [(":method", "GET"), (":path", "/"), ("host", "h")], "GET / HTTP/1.1\r\nhost: h\r\n\r\n"),
            (.request, [(":method", "PUT"), ("cookie", "d")], "PUT  HTTP/1.1\r\nhost: \r\ncookie: d\r\n\r\n"),
            (.answer, [(":status", "404")], "HTTP/1.1 404 Not Found\r\n\r\n"), (.trailers, [("t", "u")], "t: u\r\n"),
            (
                .request, Self.get + [("x", String(repeating: "z", count: 750))],
                "GET / HTTP/1.1\r\nx: \(String(repeating: "z", count: 750))\r\nhost: \r\n\r\n"
            ),
        ]
        for (kind, fields, text) in sections {
            let (used, fresh) = both(kind, fields)
            #expect(used == fresh)
            #expect(used.hasSuffix(text) && used.hasPrefix("none "))
        }
        // An answer that has no status has not that of the last one.
        #expect(both(.answer, [("x", "y")]).0.hasPrefix("malformed "))
    }

    @Test func `an assembly that no section has come to is of no stream and says nothing`() {
        let fresh = HeadAssembly(limit: 1000)
        let (stream, status, port, flaw) = (fresh.stream, fresh.status, fresh.schemePort, fresh.flaw)
        #expect(stream == 0 && status == 0 && port == 0 && flaw == nil)
        let (length, accepts, text) = (fresh.contentLength, fresh.acceptsTrailers, fresh.written)
        #expect(length == nil && !accepts && text.isEmpty)
    }

    @Test func `a section that is left is of no stream`() {
        var assembly = HeadAssembly(limit: 1000)
        assembly.begin(.request, of: 5)
        assembly.leave()
        let stream = assembly.stream
        #expect(stream == 0)
    }
}

extension HeadAssembly {
    fileprivate mutating func add(_ fields: [(String, String)]) {
        for (name, value) in fields {
            let (name, value) = (Array(name.utf8), Array(value.utf8))
            name.withUnsafeBytes { name in value.withUnsafeBytes { add(name: name, value: $0) } }
        }
    }

    fileprivate var written: String { String(decoding: text.bytes, as: UTF8.self) }

    /// All that it says; the text comes last.
    fileprivate var description: String {
        let flaw = flaw.map { "\($0)" } ?? "none"
        let length = contentLength.map { "\($0)" } ?? "none"
        return "\(flaw) \(kind) \(length) \(acceptsTrailers) \(schemePort) \(status) \(written)"
    }
}
