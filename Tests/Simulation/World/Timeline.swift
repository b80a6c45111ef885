/// Virtual time, and what is to happen in it.
///
/// Things that are due at one moment happen in the order in which they were planned, so that one seed has one history. Times are nanoseconds
/// since the beginning of the simulation.
final class Timeline {
    private(set) var now: UInt64 = 0
    private var heap: [Plan] = []
    /// What is to happen, beside the heap: sifting moves numbers alone.
    private var actions: [(() -> Void)?] = []
    private var free: [Int] = []
    private var planned: UInt64 = 0
    /// Things that have happened so far.
    private(set) var happened: UInt64 = 0

    private struct Plan {
        let time: UInt64
        let number: UInt64
        /// The place of its action.
        let place: Int

        func comesBefore(_ other: Plan) -> Bool { time != other.time ? time < other.time : number < other.number }
    }

    init() { heap.reserveCapacity(4096) }

    /// When the next thing is due; nil where nothing is planned.
    var next: UInt64? { heap.first?.time }

    /// Plans something; what is planned for the past happens now.
    func at(_ time: UInt64, _ action: @escaping () -> Void) {
        planned += 1
        let place = free.popLast() ?? actions.count
        if place == actions.count { actions.append(action) } else { actions[place] = action }
        heap.append(Plan(time: max(time, now), number: planned, place: place))
        rise(heap.count - 1)
    }

    /// Plans something for `delay` nanoseconds from now.
    func after(_ delay: UInt64, _ action: @escaping () -> Void) { at(now + delay, action) }

    /// Moves the clock, never back.
    func move(to time: UInt64) { now = max(now, time) }

    /// Lets one thing happen that is due.
    /// - Returns: false where nothing is.
    func step() -> Bool {
        guard let first = heap.first, first.time <= now else { return false }
        let last = heap.removeLast()
        if !heap.isEmpty {
            heap[0] = last
            sink(0)
        }
        happened += 1
        free.append(first.place)
        actions[first.place].take()?()
        return true
    }

    private func rise(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard heap[index].comesBefore(heap[parent]) else { return }
            heap.swapAt(index, parent)
            index = parent
        }
    }

    private func sink(_ start: Int) {
        var index = start
        while true {
            var least = index
            let (left, right) = (2 * index + 1, 2 * index + 2)
            if left < heap.count, heap[left].comesBefore(heap[least]) { least = left }
            if right < heap.count, heap[right].comesBefore(heap[least]) { least = right }
            guard least != index else { return }
            heap.swapAt(index, least)
            index = least
        }
    }
}

extension UInt64 {
    static func milliseconds(_ count: UInt64) -> UInt64 { count * 1_000_000 }
    static func seconds(_ count: UInt64) -> UInt64 { count * 1_000_000_000 }
}
