import HTTP2
import Testing

/// How streams end while something of them is still to come, and what is sent of heads that are none.
@Suite struct HTTP2EndingTests {
    /// A server's answer to a request whose body has not ended.
    private func answered(_ pair: Pair) throws -> (asked: HTTP2Stream, stream: HTTP2Stream) {
        let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("hello") && stream.end())
        return (asked, stream)
    }

    /// A whole answer stands, and its sender is told to stop only when it has gone (RFC 9113 §8.1).
    @Test func aWholeAnswerIsNotOvertakenByItsEnd() throws {
        let pair = Pair()
        let (asked, stream) = try answered(pair)
        stream.cancel(.none)
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(asked.inputEnded && asked.resetCode == nil && asked.resetBy == .peer, "told to stop, without a fault")
        #expect(pair.server.openStreams == 0 && pair.client.openStreams == 0)
    }

    @Test func anAnswerThatHasGoneIsEndedAtOnce() throws {
        let pair = Pair()
        let (asked, stream) = try answered(pair)
        pair.exchange()
        #expect(pair.server.openStreams == 1, "the request may still go on")
        stream.cancel(.internalError)
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello" && asked.inputEnded)
        #expect(asked.resetCode == nil && asked.resetBy == .peer, "whatever the reason, the answer was whole")
        #expect(pair.server.openStreams == 0)
    }

    /// The end waits for the window, as the answer does.
    @Test func aSlowReaderHasTheWholeAnswerFirst() throws {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = 3
        limits.streamWindow = 3
        let pair = Pair(limits: limits)
        let (asked, stream) = try answered(pair)
        stream.cancel(.none)
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhel")
        #expect(!asked.inputEnded && asked.resetCode == nil && pair.server.openStreams == 1)
        pair.exchange()
        #expect(asked.readAll() == "lo")
        pair.exchange()
        #expect(asked.inputEnded && asked.resetCode == nil && asked.resetBy == .peer)
        #expect(pair.server.openStreams == 0)
    }

    /// Who ends its request in time is not told to stop.
    @Test func aRequestThatEndsMeanwhileIsNotReset() throws {
        let pair = Pair()
        let (asked, stream) = try answered(pair)
        #expect(asked.write("body") && asked.end())
        pair.carryToServer()
        stream.cancel(.none)
        pair.arrive()
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello" && asked.inputEnded && asked.resetBy != .peer)
        #expect(pair.server.openStreams == 0 && pair.client.openStreams == 0)
    }

    @Test func aStreamThatThePeerHasEndedMeanwhileIsLeftAlone() throws {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = 3
        limits.streamWindow = 3
        let pair = Pair(limits: limits)
        let (asked, stream) = try answered(pair)
        stream.cancel(.none)
        pair.exchange()
        asked.cancel()
        pair.exchange()
        #expect(stream.isReset && stream.resetBy == .peer && pair.server.openStreams == 0)
        // The connection is as good as before.
        let next = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        #expect(try #require(pair.server.takeOpened().first).respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
        pair.exchange()
        #expect(next.readAll() == "HTTP/1.1 204 No Content\r\n\r\n" && next.inputEnded)
    }

    @Test func aStreamOfALostConnectionCarriesNothing() throws {
        let pair = Pair()
        _ = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        pair.server.abandon(.internalError)
        var interim = Array("HTTP/1.1 103 Early Hints\r\n\r\n".utf8)
        #expect(!interim.withUnsafeMutableBytes { stream.send(interim: $0) })
        #expect(!stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        #expect(!stream.write("hello") && !stream.end())
        #expect(!stream.isShort && stream.isFlushed && stream.hasInput && stream.pendingCount == 0)
        #expect(stream.resetCode == HTTP2ErrorCode.internalError.rawValue && stream.resetBy == .connection)
        #expect(pair.server.openStreams == 0 && !pair.server.hasRoom)
    }

    /// A body that has ended takes no more.
    @Test func nothingIsWrittenBehindTheEnd() throws {
        let pair = Pair()
        let (asked, stream) = try answered(pair)
        #expect(!stream.write("more") && !stream.end())
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello")
    }

    // MARK: - Heads that are none

    @Test(arguments: [
        "", "GET", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/1.1\r\nno colon\r\n\r\n", "GET / HTTP/1.1\r\nHost: a",
    ])
    func whatIsNoRequestIsNotSent(head: String) throws {
        let pair = Pair()
        pair.exchange()
        #expect(pair.open(head, ended: true) == nil)
        pair.exchange()
        #expect(pair.server.takeOpened().isEmpty && pair.client.openStreams == 0)
        // Nothing of it is left for the next one.
        _ = try #require(pair.open("GET /next HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.readAll() == "GET /next HTTP/1.1\r\nhost: a\r\n\r\n")
    }

    @Test(arguments: ["", "HTTP/1.1", "HTTP/1.1 200\r", "200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n"])
    func whatIsNoAnswerIsNotSent(head: String) throws {
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond(head, ended: true) == head.hasPrefix("HTTP/1.1 200\r"))
        var interim = Array(head.utf8)
        if !head.hasPrefix("HTTP/1.1 200\r") {
            #expect(!interim.withUnsafeMutableBytes { stream.send(interim: $0) })
            pair.exchange()
            #expect(!asked.hasInput, "the peer sees nothing of it")
            #expect(stream.respond("HTTP/1.1 502 Bad Gateway\r\n\r\n", ended: true))
            pair.exchange()
            #expect(asked.readAll() == "HTTP/1.1 502 Bad Gateway\r\n\r\n")
        }
    }

    /// Lines that are no trailers are left out, and the body ends all the same.
    @Test func trailersThatAreNoneEndTheBody() throws {
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("hello"))
        #expect(Array("no colon\r\n".utf8).withUnsafeBytes { stream.end(trailers: $0) })
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello" && asked.inputEnded && asked.trailers.isEmpty)
    }

    // MARK: - Room

    /// More fields than a list begins with room for.
    @Test func everyFieldOfAGreatHeadArrives() throws {
        let lines = (0..<90).map { "x-\($0): \($0)\r\n" }.joined()
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\(lines)\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.readAll() == "GET / HTTP/1.1\r\n\(lines)host: a\r\n\r\n")
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\(lines)\r\n", ended: true))
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\(lines)\r\n")
    }

    /// More heads than fit in one buffer, with a credential that stands apart and without.
    @Test(arguments: ["", "x-key"])
    func everyHeadArrivesHoweverFullTheBufferIs(secret: String) throws {
        let pair = Pair()
        pair.exchange()
        for number in 0..<90 {
            let value = String((0..<1200).map { "abcdefghijklmnopqrstuvwxyz".randomOf($0 * 7 + number) })
            #expect(
                pair.open(
                    "GET /\(number) HTTP/1.1\r\nHost: a\r\nX-Key: \(value)\(number)\r\n\r\n", ended: true,
                    secret: secret) != nil)
        }
        pair.exchange()
        let opened = pair.server.takeOpened()
        #expect(opened.count == 90 && !pair.server.isOver)
        for (number, stream) in opened.enumerated() {
            let head = stream.readAll()
            #expect(head.hasPrefix("GET /\(number) ") && head.contains("\(number)\r\n"))
        }
    }

    /// Once the peer has broken the protocol nothing of it is read any more, and it is told so.
    @Test func aBrokenPeerIsToldAndNotHeardAgain() throws {
        let pair = Pair()
        pair.exchange()
        // DATA on the connection itself (RFC 9113 §6.1).
        let broken: [UInt8] = [0, 0, 1, 0, 0, 0, 0, 0, 0, 7]
        _ = broken.withUnsafeBytes { pair.server.receive($0, now: 2) }
        pair.exchange()
        #expect(pair.server.isOver && !pair.client.hasRoom)
        #expect(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true) == nil)
    }
}

extension String {
    fileprivate func randomOf(_ number: Int) -> Character { self[index(startIndex, offsetBy: number % count)] }
}
