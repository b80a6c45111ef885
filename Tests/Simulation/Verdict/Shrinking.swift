/// Finds a short list of faults with which a promise is still broken, by leaving out parts of the list that was drawn (delta debugging).
struct Shrinking {
    private(set) var faults: [Fault]
    /// Runs that were made.
    private(set) var runs = 0
    private let most: Int
    private let breaks: ([Fault]) throws -> Bool

    /// - Parameters:
    ///   - most: runs at most; what was found by then is taken.
    ///   - breaks: runs the history with these faults alone, and tells whether the same promise is broken.
    init(_ faults: [Fault], most: Int, breaks: @escaping ([Fault]) throws -> Bool) {
        self.faults = faults
        self.most = most
        self.breaks = breaks
    }

    mutating func shrink() throws {
        var size = max(faults.count / 2, 1)
        while !faults.isEmpty, runs < most {
            var start = 0
            var hasShrunk = false
            while start < faults.count, runs < most {
                let end = min(start + size, faults.count)
                let rest = Array(faults[..<start] + faults[end...])
                runs += 1
                if try breaks(rest) {
                    faults = rest
                    hasShrunk = true
                } else {
                    start = end
                }
            }
            if size == 1, !hasShrunk { return }
            size = max(size / 2, 1)
        }
    }
}
