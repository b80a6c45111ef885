internal import Synchronization
internal import Telemetry

/// One loaded configuration, from its first exchange to its last.
///
/// An exchange keeps the plan with which it began, through its route, and the route keeps the edition. So the edition ends when
/// every loop has taken up the next one and the last exchange of this one is over; only then may its counters be folded away and its
/// upstreams' numbers be given out again.
final class Edition: Sendable {
    /// Rises with every reload.
    let number: Int
    private let counters = Mutex<Counters?>(nil)
    private let numbers = Mutex<Set<Int>>([])

    private struct Counters: Sendable {
        let plan: MetricPlan
        let blocks: [MetricBlock]
        let board: MetricBoard
    }

    init(number: Int) { self.number = number }

    /// Gives each loop a block for what this edition's routes count. Once, before any loop sees a route of it.
    func count(_ plan: MetricPlan, on board: MetricBoard, loops: Int) -> [LoopMetrics] {
        let blocks = board.adopt(plan.schema, writers: loops)
        counters.withLock { $0 = Counters(plan: plan, blocks: blocks, board: board) }
        return blocks.map { LoopMetrics(plan: plan, block: $0) }
    }

    /// The counters of one loop. Takes a lock: for exchanges that outlived a reload, not for every request.
    func metrics(ofLoop index: Int) -> LoopMetrics? {
        counters.withLock { counters in
            counters.map { LoopMetrics(plan: $0.plan, block: $0.blocks[index]) }
        }
    }

    /// Numbers of the upstreams that its routes lead to.
    var upstreamNumbers: Set<Int> {
        get { numbers.withLock { $0 } }
        set { numbers.withLock { $0 = newValue } }
    }

    // On whatever thread the last exchange ends, mostly a data loop's: once a reload, a lock that only scrapes compete for.
    deinit {
        counters.withLock { counters in
            guard let counters else { return }
            for block in counters.blocks { counters.board.retire(block) }
        }
    }
}

/// The editions that still have exchanges, as whoever makes the next one sees them.
struct LivingEditions: Sendable {
    private struct Entry: Sendable {
        weak var edition: Edition?
    }

    private var entries: [Entry] = []

    mutating func add(_ edition: Edition) {
        entries.removeAll { $0.edition == nil }
        entries.append(Entry(edition: edition))
    }

    var upstreamNumbers: Set<Int> {
        entries.reduce(into: []) { $0.formUnion($1.edition?.upstreamNumbers ?? []) }
    }
}
