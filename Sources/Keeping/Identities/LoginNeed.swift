/// Whether an identity's person has to come, and by when.
public struct LoginNeed: Sendable, Equatable {
    /// How urgent a login is.
    public enum Word: String, Sendable {
        case good
        /// The material of the last login ends soon.
        case soon
        case needed
    }

    /// Whether a person has to come.
    public var word: Word
    /// Nanoseconds until what the last login brought ends; nil where its issuer has not said.
    public var expiresIn: UInt64?
}
