import ArgumentParser
import Gateway

/// The statuses that `cardea` ends with, by what they are called here.
enum ExitStatus {
    static let unavailable = ProcessEnd.unavailable.rawValue
    static let internalFault = ProcessEnd.internalFault.rawValue
    static let configuration = ProcessEnd.configuration.rawValue
    static let passing = ProcessEnd.passing.rawValue

    /// All of them in one sentence.
    static let summary = ProcessEnd.allCases.map { "\($0.rawValue) \($0.meaning)" }.joined(separator: "; ")
}

extension ExitCode {
    /// A command's end, with the reason on standard error.
    init(_ status: Int32, saying reason: String) {
        ConfigurationAccess.complain("cardea: \(reason)")
        self.init(status)
    }
}
