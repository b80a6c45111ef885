extension Keys {
    package static func identity(_ schemes: [any ConfiguredScheme.Type]) -> Block {
        let own = schemes.map { $0.key }
        return Block(
            name: "identity", description: "Exactly one handshake, and how its tokens are kept.",
            keys: own + [
                KeySpec("token", .block(token), "How tokens are renewed, kept and given up."),
                KeySpec("network", .block(network), "Calls to the issuer."),
                KeySpec("scopes", .list(.text(.scope)), "For routes that name none."),
            ], exactlyOneOf: own.map(\.name))
    }

    package static let subjectToken = Block(
        name: "subject_token", description: "The token of another identity.",
        keys: [
            KeySpec(
                "identity", .text(.name), "The identity whose new token is exchanged, with that identity's own scopes.",
                required: true)
        ])

    static let token = Block(
        name: "token", description: "How tokens are renewed, kept and given up.",
        keys: [
            KeySpec(
                "refresh_ahead", .text(.refreshAhead), "How long before its end a token is renewed.", default: "20%"),
            KeySpec(
                "default_lifetime", .duration(atLeast: .seconds(1)),
                "Of a token whose issuer names none; 15m for oam_webgate.", default: "5m"),
            KeySpec(
                "on_issuer_failure", .either([.words(["serve_valid", "fail"]), .block(onIssuerFailure)]),
                "While renewals fail: serve what is valid, stop, or go on for a while after the end.",
                default: "serve_valid"),
            KeySpec("startup", .words(TokenPolicy.Startup.self), "Whether a token is had before the gateway is ready."),
            KeySpec(
                "login_attempts", .integer(1...10), "Rejections after which a credential is not sent until it changes.",
                default: "1"),
            KeySpec(
                "allow_last_attempt", .boolean, "Whether the last attempt that an issuer announces may be used.",
                default: "false"),
            KeySpec("negative_for", .duration(atLeast: .zero), "How long a failure is remembered.", default: "30s"),
            KeySpec(
                "acquire_timeout", .duration(atLeast: .milliseconds(1)), "The longest a request waits for a token.",
                default: "10s"),
            KeySpec(
                "persist", .boolean,
                "Whether tokens and logins go to the store and, in a fleet, to its other gateways. With false, what is there "
                    + "leaves the store, and a login of the fleet is not used here.",
                default: "true"),
            KeySpec(
                "connectivity", .words(TokenPolicy.Connectivity.self),
                "offline: never call the issuer; online: never serve from the store at boot."),
        ])

    static let onIssuerFailure = Block(
        name: "on_issuer_failure", description: "Grace after a token's end.",
        keys: [
            KeySpec(
                "serve_expired_for", .duration(atLeast: .seconds(1)), "How long an expired token is served.",
                required: true)
        ])

    static let network = Block(
        name: "network", description: "Calls to the issuer.",
        keys: [
            KeySpec("tls", .block(tls), "How we connect."),
            KeySpec("proxy", proxyValue, "An HTTP proxy on the way; off takes back the one under defaults."),
            KeySpec("timeout", .duration(atLeast: .milliseconds(1)), "For one whole call.", default: "10s"),
            KeySpec(
                "connections", .integer(atLeastOne),
                "Calls to the issuer at the same time; others wait their turn within acquire_timeout.", default: "64"),
            KeySpec(
                "allow_cleartext", .boolean, "Whether credentials may go over http: beyond this machine.",
                default: "false"),
            KeySpec(
                "resolve", .named(.hostName, .oneOrMore(.text(.ipAddress))),
                "Addresses to use instead of asking the resolver, by host."),
        ])

    static let proxyValue = ValueType.either([.text(.proxy), .block(proxy)])

    static let proxy = Block(
        name: "proxy",
        description: "An HTTP proxy on the way to a server: CONNECT for https:, absolute targets for http:.",
        keys: [
            KeySpec("url", .text(.httpURL), "http://host:port of the proxy.", required: true),
            KeySpec("username", .text(.line), "The user at the proxy."),
            KeySpec("password", .secret, "The password at the proxy; never sent to anybody else."),
            KeySpec(
                "digest", .list(.words(DigestFunction.self)),
                "The algorithms with which HTTP Digest is answered (RFC 7616): the strongest that the proxy offers is taken, and the password is never sent. Basic where it is not given."
            ),
            KeySpec(
                "negotiate", .block(proxyTickets),
                "Kerberos by Negotiate, in the place of user and password: a ticket for each connection to the proxy."),
            KeySpec(
                "ntlm", .words(["off"] + NTLMWord.allCases.map(\.rawValue)),
                "Connections to the proxy are authenticated as the user by NTLM version 2: ntlm: messages go as NTLM; negotiate: for a proxy that offers Negotiate alone and takes NTLM in it."
            ),
            KeySpec(
                "allow_cleartext", .boolean,
                "Whether NTLM may be spoken to a proxy beyond this machine: whoever reads it on the way can guess the password at leisure.",
                default: "false"),
            KeySpec(
                "except", .list(.text(.hostPattern)), "Hosts that are reached without it; exact, or *.x for one label."),
        ])

    /// The keys that name Kerberos' tickets: two files, of which exactly one is written, and the principal.
    package static let tickets = [
        // A refusal of its keys is booked by what stands in it, and a new file is another try.
        KeySpec(
            "keytab", .secret, "The file with the keys of `principal`, as `file:/path`; it is only read.",
            digest: .place),
        KeySpec(
            "cache", .text(.path),
            "A file of tickets that another program keeps fresh, as kinit or k5start; it is only read."),
        KeySpec(
            "principal", .text(.line), "Who we are, as user@REALM; the first of the keytab, or that of the cache."),
    ]

    static let proxyTickets = Block(
        name: "negotiate", description: "Kerberos at the proxy (RFC 4559).",
        keys: tickets + [
            KeySpec(
                "service", .text(.line),
                "The proxy, as HTTP/host@REALM or HTTP@host. HTTP at the host of `url` where it is not given.")
        ], exactlyOneOf: ["keytab", "cache"])

    static let tls = Block(
        name: "tls", description: "How we connect to a server.",
        keys: [
            KeySpec(
                "ca", .oneOrMore(.text(.authority)),
                "Authorities to trust: a PEM file replaces the system's; [system, file] adds. Read again when it changes.",
                default: "system"),
            KeySpec(
                "certificate", .text(.path),
                "Shown to a server that asks: PEM, the leaf first, or PKCS#12. Read again when it changes."),
            KeySpec("key", .secret, "Its key in PEM; not needed where the certificate's file has it."),
            KeySpec("password", .secret, "Of the key or the PKCS#12 file."),
            KeySpec("server_name", .text(.hostName), "Sent and checked instead of the host."),
            KeySpec("min_version", .words(ClientTLS.Version.self), "The oldest TLS that is spoken."),
            KeySpec("legacy", .boolean, "Old ciphers, key sizes and renegotiation, for old servers.", default: "false"),
        ])
}
