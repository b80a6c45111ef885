extension Configuration {
    /// A secret that the configuration names.
    public struct NamedSecret: Sendable, Equatable {
        /// Such as "identity 'hr'".
        public var owner: String
        /// The path of the key that holds the reference.
        public var key: String
        /// Where the key stands in the file.
        public var mark: Mark
        /// Where the value is read.
        public var reference: SecretReference
    }

    /// Every secret of the file, for `check` and for a watch.
    public var secrets: [NamedSecret] {
        var found: [NamedSecret] = []
        func add(_ owner: String, _ key: String, _ mark: Mark, _ reference: SecretReference?) {
            guard let reference else { return }
            var place = places.mark(of: reference.description, in: mark)
            if place == mark, case .file(let path) = reference { place = places.mark(of: path, in: mark) }
            found.append(.init(owner: owner, key: key, mark: place, reference: reference))
        }
        func add(_ owner: String, _ key: String, _ mark: Mark, _ proxy: OutgoingProxy?) {
            for secret in proxy?.secrets ?? [] { add(owner, "\(key).\(secret.key)", mark, secret.reference) }
        }
        for identity in identities {
            let owner = "identity '\(identity.name)'"
            for secret in identity.secrets { add(owner, secret.key, identity.mark, secret.reference) }
            add(owner, "network.proxy", identity.mark, identity.network.proxy)
            add(owner, "network.tls.key", identity.mark, identity.network.tls.identity?.key)
            add(owner, "network.tls.password", identity.mark, identity.network.tls.identity?.password)
        }
        for route in routes {
            let owner = "route '\(route.name)'"
            add(owner, "proxy", route.mark, route.proxy)
            add(owner, "tls.key", route.mark, route.tls.identity?.key)
            add(owner, "tls.password", route.mark, route.tls.identity?.password)
            add(owner, "callers.token", route.mark, route.callers.token)
        }
        for listener in listeners {
            for tls in listener.tls { add("listener '\(listener.name)'", "tls.key", listener.mark, tls.key) }
            // The file holds the authority's private key.
            let authority = listener.intercept.map { SecretReference.file(path: $0.ca) }
            add("listener '\(listener.name)'", "intercept.ca", listener.mark, authority)
        }
        let file = Mark(file: routes.first?.mark.file ?? identities.first?.mark.file ?? "environment")
        for key in store.keys { add("store", "key", storeMarks.key, key) }
        add("store", "shared.password", file, store.shared?.password)
        add("admin", "token", file, admin.token)
        add("audit", "subject_key", auditMark, audit?.subjectKey)
        if let export = tracing?.export {
            for header in export.headers { add("tracing", "headers.\(header.name)", file, header.value) }
            add("tracing", "network.proxy", file, export.network.proxy)
            add("tracing", "network.tls.key", file, export.network.tls.identity?.key)
            add("tracing", "network.tls.password", file, export.network.tls.identity?.password)
        }
        return found
    }

    /// Variables of the environment in which secrets of identities stand: what a caller would show to an API.
    public var callersVariables: Set<String> { identities.reduce(into: []) { $0.formUnion($1.secretVariables) } }

    /// Variables of the environment in which secrets stand.
    public var secretVariables: Set<String> {
        Set(
            secrets.compactMap {
                if case .environment(let name) = $0.reference { name } else { nil }
            })
    }

    /// The proxies that are given tickets of Kerberos, with whoever goes through them.
    public var proxiesWithTickets: [(owner: String, mark: Mark, tickets: TicketSource)] {
        var found = identities.map { ("identity '\($0.name)'", $0.mark, $0.network.proxy?.tickets) }
        found += routes.map { ("route '\($0.name)'", $0.mark, $0.proxy?.tickets) }
        let file = Mark(file: routes.first?.mark.file ?? "")
        found.append(("tracing", file, tracing?.export?.network.proxy?.tickets))
        return found.compactMap { owner, mark, tickets in tickets.map { (owner, mark, $0) } }
    }

    /// Files and folders that the library of Kerberos reads for proxies, beside secrets.
    func ticketFiles(environment: (String) -> String?) -> [String] {
        let tickets = proxiesWithTickets.map(\.tickets)
        return tickets.isEmpty ? [] : TicketSource.files(environment: environment) + tickets.compactMap(\.cache)
    }

    /// How servers are connected to: issuers, upstreams, the collector of spans.
    var clientTLS: [ClientTLS] {
        identities.map(\.network.tls) + routes.map(\.tls) + [tracing?.export?.network.tls].compactMap(\.self)
    }

    /// All by which these servers are judged.
    public var authorities: Set<ClientTLS.Authority> { Set(clientTLS.flatMap(\.authorities)) }

    /// Every certificate that we may show, with its place.
    public var clientKeys: [(owner: String, mark: Mark, files: ClientKeyFiles)] {
        var found: [(owner: String, mark: Mark, files: ClientKeyFiles)] = []
        for identity in identities {
            let owner = "identity '\(identity.name)'"
            found += identity.scheme.certificates.map { (owner, identity.mark, $0) }
            if let files = identity.network.tls.identity { found.append((owner, identity.mark, files)) }
        }
        for route in routes {
            if let files = route.tls.identity { found.append(("route '\(route.name)'", route.mark, files)) }
        }
        if let files = tracing?.export?.network.tls.identity {
            found.append(("tracing", Mark(file: routes.first?.mark.file ?? ""), files))
        }
        return found
    }

    /// Reads every secret once and gives a warning for each that cannot be had, or that others can read; an error where
    /// `secret_files: strict` refuses it for that. Blocks.
    /// - Parameter fault: says why what was read is of no use, which is an error: here it is the same for everybody who reads it.
    public func checkSecrets(
        environment: (String) -> String?, fault: (NamedSecret, SecretBytes) -> String? = { _, _ in nil }
    ) -> [Diagnostic] {
        var diagnostics: [Diagnostic] = []
        for secret in secrets {
            let what = "'\(secret.key)' of \(secret.owner)"
            do {
                // A certificate is read like a secret and is none.
                let isPublic = secret.key == "certificate"
                let policy = isPublic ? .warn : secretFiles
                let bytes = try readSecret(secret.reference, environment: environment, policy: policy) {
                    guard !isPublic else { return }
                    diagnostics.append(Diagnostic(.warning, "\(what): \($0)", at: secret.mark))
                }
                let isShort =
                    secret.owner == "admin" && secret.key == "token"
                    && bytes.withBytes { $0.count } < Configuration.shortestAdminToken
                let short = "it has fewer than \(Configuration.shortestAdminToken) characters, which can be guessed"
                let isGuessable =
                    secret.owner == "audit" && bytes.withBytes { $0.count } < AuditLog.shortestSubjectKey
                if let reason = isShort || isGuessable ? short : fault(secret, bytes) {
                    diagnostics.append(Diagnostic(.error, "\(what): \(secret.reference): \(reason)", at: secret.mark))
                }
            } catch {
                // Who runs the check may lack what the gateway has; but not this: it is the file's, whoever reads it. Nor does
                // a gateway start without what a listener shows.
                let isFatal = isNeededForStart(secret) && !error.isOfThisUser
                let severity: Diagnostic.Severity = error.isOpenToOthers || isFatal ? .error : .warning
                diagnostics.append(Diagnostic(severity, "\(what): \(error)", at: secret.mark))
            }
        }
        return diagnostics.sorted()
    }

    /// Keys of listeners, and the key under which a fleet shares.
    private func isNeededForStart(_ secret: NamedSecret) -> Bool {
        secret.owner.hasPrefix("listener ") || secret.owner == "audit"
            || secret.owner == "store" && secret.key == "key" && store.shared != nil
    }

    /// The secrets that cannot be had now, with the reason; programs of `exec:` are not run for it. Blocks.
    public func missingSecrets(environment: (String) -> String?) -> [(secret: NamedSecret, reason: String)] {
        secrets.compactMap { secret in
            if case .command = secret.reference { return nil }
            do throws(SecretFault) {
                _ = try readSecret(secret.reference, environment: environment, policy: secretFiles)
                return nil
            } catch { return (secret, "\(error)") }
        }
    }

    /// The secrets whose files others can read, with one sentence about each; none under `secret_files: strict`, which refuses them.
    /// Reads none of them. Blocks.
    public func exposedSecrets(environment: (String) -> String?) -> [(secret: NamedSecret, reason: String)] {
        guard secretFiles == .warn else { return [] }
        return secrets.compactMap { secret in
            // A certificate is read like a secret and is none.
            guard secret.key != "certificate" else { return nil }
            let reader = SecretReader(place: secret.reference.description, policy: .warn)
            let reason: String? =
                switch secret.reference {
                case .file(let path): reader.exposure(of: path)
                case .credential(let name):
                    environment("CREDENTIALS_DIRECTORY").flatMap { reader.exposure(of: "\($0)/\(name)") }
                case .environment, .command, .literal: nil
                }
            return reason.map { (secret, $0) }
        }
    }
}

extension Identity {
    /// Variables of the environment in which the scheme's secrets stand.
    public var secretVariables: Set<String> {
        Set(
            secrets.compactMap {
                if case .environment(let name) = $0.reference { name } else { nil }
            })
    }
}
