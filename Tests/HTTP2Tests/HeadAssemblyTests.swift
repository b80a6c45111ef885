import HTTP1
import Testing

@testable import HTTP2

/// The index that comes with a head says what a parse of the head's text says.
@Suite struct HeadAssemblyTests {
    typealias Fields = [(String, String)]

    static let pseudo: Fields = [
        (":method", "GET"), (":scheme", "https"), (":authority", "a.example"), (":path", "/a?b=c"),
    ]

    static let requests: [Fields] = [
        pseudo,
        pseudo + [("user-agent", "x"), ("accept", "*/*")],
        pseudo + [("cookie", "a=b"), ("x", "y"), ("cookie", "c=d")],
        pseudo + [("host", "A.example"), ("te", "trailers"), ("content-length", "5")],
        pseudo + [("host", "b.example")],
        pseudo + [("host", "a.example"), ("host", "b.example")],
        pseudo + [("x_forwarded_for", "::1"), ("x-empty", ""), ("content_length", "7")],
        pseudo + [("content-length", "5"), ("content-length", "5")], pseudo + [("content-length", "5x")],
        pseudo + [("transfer-encoding", "chunked")], pseudo + [("connection", "close, x"), ("x", "y")],
        pseudo + [("x", "a\r\nb: c")], pseudo + [("x", "a\nb")], pseudo + [("x", "a\0")], pseudo + [("x", " a ")],
        pseudo + [("x", "\t")],
        pseudo + [("x\r\ny", "a")], pseudo + [("x y", "a")], pseudo + [("x:", "a")], pseudo + [("", "a")],
        pseudo + [("x\u{7F}", "a")],
        pseudo + [("cookie", "a\r\nb: c")], pseudo + [("host", "a\r\nb: c")],
        [(":method", "GET"), (":path", "/"), ("host", "a")], [(":method", "GET"), (":path", "/")],
        [(":method", "CONNECT"), (":authority", "a:443")], [(":method", "CONNECT"), (":authority", "a b")],
        [(":method", "CONNECT"), (":authority", "a"), (":path", "/ x")],
        [(":method", "GET"), (":authority", "a"), (":path", "/ x")],
        [(":method", "GET"), (":authority", "a"), (":path", "/a\r\nb: c")],
        [(":method", "GET"), (":authority", "a"), (":path", "/a#b")],
        [(":method", "GET"), (":authority", "a"), (":path", "")],
        [(":method", "G T"), (":authority", "a"), (":path", "/")],
        [(":method", ""), (":authority", "a"), (":path", "/")],
        [(":method", "GET"), (":authority", "u@a"), (":path", "/")],
        [(":method", "GET"), (":authority", "a\r\nb"), (":path", "/")],
        [(":method", "GET"), (":authority", "a"), (":path", "a")],
        [(":method", "OPTIONS"), (":authority", "a"), (":path", "*")],
        pseudo + (0..<40).map { ("x-\($0)", "y") },
        pseudo + [("content-length", "")], pseudo + [("content-length", "18446744073709551616")],
        pseudo + [("host", ""), ("host", "")], pseudo + [(":protocol", "websocket")],
    ]

    static let answers: [Fields] = [
        [(":status", "200")],
        [(":status", "200"), ("content-length", "5"), ("server", "x"), ("content-type", "text/plain")],
        [(":status", "103"), ("link", "</a>")], [(":status", "299"), ("x_y", "z")], [(":status", "99")],
        [(":status", "1000")],
        [(":status", "20x")], [(":status", "204"), ("content-length", "5")],
        [(":status", "200"), ("content-length", "5"), ("content-length", "6")],
        [(":status", "200"), ("transfer-encoding", "gzip")],
        [(":status", "200"), ("x", "a\r\nb: c")], [(":status", "200"), ("x", " a")],
        [(":status", "200"), ("host", "a"), ("te", "b")],
        [(":status", "200"), ("set-cookie", "a=b"), ("set-cookie", "c=d"), ("cookie", "e")],
    ]

    static func assembled(_ fields: Fields, _ kind: HeadAssembly.Kind) -> HeadAssembly {
        var assembly = HeadAssembly(limit: 64 << 10)
        assembly.begin(kind, of: 1)
        for (name, value) in fields {
            let name = Array(name.utf8)
            let value = Array(value.utf8)
            name.withUnsafeBytes { name in value.withUnsafeBytes { assembly.add(name: name, value: $0) } }
        }
        assembly.finish()
        return assembly
    }

    @Test(arguments: requests)
    func requestsAgree(fields: Fields) {
        let assembly = Self.assembled(fields, .request)
        guard assembly.flaw == nil else { return }
        let bytes = Array(assembly.text.bytes)
        #expect(
            Self.said { head throws(HeadFault) in
                try head.parse(bytes.span, index: assembly.text.index, limits: HeadLimits())
            }
                == Self.said { head throws(HeadFault) in try head.parse(bytes.span, limits: HeadLimits()) })
    }

    @Test(arguments: answers)
    func answersAgree(fields: Fields) {
        let assembly = Self.assembled(fields, .answer)
        guard assembly.flaw == nil else { return }
        let bytes = Array(assembly.text.bytes)
        #expect(
            Self.told { head throws(HeadFault) in
                try head.parse(bytes.span, index: assembly.text.index, limits: HeadLimits())
            }
                == Self.told { head throws(HeadFault) in try head.parse(bytes.span, limits: HeadLimits()) })
    }

    private static func said(_ parse: (inout RequestHead) throws(HeadFault) -> Int?) -> String {
        var head = RequestHead(maxFields: 64)
        do throws(HeadFault) {
            let length = try parse(&head)
            return
                "\(String(describing: length)) \(head.method) \(head.target) \(head.knownMethod) \(head.targetForm) \(head.path) "
                + "\(String(describing: head.authority)) \(String(describing: head.host)) \(head.framing) \(head.keepAlive) "
                + (0..<head.fieldCount).map { "\(head[$0])" }.joined()
        } catch { return "\(error)" }
    }

    private static func told(_ parse: (inout ResponseHead) throws(HeadFault) -> Int?) -> String {
        var head = ResponseHead(maxFields: 64)
        do throws(HeadFault) {
            let length = try parse(&head)
            return
                "\(String(describing: length)) \(head.status) \(head.reason) \(String(describing: head.declaredLength)) "
                + "\(head.keepAlive) \(head.framing(forMethodHEAD: false, connect: false)) "
                + (0..<head.fieldCount).map { "\(head[$0])" }.joined()
        } catch { return "\(error)" }
    }

    /// The port stands for the scheme where an authority names none; another scheme has none that is known.
    @Test(arguments: [("http", 80), ("https", 443), ("ftp", 0), ("HTTPS", 0), ("", 0)])
    func aSchemeThatIsNotOursHasNoPort(scheme: String, port: Int) {
        let assembly = Self.assembled([(":method", "GET"), (":scheme", scheme), (":path", "/")], .request)
        #expect(assembly.schemePort == port && assembly.flaw == nil)
    }

    /// A length that cannot be read is none: whoever reads the head decides what that means.
    @Test(arguments: [("5", 5), ("", nil), ("5x", nil), ("18446744073709551616", nil)] as [(String, UInt64?)])
    func aLengthThatCannotBeReadIsNone(text: String, length: UInt64?) {
        #expect(Self.assembled(Self.pseudo + [("content-length", text)], .request).contentLength == length)
    }

    @Test func aHeadIsWrittenAsHTTP1HasIt() {
        let request = Self.assembled(
            [
                (":method", "POST"), (":path", "/a"), (":authority", "h"), ("cookie", "a=b"), ("content-length", "5"),
                ("cookie", "c"),
            ],
            .request)
        #expect(
            String(decoding: request.text.bytes, as: UTF8.self)
                == "POST /a HTTP/1.1\r\ncontent-length: 5\r\nhost: h\r\ncookie: a=b; c\r\n\r\n")
        let answer = Self.assembled([(":status", "404"), ("x", String(repeating: "y", count: 100))], .answer)
        #expect(
            String(decoding: answer.text.bytes, as: UTF8.self)
                == "HTTP/1.1 404 Not Found\r\nx: \(String(repeating: "y", count: 100))\r\n\r\n")
        let trailers = Self.assembled([("a", "b"), ("grpc-status", "0")], .trailers)
        #expect(String(decoding: trailers.text.bytes, as: UTF8.self) == "a: b\r\ngrpc-status: 0\r\n")
    }

    /// Octets are copied in words that overlap.
    @Test func everyLengthIsCopied() {
        let octets = (0..<200).map { UInt8(33 + $0 % 90) }
        for count in 0...200 {
            var buffer = OctetBuffer()
            octets[..<count].withUnsafeBytes {
                buffer.append($0)
                buffer.append($0, ": ", $0, "\r\n")
            }
            let part = Array(octets[..<count])
            var expected = part + part
            expected += Array(": ".utf8)
            expected += part
            expected += Array("\r\n".utf8)
            #expect(Array(buffer.bytes) == expected)
        }
    }

    /// The bytes that a stream begins with are the interim answer's: the final one's index would be of others.
    @Test func behindAnInterimAnswerThereIsNone() throws {
        let pair = Pair()
        let stream = try #require(pair.open("GET /a HTTP/1.1\r\nhost: h\r\n\r\n", ended: true))
        pair.exchange()
        let asked = try #require(pair.server.takeOpened().first)
        var isKnown = asked.headIndex.isKnown
        #expect(isKnown)
        var interim = Array("HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n".utf8)
        #expect(interim.withUnsafeMutableBytes { asked.send(interim: $0) })
        pair.exchange()
        isKnown = stream.headIndex.isKnown
        #expect(isKnown)
        var final = Array("HTTP/1.1 200 OK\r\nx: b\r\n\r\n".utf8)
        #expect(final.withUnsafeMutableBytes { asked.send(response: $0, ended: true) })
        pair.exchange()
        isKnown = stream.headIndex.isKnown
        #expect(!isKnown)
        #expect(stream.readAll() == "HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\nx: b\r\n\r\n")
    }
}
