/// Writes the Prometheus text exposition, format 0.0.4.
///
/// Families come from a snapshot or one by one, for values that are known only at the scrape (ages, states, the process).
public struct PrometheusText: Sendable {
    /// The media type of the text format, version 0.0.4.
    public static let contentType = "text/plain; version=0.0.4; charset=utf-8"

    /// The text written so far.
    public private(set) var text = ""
    private var current = ""

    /// An empty text.
    public init() {}

    // MARK: - Values of the loops

    /// Writes every family of the snapshot that has a series.
    public mutating func append(_ snapshot: MetricSnapshot) {
        for family in snapshot.schema.families where !family.series.isEmpty {
            begin(family.name, help: family.help, kind: family.kind)
            for series in family.series {
                let labels = Array(zip(family.labels, series.values))
                if let columns = series.columns {
                    let last = family.labels[labels.count]
                    for (offset, column) in columns.enumerated() {
                        let value = snapshot.values[series.cell + offset]
                        if value == 0, family.omitsZeros { continue }
                        let written = family.kind == .gauge ? String(Int64(bitPattern: value)) : String(value)
                        line("", labels + [(last, column)], written)
                    }
                    continue
                }
                switch family.kind {
                case .histogram:
                    let distribution = snapshot.distribution(at: series.cell)
                    if distribution.count != 0 || !family.omitsZeros { sample(labels, distribution) }
                case .counter:
                    let value = snapshot.values[series.cell]
                    if value != 0 || !family.omitsZeros { line("", labels, String(value)) }
                case .gauge:
                    let value = Int64(bitPattern: snapshot.values[series.cell])
                    if value != 0 || !family.omitsZeros { line("", labels, String(value)) }
                }
            }
        }
    }

    // MARK: - Values of the moment

    /// Begins a family; its samples follow.
    public mutating func begin(_ name: String, help: String, kind: MetricSchema.Kind) {
        current = name
        text += "# HELP \(name) \(Self.escapeHelp(help))\n# TYPE \(name) \(kind.rawValue)\n"
    }

    /// Adds a sample of the family that was begun last.
    public mutating func sample(_ labels: [(String, String)] = [], _ value: some SampleValue) {
        line("", labels, (value as? Double).map(Self.number) ?? String(value))
    }

    /// The buckets, the sum and the count of a histogram.
    public mutating func sample(_ labels: [(String, String)], _ distribution: DurationDistribution) {
        var cumulative: UInt64 = 0
        for (index, inside) in distribution.buckets.enumerated() {
            cumulative &+= inside
            let bound = index < DurationBuckets.labels.count ? DurationBuckets.labels[index] : "+Inf"
            line("_bucket", labels + [("le", bound)], String(cumulative))
        }
        line("_sum", labels, Self.seconds(distribution.sum))
        line("_count", labels, String(cumulative))
    }

    private mutating func line(_ suffix: String, _ labels: [(String, String)], _ value: String) {
        text += current
        text += suffix
        if !labels.isEmpty {
            var separator = "{"
            for (name, value) in labels {
                text += "\(separator)\(name)=\"\(Self.escapeLabel(value))\""
                separator = ","
            }
            text += "}"
        }
        text += " "
        text += value
        text += "\n"
    }

    // MARK: - Spelling

    static func escapeLabel(_ value: String) -> String { escaped(value, "\\\"".unicodeScalars) }
    static func escapeHelp(_ value: String) -> String { escaped(value, "\\".unicodeScalars) }

    private static func escaped(_ value: String, _ special: String.UnicodeScalarView) -> String {
        value.unicodeScalars.reduce(into: "") { escaped, scalar in
            if scalar == "\n" { return escaped += "\\n" }
            if special.contains(scalar) { escaped += "\\" }
            escaped.unicodeScalars.append(scalar)
        }
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value > 0 ? "+Inf" : "-Inf" }
        // Whole numbers without the ".0" that some readers would show.
        if value == value.rounded(), abs(value) < 1e15 { return String(Int64(value)) }
        return String(value)
    }

    /// Exact seconds: a Double would lose nanoseconds after 104 days of summed time.
    static func seconds(_ nanoseconds: UInt64) -> String {
        let fraction = nanoseconds % 1_000_000_000
        guard fraction != 0 else { return String(nanoseconds / 1_000_000_000) }
        var digits = String(fraction)
        digits = String(repeating: "0", count: 9 - digits.utf8.count) + digits
        while digits.last == "0" { digits.removeLast() }
        return "\(nanoseconds / 1_000_000_000).\(digits)"
    }
}

/// A number as the value of a sample.
public typealias SampleValue = LosslessStringConvertible & Numeric
