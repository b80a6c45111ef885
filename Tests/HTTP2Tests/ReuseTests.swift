import CNghttp2
import Glibc
import Testing

@testable import HTTP2

/// What is used again: streams that nobody holds, and the memory of nghttp2.
@Suite struct ReuseTests {
    @Test func `a stream is used again, and nothing of its last request is left`() throws {
        let pair = Pair()
        var last: ObjectIdentifier?
        for round in 0..<4 {
            let asked = try #require(
                pair.open(
                    "POST /\(round) HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n", ended: false,
                    acceptsTrailers: round == 0))
            #expect(asked.write("abc"))
            // The first leaves all that it can: a body that nobody reads, trailers, a length.
            if round == 0 {
                #expect(Array("t: 1\r\n".utf8).withUnsafeBytes { asked.end(trailers: $0) })
            } else {
                #expect(asked.end())
            }
            pair.exchange()
            let stream = try #require(pair.server.nextOpened())
            if let last { #expect(ObjectIdentifier(stream) == last) }
            last = ObjectIdentifier(stream)
            #expect(stream.id == Int32(2 * round + 1) && stream.contentLength == 3 && stream.inputEnded)
            #expect(stream.acceptsTrailers == (round == 0) && stream.trailers.isEmpty == (round != 0))
            #expect(!stream.isReset && stream.resetCode == nil && stream.refusal == nil && !stream.endSent)
            if round > 0 { #expect(stream.readAll().hasSuffix("abc")) }
            #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: true))
            pair.exchange()
            pair.server.tellUsers()
            pair.client.tellUsers()
            stream.cancel()
            asked.cancel()
            #expect(pair.server.openStreams == 0)
        }
        #expect(pair.blocks.taken == 0)
    }

    @Test func `a stream that somebody holds is left to him`() throws {
        let pair = Pair()
        var held: [HTTP2Stream] = []
        for round in 0..<3 {
            let asked = try #require(pair.open("GET /\(round) HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
            pair.exchange()
            let stream = try #require(pair.server.nextOpened())
            #expect(!held.contains { $0 === stream || $0 === asked })
            held.append(stream)
            held.append(asked)
            #expect(stream.respond("HTTP/1.1 204 No Content\r\n\r\n", ended: true))
            pair.exchange()
            pair.server.tellUsers()
            pair.client.tellUsers()
        }
        #expect(held[4].readAll().hasPrefix("GET /2 ") && held[0].readAll().hasPrefix("GET /0 "))
    }

    @Test func `a stream outlives its connection`() throws {
        var pair: Pair? = Pair()
        let asked = try #require(pair?.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair = nil
        #expect(asked.isFlushed && !asked.write("x") && asked.hasInput)
        asked.cancel()
    }

    @Test func `a user ends the connection while others are told`() throws {
        let pair = Pair()
        weak var kept: HTTP2Stream?
        do {
            let ender = Ender(pair.client)
            for round in 0..<5 {
                let asked = try #require(pair.open("GET /\(round) HTTP/1.1\r\nHost: a\r\n\r\n", ended: true))
                asked.user = ender
                kept = asked
            }
            pair.exchange()
            for stream in pair.server.takeOpened() {
                #expect(stream.respond("HTTP/1.1 200 OK\r\n\r\n", ended: stream.id < 7))
            }
            pair.exchange()
            // Some have closed with their answer, some have not; all are told, the last of them within the telling of the first.
            pair.client.tellUsers()
            #expect(ender.told.filter { $0 == 9 }.count == 1 && Set(ender.told) == [1, 3, 5, 7, 9])
            #expect(!pair.client.hasNews && pair.client.openStreams == 0)
        }
        // What an ended connection held is kept by nobody.
        #expect(kept == nil)
    }

    // MARK: - Memory

    @Test func `memory comes back wiped, and is used again`() throws {
        let memory = HTTP2Memory()
        let functions = memory.functions
        let user = functions.mem_user_data
        for size in [1, 64, 65, 128, 129, 256, 257, 500, 1024] {
            let piece = try #require(functions.malloc(size, user))
            memset(piece, 0x41, size)
            functions.free(piece, user)
            let again = try #require(functions.malloc(size, user))
            #expect(again == piece)
            // The first word led to the next piece that waits.
            #expect((8..<max(8, size)).allSatisfy { again.load(fromByteOffset: $0, as: UInt8.self) == 0 })
            functions.free(again, user)
        }
        #expect(memory.waitingBytes == 64 + 128 + 256 + 512 + 1024)
        functions.free(nil, user)
    }

    @Test func `what became smaller is wiped as far as it reached`() throws {
        let functions = HTTP2MemoryBox()
        let piece = try #require(functions.table.malloc(1000, functions.user))
        memset(piece, 0x43, 1000)
        #expect(functions.table.realloc(piece, 10, functions.user) == piece)
        functions.table.free(piece, functions.user)
        let again = try #require(functions.table.malloc(1000, functions.user))
        #expect(again == piece && (8..<1000).allSatisfy { again.load(fromByteOffset: $0, as: UInt8.self) == 0 })
        functions.table.free(again, functions.user)
        let none = try #require(functions.table.malloc(0, functions.user))
        functions.table.free(none, functions.user)
    }

    @Test func `what a queue held is wiped`() throws {
        let functions = HTTP2MemoryBox()
        var target = [UInt8](repeating: 0, count: 2_000)
        // Into a piece, more into what is left of it, more than it has room for, and more than any piece has.
        for sizes in [[1], [70], [300, 100], [60, 60, 200, 500], [1000, 24], [1000, 1000]] {
            var queue = BlockQueue(source: functions.blocks, memory: functions.memory)
            var written: [UInt8] = []
            for size in sizes {
                let bytes = (0..<size).map { UInt8(truncatingIfNeeded: written.count + $0) | 1 }
                #expect(bytes.withUnsafeBytes { queue.append($0) })
                written += bytes
            }
            #expect(queue.count == written.count)
            // In two parts: what is taken in the middle of a piece moves its beginning.
            let first = min(50, written.count)
            #expect(target.withUnsafeMutableBytes { queue.read(into: .init(rebasing: $0[..<first])) } == first)
            #expect(target[..<first] == written[..<first])
            #expect(Array("more".utf8).withUnsafeBytes { queue.append($0) })
            written += Array("more".utf8)
            let count = target.withUnsafeMutableBytes { queue.read(into: $0) }
            #expect(target[..<count] == written[first...] && queue.count == 0)
            #expect(functions.waitIsWiped())
        }
        #expect(functions.blocks.taken == 0)
    }

    @Test func `what finds memory for a part of it is not there at all`() throws {
        let functions = HTTP2MemoryBox()
        let blocks = CountedBlocks(limit: 2)
        let tooMuch = [UInt8](repeating: 0x44, count: 50_000)
        // Behind nothing, a piece, a piece that is full, and a block.
        for size in [0, 100, 1024, 10_000] {
            let before = (0..<size).map { UInt8(truncatingIfNeeded: $0) | 1 }
            var queue = BlockQueue(source: blocks, memory: functions.memory)
            #expect(before.withUnsafeBytes { queue.append($0) })
            let taken = blocks.taken
            #expect(!tooMuch.withUnsafeBytes { queue.append($0) })
            #expect(queue.count == size && blocks.taken == taken)
            #expect(Array("more".utf8).withUnsafeBytes { queue.append($0) })
            var target = [UInt8](repeating: 0, count: size + 10)
            #expect(target.withUnsafeMutableBytes { queue.read(into: $0) } == size + 4)
            #expect(target[..<(size + 4)] == (before + "more".utf8)[...])
            #expect(blocks.taken == 0 && functions.waitIsWiped())
        }
    }

    @Test func `memory grows with what it holds`() throws {
        let functions = HTTP2MemoryBox()
        var piece = try #require(functions.table.realloc(nil, 10, functions.user))
        memset(piece, 0x42, 10)
        for size in [64, 100, 1000, 5000, 70_000] {
            piece = try #require(functions.table.realloc(piece, size, functions.user))
            #expect((0..<10).allSatisfy { piece.load(fromByteOffset: $0, as: UInt8.self) == 0x42 })
        }
        functions.table.free(piece, functions.user)
        let cleared = try #require(functions.table.calloc(3, 100, functions.user))
        #expect((0..<300).allSatisfy { cleared.load(fromByteOffset: $0, as: UInt8.self) == 0 })
        functions.table.free(cleared, functions.user)
        #expect(functions.table.calloc(.max, 2, functions.user) == nil)
        #expect(functions.table.malloc(.max, functions.user) == nil)
    }

    @Test func `what waits is bounded`() throws {
        let functions = HTTP2MemoryBox()
        let pieces = (0..<1_000).map { _ in functions.table.malloc(1024, functions.user) }
        for piece in pieces { functions.table.free(piece, functions.user) }
        #expect(functions.memory.waitingBytes == 512 * 1024)
    }
}

private struct HTTP2MemoryBox {
    let memory = HTTP2Memory()
    var table: nghttp2_mem { memory.functions }
    var user: UnsafeMutableRawPointer? { table.mem_user_data }
    let blocks = CountedBlocks(limit: 10)

    /// Takes everything that waits and looks at it.
    func waitIsWiped() -> Bool {
        var isWiped = true
        for size in [64, 128, 256, 512, 1024] {
            var taken: [UnsafeMutableRawPointer] = []
            var before = memory.waitingBytes
            while let piece = table.malloc(size, user) {
                taken.append(piece)
                guard memory.waitingBytes < before else { break }
                before = memory.waitingBytes
                isWiped = isWiped && (8..<size).allSatisfy { piece.load(fromByteOffset: $0, as: UInt8.self) == 0 }
            }
            for piece in taken { table.free(piece, user) }
        }
        return isWiped
    }
}

/// Ends the connection with the first word that it hears of a stream, as a socket does whose peer has gone.
private final class Ender: HTTP2StreamUser {
    private let connection: HTTP2Connection
    private(set) var told: [Int32] = []
    private var hasEnded = false

    init(_ connection: HTTP2Connection) { self.connection = connection }

    func streamReady(_ stream: HTTP2Stream) {
        told.append(stream.id)
        stream.cancel()
        if !hasEnded {
            hasEnded = true
            connection.abandon(.cancel)
            connection.tellUsers()
        }
        #expect(stream.isFlushed && stream.connection == nil)
    }
}
