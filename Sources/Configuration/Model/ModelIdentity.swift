/// Who we are to an issuer, and how a token is had.
public struct Identity: Sendable {
    /// Unique among identities.
    public var name: String
    /// Where the identity stands in the file.
    public var mark: Mark
    /// The settings of the identity's one scheme block.
    package var scheme: any ConfiguredScheme
    /// The secrets of the scheme's block by the names under which the handshake asks for them.
    package var secrets: [NamedSecretReference]
    /// `token`.
    public var token: TokenPolicy
    /// `network`.
    public var network: Network
    /// For routes that name none.
    public var scopes: [String]
    /// Every key of the handshake block that differs from its default, canonicalised, without secret values:
    /// the input of the identity's digest (docs/design/keys.md#digest). It starts with the handshake's name.
    public var canonicalForm: [UInt8]
}

/// `token`: how tokens are renewed, kept and given up.
public struct TokenPolicy: Sendable, Equatable {
    /// How long before its end a token is renewed.
    public enum RefreshAhead: Sendable, Equatable {
        /// A share of the token's life, 1 to 90.
        case percent(Int)
        case before(Duration)
    }

    /// The tokens that are served while an issuer fails.
    public enum OnIssuerFailure: Sendable, Equatable {
        /// Valid tokens are served while renewals fail.
        case serveValid
        /// Serving stops when a renewal fails.
        case fail
        /// Expired tokens are served for this long, marked.
        case serveExpired(for: Duration)
    }

    /// Whether a token is had before the gateway is ready, and whether it fails to start without one.
    public enum Startup: String, Sendable, CaseIterable { case lazy, wait, required }
    /// `offline`: the issuer is never called; `online`: nothing is served from the store at boot.
    public enum Connectivity: String, Sendable, CaseIterable { case auto, online, offline }

    /// `token.refresh_ahead`.
    public var refreshAhead: RefreshAhead
    /// For tokens whose issuer names no lifetime.
    public var defaultLifetime: Duration
    /// `token.on_issuer_failure`.
    public var onIssuerFailure: OnIssuerFailure
    /// `token.startup`.
    public var startup: Startup
    /// Rejections after which a credential is not sent again until it changes.
    public var loginAttempts: Int
    /// Whether the last attempt that an issuer announces may be used.
    public var allowLastAttempt: Bool
    /// How long an issuer's failure, or the refusal of a token just granted, is remembered.
    public var negativeFor: Duration
    /// The longest a request waits for a token.
    public var acquireTimeout: Duration
    /// Whether tokens go to the store, and to the other gateways of a fleet.
    public var persist: Bool
    /// `token.connectivity`.
    public var connectivity: Connectivity
}

/// `network`: calls to the issuer.
public struct Network: Sendable, Equatable {
    /// `network.tls`.
    public var tls: ClientTLS
    /// `network.proxy`; nil: calls go straight to the issuer.
    public var proxy: OutgoingProxy?
    /// For one whole call.
    public var timeout: Duration
    /// Calls at the same time.
    public var connections: Int
    /// Whether credentials may go over `http:` beyond this machine.
    public var allowCleartext: Bool
    /// Addresses to connect to instead of asking the resolver, by lower-case host name.
    public var resolve: [String: [IPAddress]]
}

/// `tls` of a route or a network: how we connect to a server.
public struct ClientTLS: Sendable, Equatable {
    /// A certificate authority that servers are checked by.
    public enum Authority: Sendable, Hashable {
        case system
        /// A PEM file with one or more certificates.
        case file(String)
    }

    /// The least version of TLS.
    public enum Version: String, Sendable, CaseIterable, Comparable {
        case tls12 = "1.2"
        case tls13 = "1.3"
        /// An older version is less.
        public static func < (left: Version, right: Version) -> Bool { left.rawValue < right.rawValue }
    }

    /// Never empty.
    public var authorities: [Authority]
    /// The certificate that we show a server that asks for one.
    public var identity: ClientKeyFiles?
    /// Sent as SNI and checked in the certificate instead of the host.
    public var serverName: String?
    /// `tls.min_version`.
    public var minVersion: Version
    /// Old ciphers, key sizes and renegotiation, for old servers.
    public var legacy: Bool
}

/// A client's certificate with its key.
public struct ClientKeyFiles: Sendable, Hashable {
    /// A PEM file (the leaf first, then its issuers) or a PKCS#12 archive.
    public var certificate: String
    /// The key in PEM; nil: it stands in the certificate's own file.
    public var key: SecretReference?
    /// The passphrase of the key or the PKCS#12 archive.
    public var password: SecretReference?

    /// Memberwise.
    public init(certificate: String, key: SecretReference?, password: SecretReference?) {
        self.certificate = certificate
        self.key = key
        self.password = password
    }
}

/// Where the token comes from that is exchanged.
public enum SubjectToken: Sendable, Equatable {
    case secret(SecretReference)
    /// A new token of the identity with this name.
    case identity(String)
}

/// A name with its value, where order counts.
public struct NamedValue: Sendable, Hashable {
    /// Compared as it is written.
    public var name: String
    /// Any text.
    public var value: String

    /// Memberwise.
    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}
