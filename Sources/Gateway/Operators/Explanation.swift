public import Configuration
public import DataPath
internal import HTTP1
internal import Handshakes
internal import HotCache
internal import Keeping
internal import Reactor
internal import Tokens

/// Which route a request would take, with which identity and key, and why. Made from the configuration alone, by the code that routes
/// real requests; nothing is sent.
public struct Explanation: Encodable, Sendable {
    /// A route that was considered.
    public struct Candidate: Encodable, Sendable {
        /// The route's name.
        public var route: String
        /// nil: the request is this route's.
        public var mismatch: String?
    }

    /// The address that the URL names; nil where no listener has it, and the routes of all are looked at.
    public var listener: String?
    /// In order, up to the first that matches.
    public var candidates: [Candidate]
    /// The name of the route that the request takes; nil where it takes none.
    public var route: String?
    /// Where the configuration has it: file, line, column.
    public var routePlace: String?
    /// The URL at the upstream: its origin, the path of the route's `to`, and the caller's path without `rewrite.strip_prefix`.
    public var upstreamURL: String?
    /// Origin of the route's `to`, as the state of tokens names it.
    public var origin: String?
    /// The name of the route's identity; nil where it adds no credential.
    public var identity: String?
    /// The names of the route's identities, in order, where it has a list; `identity` is the first.
    public var identities: [String]?
    /// The identity's scheme.
    public var scheme: String?
    /// Whether a token needs a challenge of the upstream.
    public var isChallengeDriven = false
    /// The account's user and the issuer's host, or the host alone; nil for schemes without an issuer.
    public var account: String?
    /// The credential without its value, then the other fields that the route sets in the request.
    public var injects: [String] = []
    /// The consequence of an answer that refuses the credential.
    public var onRefusal: Refusal?
    /// Members of the token's key, by name.
    public var key: [(name: String, value: String)] = []
    /// Remarks on anything else that would decide about the request.
    public var notes: [String] = []

    /// The statuses in which a refusal may stand, and what follows.
    public struct Refusal: Encodable, Sendable {
        /// Status codes of the upstream's answer.
        public var statuses: [Int]
        /// The consequence, in a sentence.
        public var consequence: String
    }

    /// Every member but the key, which is no object here, and `origin`, which names the upstream once more.
    private enum CodingKeys: String, CodingKey {
        case listener, candidates, route, routePlace, upstreamURL, identity, identities, scheme, account, injects,
            onRefusal, notes
        case isChallengeDriven = "challengeDriven"
    }
}

extension Explanation {
    /// - Parameters:
    ///   - url: absolute, as the caller would call it.
    ///   - headers: of the caller's request; a `Host` among them wins over the URL's.
    /// - Throws: where the request is none, or the configuration cannot be served.
    public init(
        method: String, url text: String, headers: [(name: String, value: String)], configuration: Configuration,
        environment: @escaping @Sendable (String) -> String?
    ) throws(GatewayFault) {
        guard let url = IssuerURL(text) else {
            throw GatewayFault("'\(text)' is not an absolute URL such as http://127.0.0.1:8080/path")
        }
        let cache = HotCache(readers: 1, slots: 4096, byteLimit: 1 << 20)
        let compiled = try CompiledConfiguration(
            configuration, environment: environment, persists: configuration.store.path != nil, cache: cache, loops: 1)
        let plan = compiled.plan
        let listener = plan.listeners.first { $0.isMeant(by: url) }
        self.listener = listener?.text
        candidates = []
        if listener == nil { notes.append("no listener has the address \(url.authority); all routes are looked at") }
        let found = try find(
            in: listener?.routes ?? plan.routes, of: plan, at: listener, method: method, url: url, headers: headers)
        guard let found else {
            notes.append("no route matches: the caller would get 404")
            return
        }
        let first = found.alternatives.first ?? found
        guard let kept = compiled.compiler.keptRoutes.first(where: { $0.number == first.number }) else {
            route = found.name
            routePlace = Self.place(of: found, configuration)
            notes.append("the route answers token requests itself, with a placeholder; nothing is forwarded")
            return
        }
        describe(first, url: url, kept: kept, configuration)
        if let choice = found.choice {
            identities = choice.members.map(\.identity)
            let names = choice.members.map { "\($0.identity) (\($0.schemes.joined(separator: ", ")))" }
            notes.append(
                "the first of these answers whose scheme the upstream's challenge offers: \(names.joined(separator: ", ")); until one did, requests go out without a credential. The first is told here"
            )
        }
    }

    /// The first route that matches, asked with a head as a caller would send it.
    private mutating func find(
        in routes: [RoutePlan], of plan: GatewayPlan, at listener: ListenerPlan?, method: String, url: IssuerURL,
        headers: [(name: String, value: String)]
    ) throws(GatewayFault) -> RoutePlan? {
        var text = "\(method) \(url.path) HTTP/1.1\r\n"
        if !headers.contains(where: { $0.name.lowercased() == "host" }) { text += "Host: \(url.authority)\r\n" }
        for header in headers { text += "\(header.name): \(header.value)\r\n" }
        let bytes = Array((text + "\r\n").utf8)
        let scratch = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        defer { scratch.deallocate() }
        var head = RequestHead(maxFields: 128)
        var found: RoutePlan?
        let fault = bytes.withUnsafeBytes { bytes -> HeadFault? in
            do throws(HeadFault) {
                guard try head.parse(bytes.octets, limits: HeadLimits()) == bytes.count else { return nil }
            } catch { return error }
            for route in routes {
                // A proxy's callers name another server than us.
                let isProxied = plan.listeners.allSatisfy { other in
                    other.forward.mode != .gateway
                        || listener.map { $0 !== other } ?? !other.routes.contains { $0 === route }
                }
                let port = isProxied ? head.namedPort(bytes.octets) ?? 0 : nil
                let mismatch = route.matches.mismatch(head, in: bytes, port: port)
                candidates.append(Candidate(route: route.name, mismatch: mismatch.map { route.matches.words(for: $0) }))
                guard mismatch == nil else { continue }
                if route.strictPaths, route.identity != nil, validateStrictPath(bytes[head.path].octets) != .clean {
                    notes.append("the path can be read in two ways: the caller would get 400, unless 'paths: raw'")
                }
                if let other = listener?.table.lenient?.other(
                    than: route, for: head, in: bytes, port: port, scratch: UnsafeMutableRawBufferPointer(scratch))
                {
                    notes.append(
                        "other servers read the path as one of route \(other.name): the caller would get 400, unless 'paths: raw'"
                    )
                }
                if let listener, listener.checksHost(on: route),
                    !listener.serves(head, in: bytes, on: route, tls: nil)
                {
                    notes.append(
                        "the Host is none of ours: the caller would get 421, unless 'hosts' of the route or its listener names it"
                    )
                }
                found = route
                break
            }
            return nil
        }
        if let fault { throw GatewayFault("not a request: \(fault.reason)") }
        return found
    }

    private static func place(of route: RoutePlan, _ configuration: Configuration) -> String? {
        configuration.routes.first { $0.name == route.name }.map { "\($0.mark.file):\($0.mark.line)" }
    }

    private mutating func describe(
        _ route: RoutePlan, url: IssuerURL, kept: KeptRoute, _ configuration: Configuration
    ) {
        self.route = route.name
        let stripped = Array(url.path.utf8).withUnsafeBytes { route.edits.strippedLength(of: $0.octets) }
        upstreamURL =
            route.upstream.origin + route.pathPrefix
            + String(decoding: url.path.utf8.dropFirst(stripped), as: UTF8.self)
        origin = kept.origin.description
        routePlace = Self.place(of: route, configuration)
        guard let identity = kept.identity else {
            injects = Self.identifiers(of: route)
            notes.append("the route uses no identity: no credential is added to the request")
            return
        }
        self.identity = identity.plan.name
        scheme = identity.plan.handshake.scheme
        if let account = identity.account {
            self.account = "\(account.user) at \(account.issuer.host)"
        } else if let issuer = identity.issuer {
            account = "\(issuer.host)"
        }
        injects = Self.effects(of: route, identity.plan)
        onRefusal = Refusal(
            statuses: identity.plan.inspectedStatuses, consequence: Self.consequence(on: route, identity))
        isChallengeDriven = identity.policy.kind == .challengeDriven
        key = [("identity", identity.digest.description), ("origin", kept.origin.description)]
        if kept.bindsToURL {
            key.append(("url", "each has a token of its own"))
        } else if let realm = kept.realm {
            key.append(("realm", realm.description))
        } else if isChallengeDriven {
            key.append(("realm", "as the upstream's challenge names it"))
        }
        if !kept.scopes.isEmpty { key.append(("scopes", kept.scopes.description)) }
        if let audience = kept.audience { key.append(("audience", audience.description)) }
        if let resource = kept.resource { key.append(("resource", resource.description)) }
        notes += identity.plan.handshake.explanation
        if route.conceals { notes.append("answers that show the credential get there with '*' in its place") }
        switch route.subject?.source {
        case .header?:
            key.append(("subject", "by header " + String(decoding: route.subject?.field ?? [], as: UTF8.self)))
        case .certificate?: key.append(("subject", "by the caller's certificate"))
        case .callerToken?: key.append(("subject", "by the digest of the caller's token"))
        case nil: break
        }
    }
}

extension ListenerPlan {
    /// Whether a request to the URL would arrive here. A host name may lead to any address of this machine.
    fileprivate func isMeant(by url: IssuerURL) -> Bool {
        guard !isUnix, let port = address.port, Int(port) == url.port else { return false }
        guard let literal = SocketAddress(host: url.host, port: port) else { return true }
        return literal == address || ["0.0.0.0", "::"].contains(address.host)
    }
}

extension RouteMatch {
    fileprivate func words(for mismatch: RouteMismatch) -> String {
        switch mismatch {
        case .host:
            switch host {
            case .exact(let name): "the host is not \(String(decoding: name, as: UTF8.self))"
            case .oneLabel(let suffix): "the host is not one label before \(String(decoding: suffix, as: UTF8.self))"
            case .any: "the host"
            }
        case .port: "the port is none of \(ports.map { "\($0)" }.joined(separator: ", "))"
        case .path:
            switch path {
            case .exact(let path): "the path is not \(String(decoding: path, as: UTF8.self))"
            case .prefix(let path): "the path is not below \(String(decoding: path, as: UTF8.self))"
            case .any: "the path"
            }
        case .method:
            "the method is none of \(methods.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ", "))"
        case .header(let index): "header \(String(decoding: headers[index].name, as: UTF8.self)) has another value"
        }
    }
}
