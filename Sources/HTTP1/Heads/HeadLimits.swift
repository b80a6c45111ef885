/// Bounds of one message head.
public struct HeadLimits: Sendable, Equatable {
    /// Bytes of the whole head with its empty line.
    public var headSize: Int
    /// Field lines; a `RequestHead` or `ResponseHead` made with a smaller table has the smaller bound.
    public var fields: Int
    /// Bytes of the request target.
    public var target: Int
    /// Bytes of the method.
    var method: Int
    /// Names in all `Connection` fields together: each is compared with every field.
    var connectionOptions: Int

    /// Octets for `headSize`, `target` and `method`, counts for the others; clamped to what a range can hold.
    public init(
        headSize: Int = 64 << 10, fields: Int = 128, target: Int = 8 << 10, method: Int = 64,
        connectionOptions: Int = 32
    ) {
        // Ranges are Int32; a limit beyond that could not be honoured.
        self.headSize = min(max(headSize, 16), Int(Int32.max) / 2)
        self.fields = max(fields, 1)
        self.target = max(target, 1)
        self.method = max(method, 1)
        self.connectionOptions = max(connectionOptions, 1)
    }
}
