/// Signs the body of one request while it passes: signatures that stand in it are replaced by others of the same length, so that no
/// length that was announced changes.
///
/// A pure machine. It belongs to the exchange of its request, on one data loop, and keeps no octet of the body: whoever drives it holds what
/// has come and may not pass yet.
public protocol BodySigner: AnyObject {
    /// Octets of the body that have to be held at once before any more of them can pass, as far as is known; bounded.
    var room: Int { get }

    /// Reads what has come since the last call, and replaces each signature whose part of the body is whole.
    ///
    /// - Parameter held: everything that has come and may not have passed yet, in its order. The same octets stand in front in each call,
    ///   without those that the last call let go.
    /// - Returns: how many octets at the front may pass; the others are to be held.
    /// - Throws: where the body is not what its head announced. Nothing of it may pass from then on.
    func sign(_ held: UnsafeMutableRawBufferPointer) throws(BodyFault) -> Int

    /// The body has ended with what the last call was given.
    /// - Throws: where it ended too early.
    func end() throws(BodyFault)
}

/// The reason why a body cannot be signed while it passes. Its caller is told.
public struct BodyFault: Error, Sendable, Equatable {
    /// A clause for a sentence, without a value of the request.
    public var reason: String
    /// A part of it is larger than what may be held; otherwise it is malformed.
    public var isTooLarge: Bool

    init(_ reason: String, isTooLarge: Bool = false) {
        self.reason = reason
        self.isTooLarge = isTooLarge
    }
}
