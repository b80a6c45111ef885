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
    /// Hosts that are reached without it.
    public var except: [Match.Host] = []

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
