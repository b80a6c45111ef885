internal import Configuration
internal import Fleet
internal import Numbers
internal import Reactor
internal import TLS
internal import Telemetry
internal import World

/// Opens the shared tier of `store.shared`. Whatever is wrong with the server, the gateway serves; a key that cannot be read is another
/// matter only in that nothing is shared then.
extension Gateway {
    static func openFleet(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, events: EventLog,
        keeper: Keeper, platform: Platform
    ) throws(GatewayFault) -> (fleet: KeptFleet, tier: RedisTier)? {
        guard let shared = configuration.store.shared else { return nil }
        let keys: FleetKeys
        let ring: SealingKeyRing
        do throws(StoreKeys.Problem) {
            // `check` has made sure that keys are named, so no file is made.
            ring = try StoreKeys(configuration, path: "", environment: environment).read()
        } catch { throw GatewayFault("store.shared: \(error.text)") }
        do throws(SealingFault) { keys = try FleetKeys(ring) } catch { throw GatewayFault("store.key: \(error)") }
        let loop = keeper.loop
        do throws(RedisFault) {
            // A lost letter of news is made up for by looking; one of the server's state comes again with the next.
            let tier = try RedisTier(
                RedisSettings(shared, policy: configuration.secretFiles, environment: environment), keys: keys,
                format: FleetFormat(shared.format), wall: { WallTime(milliseconds: platform.time.wallMilliseconds()) },
                random: platform.random,
                news: { news in _ = loop.post { keeper.assumeIsolated { $0.heard(news) } } },
                changed: { fault in _ = loop.post { keeper.assumeIsolated { $0.fleetChanged(fault) } } })
            return (KeptFleet(tier: tier, place: "\(shared)", format: FleetFormat(shared.format)), tier)
        } catch { throw GatewayFault("store.shared: \(error)") }
    }
}

extension FleetFormat {
    fileprivate init(_ configured: SharedStore.Format) {
        switch configured {
        case .old: self = .old
        case .both: self = .both
        case .new: self = .new
        }
    }
}

extension RedisSettings {
    fileprivate init(
        _ shared: SharedStore, policy: SecretFilePolicy, environment: @escaping @Sendable (String) -> String?
    ) {
        let place: Place =
            switch shared.place {
            case .server(let origin): .tcp(host: origin.host, port: origin.port)
            case .unix(let path): .unix(path: path)
            }
        self.init(
            place: place, authorities: shared.usesTLS ? shared.authorities.map { CertificateAuthority($0) } : nil,
            username: shared.username, database: shared.database)
        if let reference = shared.password {
            password = {
                try readSecret(reference, environment: environment, policy: policy).withBytes { Array($0) }
            }
        }
    }
}

extension CertificateAuthority {
    init(_ authority: ConfiguredTLS.Authority) {
        switch authority {
        case .system: self = .system
        case .file(let path): self = .file(path)
        }
    }
}
