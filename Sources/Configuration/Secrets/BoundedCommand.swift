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

    /// The programs that this process has started.
    fileprivate struct Children {
        /// Not reaped yet, by the thread that waits for its end.
        var running: Set<pid_t> = []
        /// Killed, and not ended a while later, as what waits for a dead file server: nobody waits for them any more.
        var abandoned: Set<pid_t> = []
        /// Threads that start one: its number is not known yet, and it may have ended already.
        var starting = 0
    }

    fileprivate static let children = Mutex(Children())

    /// Nanoseconds that a program has to be gone after it was killed.
    static let deathPatience: Int64 = 1_000_000_000

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
        let deadline = now() + time
        let process: pid_t
        do {
            defer { close(ends[1]) }
            let source = try filled(with: input)
            defer { if let source { close(source) } }
            process = try start(path, arguments, environment, input: source, output: ends[1])
        }
        let outcome = Result { () throws(Fault) in try collect(ends[0], bound: bound, deadline: deadline) }
        if case .failure = outcome { end(process) }
        let (status, wasKilled) = try wait(process, deadline: deadline)
        var output = try outcome.get()
        guard status == 0 else {
            output.wipe()
            if wasKilled { throw tooLong }
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
        // Not under the lock: the file may be on a server that does not answer.
        children.withLock { children in
            children.starting += 1
            // A program that was left behind may be gone by now.
            children.abandoned = children.abandoned.filter { waitpid($0, nil, WNOHANG) == 0 }
        }
        let code =
            environment == nil
            ? posix_spawn(&process, path, &actions, &attributes, words, environ)
            : posix_spawn(&process, path, &actions, &attributes, words, own)
        children.withLock { children in
            children.starting -= 1
            guard code == 0 else { return }
            children.running.insert(process)
            // The main thread reaps abandoned programs where it is the first process of a container, so that a number may come again.
            children.abandoned.remove(process)
        }
        guard code == 0 else { throw Fault(reason: String(cString: strerror(code))) }
        return process
    }

    /// The program with its children, and by itself where it has left their group. It is not reaped yet, so its number is nobody else's.
    fileprivate static func end(_ process: pid_t) {
        kill(-process, SIGKILL)
        kill(process, SIGKILL)
    }

    private static func collect(_ file: Int32, bound: Int, deadline: Int64) throws(Fault) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: bound + 2)
        var filled = 0
        while filled < bytes.count {
            var poll = pollfd(fd: file, events: Int16(POLLIN), revents: 0)
            let left = deadline - now()
            guard left > 0 else { throw tooLong }
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

    private static var tooLong: Fault { Fault(reason: "took too long") }

    /// - Returns: the status as wait(2) tells it, and whether the program was killed since its time was over.
    private static func wait(_ process: pid_t, deadline: Int64) throws(Fault) -> (status: Int32, wasKilled: Bool) {
        var status: Int32 = 0
        var killedAt: Int64?
        while true {
            let ended = waitpid(process, &status, WNOHANG)
            if ended == process {
                _ = children.withLock { $0.running.remove(process) }
                return (status, killedAt != nil)
            }
            if ended < 0 && errno != EINTR { throw Fault(reason: FileReader.lastFault()) }
            let now = now()
            if now >= deadline {
                end(process)
                let first = killedAt ?? now
                killedAt = first
                guard now - first < deathPatience else {
                    // The thread is for others from here on.
                    children.withLock { children in
                        children.running.remove(process)
                        children.abandoned.insert(process)
                    }
                    throw tooLong
                }
            }
            // The command closed its output and lives on: rare, so a coarse look is enough.
            _ = Glibc.poll(nil, 0, 5)
        }
    }

    private static func now() -> Int64 { Int64(SystemTime().sinceBoot()) }
}

/// Whether the process is, or may be, a program whose end another thread waits for: for whoever reaps as the first process of a container.
public func isAwaitedProgram(_ process: Int32) -> Bool {
    BoundedCommand.children.withLock { $0.starting > 0 || $0.running.contains(process) }
}

/// Kills every program that runs: the process ends, and nobody would be there for what they write.
public func endPrograms() {
    BoundedCommand.children.withLock { children in
        for process in children.running { BoundedCommand.end(process) }
    }
}
