/// The orders that a C++20 atomic access can have here.
enum Order: Hashable, Sendable { case relaxed, acquire, release, acquireRelease, sequentiallyConsistent }

extension Order {
    var acquires: Bool { self == .acquire || self == .acquireRelease || self == .sequentiallyConsistent }
    var releases: Bool { self == .release || self == .acquireRelease || self == .sequentiallyConsistent }
}

/// How far a thread, or a message, has seen each location: positions in their modification orders.
struct View: Hashable, Sendable {
    private(set) var seen: [Int]

    init(locations: Int) { seen = Array(repeating: 0, count: locations) }

    subscript(_ location: Int) -> Int {
        get { seen[location] }
        set { seen[location] = max(seen[location], newValue) }
    }

    mutating func join(_ other: View) {
        for location in seen.indices { self[location] = other[location] }
    }
}

/// Memory as C++20 defines it, made operational: every store is a message that stays, and a load may take any message that its thread
/// has not overtaken. An acquiring load of a releasing store takes over what its thread had seen; sequentially consistent
/// accesses lie on one order besides, so that such a load may take no message older than the newest that lies before it there.
///
/// Two simplifications, both sound for the protocol under test: each location has one writer, so its modification order is that
/// thread's program order; and no load takes a value of the future, which C++ allows for relaxed cycles alone.
struct WeakMemory: Hashable, Sendable {
    private struct Message: Hashable, Sendable {
        var value: Int
        var view: View
    }

    private var messages: [[Message]]
    private(set) var views: [View]
    private var total: View

    init(threads: Int, initial: [Int]) {
        let empty = View(locations: initial.count)
        messages = initial.map { [Message(value: $0, view: empty)] }
        views = Array(repeating: empty, count: threads)
        total = empty
    }

    /// Every way in which the load can go.
    func loads(_ location: Int, _ order: Order, by thread: Int) -> [(value: Int, memory: WeakMemory)] {
        var oldest = views[thread][location]
        if order == .sequentiallyConsistent { oldest = max(oldest, total[location]) }
        return (oldest..<messages[location].count).map { position in
            var next = self
            let message = messages[location][position]
            next.views[thread][location] = position
            if order.acquires { next.views[thread].join(message.view) }
            if order == .sequentiallyConsistent { next.total[location] = position }
            return (message.value, next)
        }
    }

    /// The value that the location's only writer stored last.
    func own(_ location: Int) -> Int { messages[location][messages[location].count - 1].value }

    mutating func store(_ location: Int, _ value: Int, _ order: Order, by thread: Int) {
        let position = messages[location].count
        views[thread][location] = position
        var message = Message(value: value, view: View(locations: messages.count))
        message.view[location] = position
        if order.releases { message.view.join(views[thread]) }
        messages[location].append(message)
        if order == .sequentiallyConsistent { total[location] = position }
    }

    /// A read-modify-write by the location's only writer: it takes the newest message and continues its release sequence.
    mutating func exchange(_ location: Int, _ value: Int, _ order: Order, by thread: Int) -> Int {
        let last = messages[location][messages[location].count - 1]
        if order.acquires { views[thread].join(last.view) }
        store(location, value, order, by: thread)
        messages[location][messages[location].count - 1].view.join(last.view)
        return last.value
    }

    /// What a plain access leaves for `hasSeen`: a step on a location that nobody loads.
    mutating func tick(_ location: Int, by thread: Int) -> Int {
        store(location, 0, .relaxed, by: thread)
        return messages[location].count - 1
    }

    /// Whether the step happened before what `thread` does now.
    func hasSeen(_ location: Int, _ position: Int, by thread: Int) -> Bool { views[thread][location] >= position }
}

/// Visits every state that the threads can bring about from `start`, in any interleaving, until one of them finds something wrong.
/// - Parameter threads: one step of each, into the states that may follow.
func explore<State: Hashable, Wrong>(
    _ start: State, _ threads: [(State, inout [State]) -> Wrong?]
) -> (wrong: Wrong?, states: Int) {
    var visited: Set<State> = []
    var open = [start]
    while let state = open.popLast() {
        guard visited.insert(state).inserted else { continue }
        var next: [State] = []
        for steps in threads {
            if let wrong = steps(state, &next) { return (wrong, visited.count) }
        }
        open += next
    }
    return (nil, visited.count)
}
