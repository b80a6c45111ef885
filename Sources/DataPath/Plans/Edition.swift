internal import Synchronization
package import Telemetry

/// A loaded configuration, from its first exchange to its last.
///
/// An exchange keeps the plan with which it began, through its route, and the route keeps the edition. So the edition ends when
/// every loop has taken up the next one and the last exchange of this one is over; only then may its counters be folded away and its
/// upstreams' numbers be given out again.
package final class Edition: Sendable {
    /// Rises with every reload.
    package let number: Int
    /// The part that outlives the edition, for those who ask whether it is over.
    let life = EditionLife()
    private let counters = Mutex<Counters?>(nil)

    private struct Counters: Sendable {
        let plan: MetricPlan
        let blocks: [MetricBlock]
        let board: MetricBoard
    }

    package init(number: Int) { self.number = number }

    /// Gives each loop a block for what this edition's routes count. Once, before any loop sees a route of it.
    package func count(_ plan: MetricPlan, on board: MetricBoard, loops: Int) -> [LoopMetrics] {
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
    package var upstreamNumbers: Set<Int> {
        get { life.upstreamNumbers }
        set { life.upstreamNumbers = newValue }
    }

    // On whatever thread the last exchange ends, mostly a data loop's: once a reload, a lock that only scrapes compete for.
    deinit {
        life.end()
        counters.withLock { counters in
            guard let counters else { return }
            for block in counters.blocks { counters.board.retire(block) }
        }
    }
}

/// Whether an edition still has exchanges. In its place weak references would do, but those send every reference count of an edition
/// through a side table, and each request counts some.
final class EditionLife: Sendable {
    private let numbers = Mutex<Set<Int>?>([])

    /// Empty when it is over.
    fileprivate(set) var upstreamNumbers: Set<Int> {
        get { numbers.withLock { $0 ?? [] } }
        set { numbers.withLock { if $0 != nil { $0 = newValue } } }
    }

    var isOver: Bool { numbers.withLock { $0 == nil } }

    fileprivate func end() { numbers.withLock { $0 = nil } }
}

/// The editions that still have exchanges, as whoever makes the next one sees them.
package struct LivingEditions: Sendable {
    private var lives: [EditionLife] = []

    package init() {}

    package mutating func add(_ edition: Edition) {
        lives.removeAll(where: \.isOver)
        lives.append(edition.life)
    }

    package var upstreamNumbers: Set<Int> { lives.reduce(into: []) { $0.formUnion($1.upstreamNumbers) } }
}
