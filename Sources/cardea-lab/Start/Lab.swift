import Glibc

/// Simulated protected systems with faults on demand, for demonstrations and black-box tests. Never shipped.
@main
enum Lab {
    static func main() {
        let settings: Settings
        do {
            settings = try Settings(arguments: Array(CommandLine.arguments.dropFirst()))
        } catch {
            switch error {
            case .help:
                write(STDOUT_FILENO, Settings.usage)
                exit(0)
            case .unknown(let flag): quit("unknown argument '\(flag)'")
            case .missingValue(let flag): quit("\(flag) wants a value")
            case .unreadable(let path): quit("'\(path)' cannot be read as UTF-8 text")
            }
        }
        raiseDescriptorLimit()
        let sites = build(settings)
        for site in sites {
            if let why = site.start() { quit("\(site.name): \(why)", status: 69) }
        }
        var facts = Dictionary(uniqueKeysWithValues: sites.map { ($0.name, $0.address) })
        facts["listen"] = facts.removeValue(forKey: "protected")
        facts["user"] = settings.user
        facts["client_id"] = settings.clientID
        facts["oauth_client_id"] = settings.oauthClientID
        facts["service_domain"] = settings.serviceDomain
        facts["user_agent_prefix"] = settings.userAgentPrefix
        facts["anonymous_key"] = MobileHubServer.anonymousKey(settings)
        facts["service"] = facts["issuer"].map { "http://\($0)\(TokenService.root.dropLast())" }
        let line = JSON.object(facts.mapValues { "\($0)" })
        write(STDOUT_FILENO, String(decoding: line.bytes, as: UTF8.self) + "\n")
        while true { pause() }
    }

    private static func build(_ settings: Settings) -> [Site] {
        let ledger = Ledger(settings: settings)
        func site(_ name: String, _ text: String, _ handler: some Handler) -> Site {
            guard let address = Settings.address(text) else {
                quit("'\(text)' is not an address of the form 127.0.0.1:8080")
            }
            return Site(name: name, host: address.host, port: address.port, ledger: ledger, handler: handler)
        }
        let oauth = OAuthServer(ledger: ledger)
        let systems: [any SimulatedSystem] = [
            oauth, TokenService(ledger: ledger), OracleServer(ledger: ledger), MobileFirstServer(ledger: ledger),
            AdobePassServer(ledger: ledger), MobileHubServer(ledger: ledger),
        ]
        let gate = WebGate(ledger: ledger)
        let api = ResourceAPI(ledger: ledger)
        let protected = site(
            "protected", settings.listen, ProtectedSite(ledger: ledger, gate: gate, api: api, systems: systems))
        let issuer = site("issuer", settings.issuer, IssuerSite(ledger: ledger, systems: systems, oauth: oauth))
        return [
            protected, site("plain", settings.plain, PlainSite(ledger: ledger, gate: gate, api: api)), issuer,
            site(
                "control", settings.control,
                ControlSite(ledger: ledger, protected: protected, issuer: issuer, systems: systems)),
        ]
    }

    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
        limit.rlim_cur = min(limit.rlim_max, 65_536)
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    private static func write(_ descriptor: Int32, _ text: String) {
        _ = Array(text.utf8).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
    }

    private static func quit(_ why: String, status: Int32 = 64) -> Never {
        write(STDERR_FILENO, "cardea-lab: \(why)\n" + (status == 64 ? Settings.usage : ""))
        exit(status)
    }
}
