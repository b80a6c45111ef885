/// A place in a configuration file.
public struct Mark: Sendable, Hashable {
    /// The file as the user named it; `environment` for a value that came from a variable.
    public var file: String
    /// Counted from 1; 0 where the whole file is meant.
    public var line: Int
    /// Counted from 1, in characters; 0 where the whole line is meant.
    public var column: Int

    /// - Parameters:
    ///   - line: 0 where the whole file is meant.
    ///   - column: 0 where the whole line is meant.
    public init(file: String, line: Int = 0, column: Int = 0) {
        self.file = file
        self.line = line
        self.column = column
    }
}

/// A thing that is wrong, or worth a look, in a configuration. Never holds a secret.
public struct Diagnostic: Sendable, Hashable {
    /// `error` keeps the configuration from being used.
    public enum Severity: String, Sendable { case error, warning }

    /// Where the fault is.
    public var mark: Mark
    /// How much it matters.
    public var severity: Severity
    /// The text: a line without a full stop.
    public var message: String

    /// - Parameter message: one line without a full stop and without a secret.
    public init(_ severity: Severity, _ message: String, at mark: Mark) {
        self.mark = mark
        self.severity = severity
        self.message = message
    }
}

extension Diagnostic: CustomStringConvertible, Comparable {
    /// `file:line:column severity message`, as `cardea check` prints it.
    public var description: String {
        var place = mark.file
        if mark.line > 0 { place += ":\(mark.line)" }
        if mark.line > 0 && mark.column > 0 { place += ":\(mark.column)" }
        return "\(place) \(severity.rawValue) \(message)"
    }

    /// By place, then by message.
    public static func < (left: Diagnostic, right: Diagnostic) -> Bool {
        (left.mark.file, left.mark.line, left.mark.column, left.message)
            < (right.mark.file, right.mark.line, right.mark.column, right.message)
    }
}
