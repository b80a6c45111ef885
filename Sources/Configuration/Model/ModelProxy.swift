/// `proxy` of a route or a network: the HTTP proxy on the way to a server.
public struct OutgoingProxy: Sendable, Hashable {
    /// Always clear text: TLS to the server runs through it end to end.
    public var host: String
    /// The proxy's port.
    public var port: UInt16
    /// The user at the proxy; `password` stands beside it, or neither does.
    public var username: String?
    /// Read when a connection is made.
    public var password: SecretReference?
    /// The functions with which challenges of HTTP Digest are answered; with none, the password goes as Basic.
    public var digest: [DigestFunction] = []
    /// NTLM goes in this scheme of HTTP, as the user; nil: it does not.
    public var ntlm: NTLMWord?
    /// Kerberos, in the place of user and password.
    public var tickets: TicketSource?
    /// The proxy's name in Kerberos, `HTTP/host@REALM` or `HTTP@host`; nil: `HTTP` at its host.
    public var service: String?
    /// Hosts that are reached without it.
    public var except: [Match.Host] = []

    /// The secrets that are shown to it, by their keys.
    public var secrets: [(key: String, reference: SecretReference)] {
        let password = password.map { (key: "password", reference: $0) }
        return [password, tickets?.keys.map { (key: "negotiate.keytab", reference: $0) }].compactMap(\.self)
    }

    /// - Parameter host: lower case, without brackets.
    public func serves(_ host: String) -> Bool {
        !except.contains { exception in
            switch exception {
            case .exact(let name): host == name
            case .oneLabel(let suffix):
                host.hasSuffix(suffix) && host.utf8.count > suffix.utf8.count
                    && !host.dropLast(suffix.count).contains(".")
            }
        }
    }
}
