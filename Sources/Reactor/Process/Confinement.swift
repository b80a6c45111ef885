internal import CLinux
internal import Glibc

/// The process that becomes a confined program: in user, network, mount and IPC namespaces of its own, where it waits for its orders.
///
/// The child is forked before this process holds a secret, a thread or a sandbox, and becomes the program later. The sockets that it opens are
/// inside of its network, and reach nothing else, wherever they are served.
public final class Confinement: Sendable {
    /// The child, and later the program.
    public let process: Int32
    private let channel: Int32

    /// A step that the kernel refused, or a program that is not there.
    public struct Fault: Error, CustomStringConvertible, Sendable, Equatable {
        /// The step, as a fixed word.
        public let step: String
        /// The error number of the step.
        public let errno: Int32
        /// Whether the program itself could not be executed.
        public let isOfProgram: Bool

        init(_ outcome: cardea_confinement) {
            step = Confinement.steps[Int(clamping: outcome.step)] ?? "channel"
            errno = outcome.code
            isOfProgram = outcome.step == Int32(CARDEA_STEP_PROGRAM)
        }

        /// The step and the system's word for its error.
        public var description: String { "\(step): \(String(cString: strerror(errno)))" }
    }

    /// A change that the child makes to what it sees of the file system.
    public enum Change: Sendable, Equatable {
        /// The folder becomes a mount: nobody inside can give it another name, and put another in its place.
        case pin(String)
        /// The folder is seen empty.
        case coverFolder(String)
        /// The file is seen as `Orders.nothing`.
        case coverFile(String)
    }

    /// The child's last orders: the program's environment, `NAME=value` each, and what it does not see. Paths are absolute, without links.
    public struct Orders: Sendable {
        /// The variables that the program finds in its environment.
        public var environment: [[UInt8]]
        /// Made in this order. Paths that are not there are passed over.
        public var changes: [Change]
        /// A file to be seen in place of others.
        public var nothing: String

        /// Memberwise.
        public init(environment: [[UInt8]], changes: [Change], nothing: String) {
            self.environment = environment
            self.changes = changes
            self.nothing = nothing
        }
    }

    private static let steps: [Int: String] = [
        Int(CARDEA_STEP_NAMESPACES): "namespaces", Int(CARDEA_STEP_USER): "user of the namespace",
        Int(CARDEA_STEP_LOOPBACK): "loopback of the namespace", Int(CARDEA_STEP_MOUNTS): "mounts of the namespace",
        Int(CARDEA_STEP_FILTER): "filter of system calls", Int(CARDEA_STEP_SOCKET): "socket in the namespace",
        Int(CARDEA_STEP_COVER): "covering of files", Int(CARDEA_STEP_CAPABILITIES): "capabilities",
        Int(CARDEA_STEP_SIGNALS): "signals kept inside", Int(CARDEA_STEP_PROGRAM): "program",
        Int(CARDEA_STEP_CHANNEL): "channel",
    ]

    /// Whether the program's signals reach no process outside. Before Linux 6.12 they reach every process of its user.
    public static var keepsSignals: Bool { cardea_keeps_signals() != 0 }

    /// Before any thread, sandbox or secret.
    /// - Parameter command: a program, found in `PATH`, and its arguments.
    /// - Throws: the step that this machine does not allow.
    public init(_ command: [String]) throws(Fault) {
        var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
        defer { for word in words { free(word) } }
        words.append(nil)
        var process: pid_t = 0
        var channel: Int32 = -1
        let outcome = cardea_confine(words, &process, &channel)
        guard outcome.step == Int32(CARDEA_CONFINED) else { throw Fault(outcome) }
        self.process = process
        self.channel = channel
    }

    deinit { Glibc.close(channel) }

    /// Opens a listening socket inside.
    /// - Returns: its descriptor, close-on-exec and not blocking, the caller's to close.
    public func listen(on address: SocketAddress) throws(Fault) -> Int32 {
        var descriptor: Int32 = -1
        let outcome = address.withStorage { cardea_listen_inside(channel, $0, $1, &descriptor) }
        guard outcome.step == Int32(CARDEA_CONFINED) else { throw Fault(outcome) }
        return descriptor
    }

    /// Lets the program begin, once. Blocks for as long as its mounts take.
    public func begin(_ orders: Orders) throws(Fault) {
        var text: [UInt8] = []
        func add(_ letter: Unicode.Scalar, _ value: some Sequence<UInt8>) {
            text += [UInt8(ascii: letter)] + value + [0]
        }
        add("N", orders.nothing.utf8)
        for entry in orders.environment { add("E", entry) }
        for change in orders.changes {
            switch change {
            case .pin(let path): add("P", path.utf8)
            case .coverFolder(let path): add("D", path.utf8)
            case .coverFile(let path): add("F", path.utf8)
            }
        }
        let outcome = text.withUnsafeBytes { cardea_begin_confined(channel, $0.baseAddress, $0.count) }
        guard outcome.step == Int32(CARDEA_CONFINED) else { throw Fault(outcome) }
    }
}
