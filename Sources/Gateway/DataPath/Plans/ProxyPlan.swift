internal import Configuration
internal import Octets
internal import Reactor
internal import Synchronization

/// The HTTP proxy on the way to an upstream or issuer. Shared by all that go through it with the same words of the configuration.
final class ProxyPlan: Sendable {
    let settings: OutgoingProxy
    let endpoint: UpstreamEndpoint
    let credential: ProxyCredential?

    init(_ settings: OutgoingProxy, credential: ProxyCredential?) {
        self.settings = settings
        endpoint = UpstreamEndpoint(host: settings.host, port: settings.port)
        self.credential = credential
    }

    func serves(_ host: String) -> Bool { settings.serves(host.lowercased()) }
}

/// The `Proxy-Authorization` line for one proxy, read from its secret again when that changes. Like `ClientKeys`: loops compare `version`
/// and keep a copy.
final class ProxyCredential: Sendable {
    private let read: @Sendable () throws -> [UInt8]
    private let username: String
    private let contents = Mutex(Contents())
    private let changes = Atomic<UInt64>(0)

    struct Contents: Sendable {
        /// With its CRLF; nil where the secret has never been read.
        var line: [UInt8]?
        var fault: String?
    }

    init(username: String, password: @escaping @Sendable () throws -> [UInt8]) {
        self.username = username
        read = password
    }

    var version: UInt64 { changes.load(ordering: .acquiring) }
    var current: Contents { contents.withLock { $0 } }

    /// Blocks.
    /// - Returns: a new fault.
    func reload() -> String? {
        let result = Result { try read() }
        return contents.withLock { contents in
            switch result {
            case .success(let password):
                let line = Self.line(username, password)
                contents.fault = nil
                guard contents.line != line else { return nil }
                contents.line = line
                changes.add(1, ordering: .acquiringAndReleasing)
                return nil
            case .failure(let error):
                guard contents.fault != "\(error)" else { return nil }
                contents.fault = "\(error)"
                return contents.fault
            }
        }
    }

    private static func line(_ username: String, _ password: [UInt8]) -> [UInt8] {
        let encoded = Base64.encode(Array(username.utf8) + [0x3a] + password)
        return Array("Proxy-Authorization: Basic \(encoded)\r\n".utf8)
    }
}

/// Every proxy of a configuration.
final class ProxyCatalog: Sendable {
    private let plans = Mutex(KeyedList<OutgoingProxy, ProxyPlan>())
    private let earlier: KeyedList<OutgoingProxy, ProxyPlan>

    /// - Parameter running: whose plans go on where the settings are the same.
    init(after running: ProxyCatalog? = nil) { earlier = running?.plans.withLock { $0 } ?? KeyedList() }

    var all: [ProxyPlan] { plans.withLock { $0.all } }

    /// Reads the password of a proxy that is new; blocks.
    func plan(
        _ settings: OutgoingProxy, environment: @escaping @Sendable (String) -> String?, policy: SecretFilePolicy
    ) -> ProxyPlan {
        if let known = plans.withLock({ $0[settings] }) { return known }
        if let known = earlier[settings] {
            plans.withLock { $0.append(known, for: settings) }
            return known
        }
        var credential: ProxyCredential?
        if let username = settings.username, let password = settings.password {
            credential = ProxyCredential(username: username) {
                try readSecret(password, environment: environment, policy: policy).withBytes { Array($0) }
            }
            _ = credential?.reload()
        }
        let plan = ProxyPlan(settings, credential: credential)
        plans.withLock { $0.append(plan, for: settings) }
        return plan
    }
}
