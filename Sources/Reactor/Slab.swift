/// Elements behind keys that go stale: what was removed is not found under its old key, though its place is used again.
///
/// Keys fit into the 64 bits that epoll carries. An event that the kernel had queued before its connection was closed then
/// finds nothing, instead of the connection that took the place.
public struct Slab<Element: ~Copyable>: ~Copyable {
    /// Elements that may be held at once.
    public let capacity: Int
    /// Elements that are held now.
    public private(set) var count = 0

    private var elements: UnsafeMutablePointer<Element>
    private var entries: [Entry] = []
    private var allocated: Int
    private var free = Slab.none

    private static var none: UInt32 { .max }

    private struct Entry {
        // Odd while the place is taken: one number tells both whether and for the how-manieth time.
        var generation: UInt32 = 0
        var nextFree = UInt32.max
    }

    /// - Parameters:
    ///   - capacity: elements at once, 1 … 2³¹; `insert` refuses past it.
    ///   - reserved: places made at the start.
    public init(capacity: Int, reserved: Int = 16) {
        self.capacity = min(max(capacity, 1), 1 << 31)
        allocated = min(max(reserved, 1), self.capacity)
        elements = .allocate(capacity: allocated)
    }

    deinit {
        for (index, entry) in entries.enumerated() where entry.generation & 1 == 1 {
            (elements + index).deinitialize(count: 1)
        }
        elements.deallocate()
    }

    public var isFull: Bool { count >= capacity }

    // MARK: - Elements

    /// - Returns: nil when the slab is full; the element is gone then, so ask `isFull` first where it matters.
    public mutating func insert(_ element: consuming Element) -> SlabKey? {
        let index: Int
        if free != Self.none {
            index = Int(free)
            free = entries[index].nextFree
        } else {
            guard entries.count < capacity else { return nil }
            if entries.count == allocated { grow() }
            index = entries.count
            entries.append(Entry())
        }
        (elements + index).initialize(to: element)
        entries[index].generation &+= 1
        count += 1
        return SlabKey(index: UInt32(index), generation: entries[index].generation)
    }

    /// - Returns: nil when the key is stale.
    public mutating func remove(_ key: SlabKey) -> Element? {
        guard let index = live(key) else { return nil }
        // Out of reach before it is handed out: whatever its end sets off finds the key stale.
        entries[index].generation &+= 1
        entries[index].nextFree = free
        free = UInt32(index)
        count -= 1
        return (elements + index).move()
    }

    public func contains(_ key: SlabKey) -> Bool { live(key) != nil }

    /// Works on an element in place; nil when the key is stale. `body` must not touch the slab itself.
    public mutating func withElement<Result>(_ key: SlabKey, _ body: (inout Element) -> Result) -> Result? {
        guard let index = live(key) else { return nil }
        return body(&elements[index])
    }

    /// Visits every element, in the order of places.
    public mutating func forEach(_ body: (SlabKey, inout Element) -> Void) {
        for index in entries.indices where entries[index].generation & 1 == 1 {
            body(SlabKey(index: UInt32(index), generation: entries[index].generation), &elements[index])
        }
    }

    private func live(_ key: SlabKey) -> Int? {
        let index = Int(key.index)
        guard index < entries.count, key.generation & 1 == 1, entries[index].generation == key.generation else {
            return nil
        }
        return index
    }

    private mutating func grow() {
        let larger = min(allocated * 2, capacity)
        let moved = UnsafeMutablePointer<Element>.allocate(capacity: larger)
        moved.moveInitialize(from: elements, count: entries.count)
        elements.deallocate()
        elements = moved
        allocated = larger
    }
}

extension Slab {
    /// The element, nil when the key is stale.
    public subscript(key: SlabKey) -> Element? {
        guard let index = live(key) else { return nil }
        return elements[index]
    }
}

/// A place and how often it was taken, in 64 bits; never 0.
public struct SlabKey: Sendable, Hashable {
    /// For epoll's user data.
    public let rawValue: UInt64

    public init(rawValue: UInt64) { self.rawValue = rawValue }

    init(index: UInt32, generation: UInt32) { rawValue = UInt64(generation) << 32 | UInt64(index) }

    var index: UInt32 { UInt32(truncatingIfNeeded: rawValue) }
    var generation: UInt32 { UInt32(truncatingIfNeeded: rawValue >> 32) }
}
