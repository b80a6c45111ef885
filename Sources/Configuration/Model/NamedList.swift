/// Elements with names, in the order of the file, and found by their name without a look through the list.
struct NamedList<Element> {
    private(set) var all: [Element] = []
    private(set) var names: [String] = []
    private var positions: [String: Int] = [:]

    init() {}

    /// Appends an element; the first of two with one name is found.
    mutating func append(_ element: Element, named name: String) {
        if positions[name] == nil { positions[name] = all.count }
        all.append(element)
        names.append(name)
    }

    subscript(name: String) -> Element? { positions[name].map { all[$0] } }
}

extension NamedList<Node.Entry> {
    /// The entries of a map.
    init(_ entries: [Node.Entry]) {
        for entry in entries { append(entry, named: entry.key) }
    }
}
