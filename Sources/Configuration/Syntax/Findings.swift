/// The mistakes of a file, gathered while it is decoded.
package final class Findings {
    package private(set) var diagnostics: [Diagnostic] = []

    package init() {}

    package func error(_ message: String, _ mark: Mark) { diagnostics.append(Diagnostic(.error, message, at: mark)) }
    package func warning(_ message: String, _ mark: Mark) {
        diagnostics.append(Diagnostic(.warning, message, at: mark))
    }
    func add(_ more: [Diagnostic]) { diagnostics += more }
}
