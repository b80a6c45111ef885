import Testing

@testable import Configuration

/// A text of a form with something left out between two parts, and what holds for that place.
struct FormCase<Expected: Sendable>: Sendable, CustomTestStringConvertible {
    var form: TextForm
    var before: String
    var after: String
    var expected: Expected

    init(_ form: TextForm, _ before: String, _ after: String, _ expected: Expected) {
        (self.form, self.before, self.after, self.expected) = (form, before, after, expected)
    }

    var testDescription: String { "\(form), \(before)…\(after)" }
}
