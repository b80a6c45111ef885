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

    @Test func `a stream outlives its session`() throws {
        var pair: Pair? = Pair()
        let asked = try #require(pair?.open("GET / HTTP/1.1\r\nHost: a\r\n\r\n", ended: false))
        pair = nil
        #expect(asked.isFlushed && !asked.write("x") && asked.hasInput)
        asked.cancel()
    }

    // MARK: - Memory

    @Test func `memory comes back wiped, and is used again`() throws {
        let memory = HTTP2Memory()
        let functions = memory.functions
        let user = functions.mem_user_data
        for size in [1, 64, 65, 500, 1024] {
            let piece = try #require(functions.malloc(size, user))
            memset(piece, 0x41, size)
            functions.free(piece, user)
            let again = try #require(functions.malloc(size, user))
            #expect(again == piece)
            // The first word led to the next piece that waits.
            #expect((8..<max(8, size)).allSatisfy { again.load(fromByteOffset: $0, as: UInt8.self) == 0 })
            functions.free(again, user)
        }
        #expect(memory.waitingBytes == 64 + 128 + 512 + 1024)
        functions.free(nil, user)
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
}
