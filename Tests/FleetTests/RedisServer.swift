internal import Glibc
internal import Synchronization
import Testing

@testable import Fleet

/// Debian's redis-server on a unix socket in a folder of its own, in memory only. Killed at the end.
final class RedisServer {
    let socket: String
    private let folder: String
    private let process: pid_t

    init() throws {
        var template = Array("/tmp/cardea-redis-XXXXXX".utf8CString)
        let made = template.withUnsafeMutableBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return false }
            return mkdtemp(start) != nil
        }
        try #require(made)
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        socket = folder + "/s"
        process = try Self.spawn([
            "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir", folder,
        ])
        for _ in 0..<2000 where access(socket, F_OK) != 0 { usleep(5000) }
        try #require(access(socket, F_OK) == 0, "redis-server does not start: make setup")
    }

    func command(_ words: String...) throws {
        let process = try Self.spawn(["redis-cli", "-s", socket] + words)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        try #require(status == 0)
    }

    deinit {
        kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        unlink(socket)
        rmdir(folder)
    }

    private static func spawn(_ arguments: [String]) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for descriptor in [0, 1, 2] as [Int32] {
            posix_spawn_file_actions_addopen(&actions, descriptor, "/dev/null", O_RDWR, 0)
        }
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        let result = posix_spawnp(&process, arguments[0], &actions, nil, &words, environ)
        try #require(result == 0, "\(arguments[0]) is not there: make setup")
        return process
    }
}

/// An answer that the calling thread waits for.
enum Waiting<Value: Sendable> {
    static func of(_ work: (@escaping @Sendable (Result<Value, RedisFault>) -> Void) -> Void) -> Result<
        Value, RedisFault
    > {
        let found = Mutex<Result<Value, RedisFault>?>(nil)
        let cell = Cell(found)
        work { result in cell.found.withLock { $0 = result } }
        for _ in 0..<20_000 {
            if let result = cell.found.withLock({ $0 }) { return result }
            usleep(500)
        }
        return .failure(RedisFault(.slow, "nobody answered"))
    }

    private final class Cell: Sendable {
        let found: Mutex<Result<Value, RedisFault>?>
        init(_ found: consuming Mutex<Result<Value, RedisFault>?>) { self.found = found }
    }
}

/// A plain thread: what is tried here blocks.
final class RunningThread {
    private var thread = pthread_t()

    private final class Work {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    init(_ body: @escaping @Sendable () -> Void) {
        let work = Unmanaged.passRetained(Work(body))
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body()
                return nil
            }, work.toOpaque())
        precondition(result == 0, "no thread")
    }

    func join() { pthread_join(thread, nil) }
}
