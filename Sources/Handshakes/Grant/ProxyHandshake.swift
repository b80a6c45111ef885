/// The authentication of a connection at a proxy on the way, by messages that both sides send in turn (RFC 4559 §5, [MS-NTHT]): NTLM, and Kerberos
/// by Negotiate.
///
/// The credential is the gateway's own, and the connection then carries the requests of everybody who goes that way.
public protocol ProxyHandshake: Sendable {
    /// The scheme of HTTP that carries the messages, as a field has it.
    var word: String { get }
    /// Messages before the one that the proxy judges the credential by; it may refuse none of them for that.
    var openingMessages: Int { get }
    /// Messages of ours on one connection.
    var mostMessages: Int { get }
    /// A proxy may want a message with each request, and remember nothing of the connection.
    var mayBeOfEachRequest: Bool { get }

    /// Somebody may count refusals, and lock the account after some.
    var isCounted: Bool { get }

    /// - Parameter secret: as it was read last.
    func begin(with secret: [UInt8]) -> any ProxyConversation

    /// A proxy has refused the credential: what it was made of may be out of date.
    func noteRefusal()

    /// A credential that was refused may be tried again.
    func forgetRefusals()
}

/// The messages of one connection. Used by one at a time.
public protocol ProxyConversation: Sendable {
    /// Makes the next message.
    ///
    /// - Parameters:
    ///   - received: the proxy's message as its challenge has it, in base64; nil for the first one.
    ///   - milliseconds: that are waited for it.
    ///   - completion: told once, on any thread, maybe before the call returns: the message in octets, at most 64 KiB. Its failures are safe text.
    func answer(
        _ received: [UInt8]?, within milliseconds: Int64,
        then completion: @escaping @Sendable (Result<[UInt8], GrantFailure>) -> Void)
}
