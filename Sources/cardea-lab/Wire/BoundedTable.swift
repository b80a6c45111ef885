/// A dictionary that forgets its oldest entry when it is full.
struct BoundedTable<Value: Sendable>: Sendable {
    private var values: [String: Value] = [:]
    private var order: [String] = []
    private let capacity: Int

    init(capacity: Int) { self.capacity = capacity }

    subscript(_ key: String) -> Value? { values[key] }

    var keys: [String] { order.filter { values[$0] != nil } }

    var count: Int { values.count }

    mutating func insert(_ key: String, _ value: Value) {
        if values.updateValue(value, forKey: key) == nil { order.append(key) }
        if order.count > 2 * capacity { order = keys }
        while values.count > capacity, !order.isEmpty { values[order.removeFirst()] = nil }
    }

    mutating func update(_ key: String, _ change: (inout Value) -> Void) {
        guard var value = values[key] else { return }
        change(&value)
        values[key] = value
    }

    @discardableResult
    mutating func remove(_ key: String) -> Value? { values.removeValue(forKey: key) }

    mutating func removeAll() {
        values.removeAll()
        order.removeAll()
    }
}
