internal import Configuration
internal import DataPath
internal import Fleet
internal import Keeping
internal import Numbers
internal import TLS
internal import World

/// Makes the shared tier of `store.shared`. Whatever is wrong with the server, the gateway serves; a key that cannot be read is another
/// matter only in that nothing is shared then.
extension Gateway {
    static func openFleet(
        _ configuration: Configuration, environment: @escaping @Sendable (String) -> String?, keeper: Keeper,
        platform: Platform
    ) throws(GatewayFault) -> (fleet: KeptFleet, tier: RedisTier)? {
        guard let shared = configuration.store.shared else { return nil }
        let keys: FleetKeys
        let ring: SealingKeyRing
        do throws(StoreKeys.Problem) {
            // `check` has made sure that keys are named, so no file is made.
            ring = try StoreKeys(configuration, path: "", environment: environment).read()
        } catch { throw GatewayFault("store.shared: \(error.text)") }
        do throws(SealingFault) { keys = try FleetKeys(ring) } catch { throw GatewayFault("store.key: \(error)") }
        let sources = shared.authorities
        let policy = configuration.secretFiles
        var password: (@Sendable () throws -> [UInt8])?
        if let reference = shared.password {
            password = { try readSecret(reference, environment: environment, policy: policy).withBytes { Array($0) } }
        }
        let trust =
            shared.usesTLS
            ? TrustAnchors(
                sources.map { .init($0) },
                systemFile: sources.contains(.system) ? environment("SSL_CERT_FILE") : nil)
            : nil
        let connection = try FleetConnection(
            to: shared.address, trust: trust,
            readPassword: password, loop: keeper.loop, resolver: keeper.resources.resolver, blocking: keeper.blocking)
        let time = platform.time
        let tier = RedisTier(
            over: connection, as: RedisLogin(username: shared.username, database: shared.database), keys: keys,
            format: FleetFormat(shared.format), wall: { WallTime(milliseconds: time.wallMilliseconds()) },
            random: platform.random, news: { news in keeper.assumeIsolated { $0.heard(news) } },
            changed: { fault in keeper.assumeIsolated { $0.fleetChanged(fault) } })
        let fleet = KeptFleet(tier: tier, address: "\(shared)", format: FleetFormat(shared.format), trust: trust)
        return (fleet, tier)
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
