import Octets

/// A program that brings a credential, as it is run: always with the same arguments and the same environment.
public struct ProgramCall: Sendable, Hashable {
    /// Absolute.
    public var path: String
    /// The words that the program is given behind its path.
    public var arguments: [String]
    /// Its standard input, which ends behind it.
    public var input: [UInt8]
    /// All that it has beside `PATH` and `LANG`, unless they stand here.
    public var environment: [String: String]
    /// Nanoseconds until the program and its children are killed.
    public var time: Int64

    /// Bytes of input: the buffer of a pipe holds them at once (pipe(7)).
    public static let longestInput = 4096

    /// Memberwise.
    public init(
        path: String, arguments: [String] = [], input: [UInt8] = [], environment: [String: String] = [:],
        time: Int64 = SecretBound.commandTime
    ) {
        self.path = path
        self.arguments = arguments
        self.input = input
        self.environment = environment
        self.time = time
    }

    /// The variables that every program has.
    static let ownEnvironment = [
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8",
    ]

    /// Nothing of ours is handed down: a secret in our environment is no business of the program.
    var environmentEntries: [String] {
        Self.ownEnvironment.merging(environment) { $1 }.map { "\($0.key)=\($0.value)" }.sorted()
    }

    /// Nanoseconds from the order to run it until its end is known, where no other program is before it.
    public var longestRun: Int64 { time + 2 * BoundedCommand.deathPatience }

    /// Runs the program; blocks.
    ///
    /// - Returns: its standard output, at most 64 KiB.
    /// - Throws: `SecretFault` where it cannot be started, fails, takes too long or writes too much. Names the program, never what it wrote.
    public func run() throws(SecretFault) -> SecretBytes {
        var output: [UInt8]
        do {
            output = try ProgramEnclosure.run(self) { () throws(BoundedCommand.Fault) in
                try BoundedCommand.output(
                    of: path, arguments, input: input, environment: environmentEntries, bound: SecretBound.bytes,
                    time: time)
            }
        } catch {
            throw SecretFault(description: "\(path): \(error.reason)", isOfThisUser: true)
        }
        guard output.count <= SecretBound.bytes else {
            output.wipe()
            throw SecretFault(description: "\(path): wrote more than 64 KiB")
        }
        return SecretBytes(wiping: output)
    }
}

extension ProgramCall: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The path alone: arguments and variables may hold secrets.
    public var description: String { path }
    /// The path alone.
    public var debugDescription: String { path }
    /// Empty, so that `dump` prints nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
