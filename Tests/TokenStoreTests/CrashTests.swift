import Glibc
import TLS
import Testing
import TokenStore

/// A crash leaves the database as it was at the last checkpoint and the log up to some byte.
@Suite struct CrashTests {
    let folder = Folder()

    @Test func `whatever part of the log survives, it is the state after some commit`() async throws {
        let store = TokenStore(path: folder.database, keys: try ring(1))
        #expect(store.open(now: 0).census != nil)
        let commits = 12
        // Each commit moves a pair: at no moment may one of the two be seen without the other.
        for number in 0..<commits {
            let value = "\(number)"
            #expect(await store.commit([.put(row(1, "refresh", value)), .put(row(2, "access", value))]) == nil)
        }
        let database = Bytes.read(folder.database)
        let log = Bytes.read(folder.database + "-wal")
        var last = -1
        var seen: Set<Int> = []
        for cut in Array(stride(from: 0, to: log.count, by: 1031)) + [log.count] {
            let copy = Folder()
            Bytes.write(database, to: copy.database)
            Bytes.write(log.prefix(cut), to: copy.database + "-wal")
            let revived = TokenStore(path: copy.database, keys: try ring(1))
            let opening = revived.open(now: 0)
            let rows = revived.restore()
            #expect(opening.census?.damagedCount == 0)
            #expect(rows.isEmpty || rows.count == 2 && rows[0].value == rows[1].value)
            let number = rows.first.flatMap { Int(String(decoding: $0.value, as: UTF8.self)) } ?? -1
            #expect(number >= last)
            last = number
            seen.insert(number)
            revived.close()
        }
        #expect(last == commits - 1 && seen.count == commits + 1)
    }

    @Test(arguments: [1, 7, 40, 150]) func `what was confirmed before a kill is there after it`(confirmed: Int)
        async throws
    {
        let path = folder.database
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, confirmed = confirmed as Int] in
            let store = TokenStore(path: path, keys: try ring(1))
            _ = store.open(now: 0)
            let file = open(path + ".confirmed", O_WRONLY | O_CREAT | O_TRUNC, 0o600)
            // Far more than will be done: the kill falls into the middle of the work.
            for number in 0..<1000 {
                store.put(row(1, "\(number)", String(repeating: "v", count: number * 13 % 3000))) { outcome in
                    guard case .success = outcome else { return }
                    write(file, "x", 1)
                    if number == confirmed { kill(getpid(), SIGKILL) }
                }
            }
            while true { pause() }
        }
        let count = Bytes.read(path + ".confirmed").count
        #expect(count > confirmed)
        let store = TokenStore(path: path, keys: try ring(1))
        let census = store.open(now: 0).census
        #expect(census?.damagedCount == 0)
        let rows = store.restore()
        #expect(rows.count >= count && rows.count < 1000)
        #expect(rows.enumerated().allSatisfy { $1.key == Array("\($0)".utf8) && $1.value.count == $0 * 13 % 3000 })
    }
}
