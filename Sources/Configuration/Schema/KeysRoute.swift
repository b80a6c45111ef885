extension Keys {
    /// The names of routes' keys in other programs.
    static let confusions = [
        "route": [
            "upstream": "to", "upstreams": "to", "backend": "to", "target": "to", "url": "to", "identity": "use",
            "auth": "use",
        ],
        "identity": ["oauth": "oauth2", "oidc": "oauth2", "mtls": "client_certificate", "api_key": "static"],
    ]

    static let route = Block(
        name: "route", description: "Which requests go where, with which identity.",
        keys: [
            KeySpec(
                "name", .text(.name), "In logs, metrics and explain; made from listen and path where it is not given."),
            KeySpec(
                "listen", .oneOrMore(.text(.listen)), "host:port, unix:/path, a listener's name, or a list of these.",
                required: true),
            KeySpec("match", .block(match), "Which requests; all where it is not given."),
            KeySpec("to", .text(.upstream), "The upstream: one origin with an optional path prefix."),
            KeySpec("addresses", .list(.text(.endpoint)), "Where to connect instead of the upstream's own address."),
            KeySpec(
                "use", .oneOrMore(.text(.name)),
                "An identity's name, or none: the caller's own credential passes. Of a list, the first answers whose scheme the upstream's challenge offers; until one did, requests go out without a credential. One of NTLM or Negotiate gets a connection to the upstream that serves the caller's connection alone, so a proxy in front of us must not share one connection among users."
            ),
            KeySpec(
                "downgrade", .words(Route.Downgrade.self),
                "Of a list under 'use': whether a challenge that no longer offers the scheme that answers, but one later in the list, has that one answer; refuse passes such a 401 to the caller, since who can forge it could ask for the weakest scheme."
            ),
            KeySpec("scopes", .list(.text(.scope)), "What the token is asked for."),
            KeySpec("audience", .text(.line), "Whom the token is for."),
            KeySpec("resource", .text(.line), "What the token is for (RFC 8707)."),
            KeySpec("realm", .text(.line), "The realm the token belongs to."),
            KeySpec(
                "subject", .either([.words(["from_client_certificate", "from_caller_token"]), .block(subject)]),
                "A token per end user, named by a header, by the caller's certificate, or by the caller's own token, which is then exchanged; needs callers."
            ),
            KeySpec("inject", .block(inject), "Where the credential goes; by scheme where it is not given."),
            KeySpec("headers", .block(headers), "Edits toward the upstream."),
            KeySpec(
                "host", .text(.hostHeader), "The Host toward the upstream: the authority of 'to', 'caller', or a name."),
            KeySpec("rewrite", .block(rewrite), "Paths toward the upstream, addresses in answers."),
            KeySpec(
                "forwarded", .either([.onOff, .block(forwarded)]),
                "What the upstream is told of the caller's connection; received fields of that kind count only from forwarded_from.",
                default: "off"),
            KeySpec(
                "cache_control", .words(Route.CacheControl.self),
                "Whether answers to requests that got a credential here keep out of shared caches before us, unless they say otherwise."
            ),
            KeySpec(
                "answers", .words(Route.Answers.self),
                "conceal keeps the route's credential from callers whose upstream shows it: in fields and bodies its octets become '*', also in base64, percent-encoded, or escaped as in JSON and HTML. Such a route asks for no Content-Encoding and answers 502 to one, asks for no ranges, and leaves HTTP for no other protocol."
            ),
            KeySpec(
                "server_timing", .onOff, "Whether answers carry Server-Timing: token, connection, upstream.",
                default: "off"),
            KeySpec(
                "request_id", .words(Route.RequestID.self),
                "X-Request-Id: pass leaves the caller's as it came; send gives the upstream the id that the access record has, which is the caller's own where it has at most 64 of A-Z a-z 0-9 . _ -, and made otherwise; echo tells the caller too, in the answer."
            ),
            KeySpec(
                "paths", .words(Route.Paths.self),
                "Whether ambiguous paths are refused or passed, also one that reads as another route's to servers that have no case, take ;… off, add a slash, or resolve dots and doubled or encoded slashes."
            ),
            KeySpec("on_rejected", .block(onRejected), "What a refused credential leads to."),
            KeySpec("timeouts", .block(timeouts), "Toward the upstream."),
            KeySpec("tls", .block(tls), "How we connect to the upstream."),
            KeySpec("http", .words(Route.HTTPVersion.self), "The protocol toward the upstream; auto asks by ALPN."),
            KeySpec(
                "allow_cleartext", .boolean, "Whether the credential may go over http: beyond this machine.",
                default: "false"),
            KeySpec(
                "proxy", proxyValue, "An HTTP proxy on the way to the upstream; off takes back the one under defaults."),
            KeySpec(
                "health", .either([.words(["off"]), .block(health)]),
                "Requests that find out which of the upstream's addresses are fit to be used; off takes back those under defaults.",
                default: "off"),
            KeySpec("limits", .block(routeLimits), "How much of the upstream is taken at most."),
            KeySpec("callers", .either([.words(["local"]), .block(callers)]), "Who is admitted.", default: "local"),
            KeySpec("hosts", .oneOrMore(.text(.hostPattern)), Keys.hostsHelp),
            KeySpec(
                "token_stub", .block(tokenStub),
                "Instead of to and use: answers a caller's own token request with a placeholder, which admits nobody and is deleted from every request that is forwarded."
            ),
        ])

    /// The key `hosts` of a listener and of a route.
    static let hostsHelp =
        "Names that callers may have in Host where their place alone admits them (no token, no tls_names); beside these an IP address, "
        + "a name without a dot, this machine's name, the host of 'to', match.host and the names in the TLS certificate that was shown are served, on loopback less; [any] switches the check off."

    static let tokenStub = Block(
        name: "token_stub", description: "How callers' own token requests are answered.",
        keys: [
            KeySpec(
                "lifetime", .duration(atLeast: .seconds(1)), "What expires_in says, in whole seconds.", default: "1h"),
            KeySpec(
                "grants", .oneOrMore(.words(TokenStub.Grant.self)),
                "The grants that are answered, all of these where it is not given; any other is an unsupported_grant_type."
            ),
        ])

    /// A name for all routes would make every second one a duplicate.
    static let defaultRoute = Block(
        name: "route", description: route.description, keys: route.keys.filter { $0.name != "name" })

    static let match = Block(
        name: "match", description: "Everything written must hold.",
        keys: [
            KeySpec("host", .text(.hostPattern), "Exact, or *.x for one label."),
            KeySpec("path", .text(.pathPattern), "A prefix that ends in '/', or exact."),
            KeySpec(
                "port", .oneOrMore(.integer(1...65535)),
                "In proxy modes: of the host that the caller names; 80, 443 and that of 'to' where it is not given. Another port of the host is unmatched."
            ),
            KeySpec("methods", .oneOrMore(.text(.method)), "Case-sensitive; all where it is not given."),
            KeySpec("headers", .named(.headerName, .text(.headerValue)), "Exact values."),
        ])

    static let subject = Block(
        name: "subject", description: "Where the end user's name comes from.",
        keys: [
            KeySpec(
                "from_header", .text(.headerName),
                "The header with the name: exactly one value of at most 256 bytes, else 403; removed before forwarding.",
                required: true)
        ])

    static let inject = Block(
        name: "inject", description: "Where the credential goes.",
        keys: [
            KeySpec("header", .text(.headerName), "The header; by scheme where it is not given."),
            KeySpec("value", .text(.template), "Its value with {token}; by scheme where it is not given."),
            KeySpec(
                "caller_value", .either([.words(["drop"]), .block(callerValue)]), "What becomes of the caller's own.",
                default: "drop"),
            KeySpec("query", .text(.scope), "The query parameter; instead of header."),
            KeySpec("cookie", .text(.method), "The cookie; instead of header."),
        ])

    static let callerValue = Block(
        name: "caller_value", description: "What becomes of the caller's own value.",
        keys: [KeySpec("keep_as", .text(.headerName), "The header under which it is forwarded.", required: true)])

    static let headers = Block(
        name: "headers", description: "Edits toward the upstream; remove comes first.",
        keys: [
            KeySpec("set", .named(.headerName, .text(.headerValue)), "Replaces or adds."),
            KeySpec("remove", .oneOrMore(.text(.headerName)), "Takes out."),
        ])

    static let rewrite = Block(
        name: "rewrite", description: "Paths toward the upstream, addresses in answers.",
        keys: [
            KeySpec("strip_prefix", .text(.absolutePath), "Taken off the request path."),
            KeySpec(
                "response", .onOff,
                "Whether Location, Content-Location and cookies that name the upstream become what the caller used, and WebDAV's Destination and the resource tags of If that name what the caller used the upstream's. Bodies are never edited: a multistatus keeps its hrefs, most of which are paths."
            ),
        ])

    static let forwarded = Block(
        name: "forwarded", description: "What the upstream is told of the caller's connection.",
        keys: [
            KeySpec(
                "fields", .words(Route.Forwarded.Fields.self),
                "Forwarded (RFC 7239), the older X-Forwarded-For, -Proto and -Host, or both."),
            KeySpec(
                "caller", .words(Route.Forwarded.Caller.self),
                "What stands for the caller: an identifier made for each request, or its address."),
        ])

    static let onRejected = Block(
        name: "on_rejected", description: "What a refused credential leads to.",
        keys: [
            KeySpec(
                "statuses", .list(.integer(400...599)),
                "Answers that refuse the credential; [401], or as the handshake judges."),
            KeySpec(
                "methods", .either([.words(["all"]), .list(.text(.method))]), "Methods that may be replayed.",
                default: "all"),
            KeySpec("replay", .words(OnRejected.Replay.self), "Whether a request is sent again with a new token."),
            KeySpec("max_body", .size, "The largest body that is kept for it.", default: "1MiB"),
            KeySpec(
                "large_body", .words(OnRejected.LargeBody.self),
                "What happens to larger ones: sent as they come, or held back until 100 Continue or a HEAD shows that the credential is taken."
            ),
            KeySpec("final", .words(OnRejected.Final.self), "What the caller gets when the credential stays refused."),
        ])

    static let timeouts = Block(
        name: "timeouts", description: "Toward the upstream.",
        keys: [
            KeySpec("connect", .duration(atLeast: .milliseconds(1)), "Until a connection stands.", default: "5s"),
            KeySpec("response", .duration(atLeast: .milliseconds(1)), "Until the answer's head.", default: "60s"),
            KeySpec(
                "idle", .duration(atLeast: .milliseconds(1)),
                "Between two bytes, and for a connection that its caller authenticated (NTLM, Negotiate) without a request.",
                default: "60s"),
            KeySpec(
                "keep_alive", .duration(atLeast: .milliseconds(1)),
                "How long a connection to the upstream is kept without a request; as idle where it is not given. Less where the upstream announces less (Keep-Alive: timeout=N)."
            ),
            KeySpec(
                "reuse", .duration(atLeast: .zero),
                "How long after its last answer a kept connection takes a request that cannot be sent again, as a POST; later a new one is made, since the upstream may be closing the kept one.",
                default: "1s"),
            KeySpec(
                "half_closed", .duration(atLeast: .zero),
                "How long a request goes on whose caller has closed its side of the connection before the answer's head; then the caller counts as gone and the upstream is let go. Callers that close their side and wait need as long as response.",
                default: "1s"),
        ])

    static let health = Block(
        name: "health",
        description: "A GET without a credential to each address of the upstream, once for the whole process.",
        keys: [
            KeySpec(
                "path", .text(.absolutePath), "What is asked for; the path of 'to' does not come before it.",
                required: true),
            KeySpec(
                "interval", .duration(atLeast: .milliseconds(100)),
                "From the beginning of one check to that of the next, give or take a tenth.", default: "10s"),
            KeySpec("timeout", .duration(atLeast: .milliseconds(1)), "For one whole check.", default: "2s"),
            KeySpec("healthy", .integer(1...100), "Good checks in a row that bring an address back.", default: "2"),
            KeySpec("unhealthy", .integer(1...100), "Bad checks in a row that take an address out.", default: "3"),
            KeySpec(
                "statuses", .list(.integer(200...599)), "Answers that are good; 200 to 299 where it is not given."),
        ])

    static let routeLimits = Block(
        name: "route_limits", description: "How much of the upstream is taken at most, over all loops.",
        keys: [
            KeySpec(
                "connections", .integer(atLeastOne),
                "Connections to the upstream, idle ones too; no limit where it is not given. Each loop has its share, at least one."
            ),
            KeySpec(
                "waiters", .integer(0...1_000_000),
                "Requests that wait for a connection, for as long as timeouts.connect; more are answered with 503.",
                default: "1000"),
        ])

    static let callers = Block(
        name: "callers", description: "Who is admitted; everything written must hold.",
        keys: [
            KeySpec("allow", .oneOrMore(.text(.network)), "Address blocks."),
            KeySpec(
                "tls_names", .oneOrMore(.text(.line)),
                "Names of which the caller's certificate must have one: DNS names, URIs or mail addresses among its subjectAltNames."
            ),
            KeySpec(
                "token", .secret,
                "What the caller brings as Bearer or Basic password, to a forward proxy in Proxy-Authorization; it is not forwarded."
            ),
            KeySpec("unix_users", .oneOrMore(.text(.name)), "Users by name or number, on a unix socket."),
            KeySpec(
                "browsers", .boolean, "Whether requests made by web pages of other sites are admitted.",
                default: "false"),
            KeySpec("unsafe_open", .boolean, "Admits everybody who can connect.", default: "false"),
        ])

    static let listener = Block(
        name: "listener", description: "An address that callers connect to.",
        keys: [
            KeySpec("address", .text(.listenAddress), "host:port or unix:/path.", required: true),
            KeySpec(
                "socket", .block(socketFile),
                "Of a unix socket: the rights of its file, which count from when it is made."),
            KeySpec("tls", .list(.block(serverTLS)), "Certificates, chosen by the name that the caller asks for."),
            KeySpec(
                "connections", .integer(atLeastOne),
                "Callers' connections at a time; no limit of its own where it is not given."),
            KeySpec("mode", .words(Listener.Mode.self), "What callers take us for."),
            KeySpec("unmatched", .words(Listener.Unmatched.self), "What happens to a host without a route."),
            KeySpec("intercept", .block(intercept), "Opens TLS to these hosts."),
            KeySpec("proxy_protocol", .block(proxyProtocol), "Reads the caller's address from a PROXY header."),
            KeySpec("forwarded_from", .list(.text(.network)), "Whose Forwarded headers are believed."),
            KeySpec("hosts", .oneOrMore(.text(.hostPattern)), Keys.hostsHelp),
            KeySpec(
                "http", .list(.words(Listener.HTTPVersion.self)),
                "Protocols toward callers; all that are supported where it is not given."),
        ])

    static let socketFile = Block(
        name: "socket_file", description: "The rights of a unix socket's file; whoever may write to it may connect.",
        keys: [
            KeySpec("mode", .text(.line), "Octal, in quotes.", default: "0660"),
            KeySpec("group", .text(.name), "By name or number; the gateway's own where it is not given."),
        ])

    static let serverTLS = Block(
        name: "listener_tls", description: "One certificate.",
        keys: [
            KeySpec(
                "certificate", .text(.path),
                "The chain, PEM, the leaf first; read again when it changes. Its own names decide who gets it, the first certificate everybody else.",
                required: true),
            KeySpec("key", .secret, "Its key, PEM, not encrypted.", required: true),
            KeySpec(
                "client_ca", .text(.path), "PEM; callers must show a certificate issued by one of these authorities."),
            KeySpec(
                "ocsp", .text(.path), "The authority's answer on the certificate, DER, sent to callers that ask for it."
            ),
        ])

    static let intercept = Block(
        name: "intercept", description: "Opens TLS to these hosts.",
        keys: [
            KeySpec("ca", .text(.path), "The authority that signs the leaves.", required: true),
            KeySpec("hosts", .oneOrMore(.text(.hostPattern)), "The only hosts that are opened.", required: true),
        ])

    static let proxyProtocol = Block(
        name: "proxy_protocol", description: "Reads the caller's address from a PROXY header.",
        keys: [
            KeySpec("versions", .list(.integer(1...2)), "[1, 2] where it is not given."),
            KeySpec(
                "from", .oneOrMore(.text(.network)),
                "The proxies. Each must send the header, and nobody else may connect; a loopback address in a header never counts as local.",
                required: true),
        ])
}
