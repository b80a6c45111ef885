import CYAML
import Glibc
import Octets
import Synchronization
internal import World

/// Runs a program for its standard output: no shell, errors thrown away, bounded in bytes and time.
enum BoundedCommand {
    struct Fault: Error {
        var reason: String
    }

    /// Started and not reaped yet.
    fileprivate static let children = Mutex<Set<pid_t>>([])

    /// - Parameters:
    ///   - input: the program's standard input, which ends behind it; at most `ProgramCall.longestInput` bytes.
    ///   - environment: all of it, each entry with its `=`; nil: that of this process.
    ///   - time: nanoseconds until the program and its children are killed.
    static func output(
        of path: String, _ arguments: [String], input: [UInt8] = [], environment: [String]? = nil, bound: Int,
        time: Int64
    ) throws(Fault) -> [UInt8] {
        var ends: [Int32] = [-1, -1]
        guard cyaml_pipe(&ends) == 0 else { throw Fault(reason: FileReader.lastFault()) }
        defer { close(ends[0]) }
        let process: pid_t
        do {
            defer { close(ends[1]) }
            let source = try filled(with: input)
            defer { if let source { close(source) } }
            process = try start(path, arguments, environment, input: source, output: ends[1])
        }
        let deadline = now() + time
        let outcome = Result { () throws(Fault) in try collect(ends[0], bound: bound, deadline: deadline) }
        if case .failure = outcome { kill(-process, SIGKILL) }
        let status = try wait(process, deadline: deadline)
        var output = try outcome.get()
        guard status == 0 else {
            output.wipe()
            throw Fault(reason: status & 0x7f == 0 ? "ended with status \(status >> 8 & 0xff)" : "was killed")
        }
        return output
    }

    /// The reading end of a pipe that holds the bytes and is closed behind them; nil for no bytes. The kernel's buffer takes them all at once,
    /// so nobody waits for a program that does not read.
    private static func filled(with input: [UInt8]) throws(Fault) -> Int32? {
        guard !input.isEmpty else { return nil }
        var ends: [Int32] = [-1, -1]
        guard input.count <= ProgramCall.longestInput, cyaml_pipe(&ends) == 0 else {
            throw Fault(reason: input.count <= ProgramCall.longestInput ? FileReader.lastFault() : "has too much input")
        }
        defer { close(ends[1]) }
        guard write(ends[1], input, input.count) == input.count else {
            close(ends[0])
            throw Fault(reason: FileReader.lastFault())
        }
        return ends[0]
    }

    private static func start(
        _ path: String, _ arguments: [String], _ environment: [String]?, input: Int32?, output: Int32
    ) throws(Fault) -> pid_t {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        // Not every descriptor of the process is ours to have marked close-on-exec.
        cyaml_spawn_close_from(&actions, 3)
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        // A group of its own, so that its children end with it.
        posix_spawnattr_setpgroup(&attributes, 0)
        let flags = POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF
        posix_spawnattr_setflags(&attributes, Int16(flags))

        var words: [UnsafeMutablePointer<CChar>?] = ([path] + arguments).map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        var own: [UnsafeMutablePointer<CChar>?] = (environment ?? []).map { strdup($0) }
        defer { for entry in own { free(entry) } }
        own.append(nil)
        var process: pid_t = 0
        // Known before anybody can find it dead: the process that we may be the init of reaps what it does not know.
        let code = children.withLock { children in
            let code =
                environment == nil
                ? posix_spawn(&process, path, &actions, &attributes, words, environ)
                : posix_spawn(&process, path, &actions, &attributes, words, own)
            if code == 0 { children.insert(process) }
            return code
        }
        guard code == 0 else { throw Fault(reason: String(cString: strerror(code))) }
        return process
    }

    private static func collect(_ file: Int32, bound: Int, deadline: Int64) throws(Fault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: bound + 2)
        var filled = 0
        while filled < bytes.count {
            var poll = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            let left = deadline - now()
            guard left > 0 else { throw Fault(reason: "took too long") }
            let ready = Glibc.poll(&poll, 1, Int32(clamping: left / 1_000_000 + 1))
            if ready < 0 && errno != EINTR { throw Fault(reason: FileReader.lastFault()) }
            guard ready > 0 else { continue }
            let count = bytes.withUnsafeMutableBytes { raw in
                read(file, raw.baseAddress.map { $0 + filled }, raw.count - filled)
            }
            if count == 0 {
                bytes.removeLast(bytes.count - filled)
                return bytes
            }
            if count < 0 && errno != EINTR { throw Fault(reason: FileReader.lastFault()) }
            filled += max(0, count)
        }
        throw Fault(reason: "wrote more than 64 KiB")
    }

    private static func wait(_ process: pid_t, deadline: Int64) throws(Fault) -> Int32 {
        var status: Int32 = 0
        while true {
            let ended = waitpid(process, &status, WNOHANG)
            if ended == process {
                _ = children.withLock { $0.remove(process) }
                return status
            }
            if ended < 0 && errno != EINTR { throw Fault(reason: FileReader.lastFault()) }
            if now() >= deadline { kill(-process, SIGKILL) }
            // The command closed its output and lives on: rare, so a coarse look is enough.
            _ = Glibc.poll(nil, 0, 5)
        }
    }

    private static func now() -> Int64 { Int64(SystemTime().sinceBoot()) }
}

/// Whether the process is the program of a secret, whose end another thread waits for: for whoever reaps as the first process of a
/// container.
public func isSecretProgram(_ process: Int32) -> Bool { BoundedCommand.children.withLock { $0.contains(process) } }
