/// Storage for the fields of one head, allocated once and reused for every message of a connection.
///
/// Raw memory and not an array: reading an array's element on the data path costs a uniqueness check or a retain, and
/// an accidental copy would allocate.
struct FieldTable: ~Copyable, @unchecked Sendable {
    // Sendable because the table is the only owner of this memory and cannot be copied.
    private let storage: UnsafeMutablePointer<Field>
    let capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        precondition(capacity > 0)
        self.capacity = capacity
        storage = .allocate(capacity: capacity)
        storage.initialize(repeating: .empty, count: capacity)
    }

    deinit {
        storage.deallocate()
    }
}

// MARK: -

extension FieldTable {
    subscript(index: Int) -> Field {
        get {
            precondition(index >= 0 && index < count)
            return storage[index]
        }
        set {
            precondition(index >= 0 && index < count)
            storage[index] = newValue
        }
    }

    /// False when the table is full.
    mutating func append(_ field: Field) -> Bool {
        guard count < capacity else { return false }
        storage[count] = field
        count += 1
        return true
    }

    /// - Precondition: the table has room.
    @inline(__always)
    mutating func add(_ field: Field) {
        precondition(count < capacity)
        storage[count] = field
        count &+= 1
    }

    mutating func removeAll() {
        count = 0
    }
}
