public import Glibc

/// A named thread that runs one function to its end.
///
/// The thread blocks every signal: they belong to the main thread, which turns them into events, and `SIGPIPE` to nobody.
public struct WorkerThread: @unchecked Sendable {
    /// Valid until `join` or `detach`.
    public let handle: pthread_t

    /// - Parameters:
    ///   - name: shown by `ps -L` and debuggers; the kernel keeps 15 bytes.
    ///   - body: runs on the new thread.
    /// - Throws: `WorkerThreadFault` when the kernel refuses another thread.
    public init(name: String, _ body: @escaping @Sendable () -> Void) throws(WorkerThreadFault) {
        let work = Unmanaged.passRetained(Work(name: String(name.utf8.prefix(15)) ?? "worker", body: body))
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        // Around the creation, because a thread inherits the mask: set inside it, a signal could come in between.
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var created = pthread_t()
        let status = pthread_create(
            &created, nil,
            { argument in
                guard let argument else { return nil }
                let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
                work.takeName()
                work.body()
                return nil
            }, work.toOpaque())
        guard status == 0 else {
            work.release()
            throw WorkerThreadFault(errno: status)
        }
        handle = created
    }

    /// Waits for the end of the thread. Once, and not together with `detach`.
    public func join() { pthread_join(handle, nil) }

    /// Lets the thread end by itself.
    public func detach() { pthread_detach(handle) }

    private final class Work: Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }

        /// Through /proc, because Glibc's Swift module lacks `pthread_setname_np`. Best effort.
        func takeName() {
            let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
            guard file >= 0 else { return }
            _ = name.withCString { write(file, $0, strlen($0)) }
            close(file)
        }
    }
}

/// The kernel refused to make a thread.
public struct WorkerThreadFault: Error, Sendable, CustomStringConvertible {
    /// The error number of `pthread_create`.
    public let errno: Int32
    /// The system's text for the error.
    public var description: String { "pthread_create: \(String(cString: strerror(errno)))" }
}
