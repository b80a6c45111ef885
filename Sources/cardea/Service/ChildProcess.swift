import Glibc

/// The program behind `cardea run --`: started when the gateway is ready, told the signals that we are told.
///
/// The child stays in our process group, so that a terminal's Ctrl-C reaches both, and inherits standard input and output.
struct ChildProcess {
    let process: pid_t

    /// Signals that are passed on as they are.
    static let forwarded = [SIGUSR1, SIGQUIT, SIGWINCH]

    enum Fault: Error, CustomStringConvertible {
        case cannotStart(String, Int32)
        /// A step of its confinement, in words.
        case cannotConfine(String, String)
        var description: String {
            switch self {
            case .cannotStart(let name, let code): "\(name): \(String(cString: strerror(code)))"
            case .cannotConfine(let name, let reason): "\(name) cannot be confined: \(reason)"
            }
        }
    }

    /// A child that runs already.
    init(process: pid_t) { self.process = process }

    /// - Parameter command: a program, found in `PATH`, and its arguments.
    init(_ command: [String], environment: ProgramEnvironment) throws(Fault) {
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // The signals that we block and ignore are our business.
        var none = sigset_t()
        var all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        var environment = environment.entries.map { entry in
            (entry + [0]).withUnsafeBufferPointer { octets in
                octets.withMemoryRebound(to: CChar.self) { strdup($0.baseAddress!) as UnsafeMutablePointer<CChar>? }
            }
        }
        defer { for entry in environment { free(entry) } }
        environment.append(nil)
        var process: pid_t = 0
        // Descriptors of ours are all close-on-exec.
        let code = posix_spawnp(&process, command[0], nil, &attributes, words, environment)
        guard code == 0 else { throw .cannotStart(command[0], code) }
        self.process = process
    }

    /// A child of ours that has ended, left where it is; nil when none has.
    static func nextEnded() -> pid_t? {
        var found = siginfo_t()
        guard waitid(P_ALL, 0, &found, WEXITED | WNOHANG | WNOWAIT) == 0 else { return nil }
        let process = found._sifields._sigchld.si_pid
        return process > 0 ? process : nil
    }

    func send(_ signal: Int32) { kill(process, signal) }

    /// The status in a shell's terms: the exit status, or 128 and the signal.
    static func exitStatus(_ status: Int32) -> Int32 {
        let signal = status & 0x7f
        return signal == 0 ? (status >> 8) & 0xff : 128 + signal
    }
}
