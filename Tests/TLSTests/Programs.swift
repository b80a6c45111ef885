import Glibc

/// Runs and starts other programs without Foundation.
enum Programs {
    struct Failure: Error { let command: String }

    /// Runs to the end; throws unless the program exits with 0.
    static func run(_ arguments: [String]) throws {
        let null = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(null) }
        let process = try spawn(arguments, input: null, output: null)
        var status: Int32 = 0
        guard waitpid(process, &status, 0) == process, status == 0 else {
            throw Failure(command: arguments.joined(separator: " "))
        }
    }

    static func spawn(_ arguments: [String], input: Int32, output: Int32) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, input, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0)
        var words: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var process: pid_t = 0
        guard posix_spawnp(&process, arguments[0], &actions, nil, &words, environ) == 0 else {
            throw Failure(command: arguments[0])
        }
        return process
    }
}

/// A server program on loopback that prints `… 127.0.0.1:PORT` when it listens. Killed at the end.
final class ServerProgram {
    let port: UInt16
    private let process: pid_t
    private let output: Int32
    private let input: Int32

    init(_ arguments: [String]) throws {
        var outputs: [Int32] = [0, 0]
        var inputs: [Int32] = [0, 0]
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        // Pairs of sockets, because they can be made close-on-exec in one step: no program started meanwhile inherits them.
        guard socketpair(AF_UNIX, kind, 0, &outputs) == 0, socketpair(AF_UNIX, kind, 0, &inputs) == 0 else {
            throw Programs.Failure(command: "pipe")
        }
        process = try Programs.spawn(arguments, input: inputs[0], output: outputs[1])
        close(outputs[1])
        close(inputs[0])
        output = outputs[0]
        input = inputs[1]
        var seen: [UInt8] = []
        var byte: UInt8 = 0
        var found: UInt16?
        while found == nil, seen.count < 4096, read(output, &byte, 1) == 1 {
            seen.append(byte)
            guard byte == UInt8(ascii: "\n") else { continue }
            let text = String(decoding: seen, as: UTF8.self)
            if let mark = text.split(separator: "\n").last(where: { $0.contains("127.0.0.1:") }) {
                found = mark.split(separator: ":").last.flatMap { UInt16($0) }
            }
        }
        guard let found else { throw Programs.Failure(command: arguments.joined(separator: " ")) }
        port = found
    }

    deinit {
        kill(process, SIGKILL)
        var status: Int32 = 0
        waitpid(process, &status, 0)
        close(output)
        close(input)
    }
}
