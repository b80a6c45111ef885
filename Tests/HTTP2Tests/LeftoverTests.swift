import Glibc
import Testing

@testable import HTTP2

/// Everything that ends gives back what it held: its streams, and memory that nobody else would ever give back.
@Suite(.serialized) struct LeftoverTests {
    // MARK: - Streams

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

    // MARK: - Bytes

    private static let blank = [UInt8](repeating: 0, count: 4 << 20)

    /// Things that are made, used and dropped, far more than `bound` in all if they leave what they held.
    private static let uses: [(name: String, use: @Sendable () -> Void)] = [
        (
            "a buffer that ends",
            {
                var buffer = OctetBuffer()
                blank.withUnsafeBytes { buffer.append($0) }
            }
        ),
        (
            "a buffer that is cleared",
            {
                var buffer = OctetBuffer()
                blank.withUnsafeBytes { buffer.append($0) }
                buffer.clear()
                buffer.append("a")
            }
        ),
        (
            "a buffer that grows",
            {
                var buffer = OctetBuffer()
                blank.withUnsafeBytes { whole in
                    for _ in 0..<8 { buffer.append(UnsafeRawBufferPointer(rebasing: whole[..<(1 << 19)])) }
                }
            }
        ),
        (
            "lists of fields",
            {
                for _ in 0..<1500 {
                    var list = FieldList()
                    list.extend(by: 100) { _ in }
                }
            }
        ),
        ("digits of a status", { for _ in 0..<30_000 { _ = FieldList().isEmpty } }),
        (
            "pieces that wait",
            {
                for _ in 0..<8 {
                    let memory = HTTP2Memory()
                    var pieces: [UnsafeMutableRawBufferPointer] = []
                    for size in [64, 128, 256, 512, 1024] {
                        for _ in 0..<256 { if let piece = memory.freeLists.take(buffer: size) { pieces.append(piece) } }
                    }
                    for piece in pieces { memory.give(piece: piece) }
                }
            }
        ),
        (
            "pieces that are too large to wait",
            {
                let memory = HTTP2Memory()
                if let piece = memory.freeLists.take(buffer: 4 << 20) { memory.give(piece: piece) }
                withExtendedLifetime(memory) {
                    var grown = memory.freeLists.pointee.resize(nil, 3 << 20)
                    grown = memory.freeLists.pointee.resize(grown, 4 << 20)
                    memory.freeLists.pointee.give(grown)
                }
            }
        ),
        ("a loop's memory", { for _ in 0..<10_000 { _ = HTTP2Memory().waitingBytes } }),
        (
            "tables of streams",
            {
                guard
                    let connection = HTTP2Connection(
                        role: .server, limits: HTTP2Limits(), blocks: CountedBlocks(limit: 0))
                else { return }
                let streams = (0..<300).map { HTTP2Stream(id: Int32(2 * $0 + 1), connection: connection) }
                for _ in 0..<200 {
                    var table = StreamTable()
                    for stream in streams { table.insert(stream) }
                }
            }
        ),
        (
            "connections",
            {
                for role in [HTTP2Connection.Role.server, .client] {
                    for _ in 0..<1500 {
                        _ = HTTP2Connection(role: role, limits: HTTP2Limits(), blocks: CountedBlocks(limit: 0))
                    }
                }
            }
        ),
    ]

    /// The memory that an assembly keeps is that of one section. Were it that of all, it would be 64 MiB.
    @Test func `sections take no more memory however many there were`() {
        var assembly = HeadAssembly(limit: 64 << 10)
        guard let before = bytesInUse() else { return }
        for _ in 0..<(64 << 10) {
            assembly.begin(.request, of: 1)
            Self.blank.withUnsafeBytes { whole in
                let value = UnsafeRawBufferPointer(rebasing: whole[..<1024])
                assembly.add(name: OctetBuffer.bytes(of: ":path"), value: value)
                assembly.add(name: OctetBuffer.bytes(of: "cookie"), value: value)
            }
        }
        guard let after = bytesInUse() else { return }
        #expect(after - before < 32 << 20)
        assembly.leave()
    }

    /// A leak is larger than this in every round.
    private static let bound = 256 * 1024

    /// The heap is that of other tests as well, so that one round in which it has not grown is enough: a leak lets it grow in each.
    @Test(arguments: uses.indices) func `what is dropped leaves no memory behind`(_ index: Int) {
        let (name, use) = Self.uses[index]
        use()
        var least = Int.max
        for _ in 0..<12 where least > Self.bound {
            guard let before = bytesInUse() else { return }
            use()
            guard let after = bytesInUse() else { return }
            least = min(least, after - before)
        }
        #expect(least <= Self.bound, "\(name)")
    }
}

/// Bytes of the process's heap that somebody holds, as far as the C library tells: what the system gave, less what is free of it.
private func bytesInUse() -> Int? {
    typealias Info = @convention(c) (CInt, UnsafeMutablePointer<FILE>?) -> CInt
    guard let symbol = dlsym(UnsafeMutableRawPointer(bitPattern: 0), "malloc_info") else { return nil }
    var text: UnsafeMutablePointer<CChar>?
    var count = 0
    guard let file = open_memstream(&text, &count) else { return nil }
    let result = unsafeBitCast(symbol, to: Info.self)(0, file)
    fclose(file)
    defer { free(text) }
    guard result == 0, let text else { return nil }
    // The totals of all arenas are the last of each kind.
    var bytes: [Substring: Int] = [:]
    for line in String(cString: text).split(separator: "\n") {
        guard let size = line.split(separator: "size=\"").last?.prefix(while: \.isNumber) else { continue }
        for kind in [
            "<total type=\"fast\"", "<total type=\"rest\"", "<total type=\"mmap\"", "<system type=\"current\"",
        ]
        where line.hasPrefix(kind) {
            bytes[Substring(kind)] = Int(size)
        }
    }
    guard let system = bytes["<system type=\"current\""], let rest = bytes["<total type=\"rest\""] else { return nil }
    return system - rest - (bytes["<total type=\"fast\""] ?? 0) + (bytes["<total type=\"mmap\""] ?? 0)
}
