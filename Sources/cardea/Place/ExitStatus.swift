import ArgumentParser

/// The statuses that `cardea` ends with.
enum ExitStatus {
    static let unavailable: Int32 = 69
    static let internalFault: Int32 = 70
    static let configuration: Int32 = 78
    /// EX_TEMPFAIL of sysexits.h: whoever restarts services shall try again.
    static let passing: Int32 = 75
}

extension ExitCode {
    /// A command's end, with the reason on standard error.
    init(_ status: Int32, saying reason: String) {
        ConfigurationAccess.complain("cardea: \(reason)")
        self.init(status)
    }
}
