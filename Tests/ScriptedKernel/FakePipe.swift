/// A pipe of the kernel in memory. Unlike a socket it is never watched: who fills it drains it.
final class FakePipe {
    var bytes = ByteQueue()
    let capacity: Int
    /// Ends that are not closed yet.
    var outletIsOpen = true
    var inletIsOpen = true

    var room: Int { capacity - bytes.count }

    init(capacity: Int) { self.capacity = capacity }
}
