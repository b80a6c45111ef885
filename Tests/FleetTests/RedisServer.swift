internal import Glibc
internal import Synchronization
import TemporaryFolder
import Testing

@testable import Fleet
@testable import TLSTests

/// Debian's redis-server on a unix socket in a folder of its own, in memory only. Killed at the end.
final class RedisServer {
    let socket: String
    private let folder = TemporaryFolder("redis")
    private let process: pid_t

    init() throws {
        socket = folder.path + "/s"
        process = try Self.start([
            "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no", "--dir",
            folder.path,
        ])
        for _ in 0..<2000 where access(socket, F_OK) != 0 { usleep(5000) }
        try #require(access(socket, F_OK) == 0, "redis-server does not start: make setup")
    }

    func command(_ words: String...) throws { try Programs.run(["redis-cli", "-s", socket] + words) }

    deinit {
        kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
    }

    private static func start(_ words: [String]) throws -> pid_t {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        return try Programs.spawn(words, input: null, output: null)
    }
}

/// An answer that the calling thread waits for.
enum Waiting<Value: Sendable> {
    static func of(_ work: (@escaping @Sendable (Result<Value, SharedFault>) -> Void) -> Void) -> Result<
        Value, SharedFault
    > {
        let found = Mutex<Result<Value, SharedFault>?>(nil)
        let cell = Cell(found)
        work { result in cell.found.withLock { $0 = result } }
        for _ in 0..<20_000 {
            if let result = cell.found.withLock({ $0 }) { return result }
            usleep(500)
        }
        return .failure(SharedFault(.slow, "nobody answered"))
    }

    private final class Cell: Sendable {
        let found: Mutex<Result<Value, SharedFault>?>
        init(_ found: consuming Mutex<Result<Value, SharedFault>?>) { self.found = found }
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
