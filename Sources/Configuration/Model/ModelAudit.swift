/// `audit`: a log of acts that shows every later change.
public struct AuditLog: Sendable, Equatable {
    /// The log; its key stands beside it.
    public var path: String
    /// Under which names of end users become pseudonyms; nil: records name no user.
    public var subjectKey: SecretReference?

    /// `audit.uses`.
    public var uses: Uses
    /// `audit.on_trouble`.
    public var onTrouble: Trouble

    /// How uses of credentials are recorded.
    public enum Uses: String, Sendable, CaseIterable { case counted, each }
    /// What a request meets whose use finds no place.
    public enum Trouble: String, Sendable, CaseIterable { case count, block }

    /// Octets that `audit.subject_key` has at least: fewer can be guessed, and with them every name.
    public static let shortestSubjectKey = 16
}
