/// The reason for which a document was not read. Holds no part of it.
public struct XMLFault: Error, Sendable, Equatable, CustomStringConvertible {
    /// A clause for a sentence.
    public let description: String

    init(_ description: String) { self.description = description }
}
