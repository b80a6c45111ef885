/// Which requests go where, with which identity.
public struct Route: Sendable, Equatable {
    /// `use`: whether a credential is added.
    public enum Use: Sendable, Hashable {
        case none
        case identity(String)
    }

    /// Whether a challenge that offers only later identities of the list than the one that answers may have another one answer.
    public enum Downgrade: String, Sendable, CaseIterable { case refuse, allow }

    /// The `Host` toward the upstream.
    public enum HostHeader: Sendable, Equatable {
        case upstream
        case caller
        case name(String)
    }

    /// Whether ambiguous paths are refused or passed.
    public enum Paths: String, Sendable, CaseIterable { case strict, raw }

    /// The protocol of the upstream's connection; `auto` agrees on it by ALPN.
    public enum HTTPVersion: String, Sendable, CaseIterable {
        case auto
        case http1 = "1.1"
        case http2 = "2"
    }

    /// The part of a request that names the end user.
    public enum Subject: Sendable, Hashable {
        case header(String)
        case clientCertificate
        case callerToken
    }

    /// `strip_prefix` is removed from the path; `response` names the caller's view in answers.
    public struct Rewrite: Sendable, Equatable {
        /// Taken off the request path; nil: nothing is.
        public var stripPrefix: String?
        /// Whether locations and cookies in answers are brought back to the caller's view.
        public var response = true
    }

    /// The fields that tell the upstream of the caller's connection.
    public struct Forwarded: Sendable, Equatable {
        /// Which fields are written.
        public enum Fields: String, Sendable, CaseIterable {
            /// `Forwarded` (RFC 7239).
            case standard
            /// `X-Forwarded-For`, `-Proto` and `-Host`.
            case legacy
            case both
        }
        /// The word that stands for the caller: an identifier made for each request, or its address.
        public enum Caller: String, Sendable, CaseIterable { case hidden, address }

        /// `forwarded.fields`.
        public var fields: Fields
        /// `forwarded.caller`: whether the caller's address is told.
        public var caller: Caller
    }

    /// The word that tells shared caches before us about answers to requests that got a credential here.
    public enum CacheControl: String, Sendable, CaseIterable { case `private`, pass }

    /// The treatment of a credential that an answer shows.
    public enum Answers: String, Sendable, CaseIterable {
        /// Answers pass as they come.
        case pass
        /// Its octets become `*`.
        case conceal

        /// Fields, in lower case, by which a request asks for an answer in a coding, in parts or as a difference: where answers are looked
        /// into, the gateway asks for whole ones as they are.
        public static let decidedFields = [
            "accept-encoding", "grpc-accept-encoding", "a-im", "range", "if-range", "request-range", "x-ms-range",
        ]
    }

    /// What becomes of `X-Request-Id`.
    public enum RequestID: String, Sendable, CaseIterable {
        /// It passes as the caller sent it.
        case pass
        /// The upstream gets the request's id.
        case send
        /// The upstream gets it, and the caller in the answer.
        case echo
    }

    /// How much of the upstream is taken at most, over all loops.
    public struct Limits: Sendable, Equatable {
        /// nil: no limit.
        public var connections: Int?
        /// Requests that may wait for a connection; more get 503.
        public var waiters = 1000
    }

    /// Active checks of the upstream's addresses.
    public struct Health: Sendable, Equatable {
        /// The path that the check asks for by GET; begins with `/`.
        public var path: String
        /// From the beginning of one check to that of the next, give or take a tenth.
        public var interval: Duration
        /// For one whole check.
        public var timeout: Duration
        /// Good checks in a row that bring an address back, and bad ones that take it out.
        public var healthy: Int
        /// Bad checks in a row that take an address out.
        public var unhealthy: Int
        /// nil: 200 to 299.
        public var statuses: [Int]?
    }

    /// `timeouts`: none of them covers the whole exchange.
    public struct Timeouts: Sendable, Equatable {
        /// Until a connection stands.
        public var connect: Duration
        /// From the end of the request to the response's head.
        public var response: Duration
        /// Between two bytes.
        public var idle: Duration
        /// The life of a connection to the upstream without a request.
        public var keepAlive: Duration
        /// After its last answer a kept connection takes requests that cannot be sent again for this long.
        public var reuse: Duration
        /// A request whose caller has closed its side before the answer goes on for this long.
        public var halfClosed: Duration
    }

    /// Unique.
    public var name: String
    /// Where the route stands in the file.
    public var mark: Mark
    /// Names of listeners, at least one.
    public var listen: [String]
    /// `match`.
    public var match: Match
    /// nil only with `tokenStub`.
    public var to: Upstream?
    /// `use`; of a list its first.
    public var use: Use
    /// The rest of a list, in its order: the first whose scheme a challenge offers answers it.
    public var alternatives: [String] = []
    /// `downgrade`.
    public var downgrade = Downgrade.refuse
    /// The identity's where the route names none.
    public var scopes: [String] = []
    /// `audience`; nil: none is asked for.
    public var audience: String?
    /// `resource`; nil: none is asked for.
    public var resource: String?
    /// `realm`: the realm that the token belongs to.
    public var realm: String?
    /// nil: one token for everybody.
    public var subject: Subject?
    /// `inject`: where the credential goes.
    public var inject: Injection
    /// `headers`.
    public var headers: HeaderEdits
    /// `host`: what `Host` says to the upstream.
    public var host = HostHeader.upstream
    /// `rewrite`.
    public var rewrite = Rewrite()
    /// nil: off.
    public var forwarded: Forwarded?
    /// `cache_control`.
    public var cacheControl = CacheControl.private
    /// `answers`: whether the route's credential is kept out of them.
    public var answers = Answers.pass
    /// Whether answers carry our `Server-Timing`.
    public var serverTiming = false
    /// `request_id`.
    public var requestID = RequestID.pass
    /// `paths`.
    public var paths = Paths.strict
    /// `on_rejected`.
    public var onRejected: OnRejected
    /// `timeouts`.
    public var timeouts: Timeouts
    /// `tls`.
    public var tls: ClientTLS
    /// `http`.
    public var http = HTTPVersion.auto
    /// Whether credentials may go over `http:` beyond this machine.
    public var allowCleartext = false
    /// `proxy`; nil: connections go straight to the upstream.
    public var proxy: OutgoingProxy?
    /// nil: off.
    public var health: Health?
    /// `limits`.
    public var limits = Limits()
    /// `callers`.
    public var callers: Callers
    /// `hosts`: names that callers may have in `Host` where their address alone admits them.
    public var hosts = ServedHosts()
    /// nil: requests are forwarded.
    public var tokenStub: TokenStub?
}

extension Route {
    /// All identities that it may use, in the order of the file.
    public var identityNames: [String] {
        guard case .identity(let name) = use else { return [] }
        return [name] + alternatives
    }

    /// The credential goes through a network in clear text. Behind a proxy nothing is loopback: the proxy reads it, and means its own.
    public var isReadOnTheWay: Bool {
        guard let to, to.origin.isCleartext else { return false }
        let isLocal = to.addresses.isEmpty ? to.origin.isLoopback : to.addresses.allSatisfy(\.isLocal)
        return !isLocal || proxy != nil
    }

    /// The route as it would be with one of its identities alone.
    public func using(_ name: String) -> Route {
        var route = self
        route.use = .identity(name)
        route.alternatives = []
        return route
    }
}

/// `token_stub`: how callers' own token requests are answered.
public struct TokenStub: Sendable, Equatable {
    /// A grant type of the caller's request (RFC 6749).
    public enum Grant: String, Sendable, CaseIterable {
        case clientCredentials = "client_credentials"
        case password
        case refreshToken = "refresh_token"
        case jwtBearer = "jwt_bearer"
        case saml2Bearer = "saml2_bearer"
        case tokenExchange = "token_exchange"
    }

    /// The value of `expires_in`.
    public var lifetime: Duration
    /// The grant types that are answered; never empty.
    public var grants: [Grant]
}

/// `to`: the token's host binding, and where to connect.
public struct Upstream: Sendable, Hashable {
    /// The only origin that the token goes to.
    public var origin: Origin
    /// Prepended to the request path; empty or `/…` without a slash at its end.
    public var pathPrefix: String
    /// Instead of resolving the origin's host; empty: resolve it.
    public var addresses: [Endpoint]
}

/// `match`: everything written must hold.
public struct Match: Sendable, Equatable {
    /// A host as `match` writes it.
    public enum Host: Sendable, Hashable {
        /// Lower case, without a port.
        case exact(String)
        /// `*.x`: exactly one label before `.x`; the value is `.x`.
        case oneLabel(String)
    }

    /// A path as `match` writes it.
    public enum Path: Sendable, Equatable {
        case exact(String)
        /// Ends in `/`.
        case prefix(String)
    }

    /// `match.host`; nil: every host.
    public var host: Host?
    /// `match.path`; nil: every path.
    public var path: Path?
    /// Ports of the server that a proxy's caller names; empty: 80, 443 and that of `to`.
    public var ports: [UInt16]
    /// Case-sensitive; empty: all.
    public var methods: [String]
    /// Names in lower case, values exact.
    public var headers: [NamedValue]
}

/// `inject`: where the credential goes.
public enum Injection: Sendable, Equatable {
    /// nil: as the identity's scheme has it.
    case header(name: String?, value: Template?, callerValue: CallerValue)
    case query(name: String)
    case cookie(name: String)

    /// The fate of the caller's own field of that name.
    public enum CallerValue: Sendable, Equatable {
        case drop
        /// Forwarded under this name.
        case keepAs(String)
    }

    /// A value with one `{token}` in it.
    public struct Template: Sendable, Equatable {
        /// The text before the token.
        public var prefix: String
        /// The text behind the token.
        public var suffix: String
    }
}

/// `headers`: edits toward the upstream; `remove` comes first.
public struct HeaderEdits: Sendable, Equatable {
    /// Fields that replace those of the same name.
    public var set: [NamedValue]
    /// Names, compared without case.
    public var remove: [String]
}

/// `on_rejected`: what a refused credential leads to.
public struct OnRejected: Sendable, Equatable {
    /// Whether a refused request is sent again with another credential.
    public enum Replay: String, Sendable, CaseIterable { case once, never }
    /// The treatment of a body that is larger than `max_body`.
    public enum LargeBody: String, Sendable, CaseIterable {
        case pass
        case expectContinue = "expect_continue"
        case probeHead = "probe_head"
    }
    /// The caller's answer when no better credential is to be had: a problem document, or the upstream's answer.
    public enum Final: String, Sendable, CaseIterable { case problem, pass }

    /// nil: not written, so the handshake judges; one that does not judge itself takes 401.
    public var statuses: [Int]?
    /// nil: all.
    public var methods: [String]?
    /// `on_rejected.replay`.
    public var replay: Replay
    /// Bytes of a request body that may be kept for a replay.
    public var maxBody: Int
    /// `on_rejected.large_body`.
    public var largeBody: LargeBody
    /// `on_rejected.final`.
    public var final: Final
}

/// `callers`: who is admitted; everything written must hold.
public struct Callers: Sendable, Hashable {
    /// The addresses that are admitted.
    public enum Allow: Sendable, Hashable {
        /// Loopback, a unix socket, or an address of this network namespace.
        case local
        /// Any address: another condition, or `unsafe_open`, stands in its place.
        case any
        case networks([Network])
    }

    /// An address block.
    public struct Network: Sendable, Hashable {
        /// Bits behind the prefix are zero.
        public var address: IPAddress
        /// Bits.
        public var prefixLength: Int
    }

    /// `callers.allow`.
    public var allow: Allow
    /// DNS names, URIs or mail addresses of which the caller's certificate must have one; empty: no condition.
    public var tlsNames: [String]
    /// The token that the caller brings as Bearer or as Basic password, to a proxy by `Proxy-Authorization`; nil: no condition.
    public var token: SecretReference?
    /// By name or number; empty: no condition.
    public var unixUsers: [String]
    /// Whether requests that a browser made for another site are admitted.
    public var browsers: Bool
    /// The operator's word that anybody may use the credential.
    public var unsafeOpen: Bool

    /// Whether what a caller shows is asked for, and not its address alone.
    public var asksForProof: Bool { token != nil || !tlsNames.isEmpty }
}

extension Route {
    /// The ports of its host for which a route stands where callers take us for a proxy, or do not know of us.
    public var proxyPorts: [UInt16] {
        if !match.ports.isEmpty { return match.ports }
        let standard: [UInt16] = [80, 443]
        guard let port = to?.origin.port, !standard.contains(port) else { return standard }
        return standard + [port]
    }

    /// Whether whoever can connect from an admitted address is served: a web page that had its own name lead here would be, too.
    public var restsOnAddress: Bool {
        switch subject {
        case .callerToken, .clientCertificate: false
        case .header, nil: !callers.asksForProof
        }
    }
}
