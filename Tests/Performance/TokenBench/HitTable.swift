import CURCU
import Glibc
import Synchronization

/// Nanoseconds a hit: each way of keeping tokens, with 1 and 2 reading threads, with and without a writer.
struct HitTable {
    struct Row: Sendable {
        var contender: String
        var readers: Int
        var writer: Bool
        /// The best round, which is the one that other processes disturbed least.
        var best: Double
        var median: Double
    }

    static let keys = 64
    static let tokenSize = 900
    static let hitsPerRound = 400_000
    static let rounds = 15

    static func run() -> [Row] {
        var rows: [Row] = []
        for readers in [1, 2] {
            for writer in [false, true] {
                // One after the other in short rounds, so that all meet the same machine.
                var samples: [[Double]] = [[], [], [], []]
                let contenders: [any Contender] = [
                    OursContender(keys: keys), MutexContender(keys: keys), AtomicReferenceContender(keys: keys),
                    URCUContender(keys: keys),
                ]
                for contender in contenders {
                    onThread(registered: true) { for key in 0..<keys { contender.put(key, token(key)) } }.join()
                }
                for _ in 0..<rounds {
                    for (index, contender) in contenders.enumerated() {
                        samples[index].append(round(contender, readers: readers, writer: writer))
                    }
                }
                for (index, contender) in contenders.enumerated() {
                    let sorted = samples[index].sorted()
                    rows.append(
                        Row(
                            contender: type(of: contender).name, readers: readers, writer: writer, best: sorted[0],
                            median: sorted[sorted.count / 2]))
                }
            }
        }
        return rows
    }

    private static func token(_ key: Int) -> [UInt8] { [UInt8](repeating: UInt8(key % 251) + 1, count: tokenSize) }

    /// The slowest reader's nanoseconds a hit.
    private static func round(_ contender: any Contender, readers: Int, writer: Bool) -> Double {
        let slowest = Mutex<UInt64>(0)
        let stop = Atomic<Bool>(false)
        var order = (0..<1024).map { Int32($0 % keys) }
        order.shuffle()
        let keysInOrder = order
        let writing =
            writer
            ? onThread(registered: true) {
                var key = 0
                // A renewal every 50 microseconds: far more than any gateway sees.
                while !stop.load(ordering: .relaxed) {
                    contender.put(key, token(key))
                    key = (key + 1) % keys
                    usleep(50)
                }
            } : nil
        let reading = (0..<readers).map { index in
            onThread(registered: false) {
                let target = UnsafeMutableRawPointer.allocate(byteCount: 4096, alignment: 64)
                defer { target.deallocate() }
                let taken = contender.measure(
                    thread: index, rounds: hitsPerRound, keys: keysInOrder, into: target)
                slowest.withLock { $0 = max($0, taken) }
            }
        }
        for thread in reading { thread.join() }
        stop.store(true, ordering: .relaxed)
        writing?.join()
        return Double(slowest.withLock { $0 }) / Double(hitsPerRound)
    }
}

/// A thread that is joined. `registered`: it may write liburcu's table.
struct BenchThread {
    fileprivate var handle = pthread_t()
    func join() { pthread_join(handle, nil) }
}

func onThread(registered: Bool, _ work: @escaping @Sendable () -> Void) -> BenchThread {
    final class Body {
        let run: () -> Void
        init(_ run: @escaping () -> Void) { self.run = run }
    }
    var thread = BenchThread()
    let body = Unmanaged.passRetained(
        Body {
            if registered { bench_reader_enter() }
            work()
            if registered { bench_reader_leave() }
        })
    let status = pthread_create(
        &thread.handle, nil,
        { argument in
            if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
            return nil
        }, body.toOpaque())
    precondition(status == 0, "pthread_create: \(status)")
    return thread
}
