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
        let line = JSON.object(
            sites.map { ($0.name == "protected" ? "listen" : $0.name, .string($0.address)) }
                + [
                    ("user", .string(settings.user)), ("client_id", .string(settings.clientID)),
                    ("oauth_client_id", .string(settings.oauthClientID)),
                    ("service_domain", .string(settings.serviceDomain)),
                    ("user_agent_prefix", .string(settings.userAgentPrefix)),
                    ("anonymous_key", .string(MobileHubServer.anonymousKey(settings))),
                    ("service", .string("http://\(sites[2].address)\(TokenService.root.dropLast())")),
                ])
        write(STDOUT_FILENO, line.description + "\n")
        while true { pause() }
    }

    private static func build(_ settings: Settings) -> [Site] {
        let ledger = Ledger(settings: settings)
        let faults = Faults()
        let gate = WebGate(ledger: ledger, faults: faults)
        let api = ResourceAPI(ledger: ledger, faults: faults)
        func site(_ name: String, _ text: String, _ handler: @escaping Site.Handler) -> Site {
            guard let address = Settings.address(text) else {
                quit("'\(text)' is not an address of the form 127.0.0.1:8080")
            }
            return Site(
                name: name, host: address.host, port: address.port, ledger: ledger, faults: faults, handler: handler)
        }
        let oracle = OracleServer(ledger: ledger, faults: faults)
        let mobileFirst = MobileFirstServer(ledger: ledger, faults: faults)
        let adobePass = AdobePassServer(ledger: ledger, faults: faults)
        let guarded = ProtectedSite(ledger: ledger, faults: faults, gate: gate, api: api, adobePass: adobePass)
        let mobileHub = MobileHubServer(ledger: ledger, faults: faults)
        let plain = PlainSite(ledger: ledger, gate: gate, api: api)
        let issuing = IssuerSite(
            ledger: ledger, faults: faults, service: TokenService(ledger: ledger, faults: faults),
            server: OAuthServer(ledger: ledger, faults: faults), mobileFirst: mobileFirst, adobePass: adobePass,
            oracle: oracle, mobileHub: mobileHub)
        let protected = site("protected", settings.listen) { (request, connection) throws(WireFault) in
            try guarded.answer(request, connection)
        }
        let issuer = site("issuer", settings.issuer) { (request, connection) throws(WireFault) in
            try issuing.answer(request, connection)
        }
        let steering = ControlSite(
            ledger: ledger, faults: faults, protected: protected, issuer: issuer, mobileFirst: mobileFirst,
            adobePass: adobePass, oracle: oracle, mobileHub: mobileHub)
        return [
            protected,
            site("plain", settings.plain) { (request, connection) throws(WireFault) in
                try plain.answer(request, connection)
            },
            issuer,
            site("control", settings.control) { (request, connection) throws(WireFault) in
                try steering.answer(request, connection)
            },
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
