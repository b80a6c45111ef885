import Glibc

/// Calls by which a process takes something from the world, and the files that make them.
enum Seams {
    struct Implementation: Sendable {
        let calls: [String]
        let reason: String

        init(_ calls: [String], _ reason: String) {
            self.calls = calls
            self.reason = reason
        }
    }

    static let refused = [
        // Clocks.
        "clock_gettime(", "gettimeofday(", "clock_nanosleep(", "timerfd_create(", "time(nil)", "time(NULL)", "Date()",
        "Date.now", "ContinuousClock", "SuspendingClock", "cardea_boottime(", "cardea_wall_milliseconds(",
        // Pauses, and waits of a thread.
        "usleep(", "nanosleep(", "sleep(", "Task.sleep", "poll(", "ppoll(", "select(", "epoll_wait(", "epoll_pwait(",
        "pthread_cond_timedwait(", "sem_timedwait(",
        // Randomness.
        ".random(in", ".random(using", "SystemRandomNumberGenerator", "RAND_bytes(", "getrandom(", "arc4random",
        ".shuffled(", ".shuffle(", ".randomElement(", "UUID()", "drand48(", "rand(",
        "SystemRandom.fill(", "Hasher(",
        // Threads, and tasks that choose their own.
        "pthread_create(", "WorkerThread(", "Task.detached", "Task {", "Task(", "DispatchQueue", "Thread.",
        // Names.
        "getaddrinfo(", "gethostbyname(", "getnameinfo(",
        // Children.
        "fork(", "vfork(", "posix_spawn(", "popen(",
        // The real forms of what is handed over.
        "Kernel()", "SystemTime()", "SystemRandom()", "Resolver()", "BlockingThread()",
    ]

    static let implementations: [String: Implementation] = [
        "Sources/World/TimeSource.swift": Implementation(
            ["clock_gettime(", "nanosleep("], "the clocks outside the loops"),
        "Sources/World/WorkerThread.swift": Implementation(["pthread_create("], "the one that makes threads"),
        "Sources/GSSAPI/Worker/GSSMonitor.swift": Implementation(
            ["clock_gettime(", "pthread_cond_timedwait("], "the deadlines of calls that a library never ends"),
        "Sources/GSSAPI/Worker/GSSWorkerCore.swift": Implementation(
            ["WorkerThread("], "the threads on which Kerberos may block"),
        "Sources/TLS/OpenSSL/SystemRandom.swift": Implementation(["RAND_bytes(", "getrandom("], "the randomness"),
        "Sources/CLinux/include/shim.h": Implementation(
            ["clock_gettime(", "cardea_boottime(", "cardea_wall_milliseconds(", "poll("],
            "declares what the kernel's seam calls"),
        "Sources/CLinux/launcher.c": Implementation(
            ["fork(", "poll("], "the child that starts the service's command before any thread is there"),
        "Sources/CLinux/confine.c": Implementation(
            ["fork("], "the child that becomes a confined program, before any thread is there"),
        "Sources/cardea/Service/ConfinedProgram.swift": Implementation(
            ["SystemRandom()"], "the placeholders of one run, which no simulation makes"),
        "Sources/Reactor/Kernel/Kernel.swift": Implementation(
            ["cardea_boottime(", "cardea_wall_milliseconds(", "epoll_wait("], "the system calls of a loop"),
        "Sources/Reactor/Loop/Loop.swift": Implementation(["Kernel()"], "the default of a parameter"),
        "Sources/Reactor/Loop/Loop+Ask.swift": Implementation(
            ["poll(", "SystemTime()"], "a thread that is no loop waits for one"),
        "Sources/Reactor/Loop/SignalWaiter.swift": Implementation(
            ["poll(", "cardea_boottime("], "the wait of the main thread, which no simulation runs"),
        "Sources/Reactor/Names/Resolver.swift": Implementation(
            ["getaddrinfo("], "the name service, and its thread"),
        "Sources/Reactor/Process/BlockingThread.swift": Implementation(
            ["WorkerThread("], "the thread of blocking work"),
        "Sources/Reactor/Process/BlockingThreads.swift": Implementation(
            ["WorkerThread("], "the threads of programs that bring credentials"),
        "Sources/Telemetry/Log/LogThread.swift": Implementation(["WorkerThread(", "poll("], "the log's thread"),
        "Sources/Telemetry/Log/LogSink.swift": Implementation(
            ["poll("], "asks whether a pipe takes a line, without a wait"),
        "Sources/TokenStore/Worker/TokenStore.swift": Implementation(["WorkerThread("], "the store's thread"),
        "Sources/TokenStore/Worker/OperationQueue.swift": Implementation(
            ["clock_gettime(", "pthread_cond_timedwait("], "how long somebody waits for the store's thread"),
        "Sources/Configuration/Secrets/BoundedCommand.swift": Implementation(
            ["posix_spawn(", "poll(", "SystemTime()"], "runs the program of a secret, on the thread of blocking work"),
        "Sources/Configuration/Secrets/ProgramEnclosure.swift": Implementation(
            ["WorkerThread("], "a thread for each program, since a restriction of it is for good"),
        "Sources/TLS/Connections/StapledAnswer.swift": Implementation(
            ["SystemTime()"], "called by OpenSSL, which judges certificates by the wall clock itself"),
        "Sources/TLS/Connections/TLSConnection.swift": Implementation(
            ["SystemTime()"], "the age of a proof; OpenSSL dates sessions by the same machine"),
        "Sources/TLS/Keys/SealingKeyRing.swift": Implementation(
            ["SystemRandom.fill("], "nonces of seals, which must differ whatever is simulated"),
        "Sources/DataPath/Mail/TakenPaths.swift": Implementation(
            ["Hasher("], "a filter whose order nobody sees, keyed by the runtime's seed"),
        "Sources/HotCache/KeyTable.swift": Implementation(
            ["Hasher("], "buckets whose order nobody sees, keyed by the runtime's seed"),
        "Sources/TLS/Connections/TicketKeys.swift": Implementation(
            ["SystemRandom()", "SystemRandom.fill("], "keys of OpenSSL's own making, as those of every handshake"),
        "Sources/TLS/Identities/CertificateMint.swift": Implementation(
            ["SystemRandom()"], "a serial number, beside a key and a signature that OpenSSL makes by its generator"),
        "Sources/TokenStore/File/KeyFile.swift": Implementation(["SystemRandom()"], "makes a key that stays on disk"),
        "Sources/Keeping/Keeper/Mail/Keeper.swift": Implementation(
            ["Task("], "a task on the keeper's own loop, which is its executor"),
        "Sources/Gateway/Platform/Platform.swift": Implementation(
            ["Kernel()", "SystemTime()", "SystemRandom()", "Resolver()", "BlockingThread()", "WorkerThread("],
            "hands the real forms to a gateway"),
        "Sources/cardea/Place/AuditPlace.swift": Implementation(
            ["SystemTime()"], "a command that waits, and the clock that a gateway's records are dated by"),
        "Sources/cardea/Commands/AuditCommands.swift": Implementation(
            ["SystemRandom()", "SystemTime()"], "a command that makes a key, and one that waits for a group"),
        "Sources/cardea/Commands/CertificateAuthorityCommand.swift": Implementation(["SystemTime()"], "a command"),
        "Sources/cardea/Commands/LoginCommands.swift": Implementation(["SystemTime()"], "a command that waits"),
        "Sources/cardea/Commands/StoreCommands.swift": Implementation(["SystemTime()"], "a command that waits"),
        "Sources/cardea/Commands/TokensCommand.swift": Implementation(["SystemTime()"], "a command that looks again"),
        "Sources/cardea/Service/Takeover.swift": Implementation(
            ["SystemTime()"], "the main thread of a new process waits for the old one"),
        "Sources/cardea/Logins/LoginTerminal.swift": Implementation(["poll("], "a command that waits for its terminal"),
        "Sources/cardea/Logins/RedirectDoor.swift": Implementation(
            ["poll(", "SystemTime()"], "a command that waits for a browser"),
    ]

    /// The refused calls in a file, by line. Comments make none; a real form that is the default of a parameter is no call.
    static func calls(in text: String) -> [(line: Int, call: String)] {
        let mentioned = refused.filter { mentions($0, in: text) }
        guard !mentioned.isEmpty else { return [] }
        var found: [(Int, String)] = []
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            guard let code = code(of: line) else { continue }
            for call in mentioned
            where code.ranges(of: call).contains(where: { isCall(call, before: code[..<$0.lowerBound]) }) {
                found.append((index + 1, call))
            }
        }
        return found
    }

    /// Rules out most files without a closer look.
    private static func mentions(_ call: String, in text: String) -> Bool { strstr(text, call) != nil }

    private static func isCall(_ call: String, before head: Substring) -> Bool {
        guard !call.hasPrefix("."), let last = head.last else { return true }
        if last.isLetter || last.isNumber || last == "_" || head.hasSuffix("func ") { return false }
        if call.hasPrefix("System"), head.hasSuffix("Source = ") { return false }
        return last != "." || head.hasSuffix("Glibc.")
    }

    /// Without its comment; nil for a line that is one.
    private static func code(of line: Substring) -> Substring? {
        let start = line.drop { $0 == " " }
        if start.hasPrefix("//") { return nil }
        guard let comment = line.firstRange(of: " // ") else { return line }
        return line[..<comment.lowerBound]
    }
}
