internal import HotCache

/// On which paths tokens were taken, on routes that refuse tokens here and there: a path that takes the token and then refuses it tells a
/// revocation from a path that refuses whatever it is sent (`RegrantWindows`).
///
/// Each loop has its own, with only the routes that the keeper has asked for: without any, a hit costs a look at `isEmpty`.
struct TakenPaths {
    /// Tokens on routes; when there are more, those keep their windows without this.
    private static let watchLimit = 64
    /// Cells for the paths of one of them, a power of two. Of the paths that share a cell, the latest is known.
    private static let cells = 256

    private struct Watch: Hashable {
        let slot: Slot
        let route: Int
    }

    private struct Paths {
        var until: UInt64
        /// Hashes, 0 for none.
        var taken = [Int](repeating: 0, count: TakenPaths.cells)
    }

    private var watched: [Watch: Paths] = [:]

    var isEmpty: Bool { watched.isEmpty }

    /// - Parameter until: of the loop's clock, in nanoseconds.
    mutating func watch(slot: Slot, route: Int, until: UInt64, now: UInt64) {
        watched = watched.filter { now < $0.value.until }
        let watch = Watch(slot: slot, route: route)
        guard watched[watch] != nil || watched.count < Self.watchLimit else { return }
        watched[watch, default: Paths(until: until)].until = until
    }

    mutating func note(_ path: UnsafeRawBufferPointer, slot: Slot, route: Int, now: UInt64) {
        let watch = Watch(slot: slot, route: route)
        guard let index = watched.index(forKey: watch) else { return }
        guard now < watched.values[index].until else {
            watched.remove(at: index)
            return
        }
        let hash = Self.hash(path)
        watched.values[index].taken[hash & (Self.cells - 1)] = hash
    }

    /// - Parameter forgets: a new token was refused there too, so that one has to be taken once more to count again.
    /// - Returns: whether a token was taken on the path.
    mutating func contains(_ path: UnsafeRawBufferPointer, slot: Slot, route: Int, forgets: Bool) -> Bool {
        let watch = Watch(slot: slot, route: route)
        guard let index = watched.index(forKey: watch) else { return false }
        let hash = Self.hash(path)
        guard watched.values[index].taken[hash & (Self.cells - 1)] == hash else { return false }
        if forgets { watched.values[index].taken[hash & (Self.cells - 1)] = 0 }
        return true
    }

    private static func hash(_ path: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        hasher.combine(bytes: UnsafeRawBufferPointer(rebasing: path.prefix { $0 != UInt8(ascii: "?") }))
        let hash = hasher.finalize()
        return hash == 0 ? 1 : hash
    }
}
