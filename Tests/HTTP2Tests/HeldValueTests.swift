import Testing

@testable import HTTP2

/// A credential reaches the peer as it is, however long it is and whatever stands around it.
@Suite struct HeldValueTests {
    /// Lengths at which the integer before the value gets another octet (RFC 7541 §5.1), and one that is too long to be held.
    @Test(arguments: [1, 126, 127, 128, 254, 255, 4_000, 11_000, 13_000])
    func `it arrives whole`(count: Int) throws {
        let pair = Pair()
        let token = String((0..<count).map { _ in Character(Unicode.Scalar(UInt8.random(in: 0x21...0x7e))) })
        for path in ["/first", "/second"] {
            let head =
                "GET \(path) HTTP/1.1\r\nHost: a\r\nAuthorization: \(token)\r\nX-Other: kept\r\nUser-Agent: test\r\n\r\n"
            let sent = try #require(pair.open(head, ended: true))
            pair.exchange()
            let came = try #require(pair.server.takeOpened().first)
            let text = came.readAll()
            #expect(text.hasPrefix("GET \(path) HTTP/1.1\r\n"))
            #expect(text.contains("authorization: \(token)\r\n"))
            #expect(text.contains("x-other: kept\r\n") && text.contains("host: a\r\n"))
            #expect(sent.credential.count == 0)
        }
    }

    @Test func `a field of another name is held as well`() throws {
        let pair = Pair()
        let head = "GET / HTTP/1.1\r\nHost: a\r\nX-Api-Key: one\r\nAuthorization: Basic two\r\n\r\n"
        _ = try #require(pair.open(head, ended: true, secret: "x-api-key"))
        pair.exchange()
        let text = try #require(pair.server.takeOpened().first).readAll()
        #expect(text.contains("x-api-key: one\r\n") && text.contains("authorization: Basic two\r\n"))
    }

    @Test func `fields of one name stay in order`() throws {
        let pair = Pair()
        let head = "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: one\r\nX-Other: kept\r\nAuthorization: two\r\n\r\n"
        let stream = try #require(pair.open(head, ended: true))
        #expect(stream.credential.count == 0)
        pair.exchange()
        let text = try #require(pair.server.takeOpened().first).readAll()
        #expect(text.contains("authorization: one\r\nx-other: kept\r\nauthorization: two\r\n"))
    }

    @Test func `requests of one turn keep their own`() throws {
        let pair = Pair()
        for number in 0..<20 {
            _ = try #require(
                pair.open("GET /\(number) HTTP/1.1\r\nHost: a\r\nAuthorization: token\(number)\r\n\r\n", ended: true))
        }
        pair.exchange()
        let texts = pair.server.takeOpened().map { $0.readAll() }
        #expect(texts.count == 20)
        for (number, text) in texts.enumerated() {
            #expect(text.hasPrefix("GET /\(number) ") && text.contains("authorization: token\(number)\r\n"))
        }
    }

    @Test func `what is given up before it is sent leaves nothing behind`() throws {
        let pair = Pair()
        pair.exchange()
        let stream = try #require(
            pair.open("GET / HTTP/1.1\r\nHost: a\r\nAuthorization: secret\r\n\r\n", ended: true))
        #expect(stream.credential.count == 6)
        stream.cancel()
        pair.exchange()
        #expect(stream.credential.count == 0)
        #expect(pair.server.takeOpened().allSatisfy { $0.isReset })
    }

    /// Anything but what the value was made for is refused, not sent without it.
    @Test(arguments: [
        [UInt8](repeating: 0, count: 9),
        [0, 0, 2, 1, 0x5, 0, 0, 0, 1, 0x1f, 0x01],
        [0, 0, 2, 1, 0x1, 0, 0, 0, 1, 0x1f, 0x00],
    ])
    func `it is written into no other frame`(frame: [UInt8]) {
        var value = HeldValue(memory: HTTP2Memory())
        #expect(Array("secret".utf8).withUnsafeBytes { value.hold($0) })
        var target = [UInt8](repeating: 0, count: 100)
        let written = target.withUnsafeMutableBytes { room in frame.withUnsafeBytes { value.write(into: $0, room) } }
        #expect(written == nil && value.count == 6)
    }
}
