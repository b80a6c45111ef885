/// Whether an identity's person has to come, and by when.
public struct LoginNeed: Sendable, Equatable {
    /// How urgent a login is.
    public enum Word: String, Sendable {
        case good
        /// The material of the last login ends soon, or an upstream asks for a login of another kind.
        case soon
        case needed
    }

    /// Whether a person has to come.
    public var word: Word
    /// Nanoseconds until what the last login brought ends; nil where its issuer has not said.
    public var expiresIn: UInt64?
    /// The authentication that an upstream asks of the next login, in the words of its challenge (RFC 9470); nil where none does.
    public var asked: String?
}
