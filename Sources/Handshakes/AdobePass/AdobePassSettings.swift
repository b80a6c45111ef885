public import Configuration
internal import Octets

/// Settings of an `adobe_pass` identity. The wire: docs/design/wire/adobe-pass.md.
public struct AdobePassSettings: Sendable {
    /// Without a path.
    public var base: IssuerURL
    public var serviceProvider: String
    public var mvpd: String
    public var domainName: String?
    public var redirectURL: String?
    public var device = Device()
    public var quota: CallQuota
    public var generation = Generation.v2
    /// Statuses by which the media service refuses a token.
    public var refusals: [Int] = []
    /// Resources of which operators are told whether they would be authorized; at most 5
    /// (docs/design/wire/adobe-pass.md#preauthorize).
    public var preauthorized: [String] = []
    /// For routes without one.
    let resource: ResourceTemplate?

    public init(
        base: IssuerURL, serviceProvider: String, mvpd: String, resource: ResourceTemplate?, quota: CallQuota
    ) {
        self.base = base
        self.serviceProvider = serviceProvider
        self.mvpd = mvpd
        self.quota = quota
        self.resource = resource
    }

    /// The generation of Adobe's REST API. A login made with one is none for the other (docs/design/wire/adobe-pass.md#generations).
    public enum Generation: Sendable { case v2, v1 }

    /// The device that `X-Device-Info` tells of (docs/design/wire/adobe-pass.md#headers).
    public struct Device: Sendable {
        /// nil: made once and kept.
        public var id: String?
        public var model = "cardea"
        public var version = "1.0"
        public var hardware = "Unknown"
        public var system = "Linux"
        public var systemVersion = "6.1"
        public var connection = "Ethernet"

        public init() {}

        var header: String {
            var info = JSONBody(capacity: 512)
            info.member("primaryHardwareType", hardware)
            info.member("model", model)
            info.member("version", version)
            info.member("osName", system)
            info.member("osVersion", systemVersion)
            info.member("connectionType", connection)
            return Base64.encode(info.finish())
        }
    }

    /// Nanoseconds between two looks at whether the person is through; Adobe asks for 3 to 5 s (docs/design/wire/adobe-pass.md#wait).
    static let pollInterval: UInt64 = 3_000_000_000
    /// The longest that a code is waited for, whatever the server says: an hour.
    static let longestLogin: UInt64 = 3_600_000_000_000
    /// Attempts at a call that the server itself asks to try again.
    static let mostTries = 3
}

// MARK: - Endpoints

extension AdobePassSettings {
    var register: String { "/o/client/register" }
    var token: String { "/o/client/token" }
    var sessions: String { "\(api)/sessions" }
    var profile: String { "\(api)/profiles/\(mvpd)" }
    var authorize: String { "\(api)/decisions/authorize/\(mvpd)" }
    var preauthorize: String { "\(api)/decisions/preauthorize/\(mvpd)" }
    var logout: String { "\(api)/logout/\(mvpd)" }

    func session(_ code: String) -> String { "\(sessions)/\(code)" }
    func profile(code: String) -> String { "\(api)/profiles/code/\(code)" }

    private var api: String { "/api/v2/\(serviceProvider)" }

    func url(_ path: String) throws(GrantFailure) -> IssuerURL {
        guard let url = base.appending(path: path) else {
            throw .configuration(reason: "base_url, service_provider, mvpd: not a URL")
        }
        return url
    }
}
