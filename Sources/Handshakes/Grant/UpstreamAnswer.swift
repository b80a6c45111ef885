internal import Octets

/// An answer of the upstream, as a scheme may look at it to find a challenge.
public struct UpstreamAnswer: Sendable {
    /// The status code (RFC 9110 §15).
    public var status: Int
    /// All field lines in order, as received.
    public var fields: [(name: [UInt8], value: [UInt8])]
    /// At most 64 KiB, and only where the scheme `readsBody`.
    public var body: [UInt8]?
    /// The absolute URL of the refused request, as the upstream sees it.
    public var requestURL: String
    /// The method of the refused request.
    public var requestMethod: [UInt8]

    /// - Parameter body: nil where it was not read.
    public init(
        status: Int, fields: [(name: [UInt8], value: [UInt8])], body: [UInt8]? = nil, requestURL: String,
        requestMethod: [UInt8]
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.requestURL = requestURL
        self.requestMethod = requestMethod
    }

    /// The values of the field lines of a name, in any case.
    package func values(of name: String) -> [[UInt8]] { fields.filter { $0.name.matches(name) }.map(\.value) }
}
