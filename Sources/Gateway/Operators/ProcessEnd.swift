/// The statuses that `cardea` ends with, of sysexits.h where that has one; docs/reference/exit-status.md is made of them.
package enum ProcessEnd: Int32, Sendable, CaseIterable {
    case good = 0
    /// A command looked at something that is not as it should be.
    case finding = 1
    /// EX_USAGE.
    case usage = 64
    /// EX_UNAVAILABLE.
    case unavailable = 69
    /// EX_SOFTWARE.
    case internalFault = 70
    /// EX_TEMPFAIL: whoever restarts services shall try again.
    case passing = 75
    /// EX_CONFIG.
    case configuration = 78

    /// The meaning of the status, in a few words.
    package var meaning: String {
        switch self {
        case .good: "good"
        case .finding: "what health, store verify or audit verify looked at is not good, or explain found no route"
        case .usage: "bad usage, or a name that the configuration does not have"
        case .unavailable:
            "an issuer, an upstream or the gateway cannot be reached; for run --confine-strictly, the machine does not allow it"
        case .internalFault: "our fault"
        case .passing: "an address is taken: try again"
        case .configuration: "bad configuration; for check --strict also one with a warning"
        }
    }

    /// The advice to whoever sees the status.
    package var advice: String {
        switch self {
        case .good: "Nothing."
        case .finding: "Read what the command printed; health is for probes, which act on the status alone."
        case .usage: "Read the message: it names the argument and what would do. 'cardea help COMMAND' has all options."
        case .unavailable:
            "Read the message: it names what does not answer. For a command that asks the gateway, see whether it runs, as which user, and with which configuration."
        case .internalFault: "Report it with the message and the log around it."
        case .passing: "Nothing where a service manager restarts cardea; else see who has the address."
        case .configuration: "Correct the file: 'cardea check' shows every mistake with line and column."
        }
    }
}
