import Glibc
import TLS
import TemporaryFolder
import Testing
import TokenStore

/// A directory of its own for a test; removed with what is in it.
final class Folder: Sendable {
    private let folder = TemporaryFolder("store")
    var path: String { folder.path }
    var database: String { path + "/tokens.db" }
    var names: [String] { folder.names }
}

enum Bytes {
    static func read(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return all }
            all += buffer.prefix(count)
        }
    }

    static func write(_ bytes: some Collection<UInt8>, to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        let all = Array(bytes)
        Glibc.write(descriptor, all, all.count)
        close(descriptor)
    }

    static func mode(_ path: String) -> UInt32 {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }

    static func contain(_ bytes: [UInt8], _ text: String) -> Bool {
        let wanted = Array(text.utf8)
        guard bytes.count >= wanted.count else { return false }
        return (0...bytes.count - wanted.count).contains {
            bytes[$0] == wanted[0] && bytes[$0..<$0 + wanted.count].elementsEqual(wanted)
        }
    }
}

func sealingKey(_ seed: UInt8) throws -> SealingKey { try SealingKey(bytes: (0..<32).map { UInt8($0) ^ seed }) }
func ring(_ seeds: UInt8...) throws -> SealingKeyRing { try SealingKeyRing(seeds.map { try sealingKey($0) }) }

func row(_ kind: UInt8, _ key: String, _ value: String, expires: Int64? = nil) -> StoredRow {
    StoredRow(kind: kind, key: Array(key.utf8), value: Array(value.utf8), expiresWall: expires)
}

extension TokenStore {
    typealias Outcome = Result<Void, StoreFault>

    /// Nothing was wrong: nil.
    func put(_ row: StoredRow) async -> StoreFault? { await commit([.put(row)]) }

    func commit(_ changes: [StoreChange]) async -> StoreFault? {
        fault(await withCheckedContinuation { done in commit(changes) { done.resume(returning: $0) } })
    }

    func flush() async -> StoreFault? {
        fault(await withCheckedContinuation { done in flush { done.resume(returning: $0) } })
    }

    func rotate(to ring: SealingKeyRing? = nil) async -> StoreFault? { await report(.rotate(ring)).fault }
    func compact() async -> StoreFault? { await report(.compact).fault }

    func report(_ job: StoreJob) async -> (report: StoreReport?, fault: StoreFault?) {
        let outcome: Result<StoreReport, StoreFault> = await withCheckedContinuation { done in
            start(job) { done.resume(returning: $0) }
        }
        switch outcome {
        case .success(let report): return (report, nil)
        case .failure(let fault): return (nil, fault)
        }
    }

    func measure() async throws -> StoreSize {
        try await withCheckedContinuation { done in measure { done.resume(returning: $0) } }.get()
    }

    func fetch(_ kind: UInt8, _ key: String) async -> StoredRow? {
        let outcome: Result<StoredRow?, StoreFault> = await withCheckedContinuation { done in
            fetch(kind: kind, key: Array(key.utf8)) { done.resume(returning: $0) }
        }
        return (try? outcome.get()) ?? nil
    }

    private func fault(_ outcome: Outcome) -> StoreFault? {
        if case .failure(let fault) = outcome { return fault }
        return nil
    }
}

extension StoreOpening {
    var census: StoreCensus? {
        if case .owner(let census) = self { return census }
        return nil
    }
}

/// The `sqlite3` program, as somebody else's hand in the file.
func sqlite(_ statements: String, in database: String, before command: String = ".bail on") throws {
    let arguments = ["sqlite3", "-cmd", command, database, statements]
    var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    words.append(nil)
    defer { for word in words { free(word) } }
    var process: pid_t = 0
    try #require(posix_spawnp(&process, "sqlite3", nil, nil, &words, environ) == 0, "sqlite3 is not there: make setup")
    var status: Int32 = 0
    waitpid(process, &status, 0)
    try #require(status == 0)
}
