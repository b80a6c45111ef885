import Admin
import DataPath
import Telemetry

/// The families of metrics, wherever they are counted.
enum MetricFamilies {
    /// Sorted by name.
    static func all() throws -> [MetricDescription] {
        // Names that stand for those of a configuration; "-" is the route of requests that found none.
        let names = ["ROUTE", "IDENTITY", "UPSTREAM"]
        let plan = try MetricPlan(routes: [names[0]], identities: [names[1]], upstreams: [names[2]], concealing: [0])
        let counted = plan.schema.descriptions(without: Set(names + ["-"]))
        let known = Set(counted.map(\.name))
        return (counted + ExposedFamily.allCases.map(\.description).filter { !known.contains($0.name) })
            .sorted { $0.name < $1.name }
    }
}

extension MetricDescription {
    /// The unit that a name ends with, as Prometheus has it.
    var unit: String {
        let base = name.hasSuffix("_total") ? String(name.dropLast(6)) : name
        if base.hasSuffix("_timestamp_seconds") || base == "process_start_time_seconds" { return "seconds since 1970" }
        if base.hasSuffix("_seconds") { return "seconds" }
        if base.hasSuffix("_bytes") { return "bytes" }
        return "number"
    }
}

extension Reference {
    var metricsPage: (page: Page, about: String) {
        get throws {
            var text = Markdown.head("Metrics")
            text += """
                `GET /metrics` of `admin.listen` answers in Prometheus' text format. Values of labels are names of the configuration, addresses of it,
                or fixed words; never anything of a request. A family is left out while it has nothing to say: of a store where there is none, of logins
                where no identity needs a person.

                There are too many statuses, problems and reasons for each route and identity to have them all: such a series begins with its first
                count, and Prometheus' `rate()` and `increase()` do not see that one. For an alarm on what may happen once,
                `cardea_problem_answers_total` has every problem at 0 from the start.


                """
            let families = try MetricFamilies.all()
            text += Markdown.table(
                ["metric", "type", "unit", "labels", "what it says"],
                families.map { family in
                    [
                        Markdown.anchor(family.name) + Markdown.code(family.name), family.kind.rawValue, family.unit,
                        family.labels.map { "[\(Markdown.code($0.name))](#label-\($0.name))\(Self.values(of: $0))" }
                            .joined(separator: "; "),
                        Markdown.plain(family.help),
                    ]
                })
            text += "A histogram has `NAME_bucket`, `NAME_sum` and `NAME_count`.\n\n"
            text += Markdown.anchor("labels") + "\n## Labels\n\n"
            let labels = Set(families.flatMap { $0.labels.map(\.name) }).sorted()
            text += Markdown.table(
                ["label", "what it holds"],
                labels.map {
                    [Markdown.anchor("label-\($0)") + Markdown.code($0), LabelWords.meanings[$0] ?? ""]
                })
            return (Page(name: "metrics.md", text: text), "every metric with type, unit and labels")
        }
    }

    /// The words of a label, where there are few.
    private static func values(of label: MetricDescription.Label) -> String {
        (1...20).contains(label.values.count) ? ": " + Markdown.codes(label.values) : ""
    }
}

/// The meaning of each label.
enum LabelWords {
    static let meanings = [
        "address": "an upstream's address",
        "code": "the answer's status",
        "file": "a certificate's file; of the store, `database` or `log`",
        "hash": "the code of the audit log's last record, in hexadecimal digits",
        "identity": "an identity's name",
        "issuer": "an issuer's origin",
        "kind": "what kind of event, or of row",
        "listener": "a listener's name or address",
        "path": "the path of an active check",
        "problem": "a [problem](problems.md)'s word",
        "reason": "why a grant failed",
        "result": "how it went",
        "route": "a route's name; `-` for requests that found none",
        "side": "whose doing it was",
        "state": "a state: of an identity as in [states.md](states.md)",
        "subject": "the common name of a certificate's subject, else its organization",
        "upstream": "an upstream's origin; a second one of the same origin has `#2` behind it",
        "use": "what a certificate or an authority is for",
        "version": "the gateway's version",
    ]
}
