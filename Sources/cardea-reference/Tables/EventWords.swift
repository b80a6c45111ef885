/// The meaning of an event of the log, and what there is to do: the words of docs/reference/log-events.md. The event itself is a literal where it
/// is logged; a test compares its level, text and fields with what stands here.
struct EventWords: Sendable {
    /// `debug`, `info`, `warn` or `error`; two where it depends.
    let levels: [String]
    let text: String
    /// Names of the fields that it may have.
    let fields: [String]
    let meaning: String
    /// Nil where there is nothing to do.
    let advice: String?

    private init(_ levels: [String], _ text: String, _ fields: [String], _ meaning: String, _ advice: String?) {
        self.levels = levels
        self.text = text
        self.fields = fields
        self.meaning = meaning
        self.advice = advice
    }

    static func error(_ text: String, _ fields: [String], _ meaning: String, do advice: String) -> EventWords {
        EventWords(["error"], text, fields, meaning, advice)
    }

    static func warn(_ text: String, _ fields: [String], _ meaning: String, do advice: String? = nil) -> EventWords {
        EventWords(["warn"], text, fields, meaning, advice)
    }

    static func info(_ text: String, _ fields: [String], _ meaning: String) -> EventWords {
        EventWords(["info"], text, fields, meaning, nil)
    }

    static func debug(_ text: String, _ fields: [String], _ meaning: String) -> EventWords {
        EventWords(["debug"], text, fields, meaning, nil)
    }

    /// An event that has two levels.
    func also(_ level: String) -> EventWords { EventWords(levels + [level], text, fields, meaning, advice) }
}

extension EventWords {
    static let all: [EventWords] = [tokens, logins, store, audit, fleet, traffic, certificates, life].flatMap { $0 }

    private static let tokens: [EventWords] = [
        info(
            "token acquired", ["identity", "upstream", "realm", "scopes", "expires_in_seconds", "subject"],
            "A token was obtained."),
        info(
            "token refreshed", ["identity", "upstream", "realm", "scopes", "expires_in_seconds", "subject"],
            "A token was renewed ahead of its end."),
        info(
            "challenge answered", ["identity", "upstream", "realm", "subject"],
            "The upstream's challenge was answered with a token that was there."),
        warn(
            "challenge refused", ["identity", "upstream", "realm", "reason", "subject"],
            "The upstream's challenge asks for what this identity does not give, or cannot be read.",
            do:
                "See what the upstream asks for: 'cardea explain' shows the route and key, and the identity's block what it may ask for."
        ),
        warn(
            "renewal failed", ["identity", "upstream", "realm", "reason", "subject"],
            "A token could not be renewed; the one that is held is still served as 'token.on_issuer_failure' says.",
            do: "Look at the issuer: the reason has its answer."),
        warn(
            "token cannot be had", ["identity", "upstream", "realm", "reason", "subject"],
            "No token was obtained, and callers that need it are refused.",
            do: "Look at the issuer: the reason has its answer."),
        error(
            "credential quarantined", ["identity", "reason", "advice"],
            "The issuer refused the credential. It is not sent again, so that no account gets locked.",
            do: "Change the secret where its reference leads to; if the secret is right, run 'cardea reset IDENTITY'."),
        info("identity reset", ["identity"], "An operator lifted the quarantine, or had what was refused tried again."),
        info(
            "secret changed", ["identity", "secret"],
            "A secret has another value than before; what was refused with the old one counts no more."),
        error(
            "secret cannot be read", ["identity", "secret", "reason"],
            "A secret's file, variable, credential or program gives nothing.",
            do: "Correct the place that the reference names, or the rights there."),
        warn(
            "secret file is open to others", ["secret", "reason"],
            "Others than the gateway's user may read a secret's file.",
            do:
                "Take the rights of group and others away (chmod 0600), or say 'secret_files: strict' to have it refused."
        ),
        info("tokens purged", ["identities", "tokens"], "An operator had tokens forgotten."),
        debug("tokens evicted", ["count"], "Memory gave up tokens for others; they come back from the store."),
        debug(
            "wider token used", ["identity", "scopes", "subject"],
            "A valid token with more scopes serves a route that wants less."),
        warn(
            "granted fewer scopes than asked for", ["identity", "upstream", "asked", "granted", "subject"],
            "The issuer gave a token for less than was asked for. It is used.",
            do: "Ask the issuer's administrator for the scopes, or take them out of the route."),
        warn(
            "issuer keeps failing", ["issuer", "pause_ms"],
            "An issuer failed several times in a row and is left alone for a while.",
            do: "Look at the issuer; 'cardea_issuer_breaker_state' tells when it is asked again."),
        warn(
            "issuer throttles", ["identity", "issuer"], "The issuer says that it is asked too often.",
            do: "Ask its administrator for a higher rate."),
        warn(
            "issuer TLS failed", ["issuer", "reason"], "TLS to an issuer failed.",
            do: "Set 'network.tls' of the identity (ca, server_name, min_version) as the issuer needs it."),
        warn(
            "handshake", ["identity", "reason"],
            "Something odd was seen while a token was obtained; the reason says what."),
        warn(
            "probe failed", ["identity", "reason"],
            "The gateway's own request for a challenge failed; it is tried again.",
            do: "Look at the upstream, and at the identity's 'probe'."),
        warn(
            "too many new realms on a route", ["route", "refused", "limit"],
            "An upstream names more realms than a route holds.",
            do: "See whether the upstream means them; else set 'realm' on the route."),
        warn(
            "subjects refused", ["in_memory", "refused"],
            "More new end users came in a second than 'limits.new_subjects_per_second'.",
            do: "Raise the limit if so many are usual; else see who names so many users."),
        warn(
            "a step with a kept registration failed", ["identity", "reason", "advice"],
            "The issuer may have forgotten the client that registered itself.",
            do: "If it has, 'cardea reset IDENTITY' makes a new registration."),
        info(
            "registration let go", ["identity"],
            "A registration was forgotten, and a new one is made when it is needed."),
        warn(
            "request cannot be signed", ["route", "reason", "request_id", "trace"],
            "A recipe's signature could not be computed for a request.",
            do: "See the reason: it names the value that is missing or too large."),
        warn(
            "wall clock jumped; every token is due for renewal", [],
            "The machine's clock was set. Tokens are renewed, since their ends may be wrong.",
            do: "Keep the clock by NTP."),
    ]

    private static let logins: [EventWords] = [
        warn(
            "login needed", ["identity", "reason", "advice"],
            "An identity needs a person's login, or an upstream asks for a stronger one: then with the reason.",
            do: "Have the person run 'cardea login IDENTITY'."),
        warn(
            "login needed soon", ["identity", "left_s", "advice"], "A person's login ends soon.",
            do: "Have the person run 'cardea login IDENTITY'."),
        info("login begun", ["identity"], "Somebody runs 'cardea login'."),
        info("login done", ["identity"], "A person's login brought what tokens are obtained with."),
        info(
            "login ended", ["identity", "reason"],
            "A login was given up or failed; as a warning, by the issuer or the gateway."
        ).also("warn"),
        info("logged out", ["identity"], "What a login had brought was forgotten."),
    ]

    private static let store: [EventWords] = [
        info("store opened", ["path", "rows", "expired", "damaged"], "The file of tokens is in use."),
        info("store taken over", ["rows"], "The process that owned the file has ended, and this one owns it now."),
        error(
            "store not used", ["path", "reason", "advice"],
            "The file cannot be used, or another process owns it. Tokens live in memory; no password is sent and no refresh token spent.",
            do:
                "Correct what the reason says: 'store.key', 'store.path', the rights, or the second gateway on one file."
        ),
        error(
            "store degraded", ["reason", "advice"],
            "The store cannot be written or does not answer. What is held is served; as a warning, while it is slow.",
            do: "Look at the disk: space, rights, errors of the kernel."
        ).also("warn"),
        info("store works again", [], "The store is written again."),
        error(
            "store not taken back", ["reason"], "After a failed upgrade the old process could not use the store again.",
            do: "Restart the gateway; if it stays, run 'cardea store verify'."),
        warn(
            "store was damaged and set aside", ["path", "aside"],
            "The file was no good database. It was renamed, and an empty one was begun.",
            do: "Look at the disk. Logins have to be made anew; passwords are not sent until 'cardea reset'."),
        warn(
            "store key made beside the store; keep it elsewhere and name it in store.key", ["path"],
            "No 'store.key' is set, so a key lies beside the file, where a thief finds both.",
            do: "Move the key to where secrets are kept, and name it in 'store.key'."),
        info(
            "rows of identities that are not configured", ["dropped", "kept"],
            "The store had rows of identities that the file does not have. Logins and registrations are kept for 30 days."
        ),
        info("store task done", ["task", "rows", "resealed", "damaged"], "'cardea store' has ended."),
        warn(
            "store task found damage", ["task", "rows", "resealed", "damaged"],
            "'cardea store' found rows that cannot be opened.",
            do: "Look at the disk; what was damaged is obtained anew."),
        error(
            "store task failed", ["task", "rows", "resealed", "damaged", "reason"], "'cardea store' could not be done.",
            do: "See the reason."),
    ]

    private static let audit: [EventWords] = [
        info(
            "audit head", ["head"],
            "The end of the audit log at a start, once an hour, and at an end: what 'cardea audit verify --head' takes."
        ),
        error(
            "audit log cannot be written", ["reason"],
            "The disk takes no records, the key is gone, or another process keeps the log locked. Records wait in memory, and are dropped and counted when there are too many.",
            do:
                "Look at the disk and the rights of 'audit.path' and the files beside it. It is tried again each second."
        ),
        info("audit log works again", [], "The audit log is written again."),
        error(
            "audit records lost", ["count"],
            "The gateway ended while the audit log could not be written. So many records were waiting, or had found no place.",
            do: "Look at the disk, and at the log before this line for what was done."),
        warn(
            "audit log was healed", ["records", "cut_octets"],
            "A writer was killed. Whole records that it had left count; a torn one behind them was cut off."),
    ]

    private static let fleet: [EventWords] = [
        info("shared store connected", ["server", "format"], "The fleet's server is in use."),
        error(
            "shared store degraded", ["server", "reason"],
            "The fleet's server is slow, gone or refuses. This gateway serves what it has, and makes no step that must be made once in a fleet.",
            do: "Look at the server: the reason has its answer."),
        info("shared store works again", ["server"], "The fleet's server is in use again."),
        warn(
            "versions and ends in the shared store can be forged by whoever writes to it, until store.shared.format is new",
            ["server"],
            "The format that older gateways know is still read and written.",
            do: "Set 'store.shared.format: new' when every gateway of the fleet is upgraded."),
        error(
            "the shared store has lost the newest refresh token", ["identity", "server", "advice"],
            "The newest refresh token of an identity is known to be elsewhere, and no gateway that answers has it.",
            do: "Start the gateway that has it, or bring a new login: 'cardea login IDENTITY'."),
        error(
            "a session came after its lease had passed", ["server"],
            "A step with a refresh token took so long that another gateway may have made one.",
            do: "Nothing where tokens go on being had; else bring a new login."),
        debug("token of another gateway taken", ["identity"], "A token that another gateway had obtained is used."),
    ]

    private static let traffic: [EventWords] = [
        info(
            "scheme chosen", ["route", "identity", "request_id", "trace"],
            "An upstream's challenge chose one of a route's identities, which answers from then on."),
        warn(
            "weaker scheme chosen", ["route", "identity", "request_id", "trace"],
            "An upstream offers no longer what was answered, but an identity later in the list of 'use', which answers from then on.",
            do: "See that the upstream means it; without 'downgrade: allow' its 401 would go to the caller."),
        warn(
            "weaker scheme refused", ["route", "identity", "request_id", "trace"],
            "An upstream offers no longer what was answered, but an identity later in the list of 'use'. Its 401 went to the caller.",
            do: "See whether the upstream means it: then say 'downgrade: allow', or change the list and start anew."),
        warn(
            "answer cannot be used", ["route", "reason", "request_id", "trace"],
            "An upstream's challenge or redirect is of no use.",
            do: "See the reason."),
        warn(
            "an answer was cut short",
            ["side", "fault", "route", "status", "after_bytes", "upstream", "request_id", "trace"],
            "An answer ended in its middle, and not by the caller's doing.",
            do: "Look at the side that is named: the upstream, or the gateway's limits."),
        info(
            "a credential was kept out of an answer", ["route", "places", "request_id", "trace"],
            "An upstream showed the credential of a route with 'answers: conceal'; the caller got '*' in its place."),
        warn(
            "a Host that is not served was asked for", ["host", "listener", "route", "key", "request_id", "trace"],
            "A caller that nothing but its place admits asked for a name that is not served: 421.",
            do: "Add the name to 'hosts' if it is meant."),
        warn(
            "address is unhealthy", ["upstream", "address", "reason"], "Checks took an address out of use.",
            do: "Look at the upstream there."),
        info("address is healthy again", ["upstream", "address"], "Checks brought an address back."),
        warn(
            "addresses that are added later do not count as local", [],
            "The kernel does not tell of new addresses of this machine, so those of later do not count as its own.",
            do: "Reload after an address was added."),
        error(
            "cannot watch a new listener", ["address"], "A data loop has no room for a new listening socket.",
            do: "Raise the limit of file descriptors, and restart."),
        info(
            "TLS handshake with a caller failed", ["listener", "reason"],
            "A caller and this listener did not agree on TLS."),
        warn(
            "no certificate is shown for a host whose upstream did not prove itself", ["listener", "host", "fault"],
            "TLS of a host is opened only after its upstream has proven itself, and it has not.",
            do: "Look at the upstream's certificate, and at the route's 'tls.ca'."),
    ]

    private static let certificates: [EventWords] = [
        warn(
            "certificate expires soon", ["listener", "certificate", "days"],
            "A listener's certificate is in the last part of its life.",
            do: "Renew it: the file is read again when it changes."),
        error(
            "certificate has expired; callers refuse it", ["listener", "certificate", "days"],
            "A listener's certificate has ended.", do: "Renew it: the file is read again when it changes."),
        warn(
            "certificate is not valid yet", ["listener", "certificate", "days"],
            "A listener's certificate begins later.", do: "See the clock, and the certificate."),
        info(
            "certificate taken up", ["listener", "certificate"],
            "A listener's changed certificate is shown from now on."),
        error(
            "changed certificate cannot be used; the one before it stays", ["listener", "reason"],
            "A listener's certificate or key was replaced by what is no pair.", do: "Correct the files."),
        warn(
            "no OCSP answer", ["listener", "certificate", "reason"], "The file of 'ocsp' cannot be used.",
            do: "Renew the file."),
        warn(
            "OCSP answer has expired and is not sent", ["listener", "certificate"],
            "The file of 'ocsp' has passed its end.", do: "Renew the file."),
        debug("session ticket key changed", [], "The key of TLS session tickets was replaced, as it is in time."),
        info("client certificate read", ["file"], "A changed client certificate is shown from now on."),
        error(
            "client certificate cannot be used", ["file", "reason", "kept"],
            "A client certificate or its key cannot be read, or they are no pair.", do: "Correct the files."),
        error(
            "client certificate is not valid yet", ["file", "hours"], "A client certificate begins later.",
            do: "See the clock, and the certificate."),
        warn(
            "client certificate ends soon; renew it", ["file", "hours"],
            "A client certificate is in the last fifth of its life.",
            do: "Renew it: the file is read again when it changes."),
        error(
            "client certificate has ended; renew it", ["file", "hours"], "A client certificate has ended.",
            do: "Renew it: the file is read again when it changes."),
        info("certificate authorities read", ["files"], "A changed file of authorities counts from now on."),
        error(
            "certificate authorities cannot be used", ["reason", "kept"], "A file of authorities cannot be read.",
            do: "Correct the file."),
        error(
            "callers.token cannot be read; the one before counts", ["reason"],
            "The token that callers bring cannot be read anew.", do: "Correct the place that its reference names."),
        error(
            "password of a proxy cannot be read", ["reason"], "The password for a proxy on the way cannot be read.",
            do: "Correct the place that its reference names."),
    ]

    private static let life: [EventWords] = [
        info("serving", ["version"], "The gateway is up."),
        info("listening", ["address"], "An address takes connections."),
        info("admin listening", ["address"], "The operator's address takes connections."),
        error(
            "no admin socket: commands do not reach this gateway", ["reason", "advice"],
            "The command line's socket cannot be made; callers are served.",
            do: "Set 'admin.socket' to a path of its own that the user may write."),
        info("draining", [], "The gateway ends: it is not ready, and finishes what has begun."),
        info("stopped", [], "The gateway has ended."),
        warn(
            "configuration", ["warning"], "The configuration has a warning, as 'cardea check' shows it.",
            do: "See the warning."),
        info("reload done", ["edition", "milliseconds"], "A changed configuration serves."),
        error(
            "reload refused", ["reason"], "The changed configuration is not good. The one before serves on.",
            do: "Correct the file: 'cardea check'."),
        warn(
            "these keys change with a restart only", ["keys"],
            "A reload changed keys that count from the next start on.", do: "Restart when it suits."),
        error(
            "a loop is late with the reload", ["loop"],
            "A data loop has been busy for long; it takes the configuration later.",
            do: "Look at the machine's load if it repeats."),
        warn(
            "not every folder of the configuration can be watched; SIGHUP reloads", [],
            "Changes of files are not all seen by themselves.",
            do: "Send SIGHUP after a change, or raise fs.inotify.max_user_watches."),
        info("upgrade begins", ["program"], "SIGUSR2: the program at the path takes over."),
        info("upgrade done", ["process"], "The new process serves; this one ends."),
        error(
            "upgrade failed", ["reason"], "The new process did not come up. The old one serves on.",
            do: "See the reason; the new process's own log has more."),
        warn(
            "upgrade refused", ["reason"], "An upgrade cannot be made now, or not at all in this way of running.",
            do: "See the reason."),
        warn(
            "inherited socket is no listener's", ["address"],
            "systemd passed a socket that no listener of the configuration has.",
            do: "Take it out of the socket unit, or add the listener."),
        info("program started", ["program"], "The program behind -- runs."),
        info(
            "program confined", ["listeners", "signals"],
            "The program behind -- reaches these listeners and nothing else; its signals stay inside where Linux is 6.12 or later."
        ),
        warn(
            "program not confined", ["reason", "advice"],
            "--confine was asked for, and this machine does not allow it: nothing keeps the program from the network and from its user's files.",
            do: "Allow user namespaces, or leave such a program alone; --confine-strictly does not start then."),
        warn(
            "file covered alone", ["path", "advice"],
            "A file that a confined program must not see is in a folder that others use as well: it would see a new file in its place.",
            do: "Put it into a folder of its own."),
        info("program ended", ["status"], "The program behind -- has ended, and the gateway with it."),
        error(
            "program cannot be started", ["reason"], "The program behind -- cannot be run.", do: "Correct the command."),
        info("sandbox entered", ["landlock"], "Files that the configuration does not name are out of reach."),
        warn(
            "sandbox: not allowed", ["path", "errno"],
            "A path of the configuration could not be opened for the sandbox.",
            do: "See whether the path is there; restart after it was made."),
        warn(
            "serving without a sandbox", ["reason"], "The process keeps what its user may do.",
            do: "See the reason: the kernel, a command behind -- that is not confined, or a folder that others use too."
        ),
        info(
            "programs of exec: run inside the sandbox; one that needs other files wants sandbox: off", [],
            "There are secrets of exec:."),
        warn(
            "log lines dropped", ["count"],
            "Standard output or error took lines too slowly, and some were not written.",
            do: "See what reads the log; 'cardea_log_dropped_total' counts them."),
        warn(
            "spans cannot be exported", ["endpoint", "reason"],
            "The collector of tracing.endpoint was not reached or takes no spans. Told once, until it takes some again.",
            do:
                "See the reason and the collector; 'cardea_spans_total' counts what is lost. No request is slower for it."
        ),
        info("spans are exported again", ["endpoint"], "The collector takes spans after a time in which it did not."),
        debug("hardening step refused", ["step", "errno"], "The kernel refused a step that takes rights away."),
    ]
}

extension EventWords {
    /// The meaning of each field.
    static let fields: [(name: String, meaning: String)] = [
        ("address", "an address of a listener, an upstream or a socket"), ("advice", "what to do, in words"),
        ("after_bytes", "octets of the answer that the caller got"), ("aside", "the path that a damaged file got"),
        ("asked", "scopes that were asked for"), ("certificate", "a certificate's file"), ("count", "how many"),
        ("cut_octets", "octets of a torn record that were cut off"), ("damaged", "rows that cannot be opened"),
        ("days", "days until the end; less than 0 after it"),
        ("dropped", "rows that were deleted"), ("edition", "the number of the configuration since the start"),
        ("endpoint", "the collector's origin"), ("errno", "the kernel's error number"),
        ("expired", "rows that had ended"),
        ("expires_in_seconds", "seconds until the token ends"), ("fault", "a problem's word"),
        ("file", "a file's path"),
        ("files", "paths of files"), ("format", "`store.shared.format`"), ("granted", "scopes that were granted"),
        ("head", "records of the audit log, and the code of the last one: `COUNT:HASH`"),
        ("host", "the host that a caller named, at most 256 octets"), ("hours", "hours until the end"),
        ("identities", "how many identities"), ("identity", "an identity's name"), ("in_memory", "end users in memory"),
        ("issuer", "an issuer's origin"), ("kept", "what stays in use, or how many rows stay"),
        ("key", "the configuration's key that decides"), ("keys", "keys of the configuration"),
        ("landlock", "the kernel's version of Landlock"), ("left_s", "seconds that are left"),
        ("left_out", "events of this kind that were not written since the last one, because there were too many"),
        ("limit", "the configuration's key that is the bound"), ("listener", "a listener's address or name"),
        ("listeners", "addresses of listeners"),
        ("loop", "the number of a data loop"), ("milliseconds", "how long it took"), ("path", "a path"),
        ("pause_ms", "milliseconds for which the issuer is left alone"), ("places", "how often it stood there"),
        ("process", "a process's number"),
        ("program", "a program's path"), ("realm", "the realm of a token"), ("reason", "why, in words"),
        ("records", "records of the audit log"), ("refused", "how many were refused since the start"),
        ("request_id", "the request's id, as the access record and the problem have it"),
        ("resealed", "rows that were sealed with the first key"),
        ("route", "a route's name"), ("rows", "rows of the store"), ("scopes", "scopes of a token"),
        ("secret", "a secret's key in the configuration"), ("server", "the fleet's server"),
        ("side", "whose doing it was: `caller`, `upstream` or `gateway`"),
        ("signals", "where those of a confined program go: `inside`, or `to processes of its user`"),
        ("status", "a status of HTTP, or of a program's end"),
        ("step", "a step of hardening"), ("subject", "a short keyed hash of an end user's name"),
        ("task", "`verify`, `rotate` or `compact`"), ("tokens", "how many tokens"),
        ("trace", "the id of the trace that the request belongs to, where it belongs to one"),
        ("upstream", "an upstream's origin or address"),
        ("version", "the gateway's version"), ("warning", "file, line, column and words of a warning"),
    ]
}

/// The meaning of each field of an access record.
enum AccessWords {
    static let fields: [(name: String, meaning: String)] = [
        ("time", "the end of the exchange, UTC, in milliseconds"),
        ("route", "the route's name; `-` where none was found"),
        ("method", "the request's method, at most 16 octets"),
        ("path", "the request's path without query, at most 200 octets"),
        ("path_cut", "`true` where the path was longer"),
        ("status", "the answer's status; 0 where the caller left before there was one"),
        ("incomplete", "the answer ended in its middle: by `caller`, `upstream` or `gateway`"),
        ("bytes_in", "octets of the request as received, head included"),
        ("bytes_out", "octets of the answer as sent, head included"), ("caller", "the caller's address"),
        ("upstream", "the address that answered, or was tried last"), ("protocol", "the caller's protocol"),
        ("upstream_protocol", "the upstream's protocol"), ("token_wait_ms", "milliseconds of waiting for a token"),
        ("connect_ms", "milliseconds from the token to the sending of the request"),
        ("first_byte_ms", "milliseconds from there to the answer's first octet"),
        ("total_ms", "milliseconds of the whole exchange"),
        ("cache", "where the token came from: `hit`, `wait`, `store` or `grant`"),
        ("replayed", "`true` where the request was sent a second time with another credential"),
        ("fault", "the [problem](problems.md)'s word"), ("identity", "the name of the identity that the route uses"),
        ("request_id", "the request's id: the caller's own where it is fit, else one that was made"),
        ("trace", "the id of the trace that the request belongs to"),
    ]
}
