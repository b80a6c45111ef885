extension TreeDecoder {
    mutating func decodeListeners() {
        for entry in writtenListeners.all { decodeListener(entry) }
    }

    private mutating func decodeListener(_ entry: Node.Entry) {
        let place = "listener '\(Quoted.short(entry.key))'"
        guard entry.value.map != nil else { return }
        let reader = BlockReader(entry.value, Keys.listener, mark: entry.mark, place: place, findings: findings)
        reader.needRequired()
        guard let address = reader.parsed("address", AddressParser.listenAddress) else { return }
        if let other = listenersByAddress[address] {
            error("\(place) has the address of listener '\(other)'", reader.mark("address"))
        }
        var listener = Listener(name: entry.key, mark: entry.mark, address: address)
        listener.mode = reader.word("mode")
        listener.unmatched = reader.word("unmatched")
        listener.connections = reader.integer("connections")
        listener.forwardedFrom = reader.list("forwarded_from", AddressParser.network) ?? []
        if let versions = reader.texts("http") { listener.http = versions.compactMap(Listener.HTTPVersion.init) }
        listener.hosts = hosts(reader, place: place)
        if !listener.hosts.isEmpty, listener.mode != .gateway {
            reader.refuse("hosts", "is used only in gateway mode: a proxy's callers name others")
        }
        listener.socket = socketFile(reader, of: listener, place)
        if listener.http.isEmpty { reader.refuse("http", "is an empty list") }
        if listener.unmatched == .tunnel, listener.mode == .gateway {
            error(
                "'unmatched: tunnel' of \(place) is used only in forward_proxy and transparent mode",
                reader.mark("unmatched"))
        }
        for node in reader.items("tls") ?? [] {
            let inside = reader.inside(node, Keys.serverTLS, place: "'tls' of \(place)")
            inside.needRequired()
            guard let certificate = inside.path("certificate"), let key = inside.secret("key") else { continue }
            listener.tls.append(
                .init(certificate: certificate, key: key, clientCA: inside.path("client_ca"), ocsp: inside.path("ocsp"))
            )
        }
        if reader.has("intercept") {
            let inside = reader.inside("intercept")
            inside.needRequired()
            listener.intercept = .init(
                ca: inside.path("ca") ?? "", hosts: inside.list("hosts", AddressParser.hostPattern) ?? [])
        }
        checkRedirection(listener, reader, place)
        if reader.has("proxy_protocol") {
            let inside = reader.inside("proxy_protocol")
            inside.needRequired()
            let versions = inside.list("versions") { text throws(TextFault) in try Units.integer(text, in: 1...2) }
            listener.proxyProtocol = .init(
                versions: versions ?? [1, 2], from: inside.list("from", AddressParser.network) ?? [])
        }
        add(listener)
    }

    private mutating func socketFile(_ reader: BlockReader, of listener: Listener, _ place: String) -> SocketFile {
        var file = SocketFile()
        guard reader.has("socket") else { return file }
        if case .tcp = listener.address {
            reader.refuse("socket", "is used only with an address such as unix:/path")
        }
        let inside = reader.inside("socket", Keys.socketFile)
        if let text = inside.text("mode") {
            let digits = text.utf8.filter { $0 >= 0x30 && $0 <= 0x37 }
            let mode = digits.reduce(UInt64(0)) { $0 &* 8 &+ UInt64($1 & 7) }
            if (3...4).contains(digits.count), digits.count == text.utf8.count, mode <= 0o777 {
                file.mode = UInt16(truncatingIfNeeded: mode)
            } else {
                error(
                    "'mode' in 'socket' of \(place) must be permissions in octal, such as \"0660\"", inside.mark("mode")
                )
            }
        }
        file.group = inside.text("group")
        return file
    }

    private mutating func add(_ listener: Listener) {
        listeners.append(listener, named: listener.name)
        if listenersByAddress[listener.address] == nil { listenersByAddress[listener.address] = listener.name }
    }

    /// Reports keys that a mode has no use for, or cannot serve.
    private mutating func checkRedirection(_ listener: Listener, _ reader: BlockReader, _ place: String) {
        if listener.intercept != nil, listener.mode == .gateway {
            reader.refuse("intercept", "is used only in forward_proxy and transparent mode")
        }
        guard !listener.tls.isEmpty else { return }
        if listener.mode == .transparent {
            reader.refuse(
                "tls",
                "is not used in transparent mode: callers expect the certificates of the hosts that they mean; use 'intercept'"
            )
        } else if listener.intercept != nil, listener.mode == .forwardProxy {
            error(
                "'tls' and 'intercept' of \(place) together are not supported yet: TLS inside of TLS; remove one of them",
                reader.mark("tls"))
        }
    }

    mutating func decodeRoutes() {
        for node in root.entry("routes")?.value.list ?? [] where node.map != nil {
            let base = defaults.entry("route")?.value
            let own = node["token_stub"] == nil ? base : base.map(Self.defaultsOfStub)
            decodeRoute(BlockReader(node.merged(over: own), Keys.route, mark: node.mark, findings: findings))
        }
    }

    private mutating func decodeRoute(_ unnamed: BlockReader) {
        let listen = listen(unnamed)
        let match = match(unnamed)
        let path = unnamed.inside("match", Keys.match).text("path") ?? ""
        let made = (listen.first ?? "route") + path
        let name = unnamed.text("name") ?? unusedName(made)
        let place = "route '\(Quoted.short(name))'"
        let reader = unnamed.called(place)
        if let first = marksOfRoutes[name] {
            error("\(place) is defined twice; first in line \(first.line) of \(first.file)", reader.mark("name"))
        }
        reader.needRequired()
        let isStub = reader.has("token_stub")
        let use = use(reader, place: place, isStub: isStub)
        let upstream = upstream(reader, match, listen, place: place, isStub: isStub)
        var route = Route(
            name: name, mark: reader.mark, listen: listen, match: match, to: upstream, use: use,
            inject: injection(reader, place: place), headers: headerEdits(reader, place: place),
            onRejected: onRejected(reader, place: place), timeouts: timeouts(reader), tls: tls(reader),
            callers: callers(reader, place: place))
        route.alternatives = Array((reader.texts("use") ?? []).dropFirst())
        route.downgrade = reader.word("downgrade")
        let own = identity(of: route)
        route.scopes = reader.texts("scopes") ?? own?.scopes ?? []
        route.audience = reader.text("audience")
        route.resource = reader.text("resource")
        route.realm = reader.text("realm")
        route.subject = subject(reader, place: place)
        route.host = reader.parsed("host", AddressParser.hostHeader) ?? .upstream
        route.rewrite = rewrite(reader, place: place)
        route.forwarded = forwarded(reader)
        route.cacheControl = reader.word("cache_control")
        route.answers = reader.word("answers")
        route.serverTiming = reader.boolean("server_timing")
        route.requestID = reader.word("request_id")
        route.paths = reader.word("paths")
        route.http = reader.word("http")
        route.allowCleartext = reader.boolean("allow_cleartext")
        route.proxy = proxy(reader)
        if let own = route.proxy, let upstream, !own.serves(upstream.origin.host) { route.proxy = nil }
        if route.proxy != nil, upstream?.addresses.isEmpty == false {
            error(
                "'addresses' of \(place) has no meaning behind a 'proxy', which does the connecting",
                reader.mark("proxy"))
        }
        route.health = health(reader, place: place)
        route.hosts = hosts(reader, place: place)
        let limits = reader.inside("limits", Keys.routeLimits)
        route.limits = .init(connections: limits.integer("connections"), waiters: limits.integer("waiters") ?? 1000)
        route.tokenStub = isStub ? tokenStub(reader, place: place) : nil
        checkRoute(route, reader, place: place)
        if isMatchReadable(reader) { checkReachable(route, place: place) }
        if marksOfRoutes[name] == nil { marksOfRoutes[name] = route.mark }
        routes.append(route)
    }

    /// The identity that `route` uses, where it is defined.
    func identity(of route: Route) -> Identity? {
        guard case .identity(let name) = route.use else { return nil }
        return identities[name]
    }

    private mutating func unusedName(_ made: String) -> String {
        // Names are never free again, so the search goes on where it ended last.
        var count = unnamedRoutes[made, default: 1]
        var name = count == 1 ? made : "\(made)#\(count)"
        while marksOfRoutes[name] != nil {
            count += 1
            name = "\(made)#\(count)"
        }
        unnamedRoutes[made] = count
        return name
    }

    // MARK: - Where from, where to

    /// Names of listeners; a plain address becomes a listener of its own.
    private mutating func listen(_ reader: BlockReader) -> [String] {
        var names: [String] = []
        var known: Set<String> = []
        reader.refuseEmpty("listen", "'listen' is an empty list")
        for node in reader.items("listen") ?? [] {
            guard let text = node.scalar?.text, let listen = try? AddressParser.listen(text) else { continue }
            var found: String?
            switch listen {
            case .name(let name):
                if writtenListeners[name] != nil {
                    found = name
                } else if node.scalar?.isFaulty == true {
                    continue
                } else if AddressParser.isPort(name) {
                    error(
                        "'listen' must name the address to listen on: 127.0.0.1:\(name) for this machine, 0.0.0.0:\(name) for all",
                        node.mark)
                } else {
                    dangling("'listen' names listener", node.scalar?.written ?? "", listeners.names, node.mark)
                }
            case .address(let address):
                if let listener = listenersByAddress[address] {
                    found = listener
                } else {
                    add(Listener(name: address.description, mark: node.mark, address: address))
                    found = address.description
                }
            }
            guard let found else { continue }
            if known.insert(found).inserted {
                names.append(found)
            } else {
                error("'listen' names '\(Quoted.short(found))' twice", node.mark)
            }
        }
        return names
    }

    private mutating func dangling(_ what: String, _ name: String, _ defined: [String], _ mark: Mark) {
        // A thousand names in each of a thousand messages hide what they say.
        let listed = defined.prefix(50)
        let more = defined.count == listed.count ? "" : " and \(defined.count - listed.count) more"
        let list = defined.isEmpty ? "none is defined" : "defined: \(listed.joined(separator: ", "))\(more)"
        error("\(what) '\(Quoted.short(name))', which is not defined; \(list)\(hint(name, in: defined))", mark)
    }

    /// The end of a message about a name that is not there.
    mutating func hint(_ name: String, in defined: [String]) -> String {
        guard hintsLeft > 0 else { return "" }
        hintsLeft -= 1
        return NearestWord.of(name, in: defined).map { "; did you mean '\($0)'?" } ?? ""
    }

    private mutating func use(_ reader: BlockReader, place: String, isStub: Bool) -> Route.Use {
        guard reader.has("use") else {
            if !isStub, reader.lacks("use") { error("\(place) needs 'use': an identity, or none", reader.mark) }
            return .none
        }
        if isStub { error("\(place) has 'use' beside 'token_stub'", reader.mark("use")) }
        reader.refuseEmpty("use", "'use' of \(place) is an empty list; say none where no credential is added")
        let nodes = (reader.items("use") ?? []).filter { $0.scalar?.isAbsent == false }
        for node in nodes {
            guard let name = node.scalar, writtenIdentities[name.text] == nil, !name.isFaulty else { continue }
            if name.text == "none", nodes.count == 1 { return .none }
            dangling(
                "\(place) uses identity", name.written, writtenIdentities.names,
                nodes.count == 1 ? reader.mark("use") : node.mark)
        }
        return nodes.first?.scalar.map { .identity($0.text) } ?? .none
    }

    private mutating func upstream(
        _ reader: BlockReader, _ match: Match, _ listen: [String], place: String, isStub: Bool
    ) -> Upstream? {
        let isForward = listen.contains { listeners[$0]?.mode == .forwardProxy }
        var upstream = reader.parsed("to", AddressParser.upstream)
        if isStub {
            if reader.has("to") { error("\(place) has 'to' beside 'token_stub'", reader.mark("to")) }
            return upstream
        }
        if !reader.has("to") {
            if isForward, case .exact(let host)? = match.host {
                upstream = Upstream(
                    origin: Origin(
                        scheme: .https, host: host, port: match.ports.count == 1 ? match.ports[0] : 443),
                    pathPrefix: "", addresses: [])
            } else if reader.lacks("to") {
                error("\(place) needs 'to'", reader.mark)
            }
        }
        reader.refuseEmpty("addresses", "'addresses' of \(place) is an empty list")
        upstream?.addresses = reader.list("addresses", AddressParser.endpoint) ?? []
        return upstream
    }

    private func match(_ route: BlockReader) -> Match {
        let reader = route.inside("match", Keys.match)
        return Match(
            host: reader.parsed("host", AddressParser.hostPattern),
            path: reader.parsed("path", AddressParser.pathPattern),
            ports: (reader.list("port") { text throws(TextFault) in try Units.integer(text, in: 1...65535) } ?? [])
                .compactMap { UInt16(exactly: $0) },
            methods: reader.texts("methods") ?? [],
            headers: reader.pairs("headers").map { NamedValue(name: $0.name.lowercased(), value: $0.value) })
    }

    /// A match that could not be read is no match of everything.
    private func isMatchReadable(_ route: BlockReader) -> Bool {
        guard let written = route.entry("match") else { return true }
        let reader = route.inside("match", Keys.match)
        return written.value.map != nil
            && (!reader.has("host") || reader.parsed("host", AddressParser.hostPattern) != nil)
            && (!reader.has("path") || reader.parsed("path", AddressParser.pathPattern) != nil)
    }

    // MARK: - What is changed

    private mutating func injection(_ route: BlockReader, place: String) -> Injection {
        let reader = route.inside("inject", Keys.inject)
        let places = reader.written(["header", "query", "cookie"])
        if places.count > 1 {
            error("'inject' of \(place) has \(places.joined(separator: " and ")); it needs one", reader.mark(places[1]))
        }
        if let other = places.first, other != "header" {
            for key in reader.written(["value", "caller_value"]) {
                error("'\(key)' in 'inject' of \(place) goes only with 'header'", reader.mark(key))
            }
        }
        if let name = reader.text("query") { return .query(name: name) }
        if let name = reader.text("cookie") { return .cookie(name: name) }
        refuseReserved(reader.text("header"), "'header' in 'inject' of \(place)", reader.mark("header"))
        var callerValue = Injection.CallerValue.drop
        if reader.entry("caller_value")?.value.map != nil {
            let inside = reader.inside("caller_value").called("'caller_value' of \(place)")
            inside.needRequired()
            let name = inside.text("keep_as") ?? ""
            refuseReserved(name, "'keep_as' in 'inject' of \(place)", inside.mark("keep_as"))
            if name.lowercased() == (reader.text("header") ?? "authorization").lowercased() {
                error("'keep_as' of \(place) is the header that carries the credential", inside.mark("keep_as"))
            }
            callerValue = .keepAs(name)
        }
        return .header(
            name: reader.text("header"), value: reader.parsed("value", AddressParser.template), callerValue: callerValue
        )
    }

    private mutating func refuseReserved(_ name: String?, _ what: String, _ mark: Mark) {
        guard let name, ReservedHeader.contains(name) else { return }
        error("\(what) must not be '\(name)', which the connection itself uses", mark)
    }

    private mutating func headerEdits(_ route: BlockReader, place: String) -> HeaderEdits {
        let reader = route.inside("headers", Keys.headers)
        let edits = HeaderEdits(set: reader.pairs("set"), remove: reader.texts("remove") ?? [])
        for pair in edits.set {
            let hint = pair.name.lowercased() == "host" ? "; the Host is set by 'host'" : ""
            guard ReservedHeader.contains(pair.name) else { continue }
            error("'\(pair.name)' in 'headers' of \(place) is written by the gateway itself\(hint)", reader.mark("set"))
        }
        for name in edits.remove where ReservedHeader.contains(name) {
            error("'\(name)' in 'headers' of \(place) is written by the gateway itself", reader.mark("remove"))
        }
        let names = edits.set.map { $0.name.lowercased() }
        if let name = names.first(where: { name in names.filter { $0 == name }.count > 1 }) {
            error("'set' of \(place) has '\(name)' twice", reader.mark("set"))
        }
        return edits
    }

    private func subject(_ reader: BlockReader, place: String) -> Route.Subject? {
        switch reader.text("subject") {
        case "from_client_certificate": return .clientCertificate
        case "from_caller_token": return .callerToken
        default: return reader.inside("subject", Keys.subject).text("from_header").map { .header($0) }
        }
    }

    private func forwarded(_ route: BlockReader) -> Route.Forwarded? {
        if route.entry("forwarded")?.value.map == nil, !route.boolean("forwarded") { return nil }
        let reader = route.inside("forwarded", Keys.forwarded)
        return .init(fields: reader.word("fields"), caller: reader.word("caller"))
    }

    private mutating func rewrite(_ route: BlockReader, place: String) -> Route.Rewrite {
        let reader = route.inside("rewrite", Keys.rewrite)
        if reader.text("strip_prefix")?.contains("?") == true {
            error("'strip_prefix' of \(place) must not have a query", reader.mark("strip_prefix"))
        }
        return .init(
            stripPrefix: reader.text("strip_prefix"), response: reader.text("response").flatMap(Units.boolean) ?? true)
    }

    private mutating func onRejected(_ route: BlockReader, place: String) -> OnRejected {
        let reader = route.inside("on_rejected", Keys.onRejected)
        reader.refuseEmpty(
            "statuses",
            "'statuses' in 'on_rejected' of \(place) is an empty list, so no answer would refuse the credential; "
                + "name them, such as [401], or leave the key out")
        reader.refuseEmpty(
            "methods", "'methods' in 'on_rejected' of \(place) is an empty list; say replay: never, or methods: all")
        return OnRejected(
            statuses: reader.list("statuses") { text throws(TextFault) in try Units.integer(text, in: 400...599) },
            methods: reader.entry("methods")?.value.list == nil ? nil : reader.texts("methods"),
            replay: reader.word("replay"), maxBody: reader.size("max_body"), largeBody: reader.word("large_body"),
            final: reader.word("final"))
    }

    private mutating func hosts(_ reader: BlockReader, place: String) -> ServedHosts {
        reader.refuseEmpty("hosts", "'hosts' of \(place) is an empty list; leave the key out, or say [any]")
        let names = reader.list("hosts", AddressParser.hostPattern) ?? []
        return ServedHosts(isAny: names.contains(.exact("any")), names: names.filter { $0 != .exact("any") })
    }

    private func timeouts(_ route: BlockReader) -> Route.Timeouts {
        let reader = route.inside("timeouts", Keys.timeouts)
        return .init(
            connect: reader.duration("connect"), response: reader.duration("response"), idle: reader.duration("idle"),
            keepAlive: reader.duration(reader.has("keep_alive") ? "keep_alive" : "idle"),
            reuse: reader.duration("reuse"), halfClosed: reader.duration("half_closed"))
    }

    private mutating func health(_ route: BlockReader, place: String) -> Route.Health? {
        guard route.entry("health")?.value.map != nil else { return nil }
        let reader = route.inside("health")
        reader.needRequired()
        guard let path = reader.text("path") else { return nil }
        let interval = reader.duration("interval")
        let timeout = reader.duration("timeout")
        if timeout > interval {
            error(
                "'timeout' in 'health' of \(place) must not be longer than its 'interval'",
                reader.mark(reader.has("timeout") ? "timeout" : "interval"))
        }
        reader.refuseEmpty(
            "statuses",
            "'statuses' in 'health' of \(place) is an empty list, so no answer would be good; "
                + "name them, such as [200], or leave the key out for 200 to 299")
        return .init(
            path: path, interval: interval, timeout: timeout, healthy: reader.integer("healthy") ?? 2,
            unhealthy: reader.integer("unhealthy") ?? 3,
            statuses: reader.list("statuses") { text throws(TextFault) in try Units.integer(text, in: 200...599) })
    }

    private func callers(_ route: BlockReader, place: String) -> Callers {
        let reader = route.inside("callers", Keys.callers)
        var callers = Callers(
            allow: .local, tlsNames: reader.texts("tls_names") ?? [], token: reader.secret("token"),
            unixUsers: reader.texts("unix_users") ?? [], browsers: reader.boolean("browsers"),
            unsafeOpen: reader.boolean("unsafe_open"))
        if let networks = reader.list("allow", AddressParser.network) {
            callers.allow = .networks(networks)
        } else if callers.unsafeOpen || callers.token != nil || !callers.tlsNames.isEmpty || !callers.unixUsers.isEmpty
        {
            callers.allow = .any
        }
        return callers
    }
}
