import Testing

@testable import HTTP2

/// A connection that ends gives its streams back, however far it was with them.
@Suite struct LeftoverTests {
    /// How far the connection is with its streams when it ends.
    enum Moment: CaseIterable { case asked, came, taken, answered, closed, told, abandoned, abandonedAndTold }

    /// The streams of connections that have ended, without holding them, and the memory of their loops.
    private typealias Ended = (streams: [() -> HTTP2Stream?], memories: [HTTP2Memory])

    private static func ended(at moment: Moment) throws -> Ended {
        let pair = Pair()
        return (try streams(of: pair, at: moment), [pair.client.memory, pair.server.memory])
    }

    private static func streams(of pair: Pair, at moment: Moment) throws -> [() -> HTTP2Stream?] {
        var watched: [() -> HTTP2Stream?] = []
        func watch(_ stream: HTTP2Stream) { watched.append { [weak stream] in stream } }
        for number in 0..<5 {
            watch(
                try #require(
                    pair.open("POST /\(number) HTTP/1.1\r\nHost: a\r\nAuthorization: b\r\n\r\n", ended: number < 3)))
        }
        if moment == .asked { return watched }
        pair.exchange()
        if moment == .came { return watched }
        // The first two are taken, and nobody takes the others.
        for _ in 0..<2 {
            let stream = try #require(pair.server.nextOpened())
            watch(stream)
            if moment != .taken { #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: false)) }
            if moment != .taken, moment != .answered { #expect(stream.write("body") && stream.end()) }
        }
        pair.exchange()
        if moment == .taken || moment == .answered || moment == .closed { return watched }
        if moment == .abandoned || moment == .abandonedAndTold {
            pair.server.abandon(.internalError)
            pair.client.abandon(.cancel)
        }
        if moment != .abandoned {
            pair.server.tellUsers()
            pair.client.tellUsers()
        }
        return watched
    }

    @Test(arguments: Moment.allCases) func `no stream outlives its connection unless somebody holds it`(moment: Moment)
        throws
    {
        let (streams, memories) = try Self.ended(at: moment)
        // Streams that have closed are kept for the loop's next requests.
        let left = streams.filter { $0() != nil }
        #expect(left.count == (moment == .told ? 4 : 0))
        #expect(left.allSatisfy { $0()?.connection == nil && $0()?.user == nil })
        for memory in memories { memory.forgetStreams() }
        #expect(streams.allSatisfy { $0() == nil })
    }
}
