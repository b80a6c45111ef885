import Testing

@testable import HTTP2

/// Windows grow with what is read, and only with that.
@Suite struct ReceiveWindowTests {
    @Test func itDoublesWhenAWindowWasRead() {
        var window = ReceiveWindow(from: 100, to: 350)
        #expect(window.read(99, isShort: false) == nil)
        #expect(window.read(1, isShort: false) == 200)
        #expect(window.read(199, isShort: false) == nil)
        #expect(window.read(1, isShort: false) == 350)
        #expect(window.read(10_000, isShort: false) == nil && window.size == 350)
    }

    @Test func itShrinksWhereMemoryIsShort() {
        var window = ReceiveWindow(from: 100, to: 400)
        #expect(window.read(100, isShort: false) == 200)
        #expect(window.read(199, isShort: false) == nil)
        #expect(window.read(1, isShort: true) == 100)
        #expect(window.read(1, isShort: true) == nil)
        // What was read before counts no more.
        #expect(window.read(99, isShort: false) == nil)
        #expect(window.read(1, isShort: false) == 200)
    }

    /// On the wire: who is not read gets the first windows and nothing more; who is read, more and more.
    @Test func aPeerThatIsNotReadGetsNoMoreThanTheFirstWindows() throws {
        let pair = Pair()
        let piece = String(repeating: "x", count: 16 * 1024)
        var sent = 0
        var streams: [HTTP2Stream] = []
        pair.exchange()
        for _ in 0..<10 {
            streams.append(try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false)))
            pair.exchange()
        }
        let opened = pair.server.takeOpened()
        for _ in 0..<40 {
            for stream in streams where stream.pendingCount == 0 { #expect(stream.write(piece)) }
            pair.exchange()
        }
        sent = opened.reduce(0) { $0 + $1.input.count - $1.headBytes }
        #expect(sent == HTTP2Limits().firstConnectionWindow)
        // The first stream is read, and the connection's credit with it.
        var read = 0
        for _ in 0..<200 {
            read += opened.reduce(0) { $0 + $1.readAll().utf8.count }
            for stream in streams where stream.pendingCount == 0 { #expect(stream.write(piece)) }
            pair.exchange()
        }
        let waiting = opened.reduce(0) { $0 + $1.input.count }
        #expect(waiting <= HTTP2Limits().connectionWindow && read > 4 << 20)
        #expect(pair.server.window.size == HTTP2Limits().connectionWindow)
    }
}
