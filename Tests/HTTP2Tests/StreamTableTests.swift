import Testing

@testable import HTTP2

/// Streams come and go, and a dictionary says what must be found.
@Suite struct StreamTableTests {
    private let connection: HTTP2Connection

    init() throws {
        let made = HTTP2Connection(role: .server, limits: HTTP2Limits(), blocks: CountedBlocks(limit: 0))
        connection = try #require(made)
    }

    @Test(arguments: [1, 4, 32, 7 * 2])
    func `it agrees with a dictionary`(step: Int32) {
        var table = StreamTable()
        var known: [Int32: HTTP2Stream] = [:]
        var random = SystemRandomNumberGenerator()
        var next: Int32 = 1
        for _ in 0..<3_000 {
            if known.count < 40, Bool.random(using: &random) {
                let stream = HTTP2Stream(id: next, connection: connection)
                table.insert(stream)
                known[next] = stream
                // Numbers that meet at one place, too.
                next += 2 * step
            } else if let id = known.keys.randomElement(using: &random) {
                #expect(table.remove(id)?.takeRetainedValue() === known[id])
                known[id] = nil
            }
            #expect(table.count == known.count)
        }
        for (id, stream) in known { #expect(table[id] === stream) }
        for id in stride(from: Int32(1), to: next, by: 1) where known[id] == nil { #expect(table[id] == nil) }
        var met = 0
        table.forEach { stream in
            #expect(known[stream.id] === stream)
            met += 1
        }
        #expect(met == known.count)
        table.removeAll { $0.release() }
        #expect(table.count == 0 && known.keys.allSatisfy { table[$0] == nil })
    }

    @Test func `no stream has the number of the connection`() {
        let table = StreamTable()
        #expect(table[0] == nil)
    }

    @Test func `a number that no stream has finds and removes none`() {
        var table = StreamTable()
        let stream = HTTP2Stream(id: 3, connection: connection)
        table.insert(stream)
        for id in [0, 1, 5, .max] as [Int32] { #expect(table.entry(id) == nil && table.remove(id) == nil) }
        #expect(table.count == 1 && table[3] === stream)
        table.removeAll { $0.release() }
    }
}

extension StreamTable {
    fileprivate subscript(id: Int32) -> HTTP2Stream? { with(id) { $0 } }
}
