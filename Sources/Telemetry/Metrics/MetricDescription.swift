/// The description of a family of metrics: for the exposition, and for whoever reads about it (docs/reference/metrics.md).
package struct MetricDescription: Sendable {
    package let name: String
    /// The HELP line.
    package let help: String
    package let kind: MetricSchema.Kind
    package let labels: [Label]

    package init(_ name: String, _ kind: MetricSchema.Kind, _ help: String, _ labels: [Label] = []) {
        self.name = name
        self.help = help
        self.kind = kind
        self.labels = labels
    }

    /// A label and the fixed words that it takes; none where its values are names of the configuration, addresses or numbers.
    package struct Label: Sendable {
        package let name: String
        package let values: [String]

        package init(_ name: String, _ values: [String] = []) {
            self.name = name
            self.values = values
        }
    }
}

extension MetricSchema {
    /// The families in the order of their declaration.
    /// - Parameter names: values of labels that stand for names of the configuration, and are left out.
    package func descriptions(without names: Set<String>) -> [MetricDescription] {
        families.map { family in
            let labels = family.labels.enumerated().map { position, name in
                let values = family.series.flatMap { series in
                    position < series.values.count ? [series.values[position]] : series.columns ?? []
                }
                var seen = names
                return MetricDescription.Label(name, values.filter { seen.insert($0).inserted })
            }
            return MetricDescription(family.name, family.kind, family.help, labels)
        }
    }
}
