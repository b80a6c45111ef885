/// In the order in which they came, and found by what they were made from.
struct KeyedList<Key: Hashable & Sendable, Element: Sendable>: Sendable {
    private(set) var all: [Element] = []
    private var positions: [Key: Int] = [:]

    /// Of two with one key the first is found.
    mutating func append(_ element: Element, for key: Key) {
        if positions[key] == nil { positions[key] = all.count }
        all.append(element)
    }

    subscript(key: Key) -> Element? { positions[key].map { all[$0] } }
}
