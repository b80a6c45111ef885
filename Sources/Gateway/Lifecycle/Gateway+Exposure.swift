internal import Configuration
internal import Reactor
internal import Synchronization
internal import Telemetry

extension Gateway {
    /// Says once of each secret what the first request that needs it will miss, and of each file that others can read it. On the thread that reads secrets: a disk that hangs delays no start.
    func tellOfSecrets(of configuration: Configuration) {
        _ = blocking.run { [self] in
            func news(of secret: Configuration.NamedSecret, _ reason: String) -> [LogField]? {
                guard exposuresTold.withLock({ $0.insert(reason).inserted }) else { return nil }
                return [
                    LogField("secret", .name("'\(secret.key)' of \(secret.owner)")), LogField("reason", .name(reason)),
                ]
            }
            for (secret, reason) in configuration.missingSecrets(environment: environment) {
                if let news = news(of: secret, reason) { events.error("secret cannot be read", news) }
            }
            for (secret, reason) in configuration.exposedSecrets(environment: environment) {
                if let news = news(of: secret, reason) { events.warn("secret file is open to others", news) }
            }
        }
    }
}
