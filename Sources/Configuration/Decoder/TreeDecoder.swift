/// Makes the typed model from a checked tree: merges defaults, resolves names, finds what is missing.
struct TreeDecoder {
    let findings: Findings
    let schemes: [any ConfiguredScheme.Type]
    let identityKeys: Block
    let root: BlockReader
    let defaults: BlockReader
    /// The entries that stand in the file, also those that could not be decoded: they have their own errors already.
    let writtenIdentities: NamedList<Node.Entry>
    let writtenListeners: NamedList<Node.Entry>
    var identities = NamedList<Identity>()
    var listeners = NamedList<Listener>()
    /// The first listener at each address.
    var listenersByAddress: [ListenAddress: String] = [:]
    var routes: [Route] = []
    var cover = RouteCover()
    /// Where each name was first given.
    var marksOfRoutes: [String: Mark] = [:]
    /// How many routes without a name would have been called so.
    var unnamedRoutes: [String: Int] = [:]
    /// A file that lacks more names than somebody mistypes lacks an `include`; to search words near each takes minutes.
    var hintsLeft = 100

    /// `root` was given to `Checker` before.
    static func decode(
        _ root: Node, _ schemes: [any ConfiguredScheme.Type], _ findings: Findings
    ) -> Configuration {
        var decoder = TreeDecoder(root: root, schemes, findings)
        return decoder.configuration()
    }

    private init(root: Node, _ schemes: [any ConfiguredScheme.Type], _ findings: Findings) {
        self.findings = findings
        self.schemes = schemes
        identityKeys = Keys.identity(schemes)
        self.root = BlockReader(root, Keys.configuration(schemes), mark: root.mark, findings: findings)
        defaults = self.root.inside("defaults", Keys.defaults)
        writtenIdentities = NamedList(self.root.entry("identities")?.value.map ?? [])
        writtenListeners = NamedList(self.root.entry("listeners")?.value.map ?? [])
    }

    private mutating func configuration() -> Configuration {
        decodeListeners()
        decodeIdentities()
        decodeRoutes()
        let store = store()
        let storeReader = root.inside("store", Keys.store)
        let configuration = Configuration(
            identities: identities.all, routes: routes, listeners: listeners.all, store: store,
            storeMarks: StoreMarks(path: storeReader.mark("path"), key: storeReader.mark("key")),
            admin: admin(store: store), name: root.text("name"), limits: limits(), log: log(), audit: audit(),
            auditMark: root.mark("audit"), tracing: tracing(), shutdown: shutdown(),
            threads: root.integer("threads"), sandbox: root.boolean("sandbox"), secretFiles: root.word("secret_files"),
            nat64: nat64(),
            places: WrittenPlaces(root.node ?? Node(content: .map([]), mark: root.mark)))
        checkWhole(configuration)
        return configuration
    }

    // MARK: - Findings

    func error(_ message: String, _ mark: Mark) { findings.error(message, mark) }
    func warning(_ message: String, _ mark: Mark) { findings.warning(message, mark) }

    // MARK: - Top

    private mutating func limits() -> Limits {
        let reader = root.inside("limits", Keys.limits)
        if reader.isSize("header_size"), reader.size("header_size") < 1024 {
            reader.error("'header_size' must be at least 1KiB", at: "header_size")
        }
        if reader.has("target_size"), reader.isSize("target_size") {
            let size = reader.size("target_size")
            if size < 64 || size > reader.size("header_size") {
                error("'target_size' must be at least 64B and at most 'header_size'", reader.mark("target_size"))
            }
        }
        return Limits(
            connections: reader.integer("connections"),
            connectionsPerAddress: reader.integer("connections_per_address"), headerSize: reader.size("header_size"),
            targetSize: reader.size("target_size"), bodySize: reader.has("body_size") ? reader.size("body_size") : nil,
            headTimeout: reader.duration("head_timeout"), minRate: reader.size("min_rate"),
            headers: reader.integer("headers") ?? 0, waiters: reader.integer("waiters") ?? 0,
            replayMemory: reader.size("replay_memory"), hotCache: reader.size("hot_cache"),
            subjects: reader.integer("subjects") ?? 0,
            newSubjectsPerSecond: reader.integer("new_subjects_per_second") ?? 0)
    }

    private func log() -> Log {
        let reader = root.inside("log", Keys.log)
        return Log(level: reader.word("level"), format: reader.word("format"), access: reader.word("access"))
    }

    private func audit() -> AuditLog? {
        guard root.has("audit") else { return nil }
        let reader = root.inside("audit", Keys.audit)
        reader.needRequired()
        return reader.path("path").map { path in
            AuditLog(
                path: path, subjectKey: reader.secret("subject_key"), uses: reader.word("uses"),
                onTrouble: reader.word("on_trouble"))
        }
    }

    private mutating func shutdown() -> Shutdown {
        let reader = root.inside("shutdown", Keys.shutdown)
        let shutdown = Shutdown(
            linger: reader.duration("linger"), timeout: reader.duration("timeout"),
            takeover: reader.duration("takeover"))
        if shutdown.timeout < shutdown.linger, reader.isReadable("timeout") {
            reader.refuse("timeout", "must be at least its 'linger'")
        }
        return shutdown
    }

    private mutating func store() -> Store {
        let reader = root.inside("store", Keys.store)
        let keys = reader.list("key") { text throws(TextFault) in try SecretReference(text: text) } ?? []
        let shared = shared(reader)
        let store = Store(path: reader.path("path"), keys: keys, shared: shared)
        reader.refuseEmpty("key", "'key' of 'store' is an empty list; the first key seals")
        if store.shared != nil, !reader.has("key") {
            error("'shared' needs a 'key' of the fleet's own", reader.mark("shared"))
        }
        if store.path == nil, store.shared == nil, reader.has("key") {
            warning("'key' of 'store' seals nothing without a 'path'", reader.mark("key"))
        }
        if store.path != nil, !reader.has("key") {
            warning(
                "'store' has no 'key'; one is made beside the file, so whoever copies the directory has both",
                reader.mark)
        }
        return store
    }

    private mutating func nat64() -> [Callers.Network] {
        let networks = root.list("nat64", AddressParser.network) ?? []
        for network in networks
        where network.address.family != .v6 || ![32, 40, 48, 56, 64, 96].contains(network.prefixLength) {
            error(
                "'nat64' takes IPv6 prefixes of 32, 40, 48, 56, 64 or 96 bits, which alone have a place for IPv4 (RFC 6052)",
                root.mark("nat64"))
        }
        return networks
    }

    private mutating func admin(store: Store) -> Admin {
        let isOff = root.entry("admin")?.value.scalar != nil
        let reader = root.inside("admin", Keys.admin)
        // The directory of the store is ours already; a socket beside it needs no further right.
        let beside = store.path.map { path in
            path.lastIndex(of: "/").map { String(path[...$0]) + "cardea.sock" } ?? "./cardea.sock"
        }
        let admin = Admin(
            listen: isOff ? nil : reader.parsed("listen", AddressParser.listenAddress),
            probes: isOff ? nil : reader.parsed("probes", AddressParser.listenAddress),
            metrics: isOff ? nil : reader.parsed("metrics", AddressParser.listenAddress),
            socket: reader.path("socket") ?? beside, hosts: reader.list("hosts", AddressParser.host) ?? [],
            token: reader.secret("token"), opensStatus: reader.boolean("open_status"))
        if let listen = admin.listen, !listen.isLocal {
            if admin.opensStatus {
                warning(
                    "'open_status' shows the page and /status to everybody who reaches \(listen)",
                    reader.mark("open_status"))
            } else if admin.token == nil {
                warning(
                    "the page and /status are refused on \(listen), which is not loopback; give 'admin' a 'token', or say open_status: true",
                    reader.mark("listen"))
            }
        }
        if let probes = admin.probes, probes == admin.listen {
            error("'probes' must not be the address of 'listen'", reader.mark("probes"))
        }
        for (key, other) in [("listen", admin.listen), ("probes", admin.probes)] {
            guard let metrics = admin.metrics, metrics == other else { continue }
            error("'metrics' must not be the address of '\(key)'", reader.mark("metrics"))
        }
        if let socket = reader.path("socket"), socket.utf8.count > 107 {
            error("'socket' must be a path of at most 107 bytes", reader.mark("socket"))
        }
        return admin
    }
}
