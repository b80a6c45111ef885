public import Configuration
internal import Handshakes
public import Keeping

/// Logins and logouts of the running gateway. Everything here must be called on the keeper's loop, where admin requests are answered.
extension Gateway {
    /// - Parameter redirectPort: the port of this machine's loopback where the caller awaits the browser; nil where a person pastes.
    public func login(identity: String, redirectPort: UInt16?) -> LoginStart {
        keeper.assumeIsolated { $0.beginLogin(identity, redirectPort: redirectPort) }
    }

    /// Must be called on the keeper's loop.
    /// - Parameter identity: the name in the configuration.
    public func logout(identity: String) -> LoginStart { keeper.assumeIsolated { $0.beginLogout(identity) } }

    /// Nil when it is not known, or forgotten.
    public func loginReport(_ flow: String) -> LoginReport? { keeper.assumeIsolated { $0.login(flow) } }

    /// - Parameter query: of the request that the browser made to the redirect address, as received.
    public func loginRedirected(_ flow: String, query: String) -> RedirectReply? {
        keeper.assumeIsolated { $0.redirected(flow, query) }
    }

    /// Nil when the flow is not known, or forgotten. Must be called on the keeper's loop.
    public func cancelLogin(_ flow: String) -> LoginReport? { keeper.assumeIsolated { $0.cancelLogin(flow) } }
}

extension Gateway {
    /// How the browser comes back after a login of the identity: what whoever leads the person has to listen on.
    public struct BrowserReturn: Sendable, Equatable {
        /// nil: any.
        public var port: UInt16?
        /// The path that the browser is sent back to, with its `/`.
        public var path: String
        /// Otherwise a person has to bring the address.
        public var isLoopback: Bool
    }

    /// Nil where no browser comes back.
    public static func loginRedirect(of name: String, in configuration: Configuration) -> BrowserReturn? {
        guard let identity = configuration.identity(named: name) else { return nil }
        let compiler = IdentityCompiler(
            environment: { _ in nil }, secretFiles: configuration.secretFiles, persists: false)
        let handshake = (try? compiler.handshake(of: identity, statuses: nil)) as? any InteractiveHandshake
        return handshake?.redirect.map { BrowserReturn(port: $0.port, path: $0.path, isLoopback: $0.isLoopback) }
    }
}
