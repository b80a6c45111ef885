internal import Octets

/// The metrics of one configuration: which families there are, which series each has, and which cell of a loop's block
/// counts what. Built when a configuration is read, then frozen; the data path knows only cell numbers.
///
/// Label values are names out of the configuration or fixed words, never bytes of a request: that bounds the number of series.
public struct MetricSchema: Sendable {
    /// The type of a family, in Prometheus' terms.
    public enum Kind: String, Sendable {
        /// Only grows.
        case counter
        /// Goes up and down by `add` and `subtract`; loops sum up, so it is never set outright.
        case gauge
        /// Durations, in the buckets of `DurationBuckets`.
        case histogram
    }

    struct Family: Sendable {
        let name: String
        let help: String
        let kind: Kind
        let labels: [String]
        // A table of status codes would print hundreds of zeros that mean "never happened".
        var omitsZeros = false
        var series: [Series] = []
        var hasRows = false
        var hasSingles = false
    }

    /// A series, or a row of them. A row is kept whole: of a thousand routes each status code as a series of its own is most of what a
    /// configuration costs.
    struct Series: Sendable {
        /// Values of all labels, or of all but the last.
        let values: [String]
        /// Values of the last label, a cell each; nil: one series.
        let columns: [String]?
        let cell: Int
    }

    /// Cells of all families together, eight bytes for each loop; a schema that needs more is refused.
    public static let maximumCells = 1 << 22

    private(set) var families: [Family] = []
    /// Cells that a block for this schema has.
    private(set) var cellCount = 0
    private var familyIndex: [String: Int] = [:]
    private var locations: [SeriesKey: Location] = [:]

    private struct SeriesKey: Hashable, Sendable {
        let family: Int
        let values: [String]
        let isRow: Bool
    }

    private struct Location: Sendable {
        let cell: Int
        let columns: [String]?
    }

    /// A schema without families.
    public init() {}

    // MARK: - Families

    /// Declares a family.
    /// - Parameters:
    ///   - name: with its unit and, for counters, `_total`, as it stands in the exposition.
    ///   - help: one line.
    ///   - labels: names of the labels, in the order in which `series` gives their values.
    ///   - omitsZeros: leaves out series that are zero.
    public mutating func family(
        _ name: String, help: String, kind: Kind, labels: [String] = [], omitsZeros: Bool = false
    ) throws(MetricFault) -> MetricFamily {
        guard Self.isMetricName(name) else { throw .invalidName(name) }
        for label in labels where !Self.isLabelName(label) { throw .invalidName(label) }
        guard Set(labels).count == labels.count else { throw .duplicate(name) }
        guard familyIndex[name] == nil else { throw .duplicate(name) }
        familyIndex[name] = families.count
        families.append(Family(name: name, help: help, kind: kind, labels: labels, omitsZeros: omitsZeros))
        return MetricFamily(index: families.count - 1)
    }

    // MARK: - Series

    /// A counter or gauge of a family. The same values give the same cell.
    public mutating func series(_ family: MetricFamily, _ values: [String] = []) throws(MetricFault) -> MetricCell {
        guard families[family.index].kind != .histogram else { throw .wrongKind(families[family.index].name) }
        return MetricCell(index: try add(family, values, width: 1))
    }

    /// A histogram of a family.
    public mutating func histogram(
        _ family: MetricFamily, _ values: [String] = []
    ) throws(MetricFault) -> MetricHistogram {
        guard families[family.index].kind == .histogram else { throw .wrongKind(families[family.index].name) }
        return MetricHistogram(index: try add(family, values, width: DurationBuckets.cells))
    }

    /// Declares a counter for each value of the last label, side by side, so that a route finds its status code by adding.
    /// - Parameters:
    ///   - values: values of all labels but the last. A family has one row for them.
    ///   - columns: values of the last label. They must not stand in the family with these values already.
    public mutating func row(
        _ family: MetricFamily, _ values: [String] = [], columns: [String]
    ) throws(MetricFault) -> MetricRow {
        let name = families[family.index].name
        guard families[family.index].kind != .histogram else { throw .wrongKind(name) }
        guard values.count + 1 == families[family.index].labels.count else { throw .wrongLabelCount(name) }
        if families[family.index].hasSingles {
            for column in columns where cell(of: family.index, values + [column]) != nil { throw .duplicate(name) }
        }
        guard Set(columns).count == columns.count else { throw .duplicate(name) }
        guard cellCount + columns.count <= Self.maximumCells else { throw .tooManySeries }
        let base = cellCount
        let key = SeriesKey(family: family.index, values: values, isRow: true)
        guard locations.updateValue(Location(cell: base, columns: columns), forKey: key) == nil else {
            throw .duplicate(name)
        }
        cellCount += columns.count
        families[family.index].hasRows = true
        families[family.index].series.append(Series(values: values, columns: columns, cell: base))
        return MetricRow(base: base, count: columns.count)
    }

    private mutating func add(_ family: MetricFamily, _ values: [String], width: Int) throws(MetricFault) -> Int {
        // Not a copy of the whole family: it would share the series array, and each append would then copy that.
        let name = families[family.index].name
        guard values.count == families[family.index].labels.count else { throw .wrongLabelCount(name) }
        if let known = cell(of: family.index, values) { return known }
        guard cellCount + width <= Self.maximumCells else { throw .tooManySeries }
        let cell = cellCount
        cellCount += width
        locations[SeriesKey(family: family.index, values: values, isRow: false)] = Location(cell: cell, columns: nil)
        families[family.index].hasSingles = true
        families[family.index].series.append(Series(values: values, columns: nil, cell: cell))
        return cell
    }

    // MARK: - Finding

    /// The first cell of a series with these values, wherever it stands.
    private func cell(of family: Int, _ values: [String]) -> Int? {
        if let location = locations[SeriesKey(family: family, values: values, isRow: false)] { return location.cell }
        guard families[family].hasRows, let column = values.last,
            let row = locations[SeriesKey(family: family, values: Array(values.dropLast()), isRow: true)]
        else { return nil }
        return row.columns?.firstIndex(of: column).map { row.cell + $0 }
    }

    /// Where each cell of another schema's series is counted here; nil where it is not.
    func cells(for series: Series, of family: Family) -> [Int?] {
        let width = family.kind == .histogram ? DurationBuckets.cells : 1
        guard let index = familyIndex[family.name], families[index].kind == family.kind else {
            return Array(repeating: nil, count: series.columns?.count ?? width)
        }
        guard let columns = series.columns else {
            let cell = cell(of: index, series.values)
            return (0..<width).map { offset in cell.map { $0 + offset } }
        }
        if let row = locations[SeriesKey(family: index, values: series.values, isRow: true)], row.columns == columns {
            return columns.indices.map { row.cell + $0 }
        }
        return columns.map { cell(of: index, series.values + [$0]) }
    }

    static func isMetricName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !first.isDigit else { return false }
        return name.utf8.allSatisfy { isWordByte($0) || $0 == 0x3a }
    }

    static func isLabelName(_ name: String) -> Bool {
        guard let first = name.utf8.first, !first.isDigit, !name.hasPrefix("__") else { return false }
        return name != "le" && name.utf8.allSatisfy(isWordByte)
    }

    private static func isWordByte(_ byte: UInt8) -> Bool { byte.isLetterOrDigit || byte == 0x5f }
}

/// A declared family.
public struct MetricFamily: Sendable, Hashable {
    let index: Int
}

/// A counter or gauge in every loop's block.
public struct MetricCell: Sendable, Hashable {
    @usableFromInline let index: Int

    @usableFromInline
    init(index: Int) { self.index = index }
}

/// Neighbouring counters, one for each value of a label.
public struct MetricRow: Sendable, Hashable {
    @usableFromInline let base: Int
    /// How many values the label has.
    public let count: Int

    /// - Parameter column: 0 ..< `count`.
    @inlinable
    public subscript(column: Int) -> MetricCell {
        precondition(column >= 0 && column < count)
        return MetricCell(index: base + column)
    }
}

/// A histogram in every loop's block.
public struct MetricHistogram: Sendable, Hashable {
    @usableFromInline let index: Int
}

/// Why a schema could not be built. Names are those of the code or the configuration.
public enum MetricFault: Error, Sendable, Equatable {
    case invalidName(String)
    case duplicate(String)
    case wrongKind(String)
    case wrongLabelCount(String)
    case tooManySeries
}
