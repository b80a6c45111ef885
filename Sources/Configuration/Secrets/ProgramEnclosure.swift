internal import Synchronization
internal import World

/// The sandbox of each program that brings a credential, inside of the process's own: the files that it names, and none of the rest of the
/// configuration.
public enum ProgramEnclosure {
    private static let enclose = Mutex<(@Sendable (ProgramCall) -> Bool)?>(nil)

    /// Programs that start from now on are enclosed.
    /// - Parameter enclose: restricts the thread that calls it, and whatever that starts, for good, to what the program needs; false where it cannot.
    public static func begin(_ enclose: @escaping @Sendable (ProgramCall) -> Bool) {
        Self.enclose.withLock { $0 = enclose }
    }

    /// Blocks until the work is done.
    /// - Parameter work: done on a thread of its own where programs are enclosed, since a restriction is the thread's and is not given back.
    static func run(
        _ program: ProgramCall, _ work: @escaping @Sendable () throws(BoundedCommand.Fault) -> [UInt8]
    ) throws(BoundedCommand.Fault) -> [UInt8] {
        guard let enclose = Self.enclose.withLock({ $0 }) else { return try work() }
        let outcome = Outcome()
        let thread: WorkerThread
        do throws(WorkerThreadFault) {
            thread = try WorkerThread(name: "program") {
                guard enclose(program) else { return }
                let result = Result { () throws(BoundedCommand.Fault) in try work() }
                outcome.result.withLock { $0 = result }
            }
        } catch { throw BoundedCommand.Fault(reason: "there is no thread for it") }
        thread.join()
        return try outcome.result.withLock { $0 }.get()
    }

    private final class Outcome: Sendable {
        let result = Mutex<Result<[UInt8], BoundedCommand.Fault>>(
            .failure(BoundedCommand.Fault(reason: "it cannot be kept away from other files")))
    }
}
