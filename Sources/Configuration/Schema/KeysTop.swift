/// The keys outside identities, routes and listeners.
package enum Keys {
    static let atLeastOne: ClosedRange<Int> = 1...Int.max

    /// - Parameter schemes: those that an identity may have.
    package static func configuration(_ schemes: [any ConfiguredScheme.Type]) -> Block {
        Block(
            name: "configuration", description: "A Cardea configuration.",
            keys: [
                KeySpec("identities", .named(.name, .block(identity(schemes))), "Who we are to issuers, by name."),
                KeySpec(
                    "routes", .list(.block(route)),
                    "Which requests go where, with which identity; the first match wins."),
                KeySpec("listeners", .named(.name, .block(listener)), "Addresses beyond a plain listen, by name."),
                KeySpec("store", .block(store), "Where tokens outlive the process; without it they live in memory."),
                KeySpec(
                    "admin", .either([.words(["off"]), .block(admin)]),
                    "Health, metrics and token status; 'off' disables its addresses."),
                KeySpec(
                    "name", .text(.headerName),
                    "Our pseudonym in Via and Proxy-Status; the host's name where it is not given."),
                KeySpec("limits", .block(limits), "How much is held at most."),
                KeySpec("log", .block(log), "Events on standard error, access records on standard output."),
                KeySpec(
                    "audit", .block(audit), "A log of acts that shows every later change; without it none is written."),
                KeySpec(
                    "tracing", .either([.onOff, .block(tracing)]),
                    "Whether each request belongs to a trace (W3C Trace Context), the caller's or one that begins here, of which the upstream is told in traceparent.",
                    default: "off"),
                KeySpec("shutdown", .block(shutdown), "The two stages of an end."),
                KeySpec("threads", .integer(1...256), "Data loops; the CPU limit, at most 4, where it is not given."),
                KeySpec(
                    "sandbox", .onOff,
                    "Whether the process gives up every file that the configuration does not name (Landlock). Folders are allowed, "
                        + "so that renewed files are read; what a program of exec: reads beside must be among its arguments."
                ),
                KeySpec(
                    "secret_files", .words(SecretFilePolicy.self),
                    "What a secret file that others can read leads to: a warning, or a refusal."),
                KeySpec(
                    "nat64", .oneOrMore(.text(.network)),
                    "Prefixes of this network's own behind which IPv4 addresses stand (NAT64), such as 64:ff9b:1:fffe::/96; what a proxy's callers may "
                        + "reach there is judged by the address inside. Without it 64:ff9b:1::/48 is not reached."),
                KeySpec("defaults", .block(defaults), "For all identities and routes; maps merge, lists replace."),
                KeySpec(
                    "include", .oneOrMore(.text(.path)),
                    "Files or directories of *.yaml, relative to this file; a name given twice is an error."),
            ])
    }

    static let defaults = Block(
        name: "defaults", description: "Settings for all identities and routes.",
        keys: [
            KeySpec("token", .block(token), "For every identity."),
            KeySpec("network", .block(network), "For every identity."),
            KeySpec("route", .block(defaultRoute), "For every route."),
        ])

    static let store = Block(
        name: "store", description: "Where tokens outlive the process.",
        keys: [
            KeySpec("path", .text(.path), "The database file; memory only where it is not given."),
            KeySpec(
                "key", .oneOrMore(.secret),
                "Seals the tokens; of a list the first seals and all open. Where it is not given, a key is made beside the file."
            ),
            KeySpec(
                "shared", .either([.text(.redisURL), .block(sharedStore)]),
                "A Redis (6 or later) or Valkey for one token per fleet; needs a key that all gateways have."),
        ])

    static let sharedStore = Block(
        name: "shared", description: "The server that the gateways of a fleet share.",
        keys: [
            KeySpec(
                "url", .text(.redisURL), "redis://host:port, rediss://host:port for TLS, or unix:/path.",
                required: true),
            KeySpec("username", .text(.line), "Of an ACL user; the default user where it is not given."),
            KeySpec("password", .secret, "Read anew for each connection."),
            KeySpec(
                "ca", .oneOrMore(.text(.authority)),
                "Authorities to trust: a PEM file replaces the system's; [system, file] adds.", default: "system"),
            KeySpec(
                "allow_cleartext", .boolean,
                "Lets redis: leave this machine: sealed values, but a password that anybody on the way can read.",
                default: "false"),
            KeySpec(
                "format", .words(SharedStore.Format.self),
                "How values stand there: both reads and writes the format of earlier releases and the new one, which seals versions, ends and news too; new takes the new one alone, once every gateway of the fleet is upgraded; old is the earlier one alone.",
                default: "both"),
        ])

    static let admin = Block(
        name: "admin", description: "The operator's ways in.",
        keys: [
            KeySpec("listen", .text(.listenAddress), "Health, metrics, the page.", default: "127.0.0.1:9901"),
            KeySpec("probes", .text(.listenAddress), "Only /livez and /readyz, with empty bodies, for kubelets."),
            KeySpec(
                "socket", .text(.path),
                "The command line's way in; cardea.sock beside the store, else in $XDG_RUNTIME_DIR or /run."),
            KeySpec("hosts", .list(.text(.hostName)), "Names it answers to, beside IP literals and localhost."),
            KeySpec(
                "metrics", .text(.listenAddress),
                "Only /metrics, to everybody who reaches it, for Prometheus; names it answers to are those of 'hosts'."),
            KeySpec(
                "token", .secret,
                "What a request that changes something must bring, and where 'listen' is not loopback whoever reads the page or /status; of at least 16 characters. Without it such requests are refused."
            ),
            KeySpec(
                "open_status", .boolean,
                "Whether the page and /status are shown to everybody where 'listen' is not loopback; /livez, /readyz and /metrics always are.",
                default: "false"),
        ])

    static let limits = Block(
        name: "limits", description: "How much is held at most.",
        keys: [
            KeySpec(
                "connections", .integer(atLeastOne),
                "Callers' connections; as the file-descriptor limit allows where it is not given."),
            KeySpec(
                "connections_per_address", .integer(atLeastOne),
                "Callers' connections of one address; no limit where it is not given."),
            KeySpec("header_size", .size, "Of a message head.", default: "64KiB"),
            KeySpec("target_size", .size, "Of a request target.", default: "8KiB"),
            KeySpec("body_size", .size, "Of a request body; no limit where it is not given."),
            KeySpec(
                "head_timeout", .duration(atLeast: .milliseconds(1)), "For a whole request head to arrive.",
                default: "10s"),
            KeySpec(
                "min_rate", .size,
                "A second, which whoever sends or reads a body must keep over each idle timeout; 0B: any byte will do.",
                default: "240B"),
            KeySpec("headers", .integer(1...65535), "Fields of a message head.", default: "128"),
            KeySpec("waiters", .integer(atLeastOne), "Requests that wait for a token.", default: "10000"),
            KeySpec("replay_memory", .size, "Request bodies kept for a replay.", default: "64MiB"),
            KeySpec("hot_cache", .size, "Tokens in memory.", default: "64MiB"),
            KeySpec(
                "subjects", .integer(atLeastOne),
                "Subjects, and URLs of 'token_scope: url', with tokens of their own in memory; more take the place of those that were used least, which come back from the store.",
                default: "10000"),
            KeySpec(
                "new_subjects_per_second", .integer(atLeastOne),
                "Subjects and URLs that neither memory nor the store has seen, and realms beyond what a route holds; more get 503 with Retry-After.",
                default: "10"),
        ])

    static let log = Block(
        name: "log", description: "What is written, and how.",
        keys: [
            KeySpec("level", .words(Log.Level.self), "The least severe event that is written.", default: "info"),
            KeySpec("format", .words(Log.Format.self), "JSON lines, or text for people."),
            KeySpec("access", .words(Log.Access.self), "Which requests get an access record."),
        ])

    static let audit = Block(
        name: "audit", description: "A log of acts that shows every later change.",
        keys: [
            KeySpec(
                "path", .text(.path),
                "The log; 'cardea audit init' makes the key beside it. Its folder is the gateway's to write.",
                required: true),
            KeySpec(
                "subject_key", .secret,
                "Under which names of end users become pseudonyms, of at least 16 characters; without it records name no user."
            ),
            KeySpec(
                "uses", .words(AuditLog.Uses.self),
                "Whether uses of credentials are counted by caller, identity, origin, generation and minute, or each is a record.",
                default: "counted"),
            KeySpec(
                "on_trouble", .words(AuditLog.Trouble.self),
                "'count' serves a request whose use finds no place, as on a full disk, and counts it; 'block' answers 503.",
                default: "count"),
        ])

    static let tracing = Block(
        name: "tracing", description: "Traces of requests.",
        keys: [
            KeySpec(
                "ratio", .text(.share),
                "The share of requests that are sampled; of callers in forwarded_from the sampled flag of their own traceparent decides.",
                default: "1%"),
            KeySpec(
                "endpoint", .text(.httpURL),
                "Where spans go, to a collector of OTLP over HTTP; without a path, /v1/traces is meant. Without it no span is made."
            ),
            KeySpec(
                "headers", .named(.headerName, .secret), "Sent with the spans, such as an API key; read anew each time."
            ),
            KeySpec("service", .text(.line), "service.name of the spans.", default: "cardea"),
            KeySpec("network", .block(network), "Calls to the collector."),
        ])

    static let shutdown = Block(
        name: "shutdown", description: "The two stages of an end.",
        keys: [
            KeySpec("linger", .duration(atLeast: .zero), "Not ready, still accepting.", default: "5s"),
            KeySpec("timeout", .duration(atLeast: .zero), "From the signal to the hard stop.", default: "25s"),
            KeySpec(
                "takeover", .duration(atLeast: .zero),
                "What the new process of an upgrade (SIGUSR2) has until it is ready; then the old one goes on.",
                default: "60s"),
        ])
}
