/// The kinds of rows. Numbers are the file's format: never reuse one.
package enum RowKind {
    static let access: UInt8 = 1
    static let session: UInt8 = 2
    static let durable: UInt8 = 3
    static let learned: UInt8 = 4
    static let attempt: UInt8 = 5
    static let markKey: UInt8 = 6
    /// Digests of identities whose access rows may be there.
    static let owners: UInt8 = 7
    /// Versions of sessions, as a fleet counts them; after the sessions.
    static let version: UInt8 = 8
    /// Families of refresh tokens that the configuration names and that are spent.
    static let family: UInt8 = 9
    /// Histories of secrets whose attempts are counted: whether each was accepted, and what was seen since.
    static let history: UInt8 = 10
    /// The names that operators see of kinds that hold something of an identity.
    package static let names: [(kind: UInt8, name: String)] = [
        (access, "token"), (session, "session"), (durable, "durable"), (learned, "learned"), (attempt, "attempt"),
    ]
    /// Kinds with a row for each token, of which there may be millions: looked up when they are missed, not read at boot.
    package static let spilled: Set<UInt8> = [access]
    /// Kinds of rows that nobody gives us again.
    package static let lasting: Set<UInt8> = [session, durable, attempt, markKey, version, family, history]
}
