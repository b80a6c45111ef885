/// Where a route's requests say for whom they are.
package struct SubjectPlan: Sendable {
    package let source: Source
    /// The field, in lower case; empty for certificates.
    package let field: [UInt8]

    package init(source: Source, field: [UInt8]) {
        self.source = source
        self.field = field
    }

    package enum Source: UInt8, Sendable { case header, certificate, callerToken }

    /// Bytes of a name.
    static let longestName = 256
    /// Bytes of a caller's token: it has to fit into a form, and is kept as long as its user is.
    static let longestToken = 8192

    /// The first octet of the key of a token's digest. No name begins with it, since it is a control character.
    package static let digestMark: UInt8 = 1
    static let digestSize = 33
}
