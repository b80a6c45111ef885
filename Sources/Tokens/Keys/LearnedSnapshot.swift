import Glibc
public import HotCache

/// The result of a loop's lookup of a path.
@frozen
public enum LearnedVerdict: Equatable, Sendable {
    /// Nothing is known yet: the request scouts or waits.
    case cold
    /// Send no credential.
    case open
    case slot(Slot)
}

/// An immutable copy of a learned table in flat memory: a lookup allocates nothing and moves no reference count.
///
/// Open addressing over at most 256 entries in 512 cells. The path is hashed once, from the left; every `/` on the way is
/// a directory to look for, and the last one found is the longest prefix.
public final class LearnedSnapshot: @unchecked Sendable {
    private let bound: Slot?
    private let slots: UnsafeMutablePointer<Slot>
    private let cells: UnsafeMutablePointer<Cell>
    private let text: UnsafeMutablePointer<UInt8>
    private let count: Int
    private let longest: Int
    private let wholePaths: Bool
    private let seed: UInt64

    private struct Cell {
        var hash: UInt64 = 0
        var start: UInt32 = 0
        var directoryLength: UInt16 = 0
        var methodLength: UInt16 = 0
        var target: UInt8 = Cell.vacant

        static let vacant: UInt8 = 255
        static let open: UInt8 = 254
    }

    private static let cellCount = 512

    init(slots: [Slot], entries: [LearnedEntry: LearnedTable.Target], binding: LearnedTable.Binding, seed: UInt64) {
        precondition(entries.count <= LearnedTable.entryLimit && slots.count <= LearnedTable.realmLimit + 1)
        self.seed = seed
        wholePaths = binding == .url
        bound = wholePaths ? nil : slots.first
        self.slots = .allocate(capacity: max(slots.count, 1))
        self.slots.initialize(from: slots, count: slots.count)
        cells = .allocate(capacity: Self.cellCount)
        cells.initialize(repeating: Cell(), count: Self.cellCount)
        let size = entries.keys.reduce(0) { $0 + $1.directory.count + $1.method.count }
        text = .allocate(capacity: max(size, 1))
        text.initialize(repeating: 0, count: max(size, 1))
        count = entries.count
        longest = entries.keys.reduce(0) { max($0, $1.directory.count) }
        var end = 0
        for (entry, target) in entries {
            let hash = Self.combine(
                entry.directory.bytes.reduce(seed, Self.step), entry.method.bytes.reduce(seed, Self.step))
            var index = Int(truncatingIfNeeded: hash) & (Self.cellCount - 1)
            while cells[index].target != Cell.vacant { index = (index + 1) & (Self.cellCount - 1) }
            let code: UInt8 = if case .realm(let index) = target { UInt8(index) } else { Cell.open }
            cells[index] = Cell(
                hash: hash, start: UInt32(end), directoryLength: UInt16(entry.directory.count),
                methodLength: UInt16(entry.method.count), target: code)
            for byte in entry.directory.bytes + entry.method.bytes {
                text[end] = byte
                end += 1
            }
        }
    }

    deinit {
        slots.deallocate()
        cells.deallocate()
        text.deallocate()
    }

    // MARK: - Lookup

    /// - Parameters:
    ///   - path: as received, without the query; with `Binding.url` a `/` behind it, as in the entry.
    ///   - method: as received.
    public func verdict(path: UnsafeRawBufferPointer, method: UnsafeRawBufferPointer) -> LearnedVerdict {
        var found = Cell.vacant
        if count > 0 {
            let methodHash = method.reduce(seed, Self.step)
            var hash = seed
            for index in 0..<min(path.count, longest) {
                hash = Self.step(hash, path[index])
                guard path[index] == 0x2F, !wholePaths || index + 1 == path.count else { continue }
                let target = target(Self.combine(hash, methodHash), path, index + 1, method)
                if target != Cell.vacant { found = target }
            }
        }
        switch found {
        case Cell.vacant: return bound.map { .slot($0) } ?? .cold
        case Cell.open: return .open
        default: return .slot(slots[Int(found)])
        }
    }

    private func target(
        _ hash: UInt64, _ path: UnsafeRawBufferPointer, _ length: Int, _ method: UnsafeRawBufferPointer
    ) -> UInt8 {
        var index = Int(truncatingIfNeeded: hash) & (Self.cellCount - 1)
        // Half the cells are vacant at least, so the walk ends.
        while cells[index].target != Cell.vacant {
            let cell = cells[index]
            if cell.hash == hash, Int(cell.directoryLength) == length, Int(cell.methodLength) == method.count,
                Self.equal(text + Int(cell.start), path.baseAddress, length),
                Self.equal(text + Int(cell.start) + length, method.baseAddress, method.count)
            {
                return cell.target
            }
            index = (index + 1) & (Self.cellCount - 1)
        }
        return Cell.vacant
    }

    private static func equal(_ left: UnsafePointer<UInt8>, _ right: UnsafeRawPointer?, _ count: Int) -> Bool {
        guard count > 0 else { return true }
        guard let right else { return false }
        return memcmp(left, right, count) == 0
    }

    private static func step(_ hash: UInt64, _ byte: UInt8) -> UInt64 {
        (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3
    }

    private static func combine(_ path: UInt64, _ method: UInt64) -> UInt64 {
        let mixed = (path ^ (method &* 0x9E37_79B9_7F4A_7C15)) &* 0xBF58_476D_1CE4_E5B9
        return mixed ^ (mixed >> 29)
    }
}
