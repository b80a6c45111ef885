internal import Glibc

/// A few threads for calls of GSSAPI that may block for as long as a KDC is silent.
///
/// Jobs have a key, the identity that they act for: one job of a key runs at a time, in order of arrival, and jobs of other keys pass it
/// by. A caller whose deadline passes is told so by the watch thread, while the library's call goes on: nothing can interrupt it.
/// The thread is lost to other jobs until the call returns, and the key is busy for as long. Threads are made when they are
/// first needed.
public final class GSSWorker<Key: Hashable & Sendable>: Sendable {
    private let core: GSSWorkerCore<Key>

    /// How a job ended, for its caller. Every submitted job gets exactly one.
    public enum Outcome<Value: Sendable>: Sendable {
        /// The job's result; the completion runs on the thread of the job.
        case done(Value)
        /// The deadline has passed. A result that comes later is dropped. The completion runs on the watch thread, or on the
        /// caller's if the deadline had passed before.
        case tooLate
        /// The queue, or the key's part of it, is full; the completion runs on the caller's thread, before `submit` returns.
        case refused
        /// The worker has been closed before the job began; the completion runs on the thread that closed or submitted.
        case closed
    }

    /// Numbers for metrics, all of one instant.
    public struct Counts: Sendable, Equatable {
        /// Jobs that wait for a thread or for an earlier job of their key.
        public let waiting: Int
        /// Threads with a job, lost ones included; at most `maximumThreads`.
        public let running: Int
        /// Threads whose callers have been told "too late" while the library has not returned.
        public let lost: Int
    }

    /// The most threads that a worker has for jobs; its watch thread comes on top.
    public static var maximumThreads: Int { 4 }

    /// - Parameters:
    ///   - threads: threads for jobs, held between 1 and `maximumThreads`.
    ///   - waiting: jobs that may wait, held between 0 and 4096.
    ///   - waitingOfKey: jobs of one key that may wait, held between 0 and `waiting`.
    public init(threads: Int = 4, waiting: Int = 256, waitingOfKey: Int = 64) {
        let all = min(max(waiting, 0), 4096)
        core = GSSWorkerCore(
            GSSQueue.Limits(
                threads: min(max(threads, 1), Self.maximumThreads), waiting: all,
                waitingOfKey: min(max(waitingOfKey, 0), all)))
    }

    deinit { core.close() }

    /// Submits a job. The completion is called exactly once, must not block, and may submit again.
    ///
    /// - Parameters:
    ///   - key: the identity; at most one of its jobs runs at a time.
    ///   - milliseconds: the time that the caller waits, from now; held between 0 and one hour.
    ///   - work: runs on a thread of the worker and may block.
    public func submit<Value: Sendable>(
        key: Key, within milliseconds: Int64, work: @escaping @Sendable () -> Value,
        completion: @escaping @Sendable (Outcome<Value>) -> Void
    ) {
        let job = GSSWorkerJob(
            run: {
                let value = work()
                return { completion(.done(value)) }
            },
            fail: { failure in
                switch failure {
                case .tooLate: completion(.tooLate)
                case .refused: completion(.refused)
                case .closed: completion(.closed)
                }
            })
        core.submit(job, key: key, within: min(max(milliseconds, 0), 3_600_000))
    }

    /// The numbers of now.
    public var counts: Counts {
        let (waiting, running, lost) = core.counts
        return Counts(waiting: waiting, running: running, lost: lost)
    }

    /// Refuses new jobs, tells those that wait, and lets the threads end once their calls have returned. Does not wait for them.
    public func close() { core.close() }
}
