/// How much a peer may send that nobody has read yet, on a stream or on a connection.
///
/// The window begins small and grows as long as its bytes are read: a peer whose bytes are left lying cannot make us hold more than it began with.
struct ReceiveWindow {
    private(set) var size: Int
    private let least: Int
    private let most: Int
    /// Bytes that were read since the size last changed.
    private var read = 0

    init(from least: Int, to most: Int) {
        self.least = min(least, most)
        self.most = most
        size = self.least
    }

    /// - Parameter isShort: memory is, so that no window should be larger than it has to be.
    /// - Returns: the size, where it changes.
    mutating func read(_ count: Int, isShort: Bool) -> Int? {
        if isShort {
            read = 0
            guard size > least else { return nil }
            size = least
            return size
        }
        guard size < most else { return nil }
        read += count
        guard read >= size else { return nil }
        read = 0
        size = min(size * 2, most)
        return size
    }
}
