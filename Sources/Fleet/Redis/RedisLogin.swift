/// Who we are to the server, beside the password, which is read anew for each connection.
public struct RedisLogin: Sendable {
    /// Nil: the default user.
    public var username: String?
    /// The number for `SELECT`.
    public var database: Int

    /// Memberwise.
    public init(username: String? = nil, database: Int = 0) {
        self.username = username
        self.database = database
    }
}
