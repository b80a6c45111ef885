import CNghttp2
import Glibc
import Testing

@testable import HTTP2

/// Pieces come in a few sizes, wiped, and wait for their next use; so do closed streams.
@Suite struct PieceMemoryTests {
    private static let blank = [UInt8](repeating: 0, count: 2048)

    private static func isBlank(_ piece: UnsafeMutableRawPointer, _ range: Range<Int>) -> Bool {
        range.isEmpty || blank.withUnsafeBytes { memcmp(piece + range.lowerBound, $0.baseAddress!, range.count) == 0 }
    }

    @Test(arguments: [
        (0, 64), (1, 64), (63, 64), (64, 64), (65, 128), (128, 128), (129, 256), (256, 256), (257, 512), (512, 512),
        (513, 1024), (1023, 1024), (1024, 1024), (1025, 1025), (5000, 5000),
    ])
    func `a piece has the least size that is enough, and a large one what was asked for`(size: Int, capacity: Int)
        throws
    {
        let memory = HTTP2Memory()
        // A piece waits, which must not be taken for one of a size that has no list.
        let waiting = try #require(memory.functions.malloc(10, memory.functions.mem_user_data))
        memory.functions.free(waiting, memory.functions.mem_user_data)
        let taken = memory.freeLists.take(buffer: size)
        let piece = try #require(taken)
        #expect(piece.count == capacity)
        let isSmall = memory.freeLists.take(piece: size)
        #expect((isSmall != nil) == (size <= HTTP2Memory.largestPiece))
        if let isSmall { memory.give(piece: isSmall) }
        let before = memory.waitingBytes
        memory.give(piece: piece)
        // A piece that is too large for a list goes back to the process.
        #expect(memory.waitingBytes == before + (capacity <= 1024 ? capacity : 0))
    }

    @Test func `what waits is counted as it comes and goes`() throws {
        let memory = HTTP2Memory()
        var pieces: [UnsafeMutableRawBufferPointer] = []
        for size in [64, 128, 256, 512, 1024, 1024] {
            let piece = memory.freeLists.take(buffer: size)
            pieces.append(try #require(piece))
        }
        #expect(memory.waitingBytes == 0)
        for piece in pieces { memory.give(piece: piece) }
        #expect(memory.waitingBytes == 64 + 128 + 256 + 512 + 2048)
        var left = memory.waitingBytes
        // Each size has a list of its own, and the piece that came last goes first.
        for piece in pieces.reversed() {
            let again = memory.freeLists.take(buffer: piece.count)
            left -= piece.count
            #expect(again?.baseAddress == piece.baseAddress && memory.waitingBytes == left)
        }
        for piece in pieces { memory.give(piece: piece) }
        memory.freeLists.pointee.empty()
        #expect(memory.waitingBytes == 0)
    }

    /// The wipe goes by whole words first, so that every length is tried.
    @Test(arguments: [64, 128, 256, 512, 1024])
    func `a piece is wiped as far as it was used`(size: Int) throws {
        let memory = HTTP2Memory()
        for used in 0...size {
            let taken = memory.freeLists.take(buffer: size)
            let piece = try #require(taken)
            // Fresh memory holds what somebody left in it, and that is nobody's use.
            for index in 0..<size { piece[index] = index < used ? 0x41 : 0 }
            memory.freeLists.give(piece, used: used)
            let isWiped = piece.baseAddress.map { Self.isBlank($0, 8..<size) }
            #expect(isWiped == true, "\(used) of \(size)")
        }
    }

    /// A later use may reach further than the one before.
    @Test(arguments: [(600, 1024), (1024, 600), (520, 1000)])
    func `a piece is wiped as far as its last use reached`(first: Int, second: Int) throws {
        let memory = HTTP2Memory()
        defer { withExtendedLifetime(memory) {} }
        let functions = memory.functions
        for size in [first, second] {
            let piece = try #require(functions.malloc(size, functions.mem_user_data))
            memset(piece, 0x41, size)
            functions.free(piece, functions.mem_user_data)
            #expect(Self.isBlank(piece, 8..<size))
        }
    }

    @Test func `memory that grows keeps what it holds, and what it leaves waits wiped`() throws {
        let memory = HTTP2Memory()
        let functions = memory.functions
        let user = functions.mem_user_data
        let small = try #require(functions.malloc(60, user))
        memset(small, 0x41, 60)
        // Nothing moves as far as the piece reaches.
        #expect(functions.realloc(small, 64, user) == small && memory.waitingBytes == 0)
        memset(small, 0x42, 64)
        let large = try #require(functions.realloc(small, 65, user))
        #expect(large != small && memory.waitingBytes == 64 && Self.isBlank(small, 8..<64))
        #expect((0..<64).allSatisfy { large.load(fromByteOffset: $0, as: UInt8.self) == 0x42 })
        // Memory that grows within its piece is wiped as far as it has grown.
        #expect(functions.realloc(large, 128, user) == large)
        memset(large, 0x43, 128)
        functions.free(large, user)
        #expect(Self.isBlank(large, 8..<128) && memory.waitingBytes == 64 + 128)
    }

    @Test func `pieces wait up to 512 KiB of them, of whatever sizes`() throws {
        let memory = HTTP2Memory()
        var pieces: [UnsafeMutableRawBufferPointer] = []
        for size in Array(repeating: 1024, count: 511) + [512, 256, 256, 64, 1024] {
            let piece = memory.freeLists.take(buffer: size)
            pieces.append(try #require(piece))
        }
        for piece in pieces { memory.give(piece: piece) }
        #expect(memory.waitingBytes == 512 * 1024)
        let one = memory.freeLists.take(buffer: 64)
        memory.give(piece: try #require(one))
        #expect(memory.waitingBytes == 512 * 1024, "a small one finds no room either")
    }

    // MARK: - Streams

    private static func connection() throws -> HTTP2Connection {
        try #require(HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: CountedBlocks(limit: 0)))
    }

    /// - Returns: the number of the stream that is free, if one is found.
    private static func taken(_ spare: inout SpareStreams) -> Int32? { spare.take()?.id }

    @Test func `streams are used again in the order in which they closed`() throws {
        let connection = try Self.connection()
        var spare = SpareStreams()
        // The ring of 512 is gone round several times.
        var next: Int32 = 1
        var expected: Int32 = 1
        for _ in 0..<600 {
            for _ in 0..<3 {
                spare.give(HTTP2Stream(id: next, connection: connection))
                next += 2
            }
            for _ in 0..<3 {
                #expect(Self.taken(&spare) == expected)
                expected += 2
            }
        }
        #expect(Self.taken(&spare) == nil)
    }

    @Test func `three streams are asked at a time whether anybody holds them`() throws {
        let connection = try Self.connection()
        var held = (0..<3).map { HTTP2Stream(id: Int32(2 * $0 + 1), connection: connection) }
        var spare = SpareStreams()
        for stream in held[..<2] { spare.give(stream) }
        spare.give(HTTP2Stream(id: 101, connection: connection))
        #expect(Self.taken(&spare) == 101, "the third is found")
        spare.give(held[2])
        spare.give(HTTP2Stream(id: 103, connection: connection))
        #expect(Self.taken(&spare) == nil, "the fourth is not asked")
        #expect(Self.taken(&spare) == 103, "those that are held went behind it")
        for _ in 0..<5 { #expect(Self.taken(&spare) == nil) }
        // A stream that nobody holds any more is the next request's.
        held.remove(at: 1)
        #expect(Self.taken(&spare) == 3)
        held.removeAll()
        let rest = Set([Self.taken(&spare), Self.taken(&spare), Self.taken(&spare)])
        #expect(rest == [1, 5, nil])
    }

    @Test(arguments: [0, 1, 3, 500])
    func `closed streams end with whatever keeps them`(taken: Int) throws {
        let connection = try Self.connection()
        var watched: [() -> HTTP2Stream?] = []
        var spare = SpareStreams()
        for number in 0..<512 {
            let stream = HTTP2Stream(id: Int32(2 * number + 1), connection: connection)
            watched.append { [weak stream] in stream }
            spare.give(stream)
        }
        for _ in 0..<taken { #expect(Self.taken(&spare) != nil) }
        for number in 0..<min(taken, 5) {
            let stream = HTTP2Stream(id: Int32(2 * number + 2001), connection: connection)
            watched.append { [weak stream] in stream }
            spare.give(stream)
        }
        #expect(watched.filter { $0() != nil }.count == 512 - taken + min(taken, 5))
        spare = SpareStreams()
        #expect(watched.allSatisfy { $0() == nil })
    }

    @Test func `no more than 512 are kept, and the late ones go`() throws {
        let connection = try Self.connection()
        var spare = SpareStreams()
        for number in 0..<515 { spare.give(HTTP2Stream(id: Int32(2 * number + 1), connection: connection)) }
        for number in 0..<512 { #expect(Self.taken(&spare) == Int32(2 * number + 1)) }
        #expect(Self.taken(&spare) == nil)
    }

    @Test func `a loop that ends forgets its closed streams`() throws {
        let memory = HTTP2Memory()
        weak var closed: HTTP2Stream?
        do {
            let stream = HTTP2Stream(id: 1, connection: try Self.connection())
            closed = stream
            memory.spare.give(stream)
        }
        #expect(closed != nil)
        memory.forgetStreams()
        #expect(closed == nil)
    }
}
