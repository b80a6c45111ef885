import HTTP2
import Testing

@Suite struct HTTP2ConnectionTests {
    @Test func aRequestArrivesInTheFormOfHTTP1() throws {
        let pair = Pair()
        _ = try #require(
            pair.open("GET /a?b=c HTTP/1.1\r\nHost: api.example\r\nX-One: 1\r\nCookie: a=1; b=2\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(
            stream.readAll()
                == "GET /a?b=c HTTP/1.1\r\nx-one: 1\r\nhost: api.example\r\ncookie: a=1; b=2\r\n\r\n")
        #expect(stream.inputEnded)
    }

    @Test func anAnswerWithBodyAndTrailersComesBack() throws {
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(
            stream.respond(
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n", ended: false))
        #expect(stream.write("hello"))
        #expect(Array("Grpc-Status: 0\r\n".utf8).withUnsafeBytes { stream.end(trailers: $0) })
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\nhello")
        #expect(asked.inputEnded)
        #expect(String(decoding: asked.trailers, as: UTF8.self) == "grpc-status: 0\r\n")
        #expect(pair.client.openStreams == 0)
        #expect(pair.server.openStreams == 0)
    }

    /// Refused trailers are no end: what came before them must not pass as a whole message, whether the other direction is over or not.
    @Test(arguments: [true, false])
    func trailersThatAreTooLargeEndNothing(isOver: Bool) throws {
        var limits = HTTP2Limits()
        limits.headerSize = 4096
        let pair = Pair(limits: limits)
        let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: isOver))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        #expect(stream.write("hello"))
        let trailers = "a: \(String(repeating: "x", count: 5000))\r\nGrpc-Status: 0\r\n"
        #expect(Array(trailers.utf8).withUnsafeBytes { stream.end(trailers: $0) })
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello")
        var octet: UInt8 = 0
        #expect(withUnsafeMutableBytes(of: &octet) { asked.read(into: $0) } == .reset)
        #expect(asked.isReset && !asked.inputEnded && asked.trailers.isEmpty)
    }

    @Test func interimAnswersComeBeforeTheFinalOne() throws {
        let pair = Pair()
        let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        var interim = Array("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".utf8)
        #expect(interim.withUnsafeMutableBytes { stream.send(interim: $0) })
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
        #expect(!asked.hasHead)
        #expect(stream.respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 204 No Content\r\n\r\n")
        #expect(asked.inputEnded)
    }

    @Test func aReaderThatStopsHoldsNoMoreThanAWindow() throws {
        var limits = HTTP2Limits()
        limits.streamWindow = 128 * 1024
        let pair = Pair(limits: limits)
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        let piece = String(repeating: "x", count: 32 * 1024)
        var written = 0
        for _ in 0..<100 where stream.pendingCount < 64 * 1024 {
            #expect(stream.write(piece))
            written += piece.utf8.count
            pair.exchange()
        }
        #expect(written <= 128 * 1024 + 64 * 1024 + 32 * 1024)
        #expect(pair.blocks.taken * 16 * 1024 <= 256 * 1024)
        // Reading opens the window again.
        var read = asked.readAll().utf8.count
        pair.exchange()
        read += asked.readAll().utf8.count
        #expect(read > 128 * 1024)
    }

    @Test func aBodyThatIsAnsweredUnreadCostsTheConnectionNothing() throws {
        let pair = Pair()
        let size = 48 * 1024
        for _ in 0..<(2 * HTTP2Limits().firstConnectionWindow / size) {
            let asked = try #require(
                pair.open("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \(size)\r\n\r\n", ended: false))
            pair.exchange()
            let stream = try #require(pair.server.takeOpened().first)
            #expect(asked.write(String(repeating: "b", count: size)))
            #expect(asked.end())
            pair.exchange()
            #expect(stream.inputEnded)
            #expect(stream.respond("HTTP/1.1 404 Not Found\r\n\r\n", ended: true))
            pair.exchange()
            #expect(asked.readAll() == "HTTP/1.1 404 Not Found\r\n\r\n")
        }
        #expect(pair.server.openStreams == 0)
    }

    @Test func aSlowStreamOfAnUpstreamDoesNotStallItsNeighbour() throws {
        var limits = HTTP2Limits()
        limits.streamWindow = 128 * 1024
        limits.connectionWindow = 128 * 1024
        let pair = Pair(limits: limits)
        let slow = try #require(pair.open("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        let quick = try #require(pair.open("GET /quick HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let opened = pair.server.takeOpened()
        for stream in opened { #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false)) }
        #expect(opened[0].write(String(repeating: "s", count: 128 * 1024)))
        pair.exchange()
        #expect(opened[1].write("quick"))
        pair.exchange()
        #expect(quick.readAll().hasSuffix("quick"))
        #expect(slow.hasInput)
    }

    @Test func aStreamAboveTheGoAwayIsRefused() throws {
        let pair = Pair()
        pair.exchange()
        pair.server.goAway()
        pair.server.goAway()
        let late = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        #expect(late.resetCode == HTTP2ErrorCode.refusedStream.rawValue)
        #expect(!pair.client.hasRoom)
    }

    @Test func streamsThatWeGiveUpAreNotThePeersDoing() throws {
        let pair = Pair()
        pair.exchange()
        for _ in 0..<400 {
            let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
            pair.exchange()
            try #require(pair.server.takeOpened().first).cancel(.internalError)
            pair.exchange()
            #expect(asked.resetCode == HTTP2ErrorCode.internalError.rawValue)
        }
        #expect(pair.client.hasRoom)
    }

    /// Uploads that are given up: what was on its way of them is passed over, and is no flood however many they are.
    @Test func whoCannotKnowOfTheEndIsNotCut() throws {
        let pair = Pair()
        let body = [UInt8](repeating: 0x78, count: 48 * 1024)
        for _ in 0..<200 {
            let asked = try #require(pair.open("POST / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
            pair.exchange()
            try #require(pair.server.takeOpened().first).cancel(.internalError)
            pair.carryToServer()
            #expect(body.withUnsafeBytes { asked.write($0) })
            pair.carryToServer()
            pair.arrive()
            pair.exchange()
        }
        #expect(!pair.server.isOver && pair.server.openStreams == 0)
    }

    /// What was written of an answer that is cut goes out before the reset, and the peer learns why.
    @Test(arguments: [HTTP2ErrorCode.internalError, .enhanceYourCalm])
    func whatWasWrittenGoesBeforeTheReset(code: HTTP2ErrorCode) throws {
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("hello"))
        stream.cut(code)
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhello")
        #expect(asked.resetCode == code.rawValue && asked.resetBy == .peer && pair.server.openStreams == 0)
    }

    /// A peer that takes no more gets the reset at once: nobody waits for it.
    @Test func aClosedWindowDoesNotHoldTheReset() throws {
        var limits = HTTP2Limits()
        limits.firstStreamWindow = 3
        limits.streamWindow = 3
        let pair = Pair(limits: limits)
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false) && stream.write("hello"))
        stream.cut(.internalError)
        pair.exchange()
        #expect(asked.readAll() == "HTTP/1.1 200 OK\r\n\r\nhel")
        #expect(asked.resetCode == HTTP2ErrorCode.internalError.rawValue && pair.server.openStreams == 0)
    }

    @Test func whoEndedAStreamIsKnown() throws {
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        pair.client.abandon(.cancel)
        #expect(asked.isReset && asked.resetBy == .connection)
    }

    @Test func rapidResetsEndTheConnection() throws {
        let pair = Pair()
        pair.exchange()
        var opened = 0
        for _ in 0..<400 {
            guard let stream = pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true) else { break }
            opened += 1
            pair.exchange()
            stream.cancel()
            pair.exchange()
            _ = pair.server.takeOpened()
        }
        #expect(opened < 300)
    }
}

/// A connection knows its peer by the settings and windows that the peer has sent.
@Suite struct HTTP2PeerTests {
    @Test func aPeerThatTakesNoMoreShutsTheWindowOfTheConnection() throws {
        let pair = Pair()
        let asked = try #require(pair.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
        pair.exchange()
        #expect(!pair.server.isWindowShut)
        let stream = try #require(pair.server.takeOpened().first)
        #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false))
        let piece = String(repeating: "x", count: 16 * 1024)
        for _ in 0..<100 where stream.pendingCount < 64 * 1024 {
            #expect(stream.write(piece))
            pair.exchange()
        }
        // The stream's own window is the smaller one, so that its neighbours go on.
        #expect(!pair.server.isWindowShut)
        _ = asked.readAll()
        pair.exchange()
        #expect(!pair.server.isWindowShut)
    }

    @Test func extendedConnectIsServedByServersThatSaySo() {
        let pair = Pair()
        pair.exchange()
        #expect(!pair.client.servesExtendedConnect && !pair.server.servesExtendedConnect, "ours do not")
        // SETTINGS with SETTINGS_ENABLE_CONNECT_PROTOCOL = 1 (RFC 8441 §3).
        let settings: [UInt8] = [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0, 1]
        #expect(settings.withUnsafeBytes { pair.client.receive($0, now: pair.now) })
        #expect(pair.client.servesExtendedConnect)
    }
}
