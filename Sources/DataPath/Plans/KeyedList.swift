/// In the order in which they came, and found by what they were made from.
package struct KeyedList<Key: Hashable & Sendable, Element: Sendable>: Sendable {
    package private(set) var all: [Element] = []
    private var positions: [Key: Int] = [:]

    package init() {}

    /// Appends an element. Where two elements have the same key, the first is found.
    package mutating func append(_ element: Element, for key: Key) {
        if positions[key] == nil { positions[key] = all.count }
        all.append(element)
    }

    package subscript(key: Key) -> Element? { positions[key].map { all[$0] } }
}
