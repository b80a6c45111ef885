/// Rules between routes, identities, listeners and the store, which no key can check alone (docs/security/guarantees.md).
extension TreeDecoder {
    mutating func checkRoute(_ route: Route, _ reader: BlockReader, place: String) {
        checkPorts(route, reader, place: place)
        guard route.tokenStub == nil else {
            checkCallers(route, reader, place: place)
            return
        }
        // Each identity of a list stands for the whole route once it answers.
        for one in route.alternatives.isEmpty ? [route] : route.identityNames.map(route.using) {
            checkCredential(one, reader, place: place)
            if let identity = identity(of: one) {
                checkScopes(reader.texts("scopes") ?? [], of: identity, at: reader.mark("scopes"), place: place)
            }
            checkSubject(one, reader, place: place)
        }
        checkChoice(route, reader, place: place)
        checkForwarded(route, reader, place: place)
        checkCallers(route, reader, place: place)
        if let upstream = route.to { checkLoop(upstream, route, reader, place: place) }
    }

    /// Callers that take us for the origin name our port, or that of whoever forwards to us.
    private mutating func checkPorts(_ route: Route, _ reader: BlockReader, place: String) {
        let match = reader.inside("match", Keys.match)
        match.refuseEmpty("port", "'port' in 'match' of \(place) is an empty list, so no request would match")
        let bound = route.listen.compactMap { listeners[$0] }
        guard !route.match.ports.isEmpty, !bound.isEmpty, bound.allSatisfy({ $0.mode == .gateway }) else { return }
        error(
            "'port' in 'match' of \(place) is used only in forward_proxy and transparent mode; a listener's own port is in 'listen'",
            match.mark("port"))
    }

    private mutating func checkCredential(_ route: Route, _ reader: BlockReader, place: String) {
        guard case .identity = route.use else {
            warnUnused(
                ["inject", "scopes", "audience", "resource", "realm", "cache_control", "answers"], reader, "'use: none'"
            )
            return
        }
        if let origin = route.to?.origin, route.isReadOnTheWay, !route.allowCleartext {
            error(
                "\(place) sends its credential in clear text to \(origin.host); use https:, or allow_cleartext: true",
                reader.mark("to"))
        }
        guard let identity = identity(of: route) else { return }
        identity.scheme.check(route, reader, of: identity)
        guard type(of: identity.scheme).hasToken else {
            return warnUnused(
                ["inject", "scopes", "audience", "resource", "realm", "answers"], reader, "a certificate")
        }
        let carrier = carrier(of: route, identity)
        if ReservedHeader.contains(carrier), case .header(nil, _, _) = route.inject {
            error(
                "\(place) uses identity '\(identity.name)', which injects '\(carrier)', a header of the connection itself",
                reader.mark("use"))
        }
        let names = route.headers.set.map(\.name) + route.headers.remove
        let owned = [carrier.lowercased()] + identity.scheme.writtenFields
        if let name = names.first(where: { owned.contains($0.lowercased()) }) {
            reader.refuse("headers", "edits '\(name)', which identity '\(identity.name)' writes")
        }
    }

    /// Keys of a route without effect, unless they stand under `defaults` for other routes.
    private func warnUnused(_ keys: [String], _ reader: BlockReader, _ cause: String) {
        for key in reader.written(keys)
        where reader.node?[key]?.mark != defaults.entry("route")?.value[key]?.mark {
            reader.warn("'\(key)' of \(reader.place) has no effect with \(cause)", at: key)
        }
    }

    /// The header that carries the credential.
    private func carrier(of route: Route, _ identity: Identity) -> String {
        switch route.inject {
        case .header(let name?, _, _): return name
        case .cookie: return "Cookie"
        // No header at all.
        case .query: return ""
        case .header: break
        }
        return identity.scheme.carrier
    }

    private mutating func checkForwarded(_ route: Route, _ reader: BlockReader, place: String) {
        var written: Set<String> = []
        if let fields = route.forwarded?.fields {
            if fields != .legacy { written.insert("forwarded") }
            if fields != .standard { written.formUnion(["x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"]) }
        }
        let names = route.headers.set.map(\.name) + route.headers.remove
        if let name = names.first(where: { written.contains($0.lowercased()) }) {
            reader.refuse("headers", "edits '\(name)', which 'forwarded' writes")
        }
        if route.requestID != .pass, let name = names.first(where: { $0.lowercased() == "x-request-id" }) {
            reader.refuse("headers", "edits '\(name)', which 'request_id' writes")
        }
        if route.answers == .conceal { checkPlainAnswers(route, reader) }
        let traced = ["traceparent", "tracestate"]
        if let name = route.headers.set.map(\.name).first(where: { traced.contains($0.lowercased()) }), isTracing {
            reader.refuse(
                "headers", "sets '\(name)', which 'tracing' writes; 'remove' alone keeps it from the upstream")
        }
    }

    /// Fields that ask for answers which nobody could look into are written by nobody else.
    private mutating func checkPlainAnswers(_ route: Route, _ reader: BlockReader) {
        func isDecided(_ name: String) -> Bool { Route.Answers.decidedFields.contains(name.lowercased()) }
        if let name = route.headers.set.map(\.name).first(where: isDecided) {
            reader.refuse("headers", "sets '\(name)', which 'answers: conceal' decides")
        }
        if let identity = identity(of: route), isDecided(carrier(of: route, identity)) {
            reader.refuse(
                "answers", "is conceal, which decides '\(carrier(of: route, identity))', and the credential goes there")
        }
        if case .header(_, _, .keepAs(let name)) = route.inject, isDecided(name) {
            reader.refuse("inject", "keeps what callers send as '\(name)', which 'answers: conceal' decides")
        }
    }

    private mutating func checkCallers(_ route: Route, _ reader: BlockReader, place: String) {
        let callers = route.callers
        let bound = route.listen.compactMap { listeners[$0] }
        if callers.token != nil {
            let mark = reader.inside("callers", Keys.callers).mark("token")
            if bound.contains(where: { $0.mode == .transparent }) {
                error(
                    "'token' in 'callers' of \(place) has no meaning in transparent mode: callers know of no gateway",
                    mark)
            }
            if route.subject == .callerToken {
                error("'token' in 'callers' of \(place) stands where 'subject: from_caller_token' is found", mark)
            }
            if case .header(_, _, .keepAs) = route.inject {
                error("'token' in 'callers' of \(place) would be kept by 'keep_as' and reach the upstream", mark)
            }
        }
        // `callers: local` in so many words is a decision; a map that names nobody is none. A map that names somebody allows any address.
        let isStated = reader.entry("callers")?.value.scalar != nil
        if callers.allow == .local, !isStated {
            for listener in bound where !listener.address.isLocal {
                error(
                    "\(place) listens on \(listener.address) and admits nobody in particular; say callers.allow, "
                        + "or callers: {unsafe_open: true}", reader.mark("listen"))
            }
        }
        if case .networks(let networks) = callers.allow {
            if reader.inside("callers", Keys.callers).items("allow")?.isEmpty == true {
                error("'allow' of \(place) is empty, so nobody could call", reader.mark("callers"))
            }
            if networks.contains(where: { $0.prefixLength == 0 }), !callers.unsafeOpen {
                let mark = reader.mark("callers")
                warning("'allow' of \(place) admits every address; callers: {unsafe_open: true} says so plainly", mark)
            }
        }
        for listener in bound {
            if !callers.tlsNames.isEmpty, !listener.tls.contains(where: { $0.clientCA != nil }) {
                error(
                    "'tls_names' of \(place) never holds on \(listener.address), which asks for no certificate; "
                        + "give its 'tls' a 'client_ca'", reader.mark("callers"))
            }
            switch listener.address {
            case .unix:
                if case .networks = callers.allow {
                    error(
                        "'allow' of \(place) never holds on \(listener.address), where callers have no address",
                        reader.mark("callers"))
                }
            case .tcp:
                if !callers.unixUsers.isEmpty {
                    error("'unix_users' of \(place) never holds on \(listener.address)", reader.mark("callers"))
                }
            }
        }
    }

    /// A route to its own listener would call itself until a limit ends it; a chain through another one may be meant.
    private mutating func checkLoop(_ upstream: Upstream, _ route: Route, _ reader: BlockReader, place: String) {
        guard upstream.addresses.isEmpty else { return }
        let host = upstream.origin.host == "localhost" ? "127.0.0.1" : upstream.origin.host
        guard let address = IPAddress(host) else { return }
        for listener in route.listen.compactMap({ listeners[$0] }) {
            if case .tcp(let own, let port) = listener.address, port == upstream.origin.port,
                own == address || (own.isUnspecified && address.isLoopback)
            {
                reader.refuse("to", "is its own listener \(listener.address)")
            }
        }
    }

    /// Before the route itself stands among the others.
    mutating func checkReachable(_ route: Route, place: String) {
        // Every listener of the route must be covered; one earlier route may cover each.
        var covering: Int?
        var isReached = false
        for listener in route.listen {
            // A route for other ports of a proxy is another route.
            let isGateway = listeners[listener]?.mode == .gateway
            let name = isGateway ? listener : "\(listener) \(route.proxyPorts.sorted())"
            if let earlier = cover.first(covering: route.match, on: name) {
                covering = earlier
            } else {
                cover.add(route.match, at: routes.count, on: name)
                isReached = true
            }
        }
        guard let covering, !isReached else { return }
        warning(
            "\(place) is never reached: route '\(routes[covering].name)' before it matches everything it matches",
            route.mark)
    }

    mutating func checkWhole(_ configuration: Configuration) {
        checkSubjectsOfIdentities()
        if root.lacks("routes") {
            error("the file needs 'routes'", root.mark)
        } else if root.entry("routes")?.value.list?.isEmpty == true {
            error("'routes' is empty, so there is nothing to serve", root.mark("routes"))
        }
        checkAdminAddress(configuration)
        checkListenersAreNamed(configuration)
        checkServedHosts(configuration)
        for identity in configuration.identities { identity.scheme.check(configuration, of: identity, findings) }
        guard configuration.store.path == nil else { return }
        for identity in configuration.identities where identity.scheme.sendsPassword {
            warning(
                "identity '\(identity.name)' sends a password and there is no 'store': after a restart a refused one is tried again",
                identity.mark)
        }
    }

    private func checkListenersAreNamed(_ configuration: Configuration) {
        let named = Set(configuration.routes.flatMap(\.listen))
        for listener in configuration.listeners where !named.contains(listener.name) {
            warning(
                "listener '\(listener.name)' is not opened: no route has it in 'listen'; name it there, or take the listener out",
                listener.mark)
        }
    }

    /// A page whose name was made to lead to us (DNS rebinding) shows itself by its Host alone. Over TLS our certificate refuses its name.
    private mutating func checkServedHosts(_ configuration: Configuration) {
        for listener in configuration.listeners
        where listener.mode == .gateway && !listener.address.isLocal && listener.tls.isEmpty && listener.hosts.isEmpty {
            let open = configuration.routes.first {
                $0.listen.contains(listener.name) && $0.restsOnAddress && $0.hosts.isEmpty && $0.match.host == nil
            }
            guard let open else { continue }
            warning(
                "route '\(open.name)' admits callers of \(listener.address) by their place alone, so a Host other than an IP address, a name "
                    + "without a dot, this machine's name or the host of 'to' gets 421; name the others in 'hosts', or ask for a 'token' "
                    + "or 'tls_names' in 'callers'", open.mark)
        }
    }

    private mutating func checkAdminAddress(_ configuration: Configuration) {
        let reader = root.inside("admin", Keys.admin)
        let admin = configuration.admin
        for (key, address) in [("listen", admin.listen), ("probes", admin.probes), ("metrics", admin.metrics)] {
            guard let address, let listener = configuration.listeners.first(where: { $0.address == address }) else {
                continue
            }
            error(
                "'\(key)' of 'admin' is the address of listener '\(listener.name)'",
                reader.has(key) ? reader.mark(key) : listener.mark)
        }
    }
}
