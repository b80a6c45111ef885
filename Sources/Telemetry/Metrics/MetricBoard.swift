import Synchronization

/// All blocks of the process, summed for readers; counters go on across reloads.
///
/// A reload brings a new schema and new blocks. While loops still change over, the old blocks are counted too; once a loop
/// has let go of its old block, its values are folded into those of the same series. Series that the newest schema lacks
/// are forgotten, so that many reloads do not pile up names.
public final class MetricBoard: Sendable {
    private struct State: Sendable {
        var schema = MetricSchema()
        // The counts of retired blocks, in cells of the newest schema.
        var folded: [UInt64] = []
        var members: [Member] = []
    }

    private struct Member: Sendable {
        let block: MetricBlock
        // The newest schema's cell for each of the block's, −1 for none; nil when the block is of the newest schema.
        var translation: [Int]?
    }

    // A lock: adoption, retirement and scrapes are rare, and no loop takes part in them.
    private let state = Mutex(State())

    /// A board without blocks.
    public init() {}

    /// Makes a schema the newest one.
    /// - Returns: one fresh block for each writer.
    public func adopt(_ schema: MetricSchema, writers: Int) -> [MetricBlock] {
        let blocks = (0..<max(writers, 0)).map { _ in MetricBlock(cells: schema.cellCount) }
        state.withLock { state in
            let translation = Self.translate(from: state.schema, to: schema)
            var folded = [UInt64](repeating: 0, count: schema.cellCount)
            for (old, value) in state.folded.enumerated() where translation[old] >= 0 {
                folded[translation[old]] &+= value
            }
            for index in state.members.indices {
                if let earlier = state.members[index].translation {
                    state.members[index].translation = earlier.map { $0 < 0 ? -1 : translation[$0] }
                } else {
                    state.members[index].translation = translation
                }
            }
            state.schema = schema
            state.folded = folded
            state.members += blocks.map { Member(block: $0, translation: nil) }
        }
        return blocks
    }

    /// Folds in a block that its loop writes no more.
    public func retire(_ block: MetricBlock) {
        state.withLock { state in
            guard let index = state.members.firstIndex(where: { $0.block === block }) else { return }
            let member = state.members.remove(at: index)
            Self.sum(member, into: &state.folded)
        }
    }

    /// The sum of all blocks at this moment.
    public func snapshot() -> MetricSnapshot {
        state.withLock { state in
            var values = state.folded
            for member in state.members { Self.sum(member, into: &values) }
            return MetricSnapshot(schema: state.schema, values: values)
        }
    }

    private static func sum(_ member: Member, into values: inout [UInt64]) {
        for cell in 0..<min(member.block.count, member.translation?.count ?? values.count) {
            let target = member.translation?[cell] ?? cell
            if target >= 0 { values[target] &+= member.block.value(at: cell) }
        }
    }

    private static func translate(from old: MetricSchema, to new: MetricSchema) -> [Int] {
        var translation = [Int](repeating: -1, count: old.cellCount)
        for family in old.families {
            for series in family.series {
                for (offset, target) in new.cells(for: series, of: family).enumerated() {
                    translation[series.cell + offset] = target ?? -1
                }
            }
        }
        return translation
    }
}

/// Values of every series of a schema, summed over the loops.
public struct MetricSnapshot: Sendable {
    let schema: MetricSchema
    let values: [UInt64]

    /// A counter's value; a gauge's is signed: `Int64(bitPattern:)`.
    public func value(_ cell: MetricCell) -> UInt64 { cell.index < values.count ? values[cell.index] : 0 }

    /// A copy of the histogram's buckets and sum.
    public func distribution(_ histogram: MetricHistogram) -> DurationDistribution {
        distribution(at: histogram.index)
    }

    func distribution(at cell: Int) -> DurationDistribution {
        guard cell + DurationBuckets.cells <= values.count else { return DurationDistribution(buckets: [], sum: 0) }
        return DurationDistribution(
            buckets: Array(values[cell..<cell + DurationBuckets.count]), sum: values[cell + DurationBuckets.count])
    }
}
